// What the tests of verbs share: the program, and a net that it compiled.
#ifndef HALFTONE_TESTS_CLI_VERBS_TESTING_H_
#define HALFTONE_TESTS_CLI_VERBS_TESTING_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/child.h"

namespace halftone {

// A path that nothing has yet; it ends so.
std::string Temp(const std::string& name);
Result Halftone(std::vector<std::string> arguments);
// Compiles the convnet at O1 to the path.
void CompileConvnet(const std::string& path);
// The same, once for all.
const std::string& Convnet();
// What a verb that succeeds prints with --json.
nlohmann::json MustParse(const Result& result);

}  // namespace halftone

#endif  // HALFTONE_TESTS_CLI_VERBS_TESTING_H_
