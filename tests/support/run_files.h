// For tests that run `halftone run`: where its files go, and what is in them.
#ifndef HALFTONE_TESTS_SUPPORT_RUN_FILES_H_
#define HALFTONE_TESTS_SUPPORT_RUN_FILES_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace halftone {

// A path below the test's directory at which nothing is yet.
std::string NewPath(const std::string& name);

// Lines of metrics.jsonl in run directory `out`, without what depends on the
// clock, or on how often the run was started.
std::vector<nlohmann::json> Metrics(const std::string& out);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_RUN_FILES_H_
