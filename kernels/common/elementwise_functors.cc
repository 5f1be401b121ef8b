#include "kernels/common/elementwise_functors.h"

namespace halftone {
namespace kernels {

functors::ScaleOp MakeScale(const BoundOp& op) {
  return {static_cast<float>(op.Float("scale")),
          static_cast<float>(op.Float("bias")), op.Bool("bias_after_scale")};
}

functors::ClipOp MakeClip(const BoundOp& op) {
  return {static_cast<float>(op.Float("min")),
          static_cast<float>(op.Float("max"))};
}
functors::ClipGradOp MakeClipGrad(const BoundOp& op) {
  const functors::ClipOp of = MakeClip(op);
  return {of.min, of.max};
}

bool IsByTanh(const BoundOp& gelu) { return gelu.Str("approximate") == "tanh"; }
bool IsExact(const BoundOp& gelu) { return !IsByTanh(gelu); }

}  // namespace kernels
}  // namespace halftone
