// Small text helpers that absl lacks.
#ifndef HALFTONE_GRAPH_BASE_TEXT_H_
#define HALFTONE_GRAPH_BASE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {

// The candidate with the smallest edit distance (Damerau-Levenshtein, without
// case); empty if none is near enough to be a plausible typing error. A word
// that a candidate starts with counts as near.
std::string Nearest(absl::string_view word,
                    absl::Span<const std::string> candidates);

// "; nearest: softmax", or empty: to be appended to an error message.
std::string NearestHint(absl::string_view word,
                        absl::Span<const std::string> candidates);

// Text without the three bytes that some editors put before it (UTF-8's mark).
absl::string_view WithoutByteOrderMark(absl::string_view text);

// Shell-style pattern: * (any run, slashes too), ? (one character), others
// literally.
bool GlobMatch(absl::string_view pattern, absl::string_view text);

// 1234567 -> "1,234,567".
std::string WithCommas(int64_t value);
// "312 B", "284 KiB", "5.9 MiB": three significant digits at most.
std::string HumanBytes(int64_t bytes);
// The shortest decimal that reads back to the same f32 bits; "nan", "inf",
// "-inf".
std::string ExactFloat(float value);
std::string ExactDouble(double value);

// 64-bit hash of bytes, stable across builds and machines (XXH64, seed 0).
uint64_t StableHash(absl::string_view bytes);
// 16 lower-case hexadecimal digits.
std::string Hex64(uint64_t value);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_TEXT_H_
