// Ranks that set something up together fail together.
#ifndef HALFTONE_RUNTIME_TRAIN_PEERS_H_
#define HALFTONE_RUNTIME_TRAIN_PEERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

// A collective: every rank says how it fared and hands something on. If all
// are well, all get the messages of all ranks, by rank. Else each failed rank
// gets its own error, and the others that of the first failed rank, with the
// class it has there: "rank 1: models/digits: ...".
absl::StatusOr<std::vector<std::string>> Agree(Communicator& communicator,
                                               const absl::Status& mine,
                                               absl::string_view message = "");

// The first error of `results` that is no mere consequence of another rank's
// (kCommunication); else the first error; OK if there is none.
absl::Status Culprit(absl::Span<const absl::Status> results);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_PEERS_H_
