// Part of choose-layout: filters lie as the images that they are convolved
// with.
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

#include "graph/ir/program.h"
#include "passes/kernel_set.h"

namespace halftone {
namespace passes {

// Of a program whose images lie as they will. Returns whether it changed.
bool LayOutFilters(Program& program, const KernelSet& kernels);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_LAY_OUT_FILTERS_H_
