// For the tests of what a run keeps: names for its files, and what they hold.
#ifndef HALFTONE_RUNTIME_REPORT_TESTING_LOG_FILES_H_
#define HALFTONE_RUNTIME_REPORT_TESTING_LOG_FILES_H_

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

// Another one each time.
inline std::string NewPath() {
  static int paths = 0;
  return absl::StrCat(::testing::TempDir(), "/log-", getpid(), "-", paths++);
}

inline StepEvent Step(int64_t step) {
  StepEvent event;
  event.step = step;
  return event;
}

// The objects of a file of JSON lines.
inline std::vector<nlohmann::json> JsonLines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  for (const auto line :
       absl::StrSplit(*ReadFile(path), '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_TESTING_LOG_FILES_H_
