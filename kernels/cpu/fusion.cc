// Kernels of fusion patterns: an activation within the pass that rounds a
// convolution or a product, or over what is still in the cache.
#include "kernels/cpu/fusion.h"

#include "graph/base/layout.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/matmul.h"
#include "kernels/fused_op.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

OnednnSpec ConvBiasRelu(const BoundOp& fusion) {
  const BoundOp conv = FusedOp(fusion).Of("conv");
  OnednnSpec spec = ConvForward(
      conv, {ArgumentPosition(conv, "Input"), ArgumentPosition(conv, "Filter"),
             ArgumentPosition(conv, "Bias")});
  spec.relu = true;
  return spec;
}

OnednnSpec MatmulBiasRelu(const BoundOp& fusion) {
  const BoundOp product = FusedOp(fusion).Of("product");
  OnednnSpec spec = MatmulForward(
      product, {ArgumentPosition(product, "X"), ArgumentPosition(product, "Y"),
                ArgumentPosition(product, "Bias")});
  spec.relu = true;
  return spec;
}

}  // namespace

void RegisterCpuFusion(KernelRegistry& registry) {
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const Layout images[] = {Layout::kRowMajor, Layout::kChannelsLast};
  for (const Candidate& candidate : ConvCandidates(ConvBiasRelu)) {
    registry.AddPattern("conv_bias_relu", dtypes, images, candidate);
  }
  registry.AddPattern("matmul_bias_relu", dtypes, {Layout::kRowMajor},
                      OnednnCandidate("onednn", MatmulBiasRelu));
  RegisterCpuElementwiseChain(registry);
}

}  // namespace kernels
}  // namespace halftone
