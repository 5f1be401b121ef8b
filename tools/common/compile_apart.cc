#include "tools/common/compile_apart.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/failed_check.h"
#include "graph/base/system/in_child.h"
#include "passes/pipeline.h"
#include "tools/common/compile_model.h"
#include "tools/common/run_passes.h"

namespace halftone {
namespace tools {
namespace {

// A compile of a million ops takes less than a minute.
constexpr unsigned kSeconds = 3600;

absl::Status Compile(const CompileInputs& inputs) {
  if (!inputs.passes.empty()) return RunPassesAgain(inputs);
  HT_ASSIGN_OR_RETURN(ModelFile source, SourceOf(inputs));
  return CompileModel(std::move(source), inputs.options, inputs.target,
                      inputs.flags)
      .status();
}

std::string ToText(const absl::Status& status) {
  return absl::StrCat(static_cast<int>(ExitCodeOf(status)), "\n",
                      passes::PassAtFault(status), "\n", status.message());
}

absl::Status FromText(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('\n', 2));
  int code = 0;
  if (parts.size() < 3 || !absl::SimpleAtoi(parts[0], &code)) {
    return CompilerBug("a compile ended without a word");
  }
  if (code == 0) return absl::OkStatus();
  return passes::FromPass(parts[1],
                          MakeError(static_cast<ExitCode>(code), parts[2]));
}

}  // namespace

absl::Status CompileApart(const CompileInputs& inputs) {
  HT_ASSIGN_OR_RETURN(
      const EndOfChild end, RunInChild(kSeconds, [&](Say say) {
        const OnFailedCheck on_failed_check([&](const std::string& what) {
          say(ToText(passes::FailedCheckError(what)));
          _exit(0);
        });
        say(ToText(Compile(inputs)));
      }));
  if (WIFSIGNALED(end.wait_status)) {
    return CompilerBug("the compiler ended by a signal: ",
                       strsignal(WTERMSIG(end.wait_status)));
  }
  return FromText(end.said);
}

}  // namespace tools
}  // namespace halftone
