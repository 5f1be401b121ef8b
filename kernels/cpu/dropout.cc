// Dropout and its gradient: the same function of the same draws.
#include "kernels/functors/dropout.h"

#include <algorithm>

#include "graph/base/philox.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/dropout_shape.h"
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
  int64_t elements;
  DropoutShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const auto scalar = [&](int i) {
      return static_cast<uint64_t>(
          *static_cast<const int64_t*>(buffers.inputs[i]));
    };
    const uint64_t key = PhiloxKey(scalar(1), stream_id);
    const uint64_t step = scalar(2), first_sample = scalar(3);
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          if (shape.run == 1) {
            return OwnDraws(buffers, key, step, first_sample, begin, end);
          }
          ForBlocks(begin, end, [&](int64_t at, int64_t n) {
            Block(buffers, key, step, first_sample, at, n);
          });
        });
  }

 private:
  // Each element has a draw.
  void OwnDraws(const Buffers& buffers, uint64_t key, uint64_t step,
                uint64_t first_sample, int64_t begin, int64_t end) const {
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = static_cast<const T*>(buffers.inputs[0]);
      T* y = static_cast<T*>(buffers.outputs[0]);
      for (int64_t at = begin; at < end;) {
        const int64_t draw = at % shape.sample % shape.draws;
        const int64_t n = std::min(end - at, shape.draws - draw);
        ApplyDropout(dropout, key, step, first_sample + at / shape.sample, draw,
                     n, x + at, y + at);
        at += n;
      }
    });
  }
  // A draw for each run.
  void Block(const Buffers& buffers, uint64_t key, uint64_t step,
             uint64_t first_sample, int64_t at, int64_t n) const {
    alignas(64) float in[kConvertBlock], out[kConvertBlock];
    const float* x = LoadBlock(dtype, buffers.inputs[0], at, n, in);
    float* y = OutputBlock(dtype, buffers.outputs[0], at, out);
    for (int64_t done = 0; done < n;) {
      const int64_t element = (at + done) % shape.sample;
      const uint64_t sample = first_sample + (at + done) / shape.sample;
      const int64_t draw = element / shape.run % shape.draws;
      const int64_t run = std::min(n - done, shape.run - element % shape.run);
      uint32_t words[8];
      const uint32_t bits = *DrawBits(key, step, sample, draw, 1, words);
      std::transform(x + done, x + done + run, y + done,
                     [=, f = dropout](float v) { return f(v, bits); });
      done += run;
    }
    StoreBlock(dtype, y, buffers.outputs[0], at, n);
  }
};

DropoutKernel MakeDropout(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  return {functors::DropoutOp::Of(op.Float("p")),
          static_cast<uint32_t>(op.Int("stream")), x.dtype, x.elements(),
          DropoutShape::Of(op)};
}

}  // namespace

void RegisterCpuDropout(KernelRegistry& registry) {
  for (const char* op :
       {"dropout", "dropout_grad", "dropout_nd", "dropout_nd_grad"}) {
    AddForSchema(registry, op, MakeCandidate("blocks", MakeDropout));
  }
}

}  // namespace kernels
}  // namespace halftone
