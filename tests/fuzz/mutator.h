// Damages files in reproducible ways.
#ifndef HALFTONE_TESTS_FUZZ_MUTATOR_H_
#define HALFTONE_TESTS_FUZZ_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {

// Numbers that readers are most often wrong about.
absl::Span<const char* const> ExtremeNumbers();

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // `content` after one to four edits. Binary files get edits of bytes alone,
  // text ones of lines, words and numbers too.
  std::string Mutate(absl::string_view content, bool text);

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }
  void EditBytes(std::string& content);
  void EditLines(std::string& content);
  void EditWord(std::string& content);

  std::mt19937_64 random_;
};

}  // namespace halftone

#endif  // HALFTONE_TESTS_FUZZ_MUTATOR_H_
