// Other libraries' numbers: a Python program prints lines of name=numbers.
#ifndef HALFTONE_TESTS_SUPPORT_ORACLE_H_
#define HALFTONE_TESTS_SUPPORT_ORACLE_H_

#include <map>
#include <string>
#include <vector>

namespace halftone {

// What the variable names, else the machine's python3.
std::string OraclePython(const char* variable);
// Whether it can import the module; where it cannot, a test is skipped.
bool HasModule(const std::string& python, const std::string& module);
// Runs `python <script> <argument>`; a script that fails fails the test.
std::map<std::string, std::vector<double>> AskOracle(
    const std::string& python, const std::string& script,
    const std::string& argument);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_ORACLE_H_
