// Dumps and passes that the pages name are those of today's pipeline. A dump is
// named by a pattern, as its number changes with any pass before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "passes/pipelines.h"

namespace halftone {
namespace docs {
namespace {

using ::testing::Contains;

std::vector<std::string> Pages() {
  std::vector<std::string> pages;
  for (const auto& file : std::filesystem::directory_iterator("docs")) {
    if (file.path().extension() != ".md") continue;
    const auto page = ReadFile(file.path().string());
    EXPECT_TRUE(page.ok()) << page.status();
    if (page.ok()) pages.push_back(*page);
  }
  return pages;
}

// What follows `begin` in the page, up to a character of no name.
std::vector<std::string> WordsAfter(const std::string& page,
                                    const std::string& begin) {
  std::vector<std::string> words;
  for (size_t at = page.find(begin); at != page.npos;
       at = page.find(begin, at + 1)) {
    size_t end = at + begin.size();
    while (end < page.size() && (absl::ascii_isalnum(page[end]) ||
                                 absl::StrContains("-._,*?", page[end]))) {
      ++end;
    }
    words.push_back(page.substr(at + begin.size(), end - at - begin.size()));
  }
  return words;
}

std::set<std::string> PassesAndGroups() {
  std::set<std::string> names;
  for (const passes::PassStep& step : passes::AllSteps()) {
    names.insert(step.name);
  }
  for (const passes::PassGroup& group : passes::AllGroups()) {
    names.insert(group.name);
  }
  return names;
}

TEST(DumpNames, AreOfPasses) {
  std::set<std::string> dumps;
  for (const std::string& name : PassesAndGroups()) {
    dumps.insert("*." + name + ".txt");
  }
  int seen = 0;
  for (const std::string& page : Pages()) {
    for (const std::string& dump : WordsAfter(page, "dumps/")) {
      EXPECT_THAT(dumps, Contains(dump));
      ++seen;
    }
  }
  EXPECT_GE(seen, 2);
}

TEST(PassNames, AreOfPassesGroupsOrPhases) {
  std::set<std::string> names = PassesAndGroups();
  names.insert("all");
  for (const passes::PassPhase& phase : passes::AllPhases()) {
    names.insert(phase.name);
  }
  int seen = 0;
  for (const std::string& page : Pages()) {
    for (const std::string& list : WordsAfter(page, "--passes ")) {
      for (const std::string& name :
           std::vector<std::string>(absl::StrSplit(list, ','))) {
        if (name == "TEXT") continue;  // the flag's own line of the help
        EXPECT_THAT(names, Contains(name));
        ++seen;
      }
    }
  }
  EXPECT_GE(seen, 3);
}

}  // namespace
}  // namespace docs
}  // namespace halftone
