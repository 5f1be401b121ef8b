// The prepared bindings of an entry for everything that a sampler can produce.
#ifndef HALFTONE_RUNTIME_TRAIN_BINDINGS_H_
#define HALFTONE_RUNTIME_TRAIN_BINDINGS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/symbol_values.h"
#include "runtime/data/sampler.h"

namespace halftone {
namespace runtime {

// Samples of all ranks in the steps of an epoch: a whole batch, and the last
// one where it is smaller.
std::vector<int64_t> GlobalCounts(const SamplerOptions& sampler);
// How the ranks' samples of a step are cut into micro-batches, as many on every
// rank: virtual shards, where the sampler has some; else at most
// `merged_steps`, and no more than samples on the fullest rank, so that each
// has a sample somewhere.
class StepCut {
 public:
  StepCut(const SamplerOptions& sampler, int64_t global, int64_t merged_steps);
  int64_t parts() const { return parts_; }
  // Of the rank's own samples.
  SampleRange At(int64_t number) const { return At(sampler_.rank, number); }
  SampleRange At(int rank, int64_t number) const;
  // Samples of the largest one of any rank.
  int64_t largest() const { return At(0, 0).count; }

 private:
  SamplerOptions sampler_;
  int64_t global_, parts_;
};

// Prepares an entry, as Executor::Prepare does: the number of its binding.
using PrepareEntry = absl::FunctionRef<absl::StatusOr<int>(
    absl::string_view entry, const SymbolValues& symbols)>;

class Bindings {
 public:
  // Prepares the entry once for each of GlobalCounts: as many on every rank,
  // though ranks bind different numbers of samples.
  absl::Status Prepare(absl::string_view entry, const SamplerOptions& sampler,
                       PrepareEntry prepare);
  // Train for the last micro-batch of steps of up to `merged_steps`, and
  // accumulate for those before it.
  absl::Status PrepareSteps(const SamplerOptions& sampler, int64_t merged_steps,
                            PrepareEntry prepare);
  // The binding of a step of `global` samples, or of its last micro-batch.
  int Of(int64_t global) const { return At(global).index; }
  // Of a micro-batch of a step of `global` samples, but for the last one.
  int Accumulating(int64_t global, int64_t number) const;
  // Those that ranks take for different micro-batches of a step.
  std::vector<int> Uneven() const;

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
