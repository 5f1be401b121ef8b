// Data sets, sampling and background reading. Order and slices are functions
// of (seed, epoch) over global batches; ranks take consecutive slices.
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
};

// Whether any feed comes in samples; else a step takes the same as any other.
inline bool HasSamples(absl::Span<const FeedSpec> feeds) {
  for (const FeedSpec& feed : feeds) {
    if (!feed.whole) return true;
  }
  return false;
}

// Random access to samples; thread-safe after opening.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // Samples; 1 if no feed comes in any.
  virtual int64_t size() const = 0;
  // Writes sample `index` of feed `feed` (position in the specs given at
  // opening), or all of a whole one, to `out`, sized as the spec says.
  virtual absl::Status Read(int64_t index, int feed,
                            absl::Span<uint8_t> out) const = 0;
  virtual std::string Description() const = 0;
};

struct OpenedData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;   // null if the source has no test split
  std::vector<std::string> notes;  // what a user should know of it
};

// `source`: "idx:DIR" (MNIST file names, plain or .gz; u8 images resized
// bilinearly with half-pixel centres to the feed's height and width),
// "npz:FILE" (see npz_data.h), "synthetic" or "synthetic:N". `feed_map`
// renames: "image=x". Errors (kModel) name the file, what was expected and
// found: missing, truncated, wrong magic, counts that differ, labels out of
// range. Packed files that claim more than `max_unpack` times their size are
// refused.
inline constexpr int64_t kMaxUnpack = 100;
absl::StatusOr<OpenedData> OpenData(absl::string_view source,
                                    absl::Span<const FeedSpec> feeds,
                                    absl::Span<const std::string> feed_map,
                                    int64_t seed,
                                    int64_t max_unpack = kMaxUnpack);

enum class Tail : uint8_t { kExact, kPad, kDrop };

// Which samples each rank takes in each step of an epoch.
struct SamplerOptions {
  int64_t size = 0;
  int64_t batch = 0;  // global
  int world_size = 1;
  int rank = 0;
  Tail tail = Tail::kExact;
  bool shuffle = true;
  int64_t seed = 0;
};

// One rank's share of one step.
struct Share {
  std::vector<int64_t> indices;  // samples of this rank, may be empty
  int64_t first_sample = 0;      // global cursor of indices[0]
  int64_t largest_count = 0;     // samples of the fullest rank
  int64_t global_count = 0;      // samples of all ranks
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);
  int64_t steps_per_epoch() const;
  // Samples that one epoch consumes (after pad or drop).
  int64_t samples_per_epoch() const;
  // `reuse`: a share that is done with; its memory becomes the result's.
  Share At(int64_t epoch, int64_t step, Share reuse = {}) const;
  // Every number of samples that a rank can get in a step, in falling order:
  // what has to be planned.
  std::vector<int64_t> Counts() const;

 private:
  const std::vector<int64_t>& Order(int64_t epoch) const;
  SamplerOptions options_;
  mutable int64_t order_epoch_ = -1;
  mutable std::vector<int64_t> order_;
};

// One step's feeds, assembled in the background.
struct Batch {
  int64_t epoch = 0, step = 0;
  Share share;
  std::vector<std::vector<uint8_t>> feeds;  // by spec
};

// Reads ahead with worker threads; Next returns batches in order.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  // The batch of the next step; nullptr after the last one. The pointer
  // lives until the next call but one. An error is returned once, then
  // again on every call.
  virtual absl::StatusOr<const Batch*> Next() = 0;
  // Seconds that Next has waited so far.
  virtual double waited_seconds() const = 0;
};

struct ReaderOptions {
  int workers = 1;
  int prefetch = 3;                         // batches
  int64_t first_epoch = 0, first_step = 0;  // where to start (resume)
  int64_t epochs = 1;
};
std::unique_ptr<BatchReader> MakeBatchReader(const Dataset* data,
                                             std::vector<FeedSpec> feeds,
                                             const SamplerOptions& sampler,
                                             const ReaderOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_DATASET_H_
