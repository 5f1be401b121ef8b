// What to call the op in which a step's numbers stopped being finite, and what
// may help.
#ifndef HALFTONE_RUNTIME_TRAIN_NON_FINITE_H_
#define HALFTONE_RUNTIME_TRAIN_NON_FINITE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "runtime/exec/executor.h"
#include "runtime/train/totals.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// An op of a compiled entry, or of a fusion's body in it, in the words of the
// model that it was compiled from.
struct NonFiniteOp {
  // "fc1"; "relu.grad (backward of relu)"; empty: no op of forward or backward.
  std::string text;
  // The model's op behind it, if that runs in a low precision; else empty.
  std::string low_op;
  // The feed that was not finite before any op; else empty.
  std::string feed;
};

// `found` as Executor::FirstNonFinite names it. `model_ops`: the names of the
// model's ops; if it is empty, those are that stand in its file.
NonFiniteOp DescribeNonFinite(const Program& program, const NonFinite& found,
                              const std::vector<std::string>& model_ops);

// Where in the entry an op stands: in program order, a body's ops after each
// other; behind all others if it is in none.
int64_t PositionOf(const Entry& entry, const std::string& op);

// What came first of what each rank has found, by its Executor's
// FirstNonFinite: in the earliest micro-batch, and there by its position. All
// ranks call it together and get the same.
struct FirstOfRanks {
  int rank = -1;  // -1: all is finite on all ranks
  NonFinite found;
};
absl::StatusOr<FirstOfRanks> FindFirst(const NonFinite& mine,
                                       const Program& program,
                                       Communicator& communicator);

// "; try ... (--lr 0.1), or that op in f32: --black-op fc1": what is known
// about the run makes it likely, and `config.accepts` says that it can be done.
// "" if nothing is. Of a feed that is not finite nothing but the data.
std::string WhatToTry(const TrainConfig& config, const StepRecord& record,
                      const NonFiniteOp& op);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_NON_FINITE_H_
