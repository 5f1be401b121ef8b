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

namespace halftone {
namespace kernels {

// ---- Loss scaling.

// What a reduction multiplies by: 2^-ceil(log2 world) for `pre`, 1 for `post`.
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

// Where everything of an update stands among the buffers: slots are lists of
// one value per parameter.
struct UpdateSlots {
  explicit UpdateSlots(const BoundOp& op);

  int members;
  bool has_low;
  // Flat positions; -1: not there.
  int learning_rate, applied, found_inf, inv_scale, clip_factor;
  DType param, grad, low{};
  float clip_value;  // infinity: none
};

functors::RateSettings RateSettingsOf(const BoundOp& op);

// ---- Images: one number, or one per channel, as one per channel.
std::vector<float> PerChannel(const std::vector<double>& values,
                              int64_t channels);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_SETTINGS_H_
