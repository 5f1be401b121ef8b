// The n-ary sum in which a value's gradients meet: added in f32 in the order
// of the list, rounded once.
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/map.h"
#include "kernels/functors/elementwise.h"

namespace halftone {
namespace kernels {
namespace {

// `to` may be x or y.
void Add(const float* x, const float* y, float* to, int64_t n) {
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = x[i] + y[i];
  });
}

struct SumKernel {
  std::vector<Operand> operands;  // members may differ in layout
  DType out;
  int64_t elements;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    if (operands.size() == 2) {
      return MapBinary(operands[0], buffers.inputs[0], operands[1],
                       buffers.inputs[1], out, buffers.outputs[0], elements,
                       stream.threads(), functors::AddOp());
    }
    const StreamedOutput output = StreamedOutput::Of(buffers, 0, out, elements);
    ParallelFor(stream.threads(), elements, kMapGrain,
                [&](int64_t begin, int64_t end) {
                  ForBlocks(begin, end, [&](int64_t at, int64_t n) {
                    output.WritePart(
                        at, n, [&](void* to) { SumBlock(buffers, at, n, to); });
                  });
                  FinishStores();
                });
  }

 private:
  // Elements [at, at + n), made at `made`.
  void SumBlock(const Buffers& buffers, int64_t at, int64_t n,
                void* made) const {
    alignas(64) float buffer[kConvertBlock];
    OperandReader first(operands[0], buffers.inputs[0], n);
    const float* sum = first.Block(at, n);
    for (size_t i = 1; i < operands.size(); ++i) {
      OperandReader reader(operands[i], buffers.inputs[i], n);
      // The output may be an operand that is still to be read.
      const bool last = i + 1 == operands.size();
      float* to = last ? OutputBlock(out, made, 0, buffer) : buffer;
      Add(sum, reader.Block(at, n), to, n);
      sum = to;
    }
    FromFloat(out, sum, made, n);
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
