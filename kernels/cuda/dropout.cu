// Dropout and its gradient: the same function of the same draws.
#include "graph/base/philox.h"
#include "kernels/common/dropout_shape.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/register_all.h"
#include "kernels/functors/dropout.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct DropoutBody {
  functors::DropoutOp dropout;
  uint32_t stream_id;
  DType dtype;
  Divider sample_elements, draws, run;
  const int64_t *seed, *step, *first_sample;
  const void* x;
  void* out;

  template <int V>
  struct Loaded {
    Raw x;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = LoadRaw<V>(dtype, x, i);
  }
  // A vector lies within one sample; its draws are one, or V that start at a
  // multiple of 4.
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const uint64_t key = PhiloxKey(static_cast<uint64_t>(*seed), stream_id);
    const int64_t sample = sample_elements.Divide(i);
    const int64_t element = i - sample * sample_elements.divisor();
    const int64_t first = draws.Remainder(run.Divide(element));
    const auto block = [&](int64_t element) {
      return PhiloxDraw(key, static_cast<uint64_t>(*step),
                        static_cast<uint64_t>(*first_sample + sample),
                        static_cast<uint32_t>(element / 4));
    };
    float a[V];
    Unpack(dtype, loaded.x, a);
    if (V == 1 || run.divisor() > 1) {
      const uint32_t bits = WordOf(block(first), first);
#pragma unroll
      for (int k = 0; k < V; ++k) a[k] = dropout(a[k], bits);
    } else {
#pragma unroll
      for (int k = 0; k < V / 4 * 4; k += 4) {
        const Philox4 draw = block(first + k);
#pragma unroll
        for (int j = 0; j < 4; ++j) a[k + j] = dropout(a[k + j], draw.x[j]);
      }
    }
    StoreVector(dtype, out, i, a);
  }
};

auto MakeDropout(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const DropoutShape shape = DropoutShape::Of(op);
  DropoutBody body;
  body.dropout = functors::DropoutOp::Of(op.Float("p"));
  body.stream_id = static_cast<uint32_t>(op.Int("stream"));
  body.dtype = x.dtype;
  body.sample_elements = Divider(shape.sample);
  body.draws = Divider(shape.draws);
  body.run = Divider(shape.run);
  const int64_t whole = shape.run == 1 ? shape.draws : shape.run;
  return [body, whole, n = x.elements()](const Buffers& b, Launcher& launch) {
    DropoutBody bound = body;
    bound.x = b.inputs[0];
    bound.seed = static_cast<const int64_t*>(b.inputs[1]);
    bound.step = static_cast<const int64_t*>(b.inputs[2]);
    bound.first_sample = static_cast<const int64_t*>(b.inputs[3]);
    bound.out = b.outputs[0];
    int vector = Aligned({bound.x, bound.out}) ? VectorOf({body.dtype}) : 1;
    if (vector == 8 && whole % 8 != 0) vector = 4;
    if (vector == 4 && whole % 4 != 0) vector = 1;
    Map(launch, bound, n, vector);
  };
}

}  // namespace

void RegisterCudaDropout(KernelRegistry& registry) {
  for (const char* op :
       {"dropout", "dropout_grad", "dropout_nd", "dropout_nd_grad"}) {
    AddForSchema(registry, op, CudaCandidate("philox", MakeDropout));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
