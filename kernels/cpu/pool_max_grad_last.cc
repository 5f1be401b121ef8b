// The gradient of maximum pooling of channels-last images: first each window's
// place of its maximum, a vector of channels at a time, then each pixel gathers
// from the windows that hold it, as it does where places come with the maxima
// (pool_argmax_last.cc).
#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_pixels.h"

namespace halftone {
namespace kernels {
namespace {

template <typename T>
class ChannelsMaxGrad {
 public:
  ChannelsMaxGrad(const PoolShape& shape, DType)
      : shape_(shape), gather_(shape) {}

  static bool Supports(const PoolShape& shape) {
    return shape.max && shape.channels >= kVector && !shape.h.adaptive &&
           !shape.w.adaptive && shape.h.kernel * shape.w.kernel < kNoArgmax;
  }

  // The places of a sample's maxima, a byte each.
  int64_t ScratchFloats() const {
    const int64_t floats = sizeof(float);
    return (shape_.h.out * shape_.OutRow() + floats - 1) / floats;
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(
        stream.threads(), shape_.planes, shape_.h.in * shape_.InRow(),
        buffers.workspace, ScratchFloats(), [&](int64_t p, float* scratch) {
          RunPlane(buffers, p, reinterpret_cast<uint8_t*>(scratch));
        });
  }

 private:
  void RunPlane(const Buffers& buffers, int64_t p, uint8_t* places) const {
    enum { kX, kOut, kOutGrad };
    const int64_t windows = shape_.h.out * shape_.OutRow();
    const int64_t elements = shape_.h.in * shape_.InRow();
    const auto input = [&](int i, int64_t at) {
      return static_cast<const T*>(buffers.inputs[i]) + at;
    };
    const T* x = input(kX, p * elements);
    const T* out = input(kOut, p * windows);
    const T* grad = input(kOutGrad, p * windows);
    T* x_grad = static_cast<T*>(buffers.outputs[0]) + p * elements;
    ForIsa([=](auto isa) {
      constexpr Isa kIsa = decltype(isa)::value;
      for (int64_t oh = 0; oh < shape_.h.out; ++oh) {
        FindPlaces<kIsa>(oh, x, out + oh * shape_.OutRow(),
                         places + oh * shape_.OutRow());
      }
      for (int64_t y = 0; y < shape_.h.in; ++y) {
        gather_.template Row<kIsa>(y, grad, places,
                                   x_grad + y * shape_.InRow());
      }
    });
  }

  // ---- For bodies of ForIsa.

  template <Isa kIsa>
  void FindPlaces(int64_t oh, const T* x, const T* out, uint8_t* places) const {
    const int64_t channels = shape_.channels;
    ForPixelWindows(
        shape_, oh, /*also_by_column=*/false,
        [&](const PixelTaps& taps, int64_t begin, int64_t window) {
          const T* const elements = x + begin;
          const T* const most = out + window;
          uint8_t* const to = places + window;
          int64_t c = 0;
          for (; c + 4 * kVector <= channels; c += 4 * kVector) {
            FindVectors<kIsa, 4>(taps, elements + c, most + c, to + c);
          }
          for (; c + kVector <= channels; c += kVector) {
            FindVectors<kIsa, 1>(taps, elements + c, most + c, to + c);
          }
          for (; c < channels; ++c) to[c] = Find(taps, elements + c, most[c]);
        });
  }

  template <Isa kIsa, int kVectors>
  static void FindVectors(const PixelTaps& taps, const T* x, const T* out,
                          uint8_t* places) {
    using Vectors = VectorsOf<T, kIsa>;
    Vector most[kVectors], v;
    VectorMask found[kVectors], nans = {};
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Vectors::Load(out + k * kVector, &most[k]);
      nans |= most[k] != most[k];
      found[k] = kNoArgmax - VectorMask{};
    }
    for (int i = taps.count - 1; i >= 0; --i) {
      const VectorMask place = taps.places[i] - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Vectors::Load(x + taps.by_row[i] + k * kVector, &v);
        found[k] = v == most[k] ? place : found[k];
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Vectors::Places::Store(reinterpret_cast<const int32_t*>(&found[k]),
                             places + k * kVector);
    }
    int any = 0;
    for (int k = 0; k < kVector; ++k) any |= nans[k];
    for (int c = 0; any != 0 && c < kVectors * kVector; ++c) {
      places[c] = Find(taps, x + c, out[c]);
    }
  }

  // The first element that is the maximum. A NaN is wherever there is one.
  static uint8_t Find(const PixelTaps& taps, const T* x, T out) {
    const float most = static_cast<float>(out);
    for (int i = 0; i < taps.count; ++i) {
      const float v = static_cast<float>(x[taps.by_row[i]]);
      if (v == most || (v != v && most != most)) {
        return static_cast<uint8_t>(taps.places[i]);
      }
    }
    return kNoArgmax;
  }

  PoolShape shape_;
  PixelsGather<T> gather_;
};

template <typename T>
void Register(KernelRegistry& registry) {
  registry.Add("pool2d_grad", {DTypeOf<T>()}, Layout::kChannelsLast,
               PoolCandidate<ChannelsMaxGrad<T>>("channels"));
}

}  // namespace

void RegisterCpuPoolMaxGradLast(KernelRegistry& registry) {
  Register<float>(registry);
  Register<half>(registry);
  Register<bfloat16>(registry);
}

}  // namespace kernels
}  // namespace halftone
