#ifndef HALFTONE_TESTS_SUPPORT_TRIALS_H_
#define HALFTONE_TESTS_SUPPORT_TRIALS_H_

#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"

namespace halftone {

// How many trials a driver makes: `usual` in the suite, or what HT_TRIALS says,
// for figures; 0 are all that there are, where a driver has an end.
inline int Trials(int usual) {
  const char* const text = std::getenv("HT_TRIALS");
  int trials = 0;
  return text != nullptr && absl::SimpleAtoi(text, &trials) ? trials : usual;
}

// The number of the first trial, from which all follows that is drawn in it: 1,
// or what HT_SEED says, to see one again.
inline int FirstSeed() {
  const char* const text = std::getenv("HT_SEED");
  int seed = 0;
  return text != nullptr && absl::SimpleAtoi(text, &seed) ? seed : 1;
}

// Draws that are the same on every machine.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}
  uint64_t Next() { return random_(); }
  int Below(int n) { return static_cast<int>(Next() % n); }
  bool OneOf(int n) { return Below(n) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& list) {
    return list[Below(static_cast<int>(list.size()))];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_TRIALS_H_
