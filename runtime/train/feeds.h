// What a program is fed: the data's feeds and the implicit ones.
#ifndef HALFTONE_RUNTIME_TRAIN_FEEDS_H_
#define HALFTONE_RUNTIME_TRAIN_FEEDS_H_

#include <cstdint>
#include <vector>

#include "graph/ir/program.h"
#include "runtime/data/batch_reader.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// The data's feeds of the program (train's, else eval's), with the number of
// classes where a feed is the label of a loss.
std::vector<FeedSpec> FeedSpecsOf(const Program& program);

// Elements that the loss of `entry` is a mean over, for `samples` samples.
double LossElements(const Entry& entry, int64_t samples);

// Values of the implicit feeds of one step, at fixed addresses.
struct ImplicitFeeds {
  float largest_count = 0;
  int64_t first_sample = 0;
  float stop = 0;
  int64_t seed = 0;
  float schedule[3] = {0, 0, 0};
  float steps_per_epoch = 0;
  int64_t shard = 0;
};

// The feeds of one (entry, rank), in a form that Execute takes: made once,
// pointed at each batch without allocating.
class FeedList {
 public:
  // `implicit` outlives the list.
  FeedList(const Entry& entry, const std::vector<FeedSpec>& specs,
           const ImplicitFeeds* implicit);
  absl::Span<const FeedData> Point(const Batch& batch);
  // Of the batch's samples `count` from `begin` on.
  absl::Span<const FeedData> Point(const Batch& batch, int64_t begin,
                                   int64_t count);

 private:
  std::vector<FeedData> feeds_;
  std::vector<int> spec_of_;  // position in the batch; -1: implicit
  std::vector<bool> whole_;   // not of samples
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_FEEDS_H_
