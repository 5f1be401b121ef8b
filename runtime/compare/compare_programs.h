// Two compiled programs of one model on the same batches, value by value.
#ifndef HALFTONE_RUNTIME_COMPARE_COMPARE_PROGRAMS_H_
#define HALFTONE_RUNTIME_COMPARE_COMPARE_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "runtime/compare/match_values.h"
#include "runtime/compare/value_errors.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

struct CompareOptions {
  int64_t batches = 1;
  // Each op fed with the reference's values, cast as its own program casts
  // them: what it adds itself. Each program on its own: what it ends up with.
  bool isolated = true, chained = true;
};

struct ComparedValue {
  MatchedValue value;
  // Over all batches; no elements: it was not asked for.
  ValueErrors isolated, chained;
};

struct Comparison {
  std::string entry;
  // In program order, without those that are another value's elements (views).
  std::vector<ComparedValue> values;
  std::vector<std::string> unmatched;  // of the compared program
  int64_t batches = 0, batch = 0;      // samples in each
  float loss_scaling = 1;              // the compared program's; the first one
  // Milliseconds of a batch: the reference with all that is kept, and both
  // comparisons.
  double reference_ms = 0, isolated_ms = 0, chained_ms = 0;
  std::vector<std::string> said;  // where the parameters come from
};

// Runs the entry train, or eval where one of them has no train, on the first
// batches of a training as `config` has it (data, batch, seed, shuffle), all
// from the same parameters: those of `config.init`, else of the newest
// checkpoint of `config.out`, else as initialised. A dynamic loss scale is the
// checkpoint's. Fusions run as they are; what they hide is computed beside
// them, op by op from their bodies. Gradients are divided by their program's
// loss scale. One rank. Errors: those of MatchValues (kDiffer), of the data, of
// the executor.
absl::StatusOr<Comparison> ComparePrograms(
    const Program& reference, const Program& compared,
    const kernels::KernelRegistry& kernels, const TrainConfig& config,
    const RankResources& rank, const CompareOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_COMPARE_PROGRAMS_H_
