// For tests of numbers: training steps on ranks as threads, without the
// trainer's epochs, reports and checkpoints.
#ifndef HALFTONE_TESTS_SUPPORT_RUN_STEPS_H_
#define HALFTONE_TESTS_SUPPORT_RUN_STEPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"

namespace halftone {

// The binary's kernels without patterns: bodies in place of all fusions.
const kernels::KernelRegistry& KernelsWithoutPatterns();

struct StepsSpec {
  int ranks = 1;
  int64_t batch = 64;  // of all ranks
  int64_t steps = 10;  // over and over through the data
  std::string data = "idx:models/digits";
  int64_t seed = 1;
  float learning_rate = 0.01f;
  int threads = 1;                   // compute threads per rank
  std::vector<std::string> fetches;  // values, see StepsResult
  // By rank; empty: this binary's. They outlive the run.
  std::vector<const kernels::KernelRegistry*> kernels;
};

struct StepsResult {
  std::vector<double> losses;  // mean over the samples of all ranks, by step
  std::vector<bool> rejected;  // by step
  // Of the first step, rank 0's share of what was fetched, by name.
  std::map<std::string, std::vector<float>> fetched;
  // By rank: the bytes of all cells that are not derived, by name.
  std::vector<std::map<std::string, std::string>> cells;
};

absl::StatusOr<StepsResult> RunSteps(const Program& program,
                                     const StepsSpec& spec);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_RUN_STEPS_H_
