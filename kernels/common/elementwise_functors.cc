#include "kernels/common/elementwise_functors.h"

namespace halftone {
namespace kernels {

functors::ScaleOp MakeScale(const BoundOp& op) {
  return {static_cast<float>(op.Float("scale")),
          static_cast<float>(op.Float("bias")), op.Bool("bias_after_scale")};
}

bool IsByTanh(const BoundOp& gelu) { return gelu.Str("approximate") == "tanh"; }
bool IsExact(const BoundOp& gelu) { return !IsByTanh(gelu); }

}  // namespace kernels
}  // namespace halftone
