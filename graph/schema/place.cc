#include "graph/schema/place.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {

std::string PlaceOf(const Program& program, int line) {
  if (program.file.empty()) {
    return line > 0 ? absl::StrCat("line ", line, ": ") : "";
  }
  return line > 0 ? absl::StrCat(program.file, ":", line, ": ")
                  : absl::StrCat(program.file, ": ");
}

absl::Status AtOp(const absl::Status& status, const Program& program, int line,
                  absl::string_view op, absl::string_view type) {
  std::string context = PlaceOf(program, line);
  const std::string label =
      op.empty() ? std::string(type) : absl::StrCat(op, " (", type, ")");
  if (!absl::StartsWith(status.message(), label + ": ")) {
    context += label;
  } else if (!context.empty()) {
    context.resize(context.size() - 2);  // Annotate adds ": "
  }
  return context.empty() ? status : Annotate(status, context);
}

}  // namespace halftone
