#include "tools/common/show_error.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

bool json_expected = false;

std::string ErrorJson(const absl::Status& status) {
  return JsonText({{"schema", 1},
                   {"error",
                    {{"exit", static_cast<int>(ExitCodeOf(status))},
                     {"message", std::string(status.message())}}}});
}

}  // namespace

void ExpectJson(bool expected) { json_expected = expected; }

int ShowError(const absl::Status& status) {
  // A report that came before it is the object.
  if (json_expected && !HasShownOnStdout()) Show(ErrorJson(status), stdout);
  // What goes on in another line stands below, not at the margin.
  const std::string text =
      absl::StrReplaceAll(status.message(), {{"\n", "\n         "}});
  ShowReport(absl::StrCat("error    ", text, "\n"), stderr);
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace tools
}  // namespace halftone
