// What `halftone compile` says.
#ifndef HALFTONE_TOOLS_REPORT_COMPILE_REPORT_H_
#define HALFTONE_TOOLS_REPORT_COMPILE_REPORT_H_

#include <string>

#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// One screen. `path`: the file that was written (empty: none), of `bytes`.
std::string CompileText(const ModelFacts& facts, const std::string& path,
                        int64_t bytes);
// One object with the totals of `inspect --json`, passes and notes.
std::string CompileJson(const ModelFacts& facts, const std::string& path,
                        int64_t bytes);

// "black list" for BLACK_LIST, and so on for every reason code.
std::string ReasonText(const std::string& code);
// "momentum 0.9, lr 0.01 x 64/64 = 0.01 constant; no weight decay on bn*".
std::string UpdateText(const proto::Strategy& strategy);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_COMPILE_REPORT_H_
