// The prepared bindings of an entry for everything that a sampler can produce.
#ifndef HALFTONE_RUNTIME_TRAIN_BINDINGS_H_
#define HALFTONE_RUNTIME_TRAIN_BINDINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/sampler.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// Samples of all ranks in the steps of an epoch: a whole batch, and the last
// one where it is smaller.
std::vector<int64_t> GlobalCounts(const SamplerOptions& sampler);
// Of `global` samples, those that `rank` takes.
int64_t RankCount(int64_t global, int world_size, int rank);

// Of `samples` on a rank, a part of a step's micro-batches.
struct MicroBatch {
  int64_t begin = 0, count = 0;
};
// How many micro-batches a step of `global` samples has on every rank: at most
// `merged_steps`, and no more than samples on the fullest rank, so that each
// has a sample somewhere.
int64_t MicroBatchesOf(int64_t global, int world_size, int64_t merged_steps);
// The first (samples mod micro_batches) of them have one more than the others.
MicroBatch MicroBatchAt(int64_t samples, int64_t micro_batches, int64_t number);

class Bindings {
 public:
  // Prepares the entry once for each of GlobalCounts: as many on every rank,
  // though ranks bind different numbers of samples.
  absl::Status Prepare(const std::string& entry, const SamplerOptions& sampler,
                       Executor& executor);
  // Train for the last micro-batch of steps of up to `merged_steps`, and
  // accumulate for those before it.
  absl::Status PrepareSteps(const SamplerOptions& sampler, int64_t merged_steps,
                            Executor& executor);
  // The binding of a step of `global` samples, or of its last micro-batch.
  int Of(int64_t global) const { return At(global).index; }
  // Of a micro-batch of a step of `global` samples, but for the last one.
  int Accumulating(int64_t global, int64_t number) const;

 private:
  struct Binding {
    int64_t global;
    int index;
    // Of the entry accumulate: with one sample more, for as many, and without.
    int larger = -1, smaller = -1;
    int64_t num_larger = 0;
  };
  const Binding& At(int64_t global) const;
  std::vector<Binding> bindings_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_BINDINGS_H_
