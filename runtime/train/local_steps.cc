#include "runtime/train/local_steps.h"

#include <cstring>
#include <string>

#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"

namespace halftone {
namespace runtime {
namespace {

absl::Status ReadInt(Executor& executor, absl::string_view name, int64_t* to) {
  const CellId cell = executor.program().FindCell(name);
  if (!cell.valid()) return absl::OkStatus();
  std::string bytes;
  HT_RETURN_IF_ERROR(executor.ReadCell(cell, &bytes));
  std::memcpy(to, bytes.data(), sizeof(*to));
  return absl::OkStatus();
}

}  // namespace

LocalSteps::LocalSteps(const proto::Dist& dist)
    : adapts_(dist.has_adaptive_localsgd()),
      begin_step_(adapts_ ? dist.adaptive_localsgd().begin_step()
                          : dist.localsgd().begin_step()),
      steps_(adapts_ ? dist.adaptive_localsgd().init_k_steps()
                     : dist.localsgd().k_steps()),
      averaged_at_(adapts_ ? 0 : begin_step_) {}

absl::Status LocalSteps::Restore(Executor& executor) {
  if (!adapts_) return absl::OkStatus();
  HT_RETURN_IF_ERROR(ReadInt(executor, kAveragedAt, &averaged_at_));
  return ReadInt(executor, kLocalSteps, &steps_);
}

bool LocalSteps::EndsAt(int64_t step) const {
  if (step <= begin_step_) return true;
  // Fixed periods follow from the step alone, after a resume, too.
  return adapts_ ? step - averaged_at_ >= steps_
                 : (step - averaged_at_) % steps_ == 0;
}

}  // namespace runtime
}  // namespace halftone
