#include "tests/support/run_files.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"

namespace halftone {

using nlohmann::json;

std::string NewPath(const std::string& name) {
  static int paths = 0;
  return absl::StrCat(::testing::TempDir(), "/", name, "-", getpid(), "-",
                      paths++);
}

std::vector<json> Metrics(const std::string& out) {
  std::vector<json> lines;
  for (const auto line : absl::StrSplit(ReadAll(out + "/metrics.jsonl"), '\n',
                                        absl::SkipEmpty())) {
    lines.push_back(json::parse(line));
    lines.back().erase("ms");
  }
  return lines;
}

}  // namespace halftone
