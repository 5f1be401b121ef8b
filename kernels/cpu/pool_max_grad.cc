// The gradient of maximum pooling, a line of windows at a time: first each
// window's place of its maximum, then each gradient goes to its place. With
// wide vectors, rows of images of one channel gather from the windows instead,
// as they do where places come with the maxima (pool_argmax.cc), or the usual
// windows add to their rows at once.
//
// Element (z, i, j) of neighbouring windows lies a stride apart along each dim.
// So a padded image is kept in phases, of each dim: positions 0, stride,
// 2 * stride ..., then 1, stride + 1 .... In a phase windows are neighbours:
// one run compares an element of all windows of a line. Padding is NaN there,
// which equals nothing.
#include <limits>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_max_threes.h"
#include "kernels/cpu/pool_rows.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kMostPositions = 16;  // of a window, and between two, by dim
constexpr int64_t kStep = 4 * kVector;

// Of rows that are split at once: they stay in the first-level cache.
constexpr int64_t kSplitFloats = 1024;

using PlaceVector =
    int32_t __attribute__((vector_size(4 * kVector), aligned(4), may_alias));

// Floats of a cache line. Rows are whole ones: most vectors lie in one.
constexpr int64_t kLine = 16;
int64_t WholeLines(int64_t floats) {
  return (floats + kLine - 1) / kLine * kLine;
}

// The first place where one begins; up to kLine floats on.
float* Aligned(float* floats) {
  const auto at = reinterpret_cast<uintptr_t>(floats) / sizeof(float);
  return floats + (kLine - at % kLine) % kLine;
}

// Elements of the largest windows that rows gather from: all of their places
// are compared, once more than to find them.
constexpr int64_t kMostGathered = 27;
int64_t Volume(const PoolShape& shape) {
  return shape.d.kernel * shape.h.kernel * shape.w.kernel;
}

// Positions of a phase along a dim.
int64_t PhaseLength(const PoolDim& dim) {
  return std::max(dim.out + (dim.kernel - 1) / dim.stride,
                  (dim.before + dim.in + dim.stride - 1) / dim.stride);
}

// An element of windows: where the first window of a phase has it in the phases
// of x, its place in a window, or how far it lies in an image behind its
// window's begin.
struct Tap {
  int64_t x;
  int32_t place;
  int64_t z, i, j;
};

// Where the columns p, p + stride, p + 2 * stride ... of a row lie in phases.
struct Phase {
  int64_t at, columns;
};

// Pairs of columns, eight or more, to the first ones and the second ones.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SplitPairs(const float* x, int64_t n,
                                                    float* first,
                                                    float* second) {
  for (int64_t t = 0; t < n; t += kVector) {
    t = std::min(t, n - kVector);  // some once more
    const Vector a = VectorAt(x + 2 * t), b = VectorAt(x + 2 * t + kVector);
    VectorAt(first + t) =
        __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    VectorAt(second + t) =
        __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  }
}

// A row of the image to phases.
void SplitRow(const float* image, float* row, absl::Span<const Phase> phases,
              int64_t channels) {
  const int64_t stride = static_cast<int64_t>(phases.size());
  if (stride == 2 && channels == 1 && phases[1].columns >= kVector) {
    const int64_t n = phases[1].columns;
    SplitPairs(image, n, row + phases[0].at, row + phases[1].at);
    if (n < phases[0].columns) row[phases[0].at + n] = image[2 * n];
    return;
  }
  for (int64_t p = 0; p < stride; ++p) {
    for (int64_t t = 0; t < phases[p].columns; ++t) {
      const float* from = image + (t * stride + p) * channels;
      float* to = row + phases[p].at + t * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
    }
  }
}

// The first places where x equals `out`, of n windows and up to kStep more; -1,
// of bytes kNoArgmax, where there is none. Taps: the last place first. For
// bodies of ForIsa.
template <Isa kIsa, typename Place>
struct FindPlaces {
  // Whether `out` has a NaN.
  static bool Run(const std::vector<Tap>& taps, const float* x,
                  const float* out, int64_t n, Place* places) {
    bool nans = false;
    int64_t i = 0;
    for (; i + kVector < n; i += kStep) {
      nans |= Find<4>(taps, x + i, out + i, places + i);
    }
    for (; i < n; i += kVector) {
      nans |= Find<1>(taps, x + i, out + i, places + i);
    }
    return nans;
  }

 private:
  template <int kVectors>
  static bool Find(const std::vector<Tap>& taps, const float* x,
                   const float* out, Place* places) {
    Vector most[kVectors];
    VectorMask found[kVectors], nans = {};
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      most[k] = VectorAt(out + k * kVector);
      nans |= most[k] != most[k];
      found[k] = ~VectorMask{};
    }
    for (const Tap& tap : taps) {
      const VectorMask here = tap.place - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const VectorMask same = VectorAt(x + tap.x + k * kVector) == most[k];
        found[k] = same ? here : found[k];
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      *reinterpret_cast<PlaceVector*>(places + k * kVector) = found[k];
    }
    int any = 0;
    for (int i = 0; i < kVector; ++i) any |= nans[i];
    return any != 0;
  }
};

#ifdef HT_ISA_X86
template <>
struct FindPlaces<Isa::kAvx512, uint8_t> {
  HT_TARGET_AVX512 static bool Run(const std::vector<Tap>& taps, const float* x,
                                   const float* out, int64_t n,
                                   uint8_t* places) {
    __mmask16 nans = 0;
    for (int64_t i = 0; i < n; i += 32) {
      const __m512 low = _mm512_loadu_ps(out + i);
      const __m512 high = _mm512_loadu_ps(out + i + 16);
      nans |= _mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q);
      __m256i found = _mm256_set1_epi32(-1);
      for (const Tap& tap : taps) {
        const float* v = x + tap.x + i;
        const __mmask32 same = _mm512_kunpackw(
            _mm512_cmp_ps_mask(_mm512_loadu_ps(v + 16), high, _CMP_EQ_OQ),
            _mm512_cmp_ps_mask(_mm512_loadu_ps(v), low, _CMP_EQ_OQ));
        found = _mm256_mask_blend_epi8(
            same, found, _mm256_set1_epi32(tap.place * 0x1010101));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + i), found);
    }
    return nans != 0;
  }
};
#endif  // HT_ISA_X86

class MaxGradKernel {
 public:
  MaxGradKernel(const PoolShape& shape, DType dtype)
      : shape_(shape),
        dtype_(dtype),
        adds_(HostIsa() == Isa::kAvx512 && ThreesGrad::Supports(shape)),
        threes_(shape),
        gathers_(HostIsa() == Isa::kAvx512 && !adds_ &&
                 Volume(shape) <= kMostGathered && RowsGather::Supports(shape)),
        gather_(gathers_ ? shape : PoolShape()),
        row_(WholeLines(PhaseLength(shape.w) * shape.channels)),
        slice_(PhaseLength(shape.h) * row_),
        phase_(PhaseLength(shape.d) * slice_) {
    FillRows();
    FillLines();
    FillTaps();
  }

  static bool Supports(const PoolShape& shape) {
    const auto supports = [](const PoolDim& dim) {
      return !dim.adaptive && dim.kernel <= kMostPositions &&
             dim.stride <= kMostPositions;
    };
    return shape.max && supports(shape.d) && supports(shape.h) &&
           supports(shape.w) &&
           // Places are i32.
           (shape.d.in + kMostPositions) * (shape.h.in + kMostPositions) <
               (int64_t{1} << 31) / std::max<int64_t>(1, shape.InRow());
  }

  int64_t ScratchFloats() const {
    const int64_t converted =
        dtype_ == DType::kF32 ? 0 : 2 * (Elements() + Windows());
    return XFloats() + 2 * LineFloats() + converted +
           (adds_      ? kLine + threes_.ScratchFloats()
            : gathers_ ? gather_.ScratchFloats()
                       : 0);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, Elements()));
    ForTasksWithScratch(stream.threads(), shape_.planes, grain,
                        buffers.workspace, ScratchFloats(),
                        [&](int64_t begin, int64_t end, float* scratch) {
                          const Plane plane = Carve(scratch);
                          for (int64_t p = begin; p < end; ++p) {
                            RunPlane(buffers, p, plane);
                          }
                        });
  }

 private:
  // A line of windows: where it begins in a phase and, in an image, its first
  // window; the rows of an image up to its last one.
  struct Line {
    int64_t at, image;
    size_t rows;
    int64_t od, oh;
  };
  // Scratch: x in phases; of a line; a copy, as more is read than there is;
  // what is converted.
  struct Plane {
    float* x;
    int32_t* places;
    float *line, *out, *grad, *elements, *sums;
    float* threes;
    RowsGather::Lines lines;
  };

  int64_t Elements() const {
    return shape_.d.in * shape_.h.in * shape_.InRow();
  }
  int64_t Windows() const {
    return shape_.d.out * shape_.h.out * shape_.OutRow();
  }
  int64_t XFloats() const {
    const int64_t phases = shape_.d.stride * shape_.h.stride * shape_.w.stride;
    return phases * phase_ + kStep + kLine;
  }
  int64_t LineFloats() const { return shape_.OutRow() + kStep; }

  // Where padded position (z, y, x) is in phases.
  int64_t At(int64_t z, int64_t y, int64_t x) const {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    const int64_t phase =
        (z % d.stride * h.stride + y % h.stride) * w.stride + x % w.stride;
    return phase * phase_ + z / d.stride * slice_ + y / h.stride * row_ +
           x / w.stride * shape_.channels;
  }
  // Where a position is in an image.
  int64_t InImage(int64_t z, int64_t y, int64_t x) const {
    return (z * shape_.h.in + y) * shape_.InRow() + x * shape_.channels;
  }

  void FillRows() {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    for (int64_t z = 0; z < d.in; ++z) {
      for (int64_t y = 0; y < h.in; ++y) {
        rows_.push_back(At(z + d.before, y + h.before, 0));
      }
    }
    for (int64_t p = 0; p < w.stride; ++p) {
      const int64_t columns = (w.in - p + w.stride - 1) / w.stride;
      columns_.push_back(
          {At(0, 0, p + w.before), std::max<int64_t>(0, columns)});
    }
  }

  void FillLines() {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    for (int64_t od = 0; od < d.out; ++od) {
      for (int64_t oh = 0; oh < h.out; ++oh) {
        const Range slices = d.Window(od), rows = h.Window(oh);
        const bool some = slices.size() > 0 && rows.size() > 0;
        lines_.push_back(
            {od * slice_ + oh * row_,
             InImage(od * d.stride - d.before, oh * h.stride - h.before,
                     -w.before),
             some ? static_cast<size_t>((slices.end - 1) * h.in + rows.end)
                  : size_t{0},
             od, oh});
      }
    }
  }

  // The last first: what is found later comes before.
  void FillTaps() {
    for (int64_t z = shape_.d.kernel - 1; z >= 0; --z) {
      for (int64_t i = shape_.h.kernel - 1; i >= 0; --i) {
        for (int64_t j = shape_.w.kernel - 1; j >= 0; --j) {
          const int64_t place =
              adds_ || gathers_
                  ? (z * shape_.h.kernel + i) * shape_.w.kernel + j
                  : InImage(z, i, j);
          taps_.push_back({At(z, i, j), static_cast<int32_t>(place), z, i, j});
        }
      }
    }
  }

  // What all planes share in it is filled.
  Plane Carve(float* scratch) const {
    Plane plane;
    plane.x = Aligned(scratch);
    plane.places = reinterpret_cast<int32_t*>(scratch + XFloats());
    plane.line = scratch + XFloats() + LineFloats();
    plane.out = plane.line + LineFloats();
    plane.grad = plane.out + Windows();
    plane.elements = plane.grad + Windows();
    plane.sums = plane.elements + Elements();
    std::fill_n(plane.x, XFloats() - kLine,
                std::numeric_limits<float>::quiet_NaN());
    std::fill_n(plane.line, LineFloats(), 0.0f);
    if (adds_) {
      plane.threes =
          Aligned(scratch + ScratchFloats() - kLine - threes_.ScratchFloats());
    } else if (gathers_) {
      plane.lines =
          gather_.Carve(scratch + ScratchFloats() - gather_.ScratchFloats());
    }
    return plane;
  }

  void RunPlane(const Buffers& buffers, int64_t p, const Plane& plane) const {
    enum { kX, kOut, kOutGrad };
    const int64_t windows = p * Windows(), image = p * Elements();
    const float* out =
        LoadBlock(dtype_, buffers.inputs[kOut], windows, Windows(), plane.out);
    const float* grad = LoadBlock(dtype_, buffers.inputs[kOutGrad], windows,
                                  Windows(), plane.grad);
    const float* x = LoadBlock(dtype_, buffers.inputs[kX], image, Elements(),
                               plane.elements);
    float* x_grad = OutputBlock(dtype_, buffers.outputs[0], image, plane.sums);
    ForIsa([&](auto isa) {
      constexpr Isa kIsa = decltype(isa)::value;
      if constexpr (kIsa == Isa::kAvx512) {
        if (adds_) return Add(plane, x, out, grad, x_grad);
        if (gathers_) return Gather<kIsa>(plane, x, out, grad, x_grad);
      }
      Scatter<kIsa>(plane, x, out, grad, x_grad);
    });
    StoreBlock(dtype_, x_grad, buffers.outputs[0], image, Elements());
  }

  // ---- For bodies of ForIsa.

  void Add(const Plane& plane, const float* x, const float* out,
           const float* grad, float* x_grad) const {
    const int64_t rows[] = {At(0, 0, 0), At(0, 1, 0), At(0, 2, 0)};
    const int64_t n = shape_.OutRow();
    Lines(plane, x, out,
          [&](int64_t l, const float* elements, const float* most) {
            const float* grads = grad + l * n;
            if (threes_.Add(l, elements, rows, phase_, most, grads,
                            plane.threes, x_grad)) {
              AddNans(plane, l, elements, most, grads, x_grad);
            }
          });
    const int64_t end = 2 * (shape_.h.out - 1) + 3 - shape_.h.before;
    if (end < shape_.h.in) {
      std::fill(x_grad + end * shape_.InRow(), x_grad + Elements(), 0.0f);
    }
  }

  void AddNans(const Plane& plane, int64_t l, const float* x, const float* out,
               const float* grad, float* x_grad) const {
    const int64_t n = shape_.OutRow();
    std::fill_n(plane.places, n, -1);
    FindNans(lines_[l], x, out, plane.places);
    for (int64_t t = n - 1; t >= 0; --t) {
      const int32_t place = plane.places[t];
      if (place < 0) continue;
      *threes_.At(l, place / 3, place % 3, t, plane.threes, x_grad) += grad[t];
    }
  }

  template <Isa kIsa>
  void Gather(const Plane& plane, const float* x, const float* out,
              const float* grad, float* x_grad) const {
    auto* places = RowsGather::Places<kIsa>(plane.lines);
    Lines(plane, x, out,
          [&](int64_t l, const float* elements, const float* most) {
            const int64_t at = gather_.At(l);
            FindLine<kIsa>(lines_[l], elements, most, places + at);
            gather_.CopyLine(grad + l * shape_.OutRow(), plane.lines.grad + at);
          });
    gather_.template Plane<kIsa>(plane.lines, x_grad);
  }

  template <Isa kIsa>
  void Scatter(const Plane& plane, const float* x, const float* out,
               const float* grad, float* x_grad) const {
    std::fill_n(x_grad, Elements(), 0.0f);
    Lines(plane, x, out,
          [&](int64_t l, const float* elements, const float* most) {
            FindLine<kIsa>(lines_[l], elements, most, plane.places);
            AddUp(plane.places, grad + l * shape_.OutRow(), lines_[l].image,
                  x_grad);
          });
  }

  // body(line, x, out) of all lines, each behind the rows of x that it needs.
  // An element has its windows in the order of pool_grad.cc: by lines, the last
  // of a line first.
  template <typename Body>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Lines(const Plane& plane, const float* x,
                                          const float* out,
                                          const Body& body) const {
    const int64_t n = shape_.OutRow();
    const auto some = static_cast<size_t>(kSplitFloats /
                                          std::max<int64_t>(1, shape_.InRow()));
    size_t split = 0;
    for (size_t l = 0; l < lines_.size(); ++l) {
      const size_t end = split < lines_[l].rows
                             ? std::min(rows_.size(), lines_[l].rows + some)
                             : split;
      for (; split < end; ++split, x += shape_.InRow()) {
        SplitRow(x, plane.x + rows_[split], columns_, shape_.channels);
      }
      const int64_t at = static_cast<int64_t>(l) * n;
      const float* most = out + at;
      if (at + n + kStep > Windows()) {  // more is read than there is
        std::copy_n(most, n, plane.line);
        most = plane.line;
      }
      body(static_cast<int64_t>(l), plane.x + lines_[l].at, most);
    }
  }

  template <Isa kIsa, typename Place>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void FindLine(const Line& line, const float* x,
                                             const float* out,
                                             Place* places) const {
    const bool nans =
        FindPlaces<kIsa, Place>::Run(taps_, x, out, shape_.OutRow(), places);
    if (nans) FindNans(line, x, out, places);
  }

  // Where `out` is a NaN the first NaN of x in the image has it.
  template <typename Place>
  void FindNans(const Line& line, const float* x, const float* out,
                Place* places) const {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    const Range slices = d.Window(line.od), rows = h.Window(line.oh);
    for (int64_t at = 0; at < shape_.OutRow(); ++at) {
      if (out[at] == out[at]) continue;
      const int64_t ow = at / shape_.channels;
      const Range columns = w.Window(ow);
      for (const Tap& tap : taps_) {
        const bool inside =
            Holds(slices, line.od * d.stride - d.before + tap.z) &&
            Holds(rows, line.oh * h.stride - h.before + tap.i) &&
            Holds(columns, ow * w.stride - w.before + tap.j);
        if (inside && x[tap.x + at] != x[tap.x + at]) {
          places[at] = static_cast<Place>(tap.place);
        }
      }
    }
  }
  static bool Holds(const Range& range, int64_t i) {
    return range.begin <= i && i < range.end;
  }

  void AddUp(const int32_t* places, const float* grad, int64_t image,
             float* x_grad) const {
    const int64_t channels = shape_.channels;
    const int64_t step = shape_.w.stride * channels;
    for (int64_t ow = shape_.w.out - 1; ow >= 0; --ow) {
      const int64_t window = image + ow * step;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t i = ow * channels + c;
        if (places[i] >= 0) x_grad[window + c + places[i]] += grad[i];
      }
    }
  }

  PoolShape shape_;
  DType dtype_;
  bool adds_;
  ThreesGrad threes_;
  bool gathers_;
  RowsGather gather_;
  int64_t row_, slice_, phase_;  // floats of a phase's row, slice, and of all
  std::vector<int64_t> rows_;    // of the image: where they begin in phases
  std::vector<Phase> columns_;   // of a row
  std::vector<Line> lines_;
  std::vector<Tap> taps_;
};

}  // namespace

void RegisterCpuPoolMaxGrad(KernelRegistry& registry) {
  const Candidate places = PoolCandidate<MaxGradKernel>("places");
  for (const char* op : kPoolGrads) AddForSchema(registry, op, places);
}

}  // namespace kernels
}  // namespace halftone
