// Maximum pooling that also says where the maxima lie (pool_argmax.cc has more
// of it), and its gradient, of channels-last images: the channels of an element
// are neighbours.
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

// Bytes of places from and to a vector of them.
template <Isa kIsa>
struct PlacesOf {
  static void Load(const uint8_t* from, int32_t* places) {
    for (int k = 0; k < kVector; ++k) places[k] = from[k];
  }
  static void Store(const int32_t* places, uint8_t* to) {
    for (int k = 0; k < kVector; ++k) to[k] = static_cast<uint8_t>(places[k]);
  }
};

#ifdef HT_ISA_X86
// The compiler converts so few bytes one by one.
template <>
struct PlacesOf<Isa::kAvx2> {
  HT_TARGET_AVX2 static void Load(const uint8_t* from, int32_t* places) {
    const __m128i bytes =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places),
                        _mm256_cvtepu8_epi32(bytes));
  }
  HT_TARGET_AVX2 static void Store(const int32_t* places, uint8_t* to) {
    const __m256i v =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v),
                                           _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to),
                     _mm_packus_epi16(words, words));
  }
};
#endif  // HT_ISA_X86

// The widest whose vectors are Vector's.
constexpr Isa Narrowed(Isa isa) {
  return isa == Isa::kAvx512 ? Isa::kAvx2 : isa;
}

// Vectors of f32 from and to elements of type T.
template <typename T, Isa kIsa>
struct VectorsOf {
  using Low = LowVector<Narrowed(kIsa)>;
  using Places = PlacesOf<Narrowed(kIsa)>;
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Load(const T* from, Vector* v) {
    if constexpr (std::is_same_v<T, float>) {
      *v = VectorAt(from);
    } else {
      Low::Load(from, reinterpret_cast<float*>(v));
    }
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Store(const Vector& v, T* to) {
    if constexpr (std::is_same_v<T, float>) {
      VectorAt(to) = v;
    } else {
      Low::Store(reinterpret_cast<const float*>(&v), to);
    }
  }
};

// Window by window, first the maxima of a vector of channels, then their
// places.
template <typename T>
class PixelsArgmax {
 public:
  PixelsArgmax(const PoolShape& shape, DType) : shape_(shape) {}

  static bool Supports(const PoolShape& shape) { return shape.channels > 1; }
  int64_t ScratchFloats() const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(stream.threads(), shape_.planes * shape_.h.out,
                       shape_.h.kernel * shape_.InRow(), nullptr, 0,
                       [&](int64_t line, float*) { RunLine(buffers, line); });
  }

 private:
  // Elements of a window: where they lie from its beginning on, row by row
  // with their places, and column by column.
  struct Taps {
    int count = 0;
    int64_t by_row[kNoArgmax], by_column[kNoArgmax];
    int32_t places[kNoArgmax];
  };

  void RunLine(const Buffers& buffers, int64_t line) const {
    const PoolDim &h = shape_.h, &w = shape_.w;
    const int64_t oh = line % h.out, y = oh * h.stride - h.before;
    const T* x = static_cast<const T*>(buffers.inputs[0]) +
                 (line / h.out * h.in + y) * shape_.InRow();
    T* out = static_cast<T*>(buffers.outputs[0]) + line * shape_.OutRow();
    auto* argmax =
        static_cast<uint8_t*>(buffers.outputs[1]) + line * shape_.OutRow();
    const Range rows = Inside(h.Window(oh), y);
    Taps taps;
    Range before = {0, 0};
    for (int64_t ow = 0; ow < w.out; ++ow) {
      const int64_t begin = ow * w.stride - w.before;
      const Range columns = Inside(w.Window(ow), begin);
      if (ow == 0 || columns.begin != before.begin ||
          columns.end != before.end) {
        taps = TapsOf(rows, columns);
        before = columns;
      }
      ForIsa([&, at = x + begin * shape_.channels,
              n = ow * shape_.channels](auto isa) {
        RunWindow<decltype(isa)::value>(taps, at, out + n, argmax + n);
      });
    }
  }

  // From a window's beginning on.
  static Range Inside(const Range& range, int64_t begin) {
    return {range.begin - begin, range.end - begin};
  }

  Taps TapsOf(const Range& rows, const Range& columns) const {
    const auto at = [&](int64_t i, int64_t j) {
      return i * shape_.InRow() + j * shape_.channels;
    };
    Taps taps;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        taps.places[taps.count] = static_cast<int32_t>(i * shape_.w.kernel + j);
        taps.by_row[taps.count++] = at(i, j);
      }
    }
    int n = 0;
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        taps.by_column[n++] = at(i, j);
      }
    }
    return taps;
  }

  // ---- For bodies of ForIsa.

  template <Isa kIsa>
  void RunWindow(const Taps& taps, const T* x, T* out, uint8_t* argmax) const {
    const int64_t channels = shape_.channels;
    int64_t c = 0;
    for (; taps.count > 0 && c + 4 * kVector <= channels; c += 4 * kVector) {
      RunVectors<kIsa, 4>(taps, x + c, out + c, argmax + c);
    }
    for (; taps.count > 0 && c + kVector <= channels; c += kVector) {
      RunVectors<kIsa, 1>(taps, x + c, out + c, argmax + c);
    }
    for (; c < channels; ++c) RunChannel(taps, x + c, out + c, argmax + c);
  }

  template <Isa kIsa, int kVectors>
  void RunVectors(const Taps& taps, const T* x, T* out, uint8_t* argmax) const {
    using Vectors = VectorsOf<T, kIsa>;
    Vector most[kVectors], sums[kVectors], v;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Vectors::Load(x + taps.by_column[0] + k * kVector, &most[k]);
      sums[k] = most[k];
    }
    for (int i = 1; i < taps.count; ++i) {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Vectors::Load(x + taps.by_column[i] + k * kVector, &v);
        most[k] = v > most[k] ? v : most[k];
        sums[k] += v;  // NaN wherever an element is
      }
    }
    VectorMask places[kVectors] = {}, nans = {};
    for (int i = taps.count - 1; i >= 0; --i) {
      const VectorMask place = taps.places[i] - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Vectors::Load(x + taps.by_row[i] + k * kVector, &v);
        places[k] = v == most[k] ? place : places[k];
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      nans |= sums[k] != sums[k];
      Vectors::Store(most[k], out + k * kVector);
      Vectors::Places::Store(reinterpret_cast<const int32_t*>(&places[k]),
                             argmax + k * kVector);
    }
    int any = 0;
    for (int k = 0; k < kVector; ++k) any |= nans[k];
    for (int c = 0; any != 0 && c < kVectors * kVector; ++c) {
      RunChannel(taps, x + c, out + c, argmax + c);
    }
  }

  void RunChannel(const Taps& taps, const T* x, T* out, uint8_t* argmax) const {
    *argmax = kNoArgmax;
    float most = shape_.of_nothing;
    for (int i = 0; i < taps.count; ++i) {
      const float v = static_cast<float>(x[taps.by_column[i]]);
      most = i == 0 ? v : Larger()(most, v);
    }
    for (int i = taps.count - 1; i >= 0; --i) {
      const float v = static_cast<float>(x[taps.by_row[i]]);
      const bool same = v == most || (v != v && most != most);
      if (same) *argmax = static_cast<uint8_t>(taps.places[i]);
    }
    *out = static_cast<T>(most);
  }

  PoolShape shape_;
};

// A pixel gathers from the windows that hold it, in the order of pool_grad.cc.
template <typename T>
class PixelsGrad {
 public:
  PixelsGrad(const PoolShape& shape, DType)
      : shape_(shape), lines_(LinesOver(shape)) {
    for (int64_t x = 0; x < shape.w.in; ++x) {
      columns_.push_back(shape.w.WindowsOver(x));
    }
  }

  static bool Supports(const PoolShape& shape) { return shape.channels > 1; }
  int64_t ScratchFloats() const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(stream.threads(), shape_.planes * shape_.h.in,
                       shape_.InRow(), nullptr, 0,
                       [&](int64_t row, float*) { RunRow(buffers, row); });
  }

 private:
  // A window that holds a pixel, and that pixel's place in it.
  struct Window {
    const T* grad;
    const uint8_t* argmax;
    int32_t place;
  };

  void RunRow(const Buffers& buffers, int64_t row) const {
    enum { kOutGrad, kArgmax };
    const int64_t plane = row / shape_.h.in * shape_.h.out * shape_.OutRow();
    const T* grad = static_cast<const T*>(buffers.inputs[kOutGrad]) + plane;
    const auto* argmax =
        static_cast<const uint8_t*>(buffers.inputs[kArgmax]) + plane;
    T* x_grad = static_cast<T*>(buffers.outputs[0]) + row * shape_.InRow();
    ForIsa([=](auto isa) {
      Row<decltype(isa)::value>(lines_[row % shape_.h.in], grad, argmax,
                                x_grad);
    });
  }

  // ---- For bodies of ForIsa.

  template <Isa kIsa>
  void Row(const std::vector<LineOver>& lines, const T* grad,
           const uint8_t* argmax, T* x_grad) const {
    Window over[kNoArgmax];
    for (int64_t x = 0; x < shape_.w.in; ++x, x_grad += shape_.channels) {
      const Range columns = columns_[x];
      int n = 0;
      for (const LineOver& line : lines) {
        // The last window first.
        for (int64_t ow = columns.end - 1; ow >= columns.begin; --ow) {
          const int64_t at = (line.line * shape_.w.out + ow) * shape_.channels;
          const int64_t j = x - ow * shape_.w.stride + shape_.w.before;
          over[n++] = {grad + at, argmax + at,
                       static_cast<int32_t>(line.place + j)};
        }
      }
      Pixel<VectorsOf<T, kIsa>>(over, n, x_grad);
    }
  }

  template <typename Vectors>
  void Pixel(const Window* over, int n, T* x_grad) const {
    int64_t c = 0;
    for (; c + kVector <= shape_.channels; c += kVector) {
      Vector sum = {}, grad;
      VectorMask places;
      for (int i = 0; i < n; ++i) {
        Vectors::Load(over[i].grad + c, &grad);
        Vectors::Places::Load(over[i].argmax + c,
                              reinterpret_cast<int32_t*>(&places));
        sum += Vector((places == over[i].place) & VectorMask(grad));
      }
      Vectors::Store(sum, x_grad + c);
    }
    for (; c < shape_.channels; ++c) {
      float sum = 0;
      for (int i = 0; i < n; ++i) {
        const float grad = static_cast<float>(over[i].grad[c]);
        sum += over[i].argmax[c] == over[i].place ? grad : 0.0f;
      }
      x_grad[c] = static_cast<T>(sum);
    }
  }

  PoolShape shape_;
  std::vector<std::vector<LineOver>> lines_;  // over each row
  std::vector<Range> columns_;                // windows over each
};

template <typename T>
void Register(KernelRegistry& registry) {
  const Candidate argmax =
      WithArgmax(PoolCandidate<PixelsArgmax<T>>("pixels_argmax"), true);
  for (const char* op : {"pool2d", "max_pool2d_with_index"}) {
    registry.Add(op, {DTypeOf<T>()}, Layout::kChannelsLast, argmax);
  }
  registry.Add("max_pool2d_grad", {DTypeOf<T>()}, Layout::kChannelsLast,
               PoolCandidate<PixelsGrad<T>>("pixels"));
}

}  // namespace

void RegisterCpuPoolArgmaxLast(KernelRegistry& registry) {
  Register<float>(registry);
  Register<half>(registry);
  Register<bfloat16>(registry);
}

}  // namespace kernels
}  // namespace halftone
