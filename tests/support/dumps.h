// What --dump-dir writes: the program after each pass.
#ifndef HALFTONE_TESTS_SUPPORT_DUMPS_H_
#define HALFTONE_TESTS_SUPPORT_DUMPS_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace halftone {

// The files of a directory, in the passes' order.
inline std::vector<std::string> DumpsIn(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "clean-up.fold-casts" of ".../021.clean-up.fold-casts.txt".
inline std::string PassOf(const std::string& dump) {
  const std::string stem = std::filesystem::path(dump).stem();
  return stem.substr(stem.find('.') + 1);
}

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_DUMPS_H_
