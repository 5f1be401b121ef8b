// For tests of what people see.
#ifndef HALFTONE_TESTS_SUPPORT_TERMINAL_H_
#define HALFTONE_TESTS_SUPPORT_TERMINAL_H_

#include <string>

namespace halftone {

// What a shell command shows on a terminal of that many columns.
std::string OnTerminal(const std::string& command, unsigned short columns);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_TERMINAL_H_
