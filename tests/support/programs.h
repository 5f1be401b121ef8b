// For tests that run programs which a machine may have or not.
#ifndef HALFTONE_TESTS_SUPPORT_PROGRAMS_H_
#define HALFTONE_TESTS_SUPPORT_PROGRAMS_H_

#include <string>

namespace halftone {

// The path that the environment's `variable` gives, else of `name` in PATH or
// where Debian has programs for root; empty if there is none.
std::string FindProgram(const char* variable, const std::string& name);

// A Python (of `variable`, else python3) that has `module`; empty if there is
// none.
std::string FindPython(const char* variable, const std::string& module);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_PROGRAMS_H_
