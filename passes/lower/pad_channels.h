// choose-layout.pad-channels: pads the channels of images for tensor cores.
//
//   before
//     x.channels_last: convert_layout(X=x) ->
//         (Out=x.channels_last : f16[B,3,8,8] @channels_last)
//     c: conv2d(Input=x.channels_last, Filter=w) -> ...
//     ...
//     c.grad: conv2d_grad_filter(Input=x.channels_last, OutputGrad=g) ->
//         (FilterGrad=w.grad : f16[16,3,3,3])
//   after
//     x.padded: pad_channels(X=x) ->
//         (Out=x.padded : f16[B,8,8,8] @channels_last) {channels=8}
//     w.padded: pad_channels(X=w) ->
//         (Out=w.padded : f16[16,8,3,3] @channels_last) {channels=8}
//     c: conv2d(Input=x.padded, Filter=w.padded) -> ...
//     ...
//     c.grad: conv2d_grad_filter(Input=x.padded, OutputGrad=g) ->
//         (FilterGrad=w.grad.padded : f16[16,8,3,3])
//     c.grad.cut: slice(X=w.grad.padded) -> (Out=w.grad : f16[16,3,3,3])
//         {axis=1, start=0, end=3}
//
// Tensor cores read 16 bytes of a pixel at once: 8 channels. cuDNN's engines
// for a filter's gradient make such a copy of the whole batch in their
// workspace, in every step; those for the convolution itself are content with
// 4 channels. A padded channel adds products with 0 to sums and is cut off the
// gradient, so numbers stay what they were.
//
// Only 16-bit images that enter a channels-last region, where no op computes
// their channels (the model's input), and only up to three times their bytes.
#ifndef HALFTONE_PASSES_LOWER_PAD_CHANNELS_H_
#define HALFTONE_PASSES_LOWER_PAD_CHANNELS_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class PadChannels : public Pass {
 public:
  // As ConvertRegions.
  explicit PadChannels(const KernelSet& kernels) : kernels_(&kernels) {}

  absl::string_view name() const override {
    return "choose-layout.pad-channels";
  }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PAD_CHANNELS_H_
