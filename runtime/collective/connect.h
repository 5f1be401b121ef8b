// A communicator for a rank that is a process of its own.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_CONNECT_H_
#define HALFTONE_RUNTIME_COLLECTIVE_CONNECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/communicator.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

struct ConnectOptions {
  RankPlacement place;      // FindRank()
  std::string token;        // FindToken()
  std::string tmp_dir;      // TMPDIR; for ranks of one machine
  std::string own_address;  // of this rank for its peers; empty: found
  absl::Duration connect_timeout = absl::Seconds(60);
  absl::Duration timeout = absl::Seconds(60);  // of one collective
  bool shared_memory = true;  // where all ranks can share some; alike on all
};
// Meets the other ranks and connects over Gloo; a world of one rank needs
// neither. Errors (kCommunication) name the ranks that are missing.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectRank(
    const ConnectOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_CONNECT_H_
