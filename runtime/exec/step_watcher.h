// Sees a step while it runs: every piece of its work with what that reads and
// makes, fusions as they are.
#ifndef HALFTONE_RUNTIME_EXEC_STEP_WATCHER_H_
#define HALFTONE_RUNTIME_EXEC_STEP_WATCHER_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/base/symbol_values.h"
#include "kernels/kernel_registry.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// Where a step runs; all of it is the executor's.
struct StepPlace {
  Device* device = nullptr;
  Stream* stream = nullptr;  // of compute
  const kernels::KernelRegistry* kernels = nullptr;
  kernels::BindContext bind;
  SymbolValues symbols{};
};

// Fails the step if it fails. What it reads of a device that works
// asynchronously it copies from, behind the place's stream.
class StepWatcher {
 public:
  using Pointers = absl::Span<const void* const>;
  virtual ~StepWatcher() = default;
  // Before all work of the step; where it has micro-batches, of each.
  virtual absl::Status Begin(const StepPlace& place) = 0;
  virtual absl::Status Before(const Step& step, Pointers inputs) = 0;
  virtual absl::Status After(const Step& step, Pointers inputs,
                             absl::Span<void* const> outputs) = 0;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_STEP_WATCHER_H_
