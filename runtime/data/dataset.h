// Data sets: random access to samples, whatever files they lie in.
#ifndef HALFTONE_RUNTIME_DATA_DATASET_H_
#define HALFTONE_RUNTIME_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "proto/train.pb.h"

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

// Which sample, and in which pass over the data: random changes to it are
// others in each.
struct SampleId {
  int64_t index = 0;
  int64_t epoch = 0;
};

// Thread-safe after opening.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // Samples; 1 if no feed comes in any.
  virtual int64_t size() const = 0;
  // Writes a sample of feed `feed` (position in the specs given at opening), or
  // all of a whole one, to `out`, sized as the spec says.
  virtual absl::Status Read(const SampleId& sample, int feed,
                            absl::Span<uint8_t> out) const = 0;
  virtual std::string Description() const = 0;
};

struct OpenedData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;   // null if the source has no test split
  std::vector<std::string> notes;  // what a user should know of it
};

inline constexpr int64_t kMaxUnpack = 100;

struct DataOptions {
  std::vector<std::string> feed_map;  // "image=x": see the formats
  int64_t seed = 0;
  // Packed files that claim more than so many times their size are refused.
  int64_t max_unpack = kMaxUnpack;
  // What the strategy says of pictures. `train` is augmented if it is to be
  // trained on; all else is cropped alone.
  proto::Augment augment;
  bool augmented = false;
  bool skip_broken = false;
  // Threads for what has to be read on opening.
  int workers = 1;
};

// `source`: "KIND:PLACE", with a KIND of DataFormats (data_format.h). Errors
// (kModel) name the file, what was expected and found: missing, truncated,
// damaged, counts that differ, labels out of range, feeds that it has not.
absl::StatusOr<OpenedData> OpenData(absl::string_view source,
                                    absl::Span<const FeedSpec> feeds,
                                    const DataOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_DATASET_H_
