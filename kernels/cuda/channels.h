// Element-wise work with numbers per channel, and the shape of a tensor of
// channels ([N, C, ...] in either layout).
#ifndef HALFTONE_KERNELS_CUDA_CHANNELS_H_
#define HALFTONE_KERNELS_CUDA_CHANNELS_H_

#include <cstdint>

#include "kernels/cuda/map.h"
#include "kernels/cuda/sums.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Memory as [rows][channels][inner]; channels_last and rank 2: inner is 1.
struct Channels {
  DType dtype = DType::kF32;
  int64_t rows = 0, channels = 0, inner = 1;
  SumShape sums;

  explicit Channels(const TensorDesc& x);
  int64_t elements() const { return rows * channels * inner; }
  // Elements per channel.
  int64_t count() const { return rows * inner; }
  // What two sums per channel, or its moments, need, so that what follows is
  // aligned.
  int64_t sum_floats() const;
  // For Map, where numbers per channel are read beside the elements: a vector
  // lies within one channel, or starts at a multiple of its length. `aligned`:
  // of all tensors.
  int VectorFor(bool aligned) const;
};

// out = F(x, y, numbers of the channel): F::kNumbers of them, F::kInputs.
template <typename F>
struct ChannelBody {
  DType dtype;
  const void *x, *y;
  void* out;
  Divider inner, channels;
  bool neighbours;  // inner is 1
  const float* numbers[F::kNumbers];

  template <int V>
  struct Loaded {
    Raw x, y;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = LoadRaw<V>(dtype, x, i);
    if constexpr (F::kInputs > 1) loaded.y = LoadRaw<V>(dtype, y, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    float a[V], b[V], n[F::kNumbers][V];
    Unpack(dtype, loaded.x, a);
    if constexpr (F::kInputs > 1) Unpack(dtype, loaded.y, b);
    const int64_t channel = channels.Remainder(inner.Divide(i));
#pragma unroll
    for (int j = 0; j < F::kNumbers; ++j) {
      if (neighbours) {
        LoadFloats(numbers[j], channel, n[j]);
      } else {
        const float number = numbers[j][channel];
#pragma unroll
        for (int k = 0; k < V; ++k) n[j][k] = number;
      }
    }
#pragma unroll
    for (int k = 0; k < V; ++k) {
      float own[F::kNumbers];
#pragma unroll
      for (int j = 0; j < F::kNumbers; ++j) own[j] = n[j][k];
      if constexpr (F::kInputs == 1) b[k] = 0;
      a[k] = F::Apply(a[k], b[k], own);
    }
    StoreVector(dtype, out, i, a);
  }
};

// `numbers` as F takes them, f32 of [C]. Clears `aligned` where vectors are
// out of the question.
template <typename F>
ChannelBody<F> MakeChannelBody(const Channels& shape, const void* x,
                               const void* y, void* out,
                               const float* const (&numbers)[F::kNumbers],
                               bool* aligned) {
  ChannelBody<F> body;
  body.dtype = shape.dtype;
  body.x = x;
  body.y = y;
  body.out = out;
  body.inner = Divider(shape.inner);
  body.channels = Divider(shape.channels > 0 ? shape.channels : 1);
  body.neighbours = shape.inner == 1;
  *aligned = *aligned && Aligned({x, y, out});
  for (int j = 0; j < F::kNumbers; ++j) {
    body.numbers[j] = numbers[j];
    *aligned = *aligned && Aligned({numbers[j]});
  }
  return body;
}

template <typename F>
void MapChannels(Launcher& launch, const Channels& shape, const void* x,
                 const void* y, void* out,
                 const float* const (&numbers)[F::kNumbers]) {
  bool aligned = true;
  const ChannelBody<F> body =
      MakeChannelBody<F>(shape, x, y, out, numbers, &aligned);
  Map(launch, body, shape.elements(), shape.VectorFor(aligned));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CHANNELS_H_
