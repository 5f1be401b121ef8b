// The gradient of maximum pooling of channels-last images, a vector of channels
// at a time. Windows that lie apart write what their pixels get, others add it
// in f32. In 16 bits, where sums are rounded once, first each window's place of
// its maximum is found, then each pixel gathers from the windows that hold it,
// as it does where places come with the maxima (pool_argmax_last.cc).
#include <algorithm>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_gather.h"
#include "kernels/cpu/pool_pixels.h"

namespace halftone {
namespace kernels {
namespace {

// What the pixels of a window get, written, or added where kAdd (of f32):
// channels from `c` on, as long as there are vectors of them. The first maximum
// has it all; of NaNs the first one. For bodies of ForIsa.
template <Isa kIsa>
struct ScatterWindow {
  template <bool kAdd, typename T>
  static void Run(const PixelTaps& taps, const T* x, const T* out,
                  const T* grad, T* x_grad, int64_t channels, int64_t* c) {
    using Vectors = VectorsOf<T, kIsa>;
    for (; *c + kVector <= channels; *c += kVector) {
      Vector most, grads, v;
      Vectors::Load(out + *c, &most);
      Vectors::Load(grad + *c, &grads);
      grads += Vector{};  // as what is gathered: of -0 a 0
      const VectorMask nans = most != most;
      VectorMask open = ~VectorMask{};
      for (int i = 0; i < taps.count; ++i) {
        const int64_t at = taps.by_row[i] + *c;
        Vectors::Load(x + at, &v);
        const VectorMask found = (v == most) | ((v != v) & nans);
        Vector made = Vector(found & open & VectorMask(grads));
        if constexpr (kAdd) made += VectorAt(x_grad + at);
        Vectors::Store(made, x_grad + at);
        open &= ~found;
      }
    }
  }
};

#ifdef HT_ISA_X86
// The compiler compares vectors of 64 bytes element by element.
template <>
struct ScatterWindow<Isa::kAvx512> {
  template <bool kAdd, typename T>
  HT_TARGET_AVX512 static void Run(const PixelTaps& taps, const T* x,
                                   const T* out, const T* grad, T* x_grad,
                                   int64_t channels, int64_t* c) {
    using Low = LowVector<Isa::kAvx512>;
    for (; *c + Low::kSize <= channels; *c += Low::kSize) {
      __m512 most, grads, v;
      Low::Load(out + *c, reinterpret_cast<float*>(&most));
      Low::Load(grad + *c, reinterpret_cast<float*>(&grads));
      grads = _mm512_add_ps(grads, _mm512_setzero_ps());
      const __mmask16 nans = _mm512_cmp_ps_mask(most, most, _CMP_UNORD_Q);
      __mmask16 open = 0xffff;
      for (int i = 0; i < taps.count; ++i) {
        const int64_t at = taps.by_row[i] + *c;
        Low::Load(x + at, reinterpret_cast<float*>(&v));
        const __mmask16 found = _mm512_cmp_ps_mask(v, most, _CMP_EQ_OQ) |
                                (_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) & nans);
        __m512 made = _mm512_maskz_mov_ps(found & open, grads);
        if constexpr (kAdd) {
          made = _mm512_add_ps(_mm512_loadu_ps(x_grad + at), made);
        }
        Low::Store(reinterpret_cast<const float*>(&made), x_grad + at);
        open &= ~found;
      }
    }
  }
};
#endif  // HT_ISA_X86

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
    if (IsApart() || kAdds) return 0;
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
    if (IsApart()) {
      if (!IsCovered()) std::fill_n(x_grad, elements, T(0.0f));
      ForIsa([=](auto isa) {
        for (int64_t oh = 0; oh < shape_.h.out; ++oh) {
          const int64_t line = oh * shape_.OutRow();
          Scatter<decltype(isa)::value, false>(oh, x, out + line, grad + line,
                                               x_grad);
        }
      });
    } else if constexpr (kAdds) {
      ForIsa(
          [=](auto isa) { AddUp<decltype(isa)::value>(x, out, grad, x_grad); });
    } else {
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
  }

  // Whether no pixel is in two windows, and whether each is in one.
  bool IsApart() const {
    return shape_.h.kernel <= shape_.h.stride &&
           shape_.w.kernel <= shape_.w.stride;
  }
  bool IsCovered() const {
    const auto covered = [](const PoolDim& dim) {
      return dim.kernel == dim.stride &&
             dim.out * dim.stride - dim.before >= dim.in;
    };
    return covered(shape_.h) && covered(shape_.w);
  }

  // ---- For bodies of ForIsa.

  // Rows become zeros when the first window comes to them.
  template <Isa kIsa>
  void AddUp(const T* x, const T* out, const T* grad, T* x_grad) const {
    int64_t rows = 0;
    for (int64_t oh = 0; oh <= shape_.h.out; ++oh) {
      const int64_t end =
          oh < shape_.h.out ? shape_.h.Window(oh).end : shape_.h.in;
      for (; rows < end; ++rows) {
        std::fill_n(x_grad + rows * shape_.InRow(), shape_.InRow(), T(0.0f));
      }
      if (oh == shape_.h.out) break;
      const int64_t line = oh * shape_.OutRow();
      Scatter<kIsa, true>(oh, x, out + line, grad + line, x_grad);
    }
  }

  // What the pixels of a line of windows get; sums of them if kAdd.
  template <Isa kIsa, bool kAdd>
  void Scatter(int64_t oh, const T* x, const T* out, const T* grad,
               T* x_grad) const {
    const int64_t channels = shape_.channels;
    ForPixelWindows(
        shape_, oh, /*also_by_column=*/false, /*together=*/1,
        [&](const PixelTaps& taps, int64_t begin, int64_t window, int64_t) {
          const T *const elements = x + begin, *const most = out + window;
          const T* const from = grad + window;
          T* const to = x_grad + begin;
          int64_t c = 0;
          ScatterWindow<kIsa>::template Run<kAdd>(taps, elements, most, from,
                                                  to, channels, &c);
          if constexpr (kIsa != Narrowed(kIsa)) {
            ScatterWindow<Narrowed(kIsa)>::template Run<kAdd>(
                taps, elements, most, from, to, channels, &c);
          }
          for (; c < channels; ++c) {
            const uint8_t place = Find(taps, elements + c, most[c]);
            for (int i = 0; i < taps.count; ++i) {
              T& element = to[taps.by_row[i] + c];
              const T made = taps.places[i] == place ? Sum(from[c]) : T(0.0f);
              if constexpr (kAdd) {
                element += made;
              } else {
                element = made;
              }
            }
          }
        });
  }
  static T Sum(T grad) { return T(0.0f + static_cast<float>(grad)); }

  template <Isa kIsa>
  void FindPlaces(int64_t oh, const T* x, const T* out, uint8_t* places) const {
    const int64_t channels = shape_.channels;
    ForPixelWindows(
        shape_, oh, /*also_by_column=*/false, /*together=*/1,
        [&](const PixelTaps& taps, int64_t begin, int64_t window, int64_t) {
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

  static constexpr bool kAdds = std::is_same_v<T, float>;

  PoolShape shape_;
  PixelsGather gather_;
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
