// Entries of training besides train itself, and the names that come with them:
// where ranks update by their own gradients and average their parameters now
// and then, and where steps of a run differ in what ranks exchange.
#ifndef HALFTONE_GRAPH_IR_TRAIN_ENTRIES_H_
#define HALFTONE_GRAPH_IR_TRAIN_ENTRIES_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "graph/ir/well_known.h"

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

// Train of the first stages of a run; train itself is that of the last.
inline constexpr char kTrainStagePrefix[] = "train.";

inline std::string TrainStageEntry(size_t stage, size_t stages) {
  return stage + 1 == stages ? std::string(kTrainEntry)
                             : absl::StrCat(kTrainStagePrefix, stage);
}

// Whether the cell holds what the micro-batches of a step have added up: 0, or
// not read, before the first.
inline bool IsSum(const Cell& cell) {
  return cell.kind == CellKind::kAccumulator && !cell.of.valid();
}

// Whether the entry is a step that changes the model.
inline bool IsTrainEntry(absl::string_view entry) {
  return entry == kTrainEntry || absl::StartsWith(entry, kTrainStagePrefix);
}

// How many reductions of=gradient are on a gradient's way to its update in a
// finished train: one, or none where ranks average parameters instead.
inline int GradientReductions(const Program& program) {
  return program.FindEntry(kAverageEntry) == nullptr ? 1 : 0;
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_TRAIN_ENTRIES_H_
