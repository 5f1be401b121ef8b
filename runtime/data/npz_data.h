// Any feed by name out of NumPy's .npz.
#ifndef HALFTONE_RUNTIME_DATA_NPZ_DATA_H_
#define HALFTONE_RUNTIME_DATA_NPZ_DATA_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/dataset.h"

namespace halftone {
namespace runtime {

// The array called like a feed is the feed's (`feed_map`: "image=x" gives the
// array image to the feed x, or the array x to the feed image). Its first dim
// counts samples, which all have as many of; what is the same in every step is
// whole. The file is one split, `train`. Errors: kModel for the file, kUsage
// for the map.
absl::StatusOr<OpenedData> OpenNpz(const std::string& path,
                                   absl::Span<const FeedSpec> feeds,
                                   absl::Span<const std::string> feed_map,
                                   int64_t max_unpack);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_NPZ_DATA_H_
