// What the kernels of dgc know before they run.
#ifndef HALFTONE_KERNELS_COMMON_DGC_H_
#define HALFTONE_KERNELS_COMMON_DGC_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/bound_op.h"
#include "kernels/common/settings.h"
#include "kernels/functors/dgc.h"

namespace halftone {
namespace kernels {

// Whether parameter, gradient and state of each member lie in the same order.
inline bool DgcLayoutsAgree(const BoundOp& op) {
  const int members = op.InputCount("Weights");
  const auto inputs = op.inputs();
  for (int i = members; i < 4 * members; ++i) {
    if (inputs[i].layout != inputs[i % members].layout) return false;
  }
  return true;
}

struct DgcShape {
  functors::DgcRule rule;
  DType grad{};
  float scale = 1;  // of Grad * InvScale
  std::vector<int64_t> elements, keep;

  explicit DgcShape(const BoundOp& op) : keep(op.Ints("keep")) {
    const int world = op.context().world_size;
    rule.mu = static_cast<float>(op.Float("mu"));
    rule.weight_decay = static_cast<float>(op.Float("weight_decay"));
    rule.nesterov = op.Bool("use_nesterov");
    rule.clip_norm =
        static_cast<float>(op.Float("clip_norm") * std::sqrt(world));
    scale = SumScale(op) * static_cast<float>(world);
    grad = op.Input("Grad").dtype;
    for (int i = 0; i < members(); ++i) {
      elements.push_back(op.inputs()[i].elements());
    }
  }

  int members() const { return static_cast<int>(keep.size()); }
  // Positions in the buffers: slots have a value for each member.
  int weights(int member) const { return member; }
  int gradient(int member) const { return members() + member; }
  int velocity(int member) const { return 2 * members() + member; }
  int residual(int member) const { return 3 * members() + member; }
  int found_inf() const { return 4 * members(); }
  int inv_scale() const { return 4 * members() + 1; }
  // Of the outputs.
  int values(int member) const { return member; }
  int indices(int member) const { return members() + member; }
  int velocity_out(int member) const { return 2 * members() + member; }
  int residual_out(int member) const { return 3 * members() + member; }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_DGC_H_
