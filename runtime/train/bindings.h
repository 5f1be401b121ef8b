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

class Bindings {
 public:
  // Prepares the entry once for each of GlobalCounts: as many on every rank,
  // though ranks bind different numbers of samples.
  absl::Status Prepare(const std::string& entry, const SamplerOptions& sampler,
                       Executor& executor);
  // The binding of a step of `global` samples.
  int Of(int64_t global) const;

 private:
  struct Binding {
    int64_t global;
    int index;
  };
  std::vector<Binding> bindings_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_BINDINGS_H_
