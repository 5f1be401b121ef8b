#include "tools/common/replay_compile.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "tools/common/compile_apart.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {

absl::Status CompileAgain(const Reproducer& reproducer) {
  const absl::Status now = CompileApart(reproducer.inputs);
  if (ExitCodeOf(now) != ExitCode::kCompilerBug ||
      now.message() == reproducer.message) {
    return now;
  }
  return Annotate(
      now, absl::StrCat("another bug than that of ", reproducer.version, " (",
                        reproducer.message, ")"));
}

std::string FixedText(const Reproducer& reproducer) {
  return absl::StrCat("fixed    the model compiles; with ", reproducer.version,
                      ": ", reproducer.message, "\n");
}

std::string FixedJson(const Reproducer& reproducer) {
  return JsonText({{"schema", 1},
                   {"fixed", true},
                   {"version", reproducer.version},
                   {"pass", reproducer.pass},
                   {"message", reproducer.message}});
}

}  // namespace tools
}  // namespace halftone
