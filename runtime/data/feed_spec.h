// What a model is fed.
#ifndef HALFTONE_RUNTIME_DATA_FEED_SPEC_H_
#define HALFTONE_RUNTIME_DATA_FEED_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"

namespace halftone {
namespace runtime {

// A feed as the model declares it: dims without the sample dim.
struct FeedSpec {
  std::string name;
  DType dtype{};
  std::vector<int64_t> dims;
  // Labels are checked against [0, classes) and `ignored` if classes > 0.
  int64_t classes = 0;
  int64_t ignored = -100;
  // It has no sample dim: every step takes all of it.
  bool whole = false;

  int64_t elements() const;
  int64_t bytes() const;
};
// "u8[B,3,224,224]".
std::string Describe(const FeedSpec& feed);

// Whether any feed comes in samples; else a step takes the same as any other.
inline bool HasSamples(absl::Span<const FeedSpec> feeds) {
  for (const FeedSpec& feed : feeds) {
    if (!feed.whole) return true;
  }
  return false;
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_FEED_SPEC_H_
