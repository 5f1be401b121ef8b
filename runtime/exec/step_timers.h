// When each step of a plan ran: for ExecutorOptions::profile. Private to
// runtime/exec.
#ifndef HALFTONE_RUNTIME_EXEC_STEP_TIMERS_H_
#define HALFTONE_RUNTIME_EXEC_STEP_TIMERS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

class StepTimers {
 public:
  // For as many steps, `ring` times: one set for each step that may be under
  // way or unread.
  static absl::StatusOr<std::unique_ptr<StepTimers>> Create(Device* device,
                                                            size_t steps,
                                                            int ring);

  // The step that comes begins here: its spans count from this point of
  // `compute`, and go to ring slot `slot`.
  absl::Status Begin(int slot, Stream& compute);
  absl::Status Start(size_t step, Stream& stream);
  absl::Status Stop(size_t step, Stream& stream);

  // Waits for the slot's last step; until the next Read.
  absl::StatusOr<absl::Span<const Executor::Span>> Read(int slot);

 private:
  struct Slot {
    std::unique_ptr<Timer> origin;
    std::vector<std::unique_ptr<Timer>> steps;
  };
  std::vector<Slot> slots_;
  int slot_ = 0;
  std::vector<Executor::Span> spans_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_STEP_TIMERS_H_
