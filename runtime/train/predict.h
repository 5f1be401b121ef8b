// Predict: the outputs of a model for each sample.
#ifndef HALFTONE_RUNTIME_TRAIN_PREDICT_H_
#define HALFTONE_RUNTIME_TRAIN_PREDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/predictions.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

struct Predictions {
  int64_t samples = 0;
  std::vector<PredictedValue> values;  // none but in the process of rank 0
  // By label: those that the parameters were trained on, else the data's;
  // empty: they have no names.
  std::vector<std::string> classes;
};

// The results of a program that was compiled for some outputs alone, of every
// sample of the test split, or of a source without splits, in its order. The
// state is Evaluate's, or as initialised where `config` names none.
absl::StatusOr<Predictions> Predict(const Program& program,
                                    const kernels::KernelRegistry& kernels,
                                    const TrainConfig& config,
                                    const std::vector<RankResources>& ranks);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_PREDICT_H_
