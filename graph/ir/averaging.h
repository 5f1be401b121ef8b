// Names by which compiler and runtime know what ranks do that update by their
// own gradients and average their parameters now and then.
#ifndef HALFTONE_GRAPH_IR_AVERAGING_H_
#define HALFTONE_GRAPH_IR_AVERAGING_H_

#include "graph/ir/program.h"

namespace halftone {

// The entry that averages, run behind a step of train.
inline constexpr char kAverageEntry[] = "average";

// Cells, of class always, where the steps between two averages follow from the
// loss: how many they are, the last step behind which ranks averaged, and loss
// and rate of the first step. "@local_steps.next" is a result of train.
inline constexpr char kLocalSteps[] = "@local_steps";  // i64[]
inline constexpr char kAveragedAt[] = "@averaged_at";  // i64[]
inline constexpr char kFirstLoss[] = "@first_loss";    // f32[]
inline constexpr char kFirstRate[] = "@first_lr";      // f32[]

// How many reductions of=gradient are on a gradient's way to its update in a
// finished train: one, or none where ranks average parameters instead.
inline int GradientReductions(const Program& program) {
  return program.FindEntry(kAverageEntry) == nullptr ? 1 : 0;
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_AVERAGING_H_
