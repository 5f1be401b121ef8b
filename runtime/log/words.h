// Numbers and nouns in what people read.
#ifndef HALFTONE_RUNTIME_LOG_WORDS_H_
#define HALFTONE_RUNTIME_LOG_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {
namespace runtime {

// "1 step", "1,438 steps".
std::string Count(int64_t n, absl::string_view noun);
// Three significant digits, and all of those before the point: "0.113", "2.3",
// "3340"; "1.2e-05" and "3e+07" only where zeros alone would stand there;
// "nan", "inf".
std::string ThreeDigits(double value);
// "12.5 %": of `whole`, which is not 0.
std::string Percent(double part, double whole);
// "5.7 s", "3 min", "2 h 10 min".
std::string Duration(double seconds);
// "a b c and 9 more": at most `most` of them.
std::string JoinFew(absl::Span<const std::string> words, size_t most,
                    absl::string_view separator = " ");
// Whole numbers in the proportion of `parts` that sum to `whole`: each is
// rounded up or down, so that what is shown sums to what it is a part of.
// Negative parts count as 0; if all are 0, so are the shares.
std::vector<int64_t> Apportion(int64_t whole, absl::Span<const double> parts);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_WORDS_H_
