// 3x3 and 5x5 convolutions with fewer products (winograd.h), where images and
// filters lie channels_last.
#ifndef HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_
#define HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_

#include <type_traits>

#include "graph/base/dtype.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Whether there is nothing faster on this machine: instructions for 16-bit
// factors make more of direct sums.
bool HasWinograd(DType dtype);
// Whether they take it, odd sizes apart: windows of 3x3 or 5x5 next to each
// other, and channels in whole panels. The number of samples never counts: what
// becomes of one does not depend on the others.
bool IsWinograd(const ConvOp& conv);

// Of Kernel<3> and Kernel<5>, the one that is as wide as the windows of
// conv_of(op).
template <template <int> class Kernel>
Candidate WinogradCandidate(ConvOp (*conv_of)(const BoundOp&)) {
  const auto of = [](auto tap) {
    using Of = Kernel<decltype(tap)::value>;
    Candidate candidate =
        MakeCandidate("winograd", [](const BoundOp& op) { return Of(op); });
    candidate.supports = [](const BoundOp& op) { return !Of(op).IsWaste(); };
    candidate.workspace_bytes = [](const BoundOp& op) {
      return Of(op).WorkspaceFloats(op.context().threads) *
             static_cast<int64_t>(sizeof(float));
    };
    return candidate;
  };
  const auto chosen = [conv_of, three = of(std::integral_constant<int, 3>()),
                       five = of(std::integral_constant<int, 5>())](
                          const BoundOp& op) -> const Candidate& {
    return conv_of(op).shape.volume[1].filter == 3 ? three : five;
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
