// Which sample is read when and by whom. Order and slices are functions of
// (seed, epoch) over global batches; ranks take consecutive slices.
#ifndef HALFTONE_RUNTIME_DATA_SAMPLER_H_
#define HALFTONE_RUNTIME_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

namespace halftone {
namespace runtime {

enum class Tail : uint8_t { kExact, kPad, kDrop };

// Consecutive samples.
struct SampleRange {
  int64_t begin = 0, count = 0;
};
// Part `number` of samples cut into `parts`: the first (samples mod parts) of
// them have one more than the others.
SampleRange PartOf(int64_t samples, int64_t parts, int64_t number);

// Which samples each rank takes in each step of an epoch.
struct SamplerOptions {
  int64_t size = 0;
  int64_t batch = 0;  // global
  int world_size = 1;
  int rank = 0;
  Tail tail = Tail::kExact;
  bool shuffle = true;
  int64_t seed = 0;
  // Above 0: a batch is cut into so many parts, a multiple of world_size, of
  // which each rank takes as many; else into one per rank.
  int64_t shards = 0;
  // Above 0: instead rank r has at most so many samples, from r * unit on.
  int64_t unit = 0;
};
// What `rank` takes of a batch of `samples`; rank 0 has the most.
SampleRange RankRange(const SamplerOptions& options, int64_t samples, int rank);

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

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_SAMPLER_H_
