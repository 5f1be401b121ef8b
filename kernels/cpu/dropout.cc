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
    const StreamedOutput output(
        buffers.outputs[0], dtype, elements,
        // Of 16 bits drawing takes longer than memory does.
        /*as_usual=*/IsLow(dtype) || buffers.inputs[0] == buffers.outputs[0]);
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          output.Write(begin, end, [&](int64_t first, int64_t n, void* to) {
            if (shape.run == 1) {
              return OwnDraws(buffers, key, step, first_sample, first, n, to);
            }
            ForBlocks(0, n, [&](int64_t i, int64_t count) {
              Block(buffers, key, step, first_sample, first + i, count, to, i);
            });
          });
        });
  }

 private:
  // Each element has a draw. Of [first, first + count), made at `to`.
  void OwnDraws(const Buffers& buffers, uint64_t key, uint64_t step,
                uint64_t first_sample, int64_t first, int64_t count,
                void* to) const {
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = static_cast<const T*>(buffers.inputs[0]) + first;
      T* y = static_cast<T*>(to);
      for (int64_t i = 0; i < count;) {
        const int64_t at = first + i;
        const int64_t draw = at % shape.sample % shape.draws;
        const int64_t n = std::min(count - i, shape.draws - draw);
        ApplyDropout(dropout, key, step, first_sample + at / shape.sample, draw,
                     n, x + i, y + i);
        i += n;
      }
    });
  }
  // A draw for each run. Of [at, at + n), made from element `place` of `to` on.
  void Block(const Buffers& buffers, uint64_t key, uint64_t step,
             uint64_t first_sample, int64_t at, int64_t n, void* to,
             int64_t place) const {
    alignas(64) float in[kConvertBlock], out[kConvertBlock];
    const float* x = LoadBlock(dtype, buffers.inputs[0], at, n, in);
    float* y = OutputBlock(dtype, to, place, out);
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
    StoreBlock(dtype, y, to, place, n);
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
