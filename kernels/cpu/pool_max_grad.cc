// The gradient of maximum pooling, plane by plane: first each window's place of
// its maximum, the number of an element of a window; then what the windows over
// an element that have their place there add up to.
//
// Element (z, i, j) of neighbouring windows lies a stride apart along each dim.
// So a padded image is kept in phases, of each dim: positions 0, stride,
// 2 * stride ..., then 1, stride + 1 .... In a phase windows are neighbours,
// and what goes by windows lies likewise: loops run over whole planes of
// windows, beyond their edges as well. Padding is NaN there, which equals
// nothing.
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
constexpr int64_t kVectors = 4, kStep = kVectors * kVector;

using PlaceVector =
    int32_t __attribute__((vector_size(4 * kVector), aligned(4), may_alias));

ABSL_ATTRIBUTE_ALWAYS_INLINE inline const PlaceVector& PlaceAt(
    const int32_t* places) {
  return *reinterpret_cast<const PlaceVector*>(places);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline PlaceVector& PlaceAt(int32_t* places) {
  return *reinterpret_cast<PlaceVector*>(places);
}

// Positions of a phase along a dim.
int64_t PhaseLength(const PoolDim& dim) {
  return std::max(dim.out + (dim.kernel - 1) / dim.stride,
                  (dim.before + dim.in + dim.stride - 1) / dim.stride);
}

// Where the columns p, p + stride, p + 2 * stride ... of a row lie in phases.
struct Phase {
  int64_t at, columns;
};

// A row of the image to phases, or back.
template <bool kBack>
void SplitRow(float* image, float* row, absl::Span<const Phase> phases,
              int64_t channels) {
  const int64_t stride = static_cast<int64_t>(phases.size());
  int64_t done = 0;  // columns of each phase
  if (stride == 2 && channels == 1) {
    float *even = row + phases[0].at, *odd = row + phases[1].at;
    done = phases[1].columns;
#pragma GCC ivdep
    for (int64_t t = 0; t < done; ++t) {
      if (kBack) {
        image[2 * t] = even[t];
        image[2 * t + 1] = odd[t];
      } else {
        even[t] = image[2 * t];
        odd[t] = image[2 * t + 1];
      }
    }
  }
  for (int64_t p = 0; p < stride; ++p) {
    for (int64_t t = done; t < phases[p].columns; ++t) {
      float* a = image + (t * stride + p) * channels;
      float* b = row + phases[p].at + t * channels;
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) kBack ? a[c] = b[c] : b[c] = a[c];
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
        phase_(PhaseLength(shape.d) * slice_),
        phases_(shape.d.stride * shape.h.stride * shape.w.stride),
        taps_of_(phases_) {
    FillRows();
    FillTaps();
  }

  static bool Supports(const PoolShape& shape) {
    const auto supports = [](const PoolDim& dim) {
      return !dim.adaptive && dim.kernel <= kMostPositions &&
             dim.stride <= kMostPositions;
    };
    return shape.max && supports(shape.d) && supports(shape.h) &&
           supports(shape.w);
  }

  int64_t ScratchFloats() const {
    return phases_ * phase_ + 3 * phase_ + 4 * kStep + SumsFloats() + reach_ +
           (dtype_ == DType::kF32 ? 0 : std::max(Elements(), Windows()));
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
  // An element of windows: where it is in the phases of x for the first one,
  // and how far behind its window it lies in its phase. As a list they are in
  // row-major order, and their places are their numbers.
  struct Tap {
    int64_t x, behind;
    int32_t number;
  };
  // Scratch: x in phases; a phase each of what goes by windows; an image row of
  // sums in phases.
  struct Plane {
    float *x, *out, *grad, *sums;
    int32_t* places;
    float* elements;  // converted
  };

  int64_t Elements() const {
    return shape_.d.in * shape_.h.in * shape_.InRow();
  }
  int64_t Lines() const { return shape_.d.out * shape_.h.out; }
  int64_t Windows() const { return Lines() * shape_.OutRow(); }

  // A row of the image: the first of its phases, and where it begins in them.
  struct Row {
    int64_t phase, at;
  };
  int64_t SumsRow() const { return row_ + kStep; }
  int64_t SumsFloats() const { return shape_.w.stride * SumsRow(); }

  // Where padded position (z, y, x) is in phases.
  int64_t At(int64_t z, int64_t y, int64_t x) const {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    const int64_t phase =
        (z % d.stride * h.stride + y % h.stride) * w.stride + x % w.stride;
    return phase * phase_ + z / d.stride * slice_ + y / h.stride * row_ +
           x / w.stride * shape_.channels;
  }

  void FillRows() {
    for (int64_t z = 0; z < shape_.d.in; ++z) {
      for (int64_t y = 0; y < shape_.h.in; ++y) {
        const int64_t at = At(z + shape_.d.before, y + shape_.h.before, 0);
        rows_.push_back({at / phase_, at % phase_});
      }
    }
    const PoolDim& w = shape_.w;
    for (int64_t p = 0; p < w.stride; ++p) {
      const int64_t columns = (w.in - p + w.stride - 1) / w.stride;
      const int64_t at = At(0, 0, p + w.before);
      columns_.push_back({at, std::max<int64_t>(0, columns)});
      columns_of_sums_.push_back(
          {at / phase_ * SumsRow() + at % phase_, columns_.back().columns});
    }
    for (int64_t od = 0; od < shape_.d.out; ++od) {
      for (int64_t oh = 0; oh < shape_.h.out; ++oh) {
        lines_.push_back(od * slice_ + oh * row_);
      }
    }
  }

  void FillTaps() {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    for (int64_t z = 0; z < d.kernel; ++z) {
      for (int64_t i = 0; i < h.kernel; ++i) {
        for (int64_t j = 0; j < w.kernel; ++j) {
          const int64_t x = At(z, i, j);
          taps_.push_back({x, x % phase_, static_cast<int32_t>(taps_.size())});
        }
      }
    }
    reach_ = taps_.back().behind;
    // An element has its windows in the order of pool_grad.cc: by lines, then
    // by the element's column in them.
    for (int64_t row = d.kernel * h.kernel - 1; row >= 0; --row) {
      for (int64_t j = 0; j < w.kernel; ++j) {
        const Tap& tap = taps_[row * w.kernel + j];
        taps_of_[tap.x / phase_].push_back(tap);
      }
    }
  }

  // What all planes share in it is filled.
  Plane Carve(float* scratch) const {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    Plane plane;
    plane.x = scratch;
    plane.out = plane.x + phases_ * phase_ + kStep;
    plane.grad = plane.out + phase_ + kStep;
    int32_t* places = reinterpret_cast<int32_t*>(plane.grad + phase_ + kStep);
    plane.places = places + reach_;
    plane.sums = plane.grad + 2 * (phase_ + kStep) + reach_;
    plane.elements = plane.sums + SumsFloats();
    std::fill_n(plane.x, phases_ * phase_ + kStep, kNan);
    std::fill_n(plane.out, phase_ + kStep, kNan);
    std::fill_n(places, reach_, -1);
    return plane;
  }

  void RunPlane(const Buffers& buffers, int64_t p, const Plane& plane) const {
    enum { kX, kOut, kOutGrad };
    const int64_t windows = p * Windows();
    LoadLines(buffers.inputs[kOutGrad], windows, plane.elements, plane.grad);
    const bool nans =
        LoadLines(buffers.inputs[kOut], windows, plane.elements, plane.out);
    const float* x = LoadBlock(dtype_, buffers.inputs[kX], p * Elements(),
                               Elements(), plane.elements);
    Split(const_cast<float*>(x), plane.x);
    FindPlaces(plane);
    if (nans) FindNans(plane);
    float* x_grad =
        OutputBlock(dtype_, buffers.outputs[0], p * Elements(), plane.elements);
    AddUp(plane, x_grad);
    StoreBlock(dtype_, x_grad, buffers.outputs[0], p * Elements(), Elements());
  }

  void Split(float* image, float* split) const {
    ForIsa([=] {
      float* row = image;
      for (const Row& to : rows_) {
        SplitRow<false>(row, split + to.phase * phase_ + to.at, columns_,
                        shape_.channels);
        row += shape_.InRow();
      }
    });
  }

  // Lines of windows to their places in a phase. Whether there is a NaN.
  bool LoadLines(const void* tensor, int64_t begin, float* elements,
                 float* to) const {
    const float* from = LoadBlock(dtype_, tensor, begin, Windows(), elements);
    int nans = 0;
    ForIsa([=, &nans, n = shape_.OutRow()] {
      int found = 0;
      const float* line = from;
      for (const int64_t at : lines_) {
        for (int64_t i = 0; i < n; ++i) {
          to[at + i] = line[i];
          found |= line[i] != line[i] ? 1 : 0;
        }
        line += n;
      }
      nans = found;
    });
    return nans != 0;
  }

  // The first place where x equals `out`; -1 if there is none.
  void FindPlaces(const Plane& plane) const {
    ForIsa([this, plane] {
      const Tap* taps = taps_.data();
      const int64_t n = static_cast<int64_t>(taps_.size());
      for (int64_t i = 0; i < phase_; i += kStep) {
        Vector most[kVectors];
        VectorMask found[kVectors];
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) {
          most[k] = VectorAt(plane.out + i + k * kVector);
          found[k] = ~VectorMask{};
        }
        // The last first: what is found later comes before.
        for (int64_t t = n - 1; t >= 0; --t) {
          const float* x = plane.x + taps[t].x + i;
          const VectorMask here = static_cast<int32_t>(t) - VectorMask{};
#pragma GCC unroll 4
          for (int k = 0; k < kVectors; ++k) {
            const VectorMask same = VectorAt(x + k * kVector) == most[k];
            found[k] = same ? here : found[k];
          }
        }
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) {
          PlaceAt(plane.places + i + k * kVector) = found[k];
        }
      }
    });
  }

  // Where `out` is a NaN the first NaN of x in the image has it.
  void FindNans(const Plane& plane) const {
    const PoolDim &d = shape_.d, &h = shape_.h, &w = shape_.w;
    for (size_t line = 0; line < lines_.size(); ++line) {
      for (int64_t c = 0; c < shape_.OutRow(); ++c) {
        const int64_t at = lines_[line] + c;
        if (plane.out[at] == plane.out[at]) continue;
        const Range slices = d.Window(line / h.out);
        const Range rows = h.Window(line % h.out);
        const Range columns = w.Window(c / shape_.channels);
        for (int64_t t = taps_.size() - 1; t >= 0; --t) {
          const int64_t z = t / (h.kernel * w.kernel);
          const int64_t i = t / w.kernel % h.kernel, j = t % w.kernel;
          const bool inside =
              Holds(slices, line / h.out * d.stride - d.before + z) &&
              Holds(rows, line % h.out * h.stride - h.before + i) &&
              Holds(columns, c / shape_.channels * w.stride - w.before + j);
          const float x = plane.x[taps_[t].x + at];
          if (inside && x != x) plane.places[at] = static_cast<int32_t>(t);
        }
      }
    }
  }
  static bool Holds(const Range& range, int64_t i) {
    return range.begin <= i && i < range.end;
  }

  void AddUp(const Plane& plane, float* x_grad) const {
    ForIsa([this, plane, x_grad] {
      float* image = x_grad;
      for (const Row& row : rows_) {
        for (int64_t p = 0; p < shape_.w.stride; ++p) {
          float* sums = plane.sums + p * SumsRow();
          for (int64_t i = 0; i < row_; i += kStep) {
            AddStep(taps_of_[row.phase + p], plane.places + row.at + i,
                    plane.grad + row.at + i, sums + i);
          }
        }
        SplitRow<true>(image, plane.sums, columns_of_sums_, shape_.channels);
        image += shape_.InRow();
      }
    });
  }

  static void AddStep(const std::vector<Tap>& taps, const int32_t* places,
                      const float* grad, float* sums) {
    Vector sum[kVectors] = {};
    for (const Tap& tap : taps) {
      const VectorMask here = tap.number - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const int64_t at = k * kVector - tap.behind;
        const VectorMask same = PlaceAt(places + at) == here;
        sum[k] += same ? VectorAt(grad + at) : Vector{};
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) VectorAt(sums + k * kVector) = sum[k];
  }

  PoolShape shape_;
  DType dtype_;
  int64_t row_, slice_, phase_;  // floats of a phase's row, slice, and of all
  int64_t phases_;
  int64_t reach_ = 0;  // of taps behind their windows
  std::vector<Tap> taps_;
  std::vector<std::vector<Tap>> taps_of_;  // of each phase
  std::vector<Row> rows_;
  std::vector<int64_t> lines_;  // of windows: where they begin in a phase
  std::vector<Phase> columns_, columns_of_sums_;  // of a row
};

}  // namespace

void RegisterCpuPoolMaxGrad(KernelRegistry& registry) {
  const auto make = [](const BoundOp& op) {
    return MaxGradKernel(PoolShape::Of(op), op.inputs()[0].dtype);
  };
  Candidate places =
      OverImages(MakeCandidate("places", make), [make](const BoundOp& op) {
        return std::max(1, op.context().threads) * make(op).ScratchFloats();
      });
  places.supports = [one_layout = places.supports](const BoundOp& op) {
    return one_layout(op) && MaxGradKernel::Supports(PoolShape::Of(op));
  };
  for (const char* op : kPoolGrads) AddForSchema(registry, op, places);
}

}  // namespace kernels
}  // namespace halftone
