// For tests that start a training in some other way than ours: it must give
// the numbers that ours gives.
#ifndef HALFTONE_TESTS_SUPPORT_SAME_TRAINING_H_
#define HALFTONE_TESTS_SUPPORT_SAME_TRAINING_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace halftone {

// The binary, by its full path.
std::string Halftone();
// A compiled model.
const std::string& CompiledModel();
// The command of a short training of it into directory `out`.
std::vector<std::string> RunOf(const std::string& out,
                               const std::vector<std::string>& more = {});
std::vector<std::string> Join(std::vector<std::string> a,
                              const std::vector<std::string>& b);

// What `launch --ranks N` of it writes; N is 2 or 4. Compute threads, whose
// number bits depend on, are 1 from the first call of any of these on.
const std::vector<nlohmann::json>& MetricsOfOurs(int ranks = 2);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_SAME_TRAINING_H_
