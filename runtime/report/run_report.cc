#include "runtime/report/run_report.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::Status RunReport::FlushAll() {
  absl::Status written;
  for (const auto& observer : observers_) written.Update(observer->Flush());
  return written;
}

void RunReport::Flush() {
  const absl::Status written = FlushAll();
  if (written.ok() == !waits_) return;
  waits_ = !written.ok();
  Emit(WarningEvent{
      waits_ ? absl::StrCat(written.message(),
                            "; training goes on, and lines wait for room")
             : "the lines that waited for room are written"});
}

absl::Status RunReport::Finish(RunEnded end, absl::Status written) {
  // First, for what is reported then says how the run ended.
  written.Update(FlushAll());
  if (!written.ok() && end.exit_code == 0) {
    end.exit_code = static_cast<int>(ExitCodeOf(written));
  }
  Emit(end);
  written.Update(FlushAll());
  return written;
}

}  // namespace runtime
}  // namespace halftone
