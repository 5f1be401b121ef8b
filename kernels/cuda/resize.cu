// Interpolation: a thread for each element of the result. The gradient gathers,
// too: each element of the image adds what the results have of it, in their
// order.
#include "kernels/common/resize.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct ResizeBody {
  ResizeShape shape;
  PoolIndex index;  // of what is made
  DType dtype;
  const void* from;
  void* to;

  template <int V>
  struct Loaded {};
  template <int V>
  HT_DEVICE void Load(int64_t, Loaded<V>&) const {}

  // Of an element at a place of the images that are read.
  HT_DEVICE float At(const PoolIndex::Place& at, int64_t z, int64_t y,
                     int64_t x, bool result) const {
    const ResizeDim* const d = shape.dims;
    const int64_t slices = result ? d[0].out : d[0].in;
    const int64_t rows = result ? d[1].out : d[1].in;
    const int64_t columns = result ? d[2].out : d[2].in;
    const int64_t pixel = ((at.plane * slices + z) * rows + y) * columns + x;
    return LoadOne(dtype, from, pixel * shape.channels + at.channel);
  }
};

// An element is made of up to kTaps along each dim.
template <int kTaps>
struct Interpolate : ResizeBody {
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>&) const {
#pragma unroll
    for (int v = 0; v < V; ++v) StoreOne(dtype, to, i + v, Of(i + v));
  }

 private:
  HT_DEVICE float Of(int64_t i) const {
    const PoolIndex::Place at = index.Of(i);
    const ResizeTaps d = shape.dims[0].Of(at.slice);
    const ResizeTaps h = shape.dims[1].Of(at.row);
    const ResizeTaps w = shape.dims[2].Of(at.column);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
#pragma unroll
      for (int j = 0; j < kTaps; ++j) {
        const float row = d.weights[k] * h.weights[j];
        if (row == 0) continue;
#pragma unroll
        for (int l = 0; l < kTaps; ++l) {
          const float weight = row * w.weights[l];
          if (weight == 0) continue;
          sum += weight * At(at, d.first + k, h.first + j, w.first + l, false);
        }
      }
    }
    return sum;
  }
};

struct InterpolateGrad : ResizeBody {
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>&) const {
#pragma unroll
    for (int v = 0; v < V; ++v) StoreOne(dtype, to, i + v, Of(i + v));
  }

 private:
  HT_DEVICE float Of(int64_t i) const {
    const PoolIndex::Place at = index.Of(i);
    const ResizeDim &d = shape.dims[0], &h = shape.dims[1], &w = shape.dims[2];
    const int64_t rows_end = h.End(at.row), columns_end = w.End(at.column);
    const int64_t columns_begin = w.Begin(at.column);
    float sum = 0;
    for (int64_t z = d.Begin(at.slice); z < d.End(at.slice); ++z) {
      for (int64_t y = h.Begin(at.row); y < rows_end; ++y) {
        const float row = d.Share(z, at.slice) * h.Share(y, at.row);
        if (row == 0) continue;
        for (int64_t x = columns_begin; x < columns_end; ++x) {
          const float share = row * w.Share(x, at.column);
          if (share != 0) sum += share * At(at, z, y, x, true);
        }
      }
    }
    return sum;
  }
};

template <typename Body>
auto MakeResize(const BoundOp& op) {
  Body body;
  body.shape = ResizeShape::Of(op);
  const bool gradient = std::is_same<Body, InterpolateGrad>::value;
  int64_t sizes[3];
  for (int i = 0; i < 3; ++i) {
    const ResizeDim& dim = body.shape.dims[i];
    sizes[i] = gradient ? dim.in : dim.out;
  }
  body.index = PoolIndex(sizes[0], sizes[1], sizes[2], body.shape.channels);
  body.dtype = op.outputs()[0].dtype;
  return [body, n = op.outputs()[0].elements()](const Buffers& b,
                                                Launcher& launch) {
    Body bound = body;
    bound.from = b.inputs[0];
    bound.to = b.outputs[0];
    LaunchMap<1, 1>(launch, bound, n);
  };
}

}  // namespace

void RegisterCudaResize(KernelRegistry& registry) {
  for (const char* op : kResizes) {
    const bool cubic = absl::string_view(op) == "bicubic_interp_v2";
    AddForSchema(
        registry, op,
        OverImages(cubic
                       ? CudaCandidate("gather", MakeResize<Interpolate<4>>)
                       : CudaCandidate("gather", MakeResize<Interpolate<2>>)));
  }
  for (const char* op : kResizeGrads) {
    AddForSchema(
        registry, op,
        OverImages(CudaCandidate("gather", MakeResize<InterpolateGrad>)));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
