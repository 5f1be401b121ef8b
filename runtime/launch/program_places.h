// What programs that are not ours are told: PyTorch's and Paddle's variables,
// with addresses at which such a program can really listen.
#ifndef HALFTONE_RUNTIME_LAUNCH_PROGRAM_PLACES_H_
#define HALFTONE_RUNTIME_LAUNCH_PROGRAM_PLACES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/launch/launch_plan.h"

namespace halftone {
namespace runtime {

struct ProgramPlaces {
  // Where rank 0's program may listen. Our own store has another port.
  HostPort master;
  std::vector<HostPort> endpoints;  // one per rank of the world
};

// Ports of this machine on which nobody listens, and which the system does not
// give to whoever asks for any: they stay free until the program comes.
absl::StatusOr<std::vector<int>> FindFreePorts(int count);

// Chooses this node's addresses and, where there are several nodes, learns the
// others' from their launchers by the run's store. An error (kCommunication)
// names the nodes that did not come; kCancelled if `stop` says so.
absl::StatusOr<ProgramPlaces> FindProgramPlaces(
    const LaunchPlan& plan, const HostPort& store, int attempt,
    const std::function<bool()>& stop);

// Adds the variables of torchrun and paddle.distributed.launch for one rank.
// Such programs see all GPUs of the node and choose by their local rank.
void AddProgramVariables(const LaunchPlan& plan, const ProgramPlaces& places,
                         int local_rank, int attempt, int max_restarts,
                         Environment& env);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_PROGRAM_PLACES_H_
