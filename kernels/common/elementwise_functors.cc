#include "kernels/common/elementwise_functors.h"

namespace halftone {
namespace kernels {

functors::ScaleOp MakeScale(const BoundOp& op) {
  return {static_cast<float>(op.Float("scale")),
          static_cast<float>(op.Float("bias")), op.Bool("bias_after_scale")};
}

functors::ScaleOp MakeLabelSmooth(const BoundOp& op) {
  const double epsilon = op.Float(setting::kEpsilon);
  const double classes = static_cast<double>(op.Input("X").dims.back());
  return {static_cast<float>(1 - epsilon),
          static_cast<float>(epsilon / classes), true};
}

functors::ClipOp MakeRelu6(const BoundOp& op) {
  return {0.0f, static_cast<float>(op.Float(setting::kThreshold))};
}
functors::ClipGradOp MakeRelu6Grad(const BoundOp& op) {
  return {0.0f, static_cast<float>(op.Float(setting::kThreshold))};
}
functors::SwishOp MakeSilu(const BoundOp&) { return {1.0f}; }
functors::SwishGradOp MakeSiluGrad(const BoundOp&) { return {1.0f}; }

bool IsByTanh(const BoundOp& gelu) { return gelu.Str("approximate") == "tanh"; }
bool IsExact(const BoundOp& gelu) { return !IsByTanh(gelu); }

bool RoundsToEven(const BoundOp& round) { return round.Str("ties") == "even"; }
bool RoundsAway(const BoundOp& round) { return !RoundsToEven(round); }

bool IsOtherPower(const BoundOp& pow) {
  return !IsPower<4>(pow) && !IsPower<6>(pow) && !IsPower<1>(pow) &&
         !IsPower<-1>(pow) && !IsPower<-2>(pow);
}

}  // namespace kernels
}  // namespace halftone
