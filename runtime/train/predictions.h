// The values that the eval entry gives, of all samples in the data's order.
#ifndef HALFTONE_RUNTIME_TRAIN_PREDICTIONS_H_
#define HALFTONE_RUNTIME_TRAIN_PREDICTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/program.h"
#include "runtime/collective/communicator.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// One result; f32 where it is computed in 16 bits.
struct PredictedValue {
  std::string name;
  DType dtype{};
  std::vector<int64_t> dims;
  std::string bytes;  // row-major
  // The axis along which the samples lie, each with so many elements of it
  // (B*128 has 128); -1: it is of no sample, or of all of them together.
  int axis = -1;
  int64_t per_sample = 0;
};

// Gathers what the ranks of a run get of each step.
class PredictionGatherer {
 public:
  // Errors (kModel): a result that is made of all samples of a step, though
  // they do not go in one step of one rank (`in_one_step`).
  static absl::StatusOr<PredictionGatherer> Create(const Program& program,
                                                   bool in_one_step,
                                                   Communicator* communicator);

  // A collective: the next step's results. Rank 0 keeps them.
  absl::Status Add(const StepView& view);
  // Of rank 0, after the last step; the others have none.
  std::vector<PredictedValue> Take() &&;

 private:
  // A rank's share of a step.
  struct Part {
    int64_t along = 0;  // of the axis
    std::string bytes;
  };
  struct Gathered {
    PredictedValue value;
    std::vector<Part> parts;
  };
  explicit PredictionGatherer(Communicator* communicator)
      : communicator_(communicator) {}
  void Keep(Gathered& to, Part part);

  Communicator* communicator_;
  std::vector<Gathered> values_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_PREDICTIONS_H_
