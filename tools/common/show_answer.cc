#include "tools/common/show_answer.h"

#include <cstdio>

#include "graph/base/display.h"
#include "graph/base/wrap.h"

namespace halftone {
namespace tools {

void ShowAnswer(const std::string& text, bool for_programs) {
  if (for_programs) return Show(text, stdout);
  // Escapes take room, too.
  ShowReport(FittedLines(Printable(text), ColumnsOf(stdout)), stdout);
}

}  // namespace tools
}  // namespace halftone
