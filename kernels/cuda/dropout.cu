// Dropout and its gradient: the same function of the same draws.
#include <algorithm>

#include "graph/base/philox.h"
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
  Divider sample_elements;
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
  // A vector lies within one sample and starts at a multiple of 4 of it.
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const uint64_t key = PhiloxKey(static_cast<uint64_t>(*seed), stream_id);
    const int64_t sample = sample_elements.Divide(i);
    const int64_t element = i - sample * sample_elements.divisor();
    float a[V];
    Unpack(dtype, loaded.x, a);
#pragma unroll
    for (int k = 0; k < V; k += 4) {
      const Philox4 draw =
          PhiloxDraw(key, static_cast<uint64_t>(*step),
                     static_cast<uint64_t>(*first_sample + sample),
                     static_cast<uint32_t>((element + k) / 4));
      if constexpr (V == 1) {
        a[0] = dropout(a[0], WordOf(draw, element));
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) a[k + j] = dropout(a[k + j], draw.x[j]);
      }
    }
    StoreVector(dtype, out, i, a);
  }
};

auto MakeDropout(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const int64_t samples = std::max<int64_t>(1, x.dims[0]);
  const int64_t sample = std::max<int64_t>(1, x.elements() / samples);
  DropoutBody body;
  body.dropout = functors::DropoutOp::Of(op.Float("p"));
  body.stream_id = static_cast<uint32_t>(op.Int("stream"));
  body.dtype = x.dtype;
  body.sample_elements = Divider(sample);
  return [body, sample, n = x.elements()](const Buffers& b, Launcher& launch) {
    DropoutBody bound = body;
    bound.x = b.inputs[0];
    bound.seed = static_cast<const int64_t*>(b.inputs[1]);
    bound.step = static_cast<const int64_t*>(b.inputs[2]);
    bound.first_sample = static_cast<const int64_t*>(b.inputs[3]);
    bound.out = b.outputs[0];
    int vector = Aligned({bound.x, bound.out}) ? VectorOf({body.dtype}) : 1;
    if (vector == 8 && sample % 8 != 0) vector = 4;
    if (vector == 4 && sample % 4 != 0) vector = 1;
    Map(launch, bound, n, vector);
  };
}

}  // namespace

void RegisterCudaDropout(KernelRegistry& registry) {
  AddForSchema(registry, "dropout", CudaCandidate("philox", MakeDropout));
  AddForSchema(registry, "dropout_grad", CudaCandidate("philox", MakeDropout));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
