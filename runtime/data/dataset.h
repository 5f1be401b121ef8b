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
#include "proto/train.pb.h"
#include "runtime/data/feed_spec.h"

namespace halftone {
namespace runtime {

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
  // What tells these samples from others (sample_marks.h), and whether they are
  // those that were marked. Data that has a number of samples and no more to
  // say has no marks.
  virtual std::string Marks() const { return ""; }
  virtual absl::Status CheckMarks(absl::string_view) const {
    return absl::OkStatus();
  }
  // A hash of what the samples hold, for data without marks; 0 tells nothing.
  // Errors: those of reading it.
  virtual absl::StatusOr<uint64_t> ContentHash() const { return 0; }
  // Before the first Read: the others move up. Positions in rising order.
  virtual void LeaveOut(absl::Span<const int64_t>) {}
};

// A sample that cannot be decoded, of the train or the test split.
struct BrokenSample {
  bool test = false;
  int64_t index = 0;
  std::string why;  // names it
};

struct OpenedData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;     // null if the source has no test split
  std::vector<std::string> notes;    // what a user should know of it
  std::vector<std::string> classes;  // by label; empty: they have no names
  // Found, and not left out yet: LeaveOut does that.
  std::vector<BrokenSample> broken;
  int64_t left_out = 0;  // samples of both splits
  // Labelled pictures: what DataOptions says of them has an effect.
  bool pictures = false;
};

// Leaves `data->broken` out, of both splits and in any order, and notes it.
// Errors (kModel): nothing is left.
absl::Status LeaveOut(OpenedData* data);

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
  // Broken samples are looked for, by this process among those whose position
  // divided by `processes` leaves `process`.
  bool skip_broken = false;
  int process = 0, processes = 1;
  // Data without a test split of its own has none cut off.
  bool whole = false;
  // Labels by name are those of other data; empty: those that are found.
  std::vector<std::string> classes;
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
