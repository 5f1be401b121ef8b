// A reader held to what tests/fuzz asks of all: a result, or a Status that says
// what is wrong, in time.
#ifndef HALFTONE_TESTS_FUZZ_FUZZ_H_
#define HALFTONE_TESTS_FUZZ_FUZZ_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/mutator.h"

namespace halftone {

// A folder of this process's own.
std::string Scratch();
void WriteTo(const std::string& path, const std::string& content);

// How many times the mutations of a test are made, each time others: 1, or what
// HT_FUZZ_TIMES says, for a search of some minutes by hand.
int FuzzTimes();

// `read(mutate(seed))` gives a Status: OK, or of class `code`.
template <typename Mutate, typename Read>
void FuzzBy(const Mutate& mutate, ExitCode code, int mutations,
            const Read& read) {
  // Far above what any takes, sanitizers included: a reader that hangs fails.
  constexpr std::chrono::seconds kMost(20);
  for (int seed = 0; seed < mutations * FuzzTimes(); ++seed) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = read(mutate(seed));
    if (!status.ok()) {
      EXPECT_EQ(ExitCodeOf(status), code) << seed << ": " << status;
      EXPECT_NE(status.message(), "") << seed;
    }
    ASSERT_LT(std::chrono::steady_clock::now() - start, kMost) << seed;
  }
}

template <typename Read>
void Fuzz(const std::string& source, bool text, ExitCode code, int mutations,
          const Read& read) {
  ASSERT_TRUE(read(source).ok()) << read(source);
  FuzzBy([&](int seed) { return Mutator(seed).Mutate(source, text); }, code,
         mutations, read);
}

// Values of a JSON text that its reader does not expect.
template <typename Read>
void FuzzValues(const std::string& source, ExitCode code, int mutations,
                const Read& read) {
  ASSERT_TRUE(read(source).ok()) << read(source);
  FuzzBy([&](int seed) { return MutateJson(seed, source); }, code, mutations,
         read);
}

}  // namespace halftone

#endif  // HALFTONE_TESTS_FUZZ_FUZZ_H_
