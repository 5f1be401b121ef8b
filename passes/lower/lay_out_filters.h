// choose-layout.lay-out-filters: filters lie as the images that they are
// convolved with.
//
//   before
//     cell w : f32[8,8,3,3]
//     cell w.cast_fp16 : f16[8,8,3,3]
//     c: conv2d(Input=x.channels_last, Filter=w.cast_fp16) -> ...
//     ...
//     c.grad: conv2d_grad_filter(...) -> (FilterGrad=w.grad : f16[8,8,3,3])
//   after
//     cell w : f32[8,8,3,3] @channels_last
//     cell w.cast_fp16 : f16[8,8,3,3] @channels_last
//     c: conv2d(Input=x.channels_last, Filter=w.cast_fp16) -> ...
//     ...
//     c.grad: conv2d_grad_filter(...) ->
//         (FilterGrad=w.grad : f16[8,8,3,3] @channels_last)
//
// The library's convolutions of channels-last images want such filters and make
// such gradients: from row-major ones each forward convolution and each of its
// gradients moved all of them, in every step. Parameter, slots, gradient and
// low cell share one layout; whatever reads or writes them in logical order
// (checkpoints, exports, fetches) is told by their types.
//
// A filter stays row-major if anything but convolutions of channels-last images
// and ops that take any layout reads or makes it, in any entry: one whose
// channels are padded, whose gradient is cut, is such.
#ifndef HALFTONE_PASSES_LOWER_LAY_OUT_FILTERS_H_
#define HALFTONE_PASSES_LOWER_LAY_OUT_FILTERS_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class LayOutFilters : public Pass {
 public:
  // As ConvertRegions.
  explicit LayOutFilters(const KernelSet& kernels) : kernels_(&kernels) {}

  absl::string_view name() const override {
    return "choose-layout.lay-out-filters";
  }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_LAY_OUT_FILTERS_H_
