// The entry in which ranks average what each has made of the model.
#ifndef HALFTONE_PASSES_PARALLEL_AVERAGE_ENTRY_H_
#define HALFTONE_PASSES_PARALLEL_AVERAGE_ENTRY_H_

#include "absl/status/status.h"
#include "graph/ir/program.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// Adds it, and a snapshot of each cell that is averaged: parameters, running
// statistics and averages that `train` commits. Reductions are in buckets, as
// gradients' would be.
absl::Status AddAverageEntry(Program& program, const Entry& train,
                             const proto::Dist& dist);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_AVERAGE_ENTRY_H_
