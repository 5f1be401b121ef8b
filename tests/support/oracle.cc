#include "tests/support/oracle.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

// What a command prints; *status is its own.
std::string Output(const std::string& command, int* status) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, n);
  }
  *status = pclose(pipe);
  return output;
}

}  // namespace

std::string OraclePython(const char* variable) {
  const char* path = std::getenv(variable);
  return path == nullptr ? "/usr/bin/python3" : path;
}

bool HasModule(const std::string& python, const std::string& module) {
  int status = 0;
  Output(absl::StrCat(python, " -c 'import ", module, "'"), &status);
  return status == 0;
}

std::map<std::string, std::vector<double>> AskOracle(
    const std::string& python, const std::string& script,
    const std::string& argument) {
  std::map<std::string, std::vector<double>> answers;
  int status = 0;
  const std::string output =
      Output(absl::StrCat(python, " ", script, " ", argument), &status);
  EXPECT_EQ(status, 0) << script;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, '=');
    if (parts.size() != 2) continue;
    for (absl::string_view word : absl::StrSplit(parts[1], ' ')) {
      double value = 0;
      EXPECT_TRUE(absl::SimpleAtod(word, &value)) << line;
      answers[parts[0]].push_back(value);
    }
  }
  return answers;
}

}  // namespace halftone
