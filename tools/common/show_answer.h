// What a verb answers.
#ifndef HALFTONE_TOOLS_COMMON_SHOW_ANSWER_H_
#define HALFTONE_TOOLS_COMMON_SHOW_ANSWER_H_

#include <string>

namespace halftone {
namespace tools {

// On stdout: as it is for programs (JSON, pages, other files' text), and no
// wider than the terminal for people.
void ShowAnswer(const std::string& text, bool for_programs);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_SHOW_ANSWER_H_
