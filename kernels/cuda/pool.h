// What pooling and its gradient share.
#ifndef HALFTONE_KERNELS_CUDA_POOL_H_
#define HALFTONE_KERNELS_CUDA_POOL_H_

#include <cstdint>

#include "kernels/common/pool_shape.h"
#include "kernels/cuda/map.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// From a flat index of [planes][slices][rows][columns][channels] to its parts.
struct PoolIndex {
  Divider channels, columns, rows, slices;

  PoolIndex() = default;
  PoolIndex(int64_t slice_count, int64_t row_count, int64_t column_count,
            int64_t channel_count)
      : channels(channel_count > 0 ? channel_count : 1),
        columns(column_count > 0 ? column_count : 1),
        rows(row_count > 0 ? row_count : 1),
        slices(slice_count > 0 ? slice_count : 1) {}

  struct Place {
    int64_t plane, slice, row, column, channel;
  };
  HT_DEVICE Place Of(int64_t i) const {
    const int64_t pixel = channels.Divide(i);
    const int64_t line = columns.Divide(pixel);
    const int64_t slice = rows.Divide(line);
    const int64_t plane = slices.Divide(slice);
    return {plane, slice - plane * slices.divisor(),
            line - slice * rows.divisor(), pixel - line * columns.divisor(),
            i - pixel * channels.divisor()};
  }
};

// Vectors of channels.
inline int PoolVector(const PoolShape& shape, DType dtype, bool aligned) {
  if (!aligned) return 1;
  const int vector = VectorOf({dtype});
  if (vector == 8 && shape.channels % 8 == 0) return 8;
  return shape.channels % 4 == 0 ? 4 : 1;
}

// Where in a tensor of planes a vector of channels starts.
HT_DEVICE int64_t PoolPlace(int64_t plane, int64_t slice, int64_t row,
                            int64_t column, int64_t channel,
                            const PoolShape& shape, bool result) {
  const int64_t slices = result ? shape.d.out : shape.d.in;
  const int64_t rows = result ? shape.h.out : shape.h.in;
  const int64_t columns = result ? shape.w.out : shape.w.in;
  return (((plane * slices + slice) * rows + row) * columns + column) *
             shape.channels +
         channel;
}

// Bytes [i, i + V); i is a multiple of V, p aligned for vectors of others.
template <int V>
HT_DEVICE void LoadBytes(const void* p, int64_t i, uint8_t (&to)[V]) {
  uint32_t words[2] = {0, 0};
  if constexpr (V == 8) {
    const uint2 v = LoadAs<uint2>(p, i);
    words[0] = v.x;
    words[1] = v.y;
  } else if constexpr (V == 4) {
    words[0] = LoadAs<uint32_t>(p, i);
  } else {
    words[0] = LoadAs<uint8_t>(p, i);
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    to[k] = static_cast<uint8_t>(words[k / 4] >> (k % 4 * 8));
  }
}
template <int V>
HT_DEVICE void StoreBytes(void* p, int64_t i, const uint8_t (&from)[V]) {
  uint32_t words[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < V; ++k) {
    words[k / 4] |= uint32_t{from[k]} << (k % 4 * 8);
  }
  if constexpr (V == 8) {
    StoreAs(p, i, uint2{words[0], words[1]});
  } else if constexpr (V == 4) {
    StoreAs(p, i, words[0]);
  } else {
    StoreAs(p, i, from[0]);
  }
}

// Place of an element at `i` in window `o` along one dim.
HT_DEVICE int64_t PlaceIn(const PoolDim& dim, int64_t o, int64_t i) {
  return i - o * dim.stride + dim.before;
}

// For Map: maxima and where they lie. Of an Image, which gives V channels of an
// element, with numbers of those channels:
//
//   template <int V> struct Numbers {};
//   template <int V> HT_DEVICE void LoadNumbers(int64_t channel,
//                                               Numbers<V>& to) const;
//   template <int V> HT_DEVICE void Load(int64_t i, const Numbers<V>& numbers,
//                                        float (&to)[V]) const;
template <typename Image>
struct ArgmaxBody {
  PoolShape shape;
  PoolIndex index;  // of the result
  Image image;
  DType dtype;
  void *out, *argmax;

  ArgmaxBody(const PoolShape& shape, const Image& image, DType dtype, void* out,
             void* argmax)
      : shape(shape),
        index(shape.d.out, shape.h.out, shape.w.out, shape.channels),
        image(image),
        dtype(dtype),
        out(out),
        argmax(argmax) {}

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
    typename Image::template Numbers<V> numbers;
    image.LoadNumbers(at.channel, numbers);
    float most[V];
    uint8_t places[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      most[k] = shape.of_nothing;
      places[k] = kNoArgmax;
    }
    // Column by column, as pool.cu: of equal maxima the value is its.
    for (int64_t c = columns.begin; c < columns.end; ++c) {
      for (int64_t z = slices.begin; z < slices.end; ++z) {
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          const int64_t line = PlaceIn(shape.d, at.slice, z) * shape.h.kernel +
                               PlaceIn(shape.h, at.row, r);
          const int64_t place =
              line * shape.w.kernel + PlaceIn(shape.w, at.column, c);
          float v[V];
          image.Load(PoolPlace(at.plane, z, r, c, at.channel, shape, false),
                     numbers, v);
          Merge(v, static_cast<uint8_t>(place), most, places);
        }
      }
    }
    StoreVector(dtype, out, i, most);
    StoreBytes(argmax, i, places);
  }

 private:
  // A NaN wins. The place is the least of equal ones, NaNs among them.
  template <int V>
  HT_DEVICE void Merge(const float (&v)[V], uint8_t place, float (&most)[V],
                       uint8_t (&places)[V]) const {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const bool first = places[k] == kNoArgmax;
      const bool nan = v[k] != v[k], nans = nan && most[k] != most[k];
      const bool take = first || v[k] > most[k] || (nan && !nans);
      const bool before = (v[k] == most[k] || nans) && place < places[k];
      places[k] = take || before ? place : places[k];
      most[k] = take || nan ? v[k] : most[k];
    }
  }
};

// The gradient of an image of whose maxima the places are known, V channels of
// an element: the sum over the windows that hold it.
struct MaxPoolGather {
  PoolShape shape;
  PoolIndex index;  // of the image
  DType dtype;
  const void *out_grad, *argmax;

  MaxPoolGather() = default;
  MaxPoolGather(const PoolShape& shape, DType dtype, const void* out_grad,
                const void* argmax)
      : shape(shape),
        index(shape.d.in, shape.h.in, shape.w.in, shape.channels),
        dtype(dtype),
        out_grad(out_grad),
        argmax(argmax) {}

  template <int V>
  HT_DEVICE void operator()(int64_t i, float (&sum)[V]) const {
    const PoolIndex::Place at = index.Of(i);
    const Range slices = shape.d.WindowsOver(at.slice);
    const Range rows = shape.h.WindowsOver(at.row);
    const Range columns = shape.w.WindowsOver(at.column);
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] = 0;
    for (int64_t od = slices.begin; od < slices.end; ++od) {
      for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
        const int64_t line = PlaceIn(shape.d, od, at.slice) * shape.h.kernel +
                             PlaceIn(shape.h, oh, at.row);
        // Last window first: the order of additions is the CPU's.
        for (int64_t ow = columns.end - 1; ow >= columns.begin; --ow) {
          const int64_t place =
              line * shape.w.kernel + PlaceIn(shape.w, ow, at.column);
          Add(PoolPlace(at.plane, od, oh, ow, at.channel, shape, true),
              static_cast<uint8_t>(place), sum);
        }
      }
    }
  }

 private:
  // The gradients of windows at `o` where `place` is their maximum.
  template <int V>
  HT_DEVICE void Add(int64_t o, uint8_t place, float (&sum)[V]) const {
    uint8_t places[V];
    LoadBytes(argmax, o, places);
    float grad[V];
    LoadVector(dtype, out_grad, o, grad);
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] += places[k] == place ? grad[k] : 0.0f;
  }
};

void RegisterCudaPoolGrad(KernelRegistry& registry);  // pool_grad.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_POOL_H_
