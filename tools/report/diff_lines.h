// Where the text forms of two programs differ.
#ifndef HALFTONE_TOOLS_REPORT_DIFF_LINES_H_
#define HALFTONE_TOOLS_REPORT_DIFF_LINES_H_

#include <string>
#include <vector>

#include "graph/ir/program.h"

namespace halftone {
namespace tools {

// A line for each op, cell or other statement that differs, once for all
// entries that it stands in: "momentum.0: mu=0.9 -> mu=0.8 (train)" where both
// have it, else "- ..." or "+ ...". At most `most`, then how many more. Of
// programs with one entry, as they were written, no entry is named.
std::vector<std::string> DifferentLines(const Program& before,
                                        const Program& after, size_t most);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_DIFF_LINES_H_
