// TryInChild of library_file.h.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "graph/base/error.h"
#include "graph/base/system/in_child.h"
#include "kernels/plugin/library_file.h"

namespace halftone {
namespace kernels {
namespace {

constexpr unsigned kSeconds = 30;  // that a library may take to load

// The class of an error and its text: what the child says.
std::string ToText(const absl::Status& status) {
  std::string text(1, static_cast<char>(ExitCodeOf(status)));
  text.append(status.message().data(), status.message().size());
  return text;
}

absl::Status Ended(const std::string& path, int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return ModelError(path, ": it takes more than ", kSeconds,
                      " seconds to load");
  }
  if (WIFSIGNALED(status)) {
    return ModelError(path, ": it ends the process while it is loaded: ",
                      strsignal(WTERMSIG(status)));
  }
  return ModelError(path, ": it ends the process while it is loaded: exit(",
                    WEXITSTATUS(status), ")");
}

}  // namespace

absl::Status TryInChild(const std::string& path,
                        const std::function<absl::Status()>& look) {
  const auto end = RunInChild(kSeconds, [&](Say say) { say(ToText(look())); });
  if (!end.ok()) return Annotate(end.status(), path);
  if (end->said.empty()) return Ended(path, end->wait_status);
  const auto code = static_cast<ExitCode>(end->said[0]);
  if (code == ExitCode::kOk) return absl::OkStatus();
  return MakeError(code, end->said.substr(1));
}

}  // namespace kernels
}  // namespace halftone
