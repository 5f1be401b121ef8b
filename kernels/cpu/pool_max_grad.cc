// The gradient of maximum pooling, a line of windows at a time: first each
// window's place of its maximum, then each gradient goes to its place.
//
// Element (z, i, j) of neighbouring windows lies a stride apart along each dim.
// So a padded image is kept in phases, of each dim: positions 0, stride,
// 2 * stride ..., then 1, stride + 1 .... In a phase windows are neighbours:
// one run compares an element of all windows of a line. Padding is NaN there,
// which equals nothing.
#include <limits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kMostPositions = 16;  // of a window, and between two, by dim
constexpr int64_t kStep = 4 * kVector;

using PlaceVector =
    int32_t __attribute__((vector_size(4 * kVector), aligned(4), may_alias));

// Positions of a phase along a dim.
int64_t PhaseLength(const PoolDim& dim) {
  return std::max(dim.out + (dim.kernel - 1) / dim.stride,
                  (dim.before + dim.in + dim.stride - 1) / dim.stride);
}

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
  int64_t done = 0;  // columns of each phase
  if (stride == 2 && channels == 1 && phases[1].columns >= kVector) {
    done = phases[1].columns;
    SplitPairs(image, done, row + phases[0].at, row + phases[1].at);
  }
  for (int64_t p = 0; p < stride; ++p) {
    for (int64_t t = done; t < phases[p].columns; ++t) {
      const float* from = image + (t * stride + p) * channels;
      float* to = row + phases[p].at + t * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
    }
  }
}

class MaxGradKernel {
 public:
  MaxGradKernel(const PoolShape& shape, DType dtype)
      : shape_(shape),
        dtype_(dtype),
        row_(PhaseLength(shape.w) * shape.channels),
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
        dtype_ == DType::kF32 ? 0 : 2 * Elements() + Windows();
    return XFloats() + LineFloats() + OutFloats() + converted;
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
  // An element of windows: where the first window of a phase has it in the
  // phases of x, and how far it lies in an image behind its window's begin.
  struct Tap {
    int64_t x;
    int32_t place;
    int64_t z, i, j;
  };
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
    float *out, *grad, *elements, *sums;
  };

  int64_t Elements() const {
    return shape_.d.in * shape_.h.in * shape_.InRow();
  }
  int64_t Windows() const {
    return shape_.d.out * shape_.h.out * shape_.OutRow();
  }
  int64_t XFloats() const {
    const int64_t phases = shape_.d.stride * shape_.h.stride * shape_.w.stride;
    return phases * phase_ + kStep;
  }
  int64_t LineFloats() const { return shape_.OutRow() + kStep; }
  int64_t OutFloats() const { return Windows() + kStep; }

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
          const auto place = static_cast<int32_t>(InImage(z, i, j));
          taps_.push_back({At(z, i, j), place, z, i, j});
        }
      }
    }
  }

  // What all planes share in it is filled.
  Plane Carve(float* scratch) const {
    Plane plane;
    plane.x = scratch;
    plane.places = reinterpret_cast<int32_t*>(plane.x + XFloats());
    plane.out = plane.x + XFloats() + LineFloats();
    plane.grad = plane.out + OutFloats();
    plane.elements = plane.grad + Windows();
    plane.sums = plane.elements + Elements();
    std::fill_n(plane.x, XFloats(), std::numeric_limits<float>::quiet_NaN());
    std::fill_n(plane.out + Windows(), kStep, 0.0f);
    return plane;
  }

  void RunPlane(const Buffers& buffers, int64_t p, const Plane& plane) const {
    enum { kX, kOut, kOutGrad };
    const int64_t windows = p * Windows(), image = p * Elements();
    const float* out =
        LoadBlock(dtype_, buffers.inputs[kOut], windows, Windows(), plane.out);
    if (out != plane.out) std::copy_n(out, Windows(), plane.out);
    const float* grad = LoadBlock(dtype_, buffers.inputs[kOutGrad], windows,
                                  Windows(), plane.grad);
    const float* x = LoadBlock(dtype_, buffers.inputs[kX], image, Elements(),
                               plane.elements);
    float* x_grad = OutputBlock(dtype_, buffers.outputs[0], image, plane.sums);
    std::fill_n(x_grad, Elements(), 0.0f);
    ForIsa([this, plane, x, grad, x_grad] { Lines(plane, x, grad, x_grad); });
    StoreBlock(dtype_, x_grad, buffers.outputs[0], image, Elements());
  }

  // ---- For bodies of ForIsa.

  // All lines, each behind the rows of x that it needs. An element has its
  // windows in the order of pool_grad.cc: by lines, the last of a line first.
  void Lines(const Plane& plane, const float* x, const float* grad,
             float* x_grad) const {
    const int64_t n = shape_.OutRow();
    const float* out = plane.out;
    size_t split = 0;
    for (const Line& line : lines_) {
      for (; split < line.rows; ++split) {
        SplitRow(x, plane.x + rows_[split], columns_, shape_.channels);
        x += shape_.InRow();
      }
      const float* elements = plane.x + line.at;
      bool nans = false;
      int64_t i = 0;
      for (; i + kVector < n; i += kStep) {
        nans |= FindPlaces<4>(elements + i, out + i, plane.places + i);
      }
      for (; i < n; i += kVector) {
        nans |= FindPlaces<1>(elements + i, out + i, plane.places + i);
      }
      if (nans) FindNans(line, elements, out, plane.places);
      if (shape_.channels == 1) {
        AddUp(plane.places, grad, line.image, int64_t{1}, x_grad);
      } else {
        AddUp(plane.places, grad, line.image, shape_.channels, x_grad);
      }
      out += n;
      grad += n;
    }
  }

  // The first place where x equals `out`; -1 if there is none. Whether `out`
  // has a NaN.
  template <int kVectors>
  bool FindPlaces(const float* x, const float* out, int32_t* places) const {
    Vector most[kVectors];
    VectorMask found[kVectors], nans = {};
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      most[k] = VectorAt(out + k * kVector);
      nans |= most[k] != most[k];
      found[k] = ~VectorMask{};
    }
    for (const Tap& tap : taps_) {
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

  // Where `out` is a NaN the first NaN of x in the image has it.
  void FindNans(const Line& line, const float* x, const float* out,
                int32_t* places) const {
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
        if (inside && x[tap.x + at] != x[tap.x + at]) places[at] = tap.place;
      }
    }
  }
  static bool Holds(const Range& range, int64_t i) {
    return range.begin <= i && i < range.end;
  }

  void AddUp(const int32_t* places, const float* grad, int64_t image,
             int64_t channels, float* x_grad) const {
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
