// Pooling: a thread for each element of the result, or for a vector of its
// channels; what windows share comes from the caches.
#include "kernels/common/shapes.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct PoolBody {
  PoolShape shape;
  PoolIndex index;  // of the result
  DType dtype;
  const void* x;
  void* out;

  template <int V>
  struct Loaded {};
  template <int V>
  HT_DEVICE void Load(int64_t, Loaded<V>&) const {}
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>&) const {
    const PoolIndex::Place at = index.Of(i);
    const Range slices = shape.d.Window(at.slice);
    const Range rows = shape.h.Window(at.row);
    const Range columns = shape.w.Window(at.column);
    float result[V];
#pragma unroll
    for (int k = 0; k < V; ++k) result[k] = shape.of_nothing;
    // Rows are merged first: the order of additions is the CPU's.
    for (int64_t c = columns.begin; c < columns.end; ++c) {
      float column[V];
      bool first = true;
      for (int64_t z = slices.begin; z < slices.end; ++z) {
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          float v[V];
          LoadVector(dtype, x,
                     PoolPlace(at.plane, z, r, c, at.channel, shape, false), v);
          Merge(first, v, column);
          first = false;
        }
      }
      if (!first) Merge(c == columns.begin, column, result);
    }
    if (!shape.max) {
      const float divisor = shape.Divisor(at.slice, at.row, at.column);
#pragma unroll
      for (int k = 0; k < V; ++k) result[k] /= divisor;
    }
    StoreVector(dtype, out, i, result);
  }

 private:
  // A NaN wins.
  template <int V>
  HT_DEVICE void Merge(bool first, const float (&v)[V], float (&to)[V]) const {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const float larger = v[k] > to[k] || v[k] != v[k] ? v[k] : to[k];
      to[k] = first ? v[k] : (shape.max ? larger : to[k] + v[k]);
    }
  }
};

// Elements as they lie in memory.
struct StoredImage {
  DType dtype;
  const void* x;

  template <int V>
  struct Numbers {};
  template <int V>
  HT_DEVICE void LoadNumbers(int64_t, Numbers<V>&) const {}
  template <int V>
  HT_DEVICE void Load(int64_t i, const Numbers<V>&, float (&to)[V]) const {
    LoadVector(dtype, x, i, to);
  }
};

auto MakeArgmax(const BoundOp& op) {
  return [shape = PoolShape::Of(op), dtype = op.inputs()[0].dtype,
          n = op.outputs()[0].elements()](const Buffers& b, Launcher& launch) {
    const ArgmaxBody<StoredImage> body(shape, {dtype, b.inputs[0]}, dtype,
                                       b.outputs[0], b.outputs[1]);
    Map<1>(launch, body, n,
           PoolVector(shape, dtype,
                      Aligned({b.inputs[0], b.outputs[0], b.outputs[1]})));
  };
}

// Where Argmax is asked for, or is not.
Candidate ForArgmax(Candidate candidate, bool asked) {
  candidate.supports = [others = candidate.supports, asked](const BoundOp& op) {
    return others(op) && HasArgmax(op) == asked;
  };
  return candidate;
}

auto MakePool(const BoundOp& op) {
  PoolBody body;
  body.shape = PoolShape::Of(op);
  body.index = PoolIndex(body.shape.d.out, body.shape.h.out, body.shape.w.out,
                         body.shape.channels);
  body.dtype = op.inputs()[0].dtype;
  return [body, n = op.outputs()[0].elements()](const Buffers& b,
                                                Launcher& launch) {
    PoolBody bound = body;
    bound.x = b.inputs[0];
    bound.out = b.outputs[0];
    Map<1>(launch, bound, n,
           PoolVector(body.shape, body.dtype, Aligned({bound.x, bound.out})));
  };
}

}  // namespace

void RegisterCudaPool(KernelRegistry& registry) {
  for (const char* op : kPools) {
    const Candidate windows = OverImages(CudaCandidate("windows", MakePool));
    const Candidate argmax = OverImages(CudaCandidate("argmax", MakeArgmax));
    AddForSchema(registry, op, ForArgmax(windows, false));
    AddForSchema(registry, op, ForArgmax(argmax, true));
  }
  RegisterCudaPoolGrad(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
