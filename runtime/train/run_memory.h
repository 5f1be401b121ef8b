// What memory a run takes on its fullest rank, known before it begins.
#ifndef HALFTONE_RUNTIME_TRAIN_RUN_MEMORY_H_
#define HALFTONE_RUNTIME_TRAIN_RUN_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_registry.h"
#include "proto/strategy.pb.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// A run with data that are as many samples as a batch at least, to train on and
// to evaluate. A model that is not trained is evaluated alone.
struct RunQuestion {
  const Program* program = nullptr;
  const proto::Dist* dist = nullptr;
  std::string target;
  int64_t batch = 0;  // of all ranks
  int ranks = 1;
  int threads = 1;
};
// Compute threads of a rank: one on GPUs, and where there are virtual shards.
int ThreadsOf(const RunQuestion& question);

// An entry that rank 0 prepares, and for how many samples at once.
struct BoundEntry {
  std::string entry;
  int64_t samples = 0;
  ArenaBytes bytes{};  // what it needs by itself
};

// Without their bytes, those of training first. Errors: kModel, virtual shards
// that the ranks cannot share out.
absl::StatusOr<std::vector<BoundEntry>> EntriesOfRun(
    const RunQuestion& question);

struct RunMemory {
  std::vector<BoundEntry> entries;
  // What an executor reserves for all of them.
  ArenaBytes arenas{};
  int64_t bytes() const { return TotalOf(arenas); }
};
// Without a tuning table. Errors: MakePlan's, too.
absl::StatusOr<RunMemory> MemoryOfRun(const RunQuestion& question,
                                      const kernels::KernelRegistry& kernels);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RUN_MEMORY_H_
