// Kernels of fusion patterns: an activation within the pass that rounds a
// convolution or a product, or over what is still in the cache.
#include "kernels/cpu/fusion.h"

#include "kernels/cpu/conv.h"
#include "kernels/cpu/matmul.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// The body's first op, bound as the fusion is.
BoundOp LinearOp(const BoundOp& fusion) {
  const Block& body = *fusion.op().body;
  return BoundOp(body, body.op(body.first()), fusion.symbols(),
                 fusion.context());
}

int Position(const BoundOp& linear, const char* slot) {
  return ArgumentPosition(linear.block(),
                          linear.op().inputs.all()[linear.InputIndex(slot)]);
}

OnednnSpec ConvBiasRelu(const BoundOp& fusion, bool any_format) {
  const BoundOp conv = LinearOp(fusion);
  OnednnSpec spec =
      ConvForward(conv,
                  {Position(conv, "Input"), Position(conv, "Filter"),
                   Position(conv, "Bias")},
                  any_format);
  spec.relu = true;
  return spec;
}

OnednnSpec MatmulBiasRelu(const BoundOp& fusion) {
  const BoundOp matmul = LinearOp(fusion);
  OnednnSpec spec = MatmulForward(
      matmul,
      {Position(matmul, "X"), Position(matmul, "Y"), Position(matmul, "Bias")});
  spec.relu = true;
  return spec;
}

}  // namespace

int ArgumentPosition(const Block& body, ValueId value) {
  const std::vector<ValueId> arguments = body.Feeds();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == value) return static_cast<int>(i);
  }
  return -1;
}

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
