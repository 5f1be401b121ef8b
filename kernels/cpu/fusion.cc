// Kernels of fusion patterns: an activation within the pass that rounds a
// convolution or a product, or over what is still in the cache.
#include "kernels/cpu/fusion.h"

#include "kernels/common/fusion_body.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/matmul.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

OnednnSpec ConvBiasRelu(const BoundOp& fusion, bool any_format) {
  const BoundOp conv = FirstOfBody(fusion);
  OnednnSpec spec = ConvForward(
      conv,
      {ArgumentPosition(conv, "Input"), ArgumentPosition(conv, "Filter"),
       ArgumentPosition(conv, "Bias")},
      any_format);
  spec.relu = true;
  return spec;
}

OnednnSpec MatmulBiasRelu(const BoundOp& fusion) {
  const BoundOp matmul = FirstOfBody(fusion);
  OnednnSpec spec = MatmulForward(
      matmul, {ArgumentPosition(matmul, "X"), ArgumentPosition(matmul, "Y"),
               ArgumentPosition(matmul, "Bias")});
  spec.relu = true;
  return spec;
}

}  // namespace

void RegisterCpuFusion(KernelRegistry& registry) {
  registry.AddPattern("cpu", "conv_bias_relu",
                      OnednnCandidate("onednn", [](const BoundOp& op) {
                        return ConvBiasRelu(op, /*any_format=*/true);
                      }));
  registry.AddPattern("cpu", "conv_bias_relu",
                      OnednnCandidate("onednn_plain", [](const BoundOp& op) {
                        return ConvBiasRelu(op, /*any_format=*/false);
                      }));
  registry.AddPattern("cpu", "matmul_bias_relu",
                      OnednnCandidate("onednn", MatmulBiasRelu));
  RegisterCpuElementwiseChain(registry);
}

}  // namespace kernels
}  // namespace halftone
