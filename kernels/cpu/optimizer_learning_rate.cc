// The learning rate of a step, from the number of applied steps.
#include <string>
#include <vector>

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/functors/optimizer.h"

namespace halftone {
namespace kernels {
namespace {

using functors::RatePolicy;
using functors::RateSettings;

RatePolicy PolicyOf(const std::string& name) {
  if (name == "cosine") return RatePolicy::kCosine;
  if (name == "linear") return RatePolicy::kLinear;
  if (name == "poly") return RatePolicy::kPoly;
  if (name == "exponential") return RatePolicy::kExponential;
  if (name == "piecewise") return RatePolicy::kPiecewise;
  return RatePolicy::kConstant;
}

struct LearningRateKernel {
  RateSettings settings;
  std::vector<double> boundaries, values;

  explicit LearningRateKernel(const BoundOp& op)
      : settings{PolicyOf(op.Str("policy")), op.Float("gamma"),
                 op.Float("power"), op.Float("min_ratio")},
        boundaries(op.Floats("boundaries")),
        values(op.Floats("values")) {}

  void operator()(const Buffers& buffers, runtime::Stream&) const {
    const double step =
        static_cast<double>(*static_cast<const int64_t*>(buffers.inputs[0]));
    // Base rate, total steps, warm-up steps.
    const float* schedule = static_cast<const float*>(buffers.inputs[1]);
    *static_cast<float*>(buffers.outputs[0]) = static_cast<float>(
        schedule[0] * Factor(step, schedule[1], schedule[2]));
  }

 private:
  double Factor(double step, double total, double warm) const {
    if (step < warm) return (step + 1) / warm;
    if (settings.policy == RatePolicy::kPiecewise) {
      return functors::PiecewiseFactor(boundaries.data(), values.data(),
                                       static_cast<int>(boundaries.size()),
                                       step, total);
    }
    return functors::RateFactor(settings, step, total, warm);
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
