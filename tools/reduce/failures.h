// What "still fails" means to `halftone reduce`.
#ifndef HALFTONE_TOOLS_REDUCE_FAILURES_H_
#define HALFTONE_TOOLS_REDUCE_FAILURES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/reduce/reduce_model.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {

// The words of a message that are no names, numbers or types: what two errors
// of one cause about different ops have in common.
std::string MessageClass(absl::string_view message);

// The reproducer with fewer ops: its compile ends in the same pass with a
// message of the same class. `before`: as in Reduced.
struct ReducedReproducer {
  Reproducer reproducer;
  int ops_before = 0, ops = 0, asked = 0;
};
absl::StatusOr<ReducedReproducer> ReduceReproducer(const Reproducer& whole);

// The model with fewer ops of which `command` (sh, {} stands for the model's
// path) ends with the exit code that it has with the whole one. Errors: kUsage
// for a command without {} or that ends with 0.
absl::StatusOr<Reduced> ReduceByCommand(const ModelFile& source,
                                        const std::string& command);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REDUCE_FAILURES_H_
