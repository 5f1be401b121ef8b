#include "tests/support/run_files.h"

#include <unistd.h>

#include <set>
#include <utility>

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
  const std::set<std::string> of_processes = {"run_start", "restart",
                                              "checkpoint", "end"};
  std::vector<json> lines;
  std::string content = ReadAll(out + "/metrics.jsonl");
  // A run that is under way may be in the midst of a line.
  content.resize(content.rfind('\n') + 1);
  for (const auto line : absl::StrSplit(content, '\n', absl::SkipEmpty())) {
    json event = json::parse(line);
    if (of_processes.count(event.value("event", "")) > 0) continue;
    for (const char* timed : {"ms", "time"}) event.erase(timed);
    lines.push_back(std::move(event));
  }
  return lines;
}

}  // namespace halftone
