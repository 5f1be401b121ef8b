#include "tools/common/bug_report.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "graph/base/error.h"
#include "passes/pipeline.h"
#include "tools/common/show_error.h"

namespace halftone {
namespace tools {

BugReport::BugReport(Inputs inputs)
    : inputs_(std::move(inputs)),
      on_failed_check_([this](const std::string& what) {
        const int code = ShowError(Of(passes::FailedCheckError(what)));
        std::fflush(nullptr);
        std::_Exit(code);
      }) {}

absl::Status BugReport::Of(const absl::Status& status) const {
  if (ExitCodeOf(status) != ExitCode::kCompilerBug) return status;
  auto inputs = inputs_();
  return inputs.ok() ? WithReproducer(status, *std::move(inputs)) : status;
}

}  // namespace tools
}  // namespace halftone
