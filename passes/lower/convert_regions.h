// choose-layout.convert-regions: lays 4-d activations out channels-last.
//
//   before
//     c1: conv2d(Input=x, Filter=w1) -> (Output=c1 : f16[B,8,8,8])
//     a1: relu(X=c1) -> (Out=a1 : f16[B,8,8,8])
//     c2: conv2d(Input=a1, Filter=w2) -> (Output=c2 : f16[B,8,8,8])
//     f: flatten(X=c2) -> (Out=f : f16[B,512])
//   after
//     x.channels_last: convert_layout(X=x) ->
//         (Out=x.channels_last : f16[B,8,8,8] @channels_last)
//         {to="channels_last"}
//     c1: conv2d(Input=x.channels_last, Filter=w1) ->
//         (Output=c1 : f16[B,8,8,8] @channels_last)
//     a1: relu(X=c1) -> (Out=a1 : f16[B,8,8,8] @channels_last)
//     c2: conv2d(Input=a1, ...) -> (Output=c2 : f16[B,8,8,8] @channels_last)
//     c2.row_major: convert_layout(X=c2) -> (Out=c2.row_major : f16[B,8,8,8])
//         {to="row_major"}
//     f: flatten(X=c2.row_major) -> (Out=f : f16[B,512])
//
// A region is a connected set of ops whose schemas and kernels take
// channels-last; it is converted where it has at least as many convolutions
// as it needs conversions at its border. Feeds, results and commits stay
// row-major, and so do weights (filters: lay_out_filters.h). A weight that
// an element-wise op reads beside an activation is converted for it: its
// operands share one layout. A transpose that moves the channels of the
// region's images behind their pixels, or before them, is a border that needs
// no conversion: it becomes a move_channels, which moves no byte.
//
// An entry that holds conversions is left as it is.
#ifndef HALFTONE_PASSES_LOWER_CONVERT_REGIONS_H_
#define HALFTONE_PASSES_LOWER_CONVERT_REGIONS_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class ConvertRegions : public Pass {
 public:
  // `kernels` is borrowed. Nothing changes where the target's images lie in
  // row-major order.
  explicit ConvertRegions(const KernelSet& kernels) : kernels_(&kernels) {}

  absl::string_view name() const override {
    return "choose-layout.convert-regions";
  }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_CONVERT_REGIONS_H_
