// The learning rate of a step, from the number of applied steps.
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/settings.h"
#include "kernels/cpu/optimizer.h"

namespace halftone {
namespace kernels {
namespace {

struct LearningRateKernel {
  functors::RateSettings settings;
  std::vector<double> boundaries, values;
  int epoch;  // position of StepsPerEpoch; -1: none

  explicit LearningRateKernel(const BoundOp& op)
      : settings(RateSettingsOf(op)),
        boundaries(op.Floats("boundaries")),
        values(op.Floats("values")),
        epoch(op.InputIndex("StepsPerEpoch")) {}

  void operator()(const Buffers& buffers, runtime::Stream&) const {
    *static_cast<float*>(buffers.outputs[0]) = functors::LearningRate(
        settings,
        {boundaries.data(), values.data(), static_cast<int>(boundaries.size())},
        *static_cast<const int64_t*>(buffers.inputs[0]),
        static_cast<const float*>(buffers.inputs[1]),
        epoch < 0 ? nullptr : static_cast<const float*>(buffers.inputs[epoch]));
  }
};

}  // namespace

void RegisterCpuLearningRate(KernelRegistry& registry) {
  AddForSchema(registry, "learning_rate",
               MakeCandidate("scalar", [](const BoundOp& op) {
                 return LearningRateKernel(op);
               }));
}

}  // namespace kernels
}  // namespace halftone
