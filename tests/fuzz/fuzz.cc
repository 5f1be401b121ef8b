#include "tests/fuzz/fuzz.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace halftone {

std::string Scratch() {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/run-files-", getpid());
  std::filesystem::create_directories(path);
  return path;
}

void WriteTo(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

int FuzzTimes() {
  const char* const text = std::getenv("HT_FUZZ_TIMES");
  int times = 1;
  if (text == nullptr || !absl::SimpleAtoi(text, &times)) return 1;
  return std::max(times, 1);
}

}  // namespace halftone
