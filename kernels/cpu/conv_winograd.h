// 3x3 and 5x5 convolutions with fewer products (winograd.h), where images and
// filters lie channels_last.
#ifndef HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_
#define HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_

#include <cstdint>

#include "graph/base/dtype.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/winograd.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Whether there may be nothing faster on this machine: AMX makes more of direct
// sums of bf16.
bool HasWinograd(DType dtype);
// Whether they take it, their sizes apart: windows of 3x3 or 5x5 next to each
// other, and channels in whole panels. The number of samples never counts: what
// becomes of one does not depend on the others.
bool IsWinograd(const ConvOp& conv);
// Whether images of `dtype` are made in less time by these tiles than by direct
// sums: by the instructions that products take, in hundredths of theirs. Where
// one multiplies a pair of bf16, tiles have to be many besides, as the time for
// the filter's transform is that of some of them. Short ones count
// as whole.
template <typename W>
bool PaysAsWinograd(const WinogradTiles& tiles, DType dtype) {
  const bool pairs = dtype == DType::kBF16 && HasPairs();
  const int64_t most = pairs ? 33 : 63, fewest = pairs ? 9 : 1;
  return tiles.of_sample() >= fewest &&
         100 * W::kPoints * tiles.of_sample() <=
             most * W::kTaps * tiles.pixels_of_sample();
}

// Of Kernel<W>, the one that is as wide as the windows of conv_of(op) and for
// images of its dtype.
template <template <typename> class Kernel>
Candidate WinogradCandidate(ConvOp (*conv_of)(const BoundOp&)) {
  const auto of = [conv_of](auto tag) {
    using W = typename decltype(tag)::type;
    using Of = Kernel<W>;
    Candidate candidate =
        MakeCandidate("winograd", [](const BoundOp& op) { return Of(op); });
    candidate.supports = [conv_of](const BoundOp& op) {
      return PaysAsWinograd<W>(Of(op).tiles(), conv_of(op).image_desc.dtype);
    };
    candidate.workspace_bytes = [](const BoundOp& op) {
      return Of(op).WorkspaceFloats(op.context().threads) *
             static_cast<int64_t>(sizeof(float));
    };
    return candidate;
  };
  const auto chosen = [conv_of, three = of(TypeTag<WinogradOfThree>()),
                       low_three = of(TypeTag<LowWinogradOfThree>()),
                       five = of(TypeTag<WinogradOfFive>()),
                       low_five = of(TypeTag<LowWinogradOfFive>())](
                          const BoundOp& op) -> const Candidate& {
    const ConvOp conv = conv_of(op);
    const bool is_low = IsLow(conv.image_desc.dtype);
    if (conv.shape.volume[1].filter == 5) return is_low ? low_five : five;
    return is_low ? low_three : three;
  };
  Candidate candidate;
  candidate.name = "winograd";
  candidate.supports = [=](const BoundOp& op) {
    return IsWinograd(conv_of(op)) && chosen(op).supports(op);
  };
  candidate.workspace_bytes = [=](const BoundOp& op) {
    return chosen(op).workspace_bytes(op);
  };
  candidate.prepare = [=](const BoundOp& op, runtime::Device& device) {
    return chosen(op).prepare(op, device);
  };
  return candidate;
}

Candidate WinogradGradFilterCandidate();  // conv_winograd_filter.cc

// Adds them, "winograd".
void RegisterCpuConvWinograd(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_
