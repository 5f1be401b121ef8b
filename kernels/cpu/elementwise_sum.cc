// The n-ary sum in which a value's gradients meet: added in f32 in the order
// of the list, rounded once.
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {
namespace {

void AddInPlace(const float* x, float* sum, int64_t n) {
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
  });
}

struct SumKernel {
  std::vector<Operand> operands;  // members may differ in layout
  DType out;
  int64_t elements;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          ForBlocks(begin, end,
                    [&](int64_t at, int64_t n) { SumBlock(buffers, at, n); });
        });
  }

 private:
  void SumBlock(const Buffers& buffers, int64_t at, int64_t n) const {
    alignas(64) float sum[kConvertBlock];
    for (size_t i = 0; i < operands.size(); ++i) {
      OperandReader reader(operands[i], buffers.inputs[i], n);
      const float* x = reader.Block(at, n);
      if (i == 0) {
        ToFloat(x, sum, n);
      } else {
        AddInPlace(x, sum, n);
      }
    }
    char* to = static_cast<char*>(buffers.outputs[0]) + at * SizeOf(out);
    FromFloat(out, sum, to, n);
  }
};

SumKernel MakeSum(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  SumKernel kernel{{}, out.dtype, out.elements()};
  for (const TensorDesc& x : op.inputs()) kernel.operands.emplace_back(x, out);
  return kernel;
}

}  // namespace

void RegisterCpuSum(KernelRegistry& registry) {
  AddForSchema(registry, "sum", MakeCandidate("blocks", MakeSum));
}

}  // namespace kernels
}  // namespace halftone
