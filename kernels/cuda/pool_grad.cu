// The gradient of pooling: each element of the image gathers from the
// windows that hold it, in a fixed order, added in f32.
#include "kernels/common/shapes.h"
#include "kernels/cuda/pool.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

template <int V>
HT_DEVICE bool Any(const bool (&flags)[V]) {
  bool any = false;
#pragma unroll
  for (int k = 0; k < V; ++k) any = any || flags[k];
  return any;
}

// Whether two values are the same maximum: NaNs count as equal.
HT_DEVICE bool SameValue(float a, float b) {
  return a == b || (a != a && b != b);
}

struct PoolGradBody {
  PoolShape shape;
  PoolIndex index;  // of the image
  DType dtype;
  const void *x, *out, *out_grad;
  void* x_grad;

  template <int V>
  struct Loaded {
    Raw x;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    if (shape.max) loaded.x = LoadRaw<V>(dtype, x, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const PoolIndex::Place at = index.Of(i);
    const Range slices = shape.d.WindowsOver(at.slice);
    const Range rows = shape.h.WindowsOver(at.row);
    const Range columns = shape.w.WindowsOver(at.column);
    float sum[V], own[V];
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] = own[k] = 0;
    if (shape.max) Unpack(dtype, loaded.x, own);
    for (int64_t od = slices.begin; od < slices.end; ++od) {
      for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
        // Last window first: the order of additions is the CPU's.
        for (int64_t ow = columns.end - 1; ow >= columns.begin; --ow) {
          const int64_t o =
              PoolPlace(at.plane, od, oh, ow, at.channel, shape, true);
          if (shape.max) {
            AddMaximum(at, od, oh, ow, o, own, sum);
          } else {
            AddMean(shape.Divisor(od, oh, ow), o, sum);
          }
        }
      }
    }
    StoreVector(dtype, x_grad, i, sum);
  }

 private:
  template <int V>
  HT_DEVICE void AddMean(float divisor, int64_t o, float (&sum)[V]) const {
    float grad[V];
    LoadVector(dtype, out_grad, o, grad);
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] += grad[k] / divisor;
  }

  // Where x has the maximum at a place before, this is not the first.
  template <int V>
  HT_DEVICE void RuleOut(int64_t place, const float (&most)[V],
                         bool (&first)[V]) const {
    float v[V];
    LoadVector(dtype, x, place, v);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      first[k] = first[k] && !SameValue(v[k], most[k]);
    }
  }

  // The window's gradient where `own` is the first of its maxima.
  template <int V>
  HT_DEVICE void AddMaximum(const PoolIndex::Place& at, int64_t od, int64_t oh,
                            int64_t ow, int64_t o, const float (&own)[V],
                            float (&sum)[V]) const {
    float most[V];
    LoadVector(dtype, out, o, most);
    bool first[V];
#pragma unroll
    for (int k = 0; k < V; ++k) first[k] = SameValue(own[k], most[k]);
    if (!Any(first)) return;
    const Range slices = shape.d.Window(od), rows = shape.h.Window(oh);
    const Range columns = shape.w.Window(ow);
    for (int64_t z = slices.begin; z <= at.slice; ++z) {
      const bool own_slice = z == at.slice;
      for (int64_t r = rows.begin; r < (own_slice ? at.row + 1 : rows.end);
           ++r) {
        const bool own_row = own_slice && r == at.row;
        for (int64_t c = columns.begin; c < (own_row ? at.column : columns.end);
             ++c) {
          RuleOut(PoolPlace(at.plane, z, r, c, at.channel, shape, false), most,
                  first);
          if (!Any(first)) return;
        }
      }
    }
    float grad[V];
    LoadVector(dtype, out_grad, o, grad);
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] += first[k] ? grad[k] : 0.0f;
  }
};

auto MakePoolGrad(const BoundOp& op) {
  PoolGradBody body;
  body.shape = PoolShape::Of(op);
  body.index = PoolIndex(body.shape.d.in, body.shape.h.in, body.shape.w.in,
                         body.shape.channels);
  body.dtype = op.inputs()[0].dtype;
  return [body, n = op.outputs()[0].elements()](const Buffers& b,
                                                Launcher& launch) {
    PoolGradBody bound = body;
    bound.x = b.inputs[0];
    bound.out = b.inputs[1];
    bound.out_grad = b.inputs[2];
    bound.x_grad = b.outputs[0];
    const bool aligned =
        Aligned({bound.x, bound.out, bound.out_grad, bound.x_grad});
    Map<1>(launch, bound, n, PoolVector(body.shape, body.dtype, aligned));
  };
}

// Of maxima whose places are known: nothing of the image is read.
struct MaxPoolGradBody {
  MaxPoolGather gather;
  void* x_grad;

  template <int V>
  struct Loaded {};
  template <int V>
  HT_DEVICE void Load(int64_t, Loaded<V>&) const {}
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>&) const {
    float sum[V];
    gather(i, sum);
    StoreVector(gather.dtype, x_grad, i, sum);
  }
};

auto MakeMaxPoolGrad(const BoundOp& op) {
  return [shape = PoolShape::Of(op), dtype = op.inputs()[0].dtype,
          n = op.outputs()[0].elements()](const Buffers& b, Launcher& launch) {
    const MaxPoolGradBody body = {
        MaxPoolGather(shape, dtype, b.inputs[0], b.inputs[1]), b.outputs[0]};
    Map<1>(launch, body, n,
           PoolVector(shape, dtype,
                      Aligned({b.inputs[0], b.inputs[1], b.outputs[0]})));
  };
}

}  // namespace

void RegisterCudaPoolGrad(KernelRegistry& registry) {
  for (const char* op : kPoolGrads) {
    AddForSchema(registry, op,
                 OverImages(CudaCandidate("gather", MakePoolGrad)));
  }
  for (const char* op : kMaxPoolGrads) {
    AddForSchema(registry, op,
                 OverImages(CudaCandidate("gather", MakeMaxPoolGrad)));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
