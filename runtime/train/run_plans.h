// Which plans a run makes before its first step. It is said here once, for the
// run, which prepares them, and for who asks what memory a run takes.
#ifndef HALFTONE_RUNTIME_TRAIN_RUN_PLANS_H_
#define HALFTONE_RUNTIME_TRAIN_RUN_PLANS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/program.h"
#include "proto/strategy.pb.h"
#include "runtime/data/sampler.h"
#include "runtime/train/bindings.h"

namespace halftone {
namespace runtime {

// Of the steps before `end`, counted 1, 2, ...
struct StepStage {
  int64_t end = 1;
  Bindings bindings;
};

struct TrainingBindings {
  std::vector<StepStage> stages;  // before those that `steps` are for
  Bindings steps;
  int average = -1;  // the binding of that entry; -1: ranks are equal anyway
};

// How many micro-batches a step has at most.
int64_t MergedSteps(const Program& program, const proto::Dist& dist);

// The train entries of a run: the last stage's, those before it, and what ranks
// do between steps.
absl::StatusOr<TrainingBindings> PrepareTraining(const Program& program,
                                                 const proto::Dist& dist,
                                                 const SamplerOptions& sampler,
                                                 PrepareEntry prepare);

// How a run that trains as `sampler` says evaluates `samples`: in the memory of
// a micro-batch.
SamplerOptions EvalSampler(SamplerOptions sampler, int64_t merged_steps,
                           int64_t samples);

// Errors (kModel): virtual shards that so many ranks cannot share out.
absl::Status CheckShards(const proto::Dist& dist, int world_size);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RUN_PLANS_H_
