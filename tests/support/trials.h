#ifndef HALFTONE_TESTS_SUPPORT_TRIALS_H_
#define HALFTONE_TESTS_SUPPORT_TRIALS_H_

#include <cstdlib>

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

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_TRIALS_H_
