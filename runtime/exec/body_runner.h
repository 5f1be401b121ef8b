// Runs ops of a fusion's body one by one, beside the fused kernel.
#ifndef HALFTONE_RUNTIME_EXEC_BODY_RUNNER_H_
#define HALFTONE_RUNTIME_EXEC_BODY_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "runtime/exec/step_watcher.h"

namespace halftone {
namespace runtime {

// Kernel instances stay for the next time that an op runs, memory is used
// again after Clear: a body that runs once a step allocates in the first one.
class BodyRunner {
 public:
  // Where each value of the body lies, by value id.
  using Values = absl::flat_hash_map<int, void*>;

  // A place with other symbols drops the instances.
  void Begin(const StepPlace& place);

  // By the first kernel that supports it; the outputs' memory lives until
  // Clear. Waits for the device. Errors: no kernel (kModel).
  absl::StatusOr<std::vector<void*>> Run(const Block& body, const Op& op,
                                         const Values& values);
  absl::StatusOr<void*> Allocate(int64_t bytes);
  void Clear();

 private:
  struct Prepared {
    std::unique_ptr<kernels::KernelInstance> instance;
    std::vector<int64_t> output_bytes;
    int64_t workspace_bytes = 0;
  };
  absl::StatusOr<Prepared*> Prepare(const Block& body, const Op& op);

  StepPlace place_;
  absl::flat_hash_map<const Op*, Prepared> prepared_;
  std::vector<std::unique_ptr<Memory>> used_;
  std::multimap<int64_t, std::unique_ptr<Memory>> free_;  // by size
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_BODY_RUNNER_H_
