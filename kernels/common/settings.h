// Attributes of ops as the functors take them, whatever the device.
#ifndef HALFTONE_KERNELS_COMMON_SETTINGS_H_
#define HALFTONE_KERNELS_COMMON_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "graph/base/dtype_fwd.h"
#include "kernels/bound_op.h"
#include "kernels/functors/amp.h"
#include "kernels/functors/learning_rate.h"
#include "kernels/functors/optimizer.h"
#include "kernels/functors/optimizer_adaptive.h"
#include "kernels/functors/optimizer_norms.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// ---- Loss scaling.

// What a reduction with gradient_scale `pre` multiplies by: 1 / predivide, or,
// where that is 0, 2^-ceil(log2 world), the largest power of two that keeps a
// sum of equal terms no larger than one of them.
float ReductionScale(double predivide, int world_size);
// What an all_reduce multiplies by.
float SumScale(const BoundOp& op);
// What turns it back; 1 for `post`.
float ReductionScale(const BoundOp& op);
// What element_count gives.
int64_t ElementCount(const BoundOp& op);
functors::LossScalePolicy LossScalePolicyOf(const BoundOp& op);
// The order in which global_norm adds its members.
std::vector<int64_t> NormOrder(const BoundOp& op);

// ---- Updates and the learning rate.

void ReadRule(const BoundOp& op, functors::SgdRule* rule);
void ReadRule(const BoundOp& op, functors::MomentumRule* rule);
void ReadRule(const BoundOp& op, functors::AdamRule* rule);  // adamw too
void ReadRule(const BoundOp& op, functors::AdagradRule* rule);
void ReadRule(const BoundOp& op, functors::AdadeltaRule* rule);
void ReadRule(const BoundOp& op, functors::AdamaxRule* rule);
void ReadRule(const BoundOp& op, functors::LarsRule* rule);
void ReadRule(const BoundOp& op, functors::LambRule* rule);
void ReadRule(const BoundOp& op, functors::LionRule* rule);

template <bool kCentered, bool kMomentum>
void ReadRule(const BoundOp& op,
              functors::RmspropRule<kCentered, kMomentum>* rule) {
  rule->decay_of_means = op.Float("alpha");
  rule->weight_decay = static_cast<float>(op.Float("weight_decay"));
  rule->epsilon = static_cast<float>(op.Float("epsilon"));
  rule->momentum = static_cast<float>(op.Float("momentum"));
}
// The candidate of the rule that has an op's states: neither, momentum alone,
// the mean alone, both. Else they are alike.
Candidate ByRmspropForm(std::vector<Candidate> forms);

// Where everything of an update stands among the buffers: slots are lists of
// one value per parameter.
struct UpdateSlots {
  explicit UpdateSlots(const BoundOp& op);

  int members;
  bool has_low;
  // Flat positions; -1: not there.
  int learning_rate, applied, found_inf, inv_scale, clip_factor, squared_norm;
  DType param, grad, low{};
  float clip_value;  // infinity: none
  float clip_norm;   // 0: none
  // With clip_norm: each member's place in SquaredNorm.
  std::vector<int64_t> norm_of;
};

functors::AverageRule AverageRuleOf(const BoundOp& op);
functors::RateSettings RateSettingsOf(const BoundOp& op);

// ---- Images: one number, or one per channel, as one per channel.
std::vector<float> PerChannel(const std::vector<double>& values,
                              int64_t channels);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_SETTINGS_H_
