// Dropout and its gradient: the same function of the same draws.
#include "kernels/functors/dropout.h"

#include <algorithm>

#include "graph/base/philox.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

struct DropoutKernel {
  functors::DropoutOp dropout;
  uint32_t stream_id;
  DType dtype;
  int64_t elements, sample_elements;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const auto scalar = [&](int i) {
      return static_cast<uint64_t>(
          *static_cast<const int64_t*>(buffers.inputs[i]));
    };
    const uint64_t key = PhiloxKey(scalar(1), stream_id);
    const uint64_t step = scalar(2), first_sample = scalar(3);
    ParallelFor(stream.threads(), elements, kMapGrain,
                [&](int64_t begin, int64_t end) {
                  ForBlocks(begin, end, [&](int64_t at, int64_t n) {
                    Block(buffers, key, step, first_sample, at, n);
                  });
                });
  }

 private:
  void Block(const Buffers& buffers, uint64_t key, uint64_t step,
             uint64_t first_sample, int64_t at, int64_t n) const {
    alignas(64) float in[kConvertBlock], out[kConvertBlock];
    const float* x = LoadBlock(dtype, buffers.inputs[0], at, n, in);
    float* y = OutputBlock(dtype, buffers.outputs[0], at, out);
    for (int64_t done = 0; done < n;) {
      const int64_t element = (at + done) % sample_elements;
      const int64_t run = std::min(n - done, sample_elements - element);
      const uint64_t sample = first_sample + (at + done) / sample_elements;
      ApplyDropout(dropout, key, step, sample, element, run, x + done,
                   y + done);
      done += run;
    }
    StoreBlock(dtype, y, buffers.outputs[0], at, n);
  }
};

DropoutKernel MakeDropout(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const int64_t samples = std::max<int64_t>(1, x.dims[0]);
  return {functors::DropoutOp::Of(op.Float("p")),
          static_cast<uint32_t>(op.Int("stream")), x.dtype, x.elements(),
          x.elements() / samples};
}

}  // namespace

void RegisterCpuDropout(KernelRegistry& registry) {
  AddForSchema(registry, "dropout", MakeCandidate("blocks", MakeDropout));
  AddForSchema(registry, "dropout_grad", MakeCandidate("blocks", MakeDropout));
}

}  // namespace kernels
}  // namespace halftone
