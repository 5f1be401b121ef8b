// The learning rate of a step, from the number of applied steps.
#include <algorithm>

#include "kernels/common/settings.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/functors/learning_rate.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int kMost = 1024;  // boundaries

struct Settings {
  functors::RateSettings rate;
  int32_t count;
  double boundaries[kMost], values[kMost + 1];
};

__global__ void LearningRateKernel(const __grid_constant__ Settings settings,
                                   const int64_t* applied,
                                   const float* schedule, const float* epoch,
                                   float* out) {
  *out = functors::LearningRate(
      settings.rate, {settings.boundaries, settings.values, settings.count},
      *applied, schedule, epoch);
}

auto MakeLearningRate(const BoundOp& op) {
  Settings settings = {};
  settings.rate = RateSettingsOf(op);
  const auto& boundaries = op.Floats("boundaries");
  const auto& values = op.Floats("values");
  settings.count = static_cast<int32_t>(boundaries.size());
  std::copy(boundaries.begin(), boundaries.end(), settings.boundaries);
  std::copy(values.begin(), values.end(), settings.values);
  const int epoch = op.InputIndex("StepsPerEpoch");
  return [settings, epoch](const Buffers& buffers, Launcher& launch) {
    launch(LearningRateKernel, 1, 1, settings,
           static_cast<const int64_t*>(buffers.inputs[0]),
           static_cast<const float*>(buffers.inputs[1]),
           epoch < 0 ? static_cast<const float*>(nullptr)
                     : static_cast<const float*>(buffers.inputs[epoch]),
           static_cast<float*>(buffers.outputs[0]));
  };
}

}  // namespace

void RegisterCudaLearningRate(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate("scalar", MakeLearningRate);
  candidate.supports = [](const BoundOp& op) {
    return op.Floats("boundaries").size() <= kMost &&
           op.Floats("values").size() <= kMost + 1;
  };
  AddForSchema(registry, "learning_rate", candidate);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
