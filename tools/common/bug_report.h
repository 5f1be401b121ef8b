// What becomes of a bug that the compiler meets while a verb calls it.
#ifndef HALFTONE_TOOLS_COMMON_BUG_REPORT_H_
#define HALFTONE_TOOLS_COMMON_BUG_REPORT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/failed_check.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {

// Around a call of the compiler: a bug of it leaves a folder, which the error
// names (tools/reproducer). A check that fails on this thread ends the process
// with that error, shown as any is, and the exit code of a bug.
class BugReport {
 public:
  using Inputs = std::function<absl::StatusOr<CompileInputs>()>;
  // `inputs`: what is compiled; asked for where there is a bug alone. Where it
  // cannot be had there is no folder.
  explicit BugReport(Inputs inputs);

  // The error of the call (kCompilerBug) with a folder; any other as it is.
  absl::Status Of(const absl::Status& status) const;

 private:
  Inputs inputs_;
  OnFailedCheck on_failed_check_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_BUG_REPORT_H_
