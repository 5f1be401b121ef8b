// Ops that read one tensor axis by axis. The innermost axis is cut into runs at
// Prepare: what is filled, copied, taken with a stride or repeated; the others
// say where a row of such runs begins.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/moves.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_rows.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// A run of a row: in units, `n` of them at `to`.
struct RowRun {
  int64_t to, n;
  int64_t from;  // -1: filled
  int64_t step;
};

std::vector<RowRun> RunsOf(const AxisRead& axis) {
  std::vector<RowRun> runs;
  for (int64_t i = 0; i < axis.extent; ++i) {
    const int64_t at = axis.At(i);
    if (!runs.empty()) {
      RowRun& run = runs.back();
      const bool fills = run.from < 0 && at < 0;
      const int64_t step = at - (run.from + (run.n - 1) * run.step);
      const bool goes_on =
          run.from >= 0 && at >= 0 && (run.n == 1 || step == run.step);
      if (fills || goes_on) {
        if (goes_on) run.step = step;
        ++run.n;
        continue;
      }
    }
    runs.push_back({i, 1, at, 0});
  }
  return runs;
}

// CopyStrided of stride 2 or -1 of eight or more, as whole vectors: compilers
// take rows that are not whole vectors of theirs one by one. Reads nothing
// behind the last.
template <int kStride, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void CopyEights(const T* from, T* to,
                                                    int64_t n) {
  constexpr int64_t kEight = 8;
  typedef T Eight
      __attribute__((vector_size(8 * sizeof(T)), aligned(1), may_alias));
  const auto at = [from](int64_t i) {
    return reinterpret_cast<const Eight*>(from + i);
  };
  for (int64_t i = 0; i < n; i += kEight) {
    i = std::min(i, n - kEight);  // some once more
    Eight* out = reinterpret_cast<Eight*>(to + i);
    if constexpr (kStride == 2) {
      const Eight a = *at(2 * i), b = *at(2 * i + kEight - 1);
      *out = __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
    } else {
      const Eight a = *at(1 - i - kEight);
      *out = __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
    }
  }
}

// Of units of one size, typed by it.
template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void CopyStrided(const T* from,
                                                     int64_t stride, T* to,
                                                     int64_t n) {
  if (stride == 1) {
    CopyShort(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to),
              n * int64_t{sizeof(T)});
  } else if (sizeof(T) <= sizeof(float) && stride == 2 && n >= 8) {
    CopyEights<2>(from, to, n);
  } else if (sizeof(T) <= sizeof(float) && stride == -1 && n >= 8) {
    CopyEights<-1>(from, to, n);
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  } else if (stride == -1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FillShort(T value, T* to, int64_t n) {
#pragma GCC unroll 1
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

class MoveKernel {
 public:
  explicit MoveKernel(const BoundOp& op) : move_(MoveOf(op)) {
    std::vector<AxisRead>& axes = move_.axes;
    empty_ = op.outputs()[0].elements() == 0;
    if (empty_) return;
    unit_ = move_.size;
    const AxisRead last = axes.back();
    const bool whole = last.extent == last.size && last.before == 0 &&
                       last.spread == 1 && last.start == 0 && last.step == 1 &&
                       last.stride == 1;
    if (whole && axes.size() > 1) {  // its bytes are the unit
      unit_ *= last.extent;
      axes.pop_back();
    }
    const bool is_large = unit_ >= kLargeUnit;
    if (!is_large) {
      runs_ = RunsOf(axes.back());
      stride_ = axes.back().stride * move_.size;
      row_ = axes.back().extent * unit_;
      axes.pop_back();
    }
    for (const AxisRead& axis : axes) {
      rows_ *= axis.extent;
      std::vector<int64_t> offsets;
      for (int64_t i = 0; i < axis.extent; ++i) {
        const int64_t at = axis.At(i);
        offsets.push_back(at < 0 ? -1 : at * axis.stride * move_.size);
      }
      offsets_.push_back(std::move(offsets));
    }
    if (is_large) CutUnits();
    if (offsets_.empty()) offsets_.push_back({0});
    streams_ = is_large && rows_ * row_ >= LeastStreamedBytes();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    if (empty_) return;
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    char* to = static_cast<char*>(buffers.outputs[0]);
    const int64_t grain = std::max<int64_t>(1, kCopyGrain / row_);
    ParallelFor(stream.threads(), rows_, grain,
                [&](int64_t begin, int64_t end) {
                  Rows(from, to, begin, end);
                  FinishStores();
                });
  }

 private:
  // A large unit is a row, or some, of one run each: few of them are work for
  // many threads.
  void CutUnits() {
    int64_t pieces = std::max<int64_t>(1, unit_ / kCopyGrain);
    while (unit_ % (pieces * move_.size) != 0) --pieces;
    unit_ /= pieces;
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < pieces; ++i) offsets.push_back(i * unit_);
    offsets_.push_back(std::move(offsets));
    rows_ *= pieces;
    row_ = unit_;
    runs_ = {{0, 1, 0, 1}};
  }

  // Rows [begin, end): an odometer of the outer axes, and a loop over the last
  // of them.
  void Rows(const char* from, char* to, int64_t begin, int64_t end) const {
    const int last = static_cast<int>(offsets_.size()) - 1;
    std::array<int64_t, kMaxAxes> index = {};
    int64_t rest = begin;
    for (int k = last; k >= 0; --k) {
      const int64_t extent = static_cast<int64_t>(offsets_[k].size());
      index[k] = rest % extent;
      rest /= extent;
    }
    for (int64_t row = begin; row < end;) {
      int64_t offset = 0;
      bool filled = false;
      for (int k = 0; k < last; ++k) {
        const int64_t at = offsets_[k][index[k]];
        filled = filled || at < 0;
        offset += at;
      }
      const std::vector<int64_t>& offsets = offsets_[last];
      const int64_t n = std::min(
          end - row, static_cast<int64_t>(offsets.size()) - index[last]);
      if (filled) {
        Fill(to + row * row_, n * row_);
      } else {
        RowsFrom(from + offset, &offsets[index[last]], n, to + row * row_);
      }
      row += n;
      index[last] = 0;
      for (int k = last - 1; k >= 0; --k) {
        if (++index[k] < static_cast<int64_t>(offsets_[k].size())) break;
        index[k] = 0;
      }
    }
  }

  // n rows, each from its offset.
  void RowsFrom(const char* from, const int64_t* offsets, int64_t n,
                char* to) const {
    if (unit_ != move_.size) return UnitRows(from, offsets, n, to);
    switch (unit_) {
      case 1:
        return TypedRows<uint8_t>(from, offsets, n, to);
      case 2:
        return TypedRows<uint16_t>(from, offsets, n, to);
      case 4:
        return TypedRows<uint32_t>(from, offsets, n, to);
      default:
        return TypedRows<uint64_t>(from, offsets, n, to);
    }
  }

  template <typename T>
  void TypedRows(const char* from, const int64_t* offsets, int64_t n,
                 char* to) const {
    constexpr int64_t kSize = sizeof(T);
    ForIsa([=, runs = absl::MakeConstSpan(runs_), row = row_ / kSize,
            stride = stride_ / kSize, fill = static_cast<T>(move_.fill)] {
      T* out = reinterpret_cast<T*>(to);
      for (int64_t r = 0; r < n; ++r, out += row) {
        if (offsets[r] < 0) {
          FillShort(fill, out, row);
          continue;
        }
        const T* x = reinterpret_cast<const T*>(from + offsets[r]);
        for (const RowRun& run : runs) {
          T* target = out + run.to;
          if (run.from < 0) {
            FillShort(fill, target, run.n);
          } else {
            CopyStrided(x + run.from * stride, run.step * stride, target,
                        run.n);
          }
        }
      }
    });
  }

  // Units of any number of bytes.
  void UnitRows(const char* from, const int64_t* offsets, int64_t n,
                char* to) const {
    for (int64_t r = 0; r < n; ++r, to += row_) {
      for (const RowRun& run : runs_) {
        char* target = to + run.to * unit_;
        if (run.from < 0 || offsets[r] < 0) {
          Fill(target, run.n * unit_);
        } else {
          CopyUnits(from + offsets[r] + run.from * stride_, run.step * stride_,
                    target, run.n);
        }
      }
    }
  }
  void CopyUnits(const char* from, int64_t step, char* to, int64_t n) const {
    const auto copy = streams_ ? StreamBytes : CopyNear;
    if (step == unit_) return copy(from, to, n * unit_);
    for (int64_t i = 0; i < n; ++i) {
      copy(from + i * step, to + i * unit_, unit_);
    }
  }

  void Fill(char* to, int64_t bytes) const {
    if (move_.fill == 0) {
      memset(to, 0, bytes);
      return;
    }
    switch (move_.size) {
      case 1:
        memset(to, static_cast<int>(move_.fill), bytes);
        return;
      case 2:
        return FillWith(static_cast<uint16_t>(move_.fill), to, bytes);
      case 4:
        return FillWith(static_cast<uint32_t>(move_.fill), to, bytes);
      default:
        return FillWith(move_.fill, to, bytes);
    }
  }
  template <typename T>
  static void FillWith(T value, char* to, int64_t bytes) {
    std::fill_n(reinterpret_cast<T*>(to), bytes / int64_t{sizeof(T)}, value);
  }

  static constexpr int kMaxAxes = 64;
  static constexpr int64_t kLargeUnit = 4096;  // bytes
  Move move_;
  bool empty_ = false;
  int64_t unit_ = 1;    // bytes that stay together
  int64_t stride_ = 0;  // bytes between neighbours of the innermost axis
  std::vector<RowRun> runs_;
  int64_t rows_ = 1, row_ = 0;
  std::vector<std::vector<int64_t>> offsets_;  // of the outer axes, in bytes
  bool streams_ = false;

 public:
  static bool Fits(const BoundOp& op) {
    return MoveOf(op).axes.size() < kMaxAxes;
  }
};

// ---- pad3d_grad: a row of XGrad at a time. What one row of OutGrad adds to is
// copied but for columns at the border; of several they are added up in f32.

// To `to`, in each of `rows` rows, the sum of what lies at `sources`; of 16
// bits so many rows at once as a vector converts.
template <typename Low, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SumColumns(
    const T* x, int64_t stride, int64_t rows, absl::Span<const int64_t> sources,
    T* to, int64_t to_stride) {
  constexpr int64_t kSize = Low::kSize;
  // Fewer are faster one by one.
  constexpr int64_t kLeast =
      std::is_same<T, float>::value ? INT64_MAX : kSize / 2;
  // What was just written piece by piece is read late as a whole.
  constexpr size_t kAtOnce = 4;
  alignas(64) T column[kAtOnce * kSize] = {};
  alignas(64) float sums[kSize], v[kSize];
  int64_t r = 0;
  for (; rows - r >= kLeast; r += kSize) {
    const int64_t n = std::min(kSize, rows - r);
    std::fill_n(sums, kSize, 0.0f);
    for (size_t k = 0; k < sources.size(); k += kAtOnce) {
      const size_t end = std::min(k + kAtOnce, sources.size());
      T* taken = column;
      for (size_t s = k; s < end; ++s, taken += kSize) {
#pragma GCC unroll 1
        for (int64_t j = 0; j < n; ++j) {
          taken[j] = x[(r + j) * stride + sources[s]];
        }
      }
      taken = column;
      for (size_t s = k; s < end; ++s, taken += kSize) {
        Low::Load(taken, v);
#pragma GCC unroll 1
        for (int64_t j = 0; j < kSize; ++j) sums[j] += v[j];
      }
    }
    Low::Store(sums, column);
#pragma GCC unroll 1
    for (int64_t j = 0; j < n; ++j) to[(r + j) * to_stride] = column[j];
  }
  for (; r < rows; ++r) {
    float sum = 0;
    for (const int64_t source : sources) {
      sum += static_cast<float>(x[r * stride + source]);
    }
    to[r * to_stride] = static_cast<T>(sum);
  }
}

// A row as f32, where it is or, in whole vectors, in `buffer`; nothing behind
// it is read.
template <typename Low, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const float* RowAsFloat(const T* x,
                                                            int64_t n,
                                                            float* buffer) {
  if constexpr (std::is_same<T, float>::value) {
    return x;
  } else {
    constexpr int64_t kSize = Low::kSize;
    int64_t i = 0;
    for (; i + kSize <= n; i += kSize) Low::Load(x + i, buffer + i);
    if (i < n) {
      alignas(64) T rest[kSize] = {};
#pragma GCC unroll 1
      for (int64_t j = 0; i + j < n; ++j) rest[j] = x[i + j];
      Low::Load(rest, buffer + i);
    }
    return buffer;
  }
}

struct PadGradKernel {
  static constexpr int64_t kMost = LowVector<Isa::kAvx512>::kSize;

  std::vector<AxisRead> axes;                 // as pad3d reads X
  std::vector<std::vector<int64_t>> went[2];  // by D or H: where an index went
  std::vector<RowRun> runs;                   // along W
  RowRun inside = {0, 0, 0, 1};               // the longest that is a copy
  // Columns of XGrad that are no copies, and columns of OutGrad they come from:
  // one after the other.
  struct Column {
    int64_t at, count;
  };
  std::vector<Column> columns;
  std::vector<int64_t> sources;
  DType dtype;
  int threads;  // that the workspace is for

  explicit PadGradKernel(const BoundOp& op)
      : axes(PaddedAxes(op, op.Output("XGrad"), op.Input("OutGrad"))),
        runs(RunsOf(axes[4])),
        dtype(op.Output("XGrad").dtype),
        threads(std::max(1, op.context().threads)) {
    for (int k = 0; k < 2; ++k) went[k] = WhereTo(axes[2 + k]);
    for (const RowRun& run : runs) {
      if (run.from >= 0 && run.step == 1 && run.n > inside.n) inside = run;
    }
    const auto in_row = WhereTo(axes[4]);
    for (int64_t w = 0; w < axes[4].size; ++w) {
      const int64_t count = static_cast<int64_t>(in_row[w].size());
      if (count == 1 && w >= inside.from && w < inside.from + inside.n) {
        continue;
      }
      columns.push_back({w, count});
      sources.insert(sources.end(), in_row[w].begin(), in_row[w].end());
    }
  }

  // Of a thread: a row of XGrad and one of OutGrad.
  static int64_t BufferBytes(int64_t width, int64_t extent) {
    return (width + extent + 2 * kMost) * int64_t{sizeof(float)};
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Run(static_cast<const T*>(buffers.inputs[1]),
          static_cast<T*>(buffers.outputs[0]),
          static_cast<char*>(buffers.workspace), stream.threads());
    });
  }

 private:
  template <typename T>
  void Run(const T* grad, T* to, char* workspace, int most_threads) const {
    const int64_t width = axes[4].size, extent = axes[4].extent;
    const int64_t rows =
        axes[0].size * axes[1].size * axes[2].size * axes[3].size;
    const int64_t grain = std::max<int64_t>(
        1, kCopyGrain / (extent * int64_t{sizeof(float)} + 1));
    // A thread has buffers of its own.
    const int64_t parts = std::max(1, std::min(threads, most_threads));
    const int64_t fair = std::max(grain, (rows + parts - 1) / parts);
    ParallelFor(static_cast<int>(parts), rows, fair,
                [&](int64_t begin, int64_t end) {
                  float* sums = reinterpret_cast<float*>(
                      workspace + begin / fair * BufferBytes(width, extent));
                  for (int64_t row = begin; row < end;) {
                    const int64_t n = CopiedRows(row, end);
                    if (n > 0) {
                      Copy(grad, row, n, to + row * width);
                    } else {
                      Sum(grad, row, sums, to + row * width);
                    }
                    row += std::max<int64_t>(n, 1);
                  }
                });
  }
  static std::vector<std::vector<int64_t>> WhereTo(const AxisRead& axis) {
    std::vector<std::vector<int64_t>> to(axis.size);
    for (int64_t i = 0; i < axis.extent; ++i) {
      const int64_t at = axis.At(i);
      if (at >= 0) to[at].push_back(i);
    }
    return to;
  }
  // Where row (d, h) of the image of `row` begins.
  int64_t SourceOf(int64_t row, int64_t d, int64_t h) const {
    const int64_t image = row / (axes[3].size * axes[2].size);
    return ((image * axes[2].extent + d) * axes[3].extent + h) * axes[4].extent;
  }

  // How many rows from `row` on, of one plane, went to one row each, side by
  // side.
  int64_t CopiedRows(int64_t row, int64_t end) const {
    const int64_t height = axes[3].size, first = row % height;
    if (went[0][row / height % axes[2].size].size() != 1) return 0;
    int64_t n = 0;
    for (; row + n < end && first + n < height; ++n) {
      const std::vector<int64_t>& to = went[1][first + n];
      if (to.size() != 1 || to[0] != went[1][first][0] + n) break;
    }
    return n;
  }
  template <typename T>
  void Copy(const T* grad, int64_t row, int64_t n, T* to) const {
    const int64_t height = axes[3].size;
    const T* from =
        grad + SourceOf(row, went[0][row / height % axes[2].size][0],
                        went[1][row % height][0]);
    ForIsa([=, width = axes[4].size, stride = axes[4].extent, in = inside,
            border = absl::MakeConstSpan(columns),
            all_sources = sources.data()](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      constexpr int64_t kRows = std::is_same<T, float>::value ? 1 : Low::kSize;
      for (int64_t first = 0; first < n; first += kRows) {
        const T* x = from + first * stride;
        T* out = to + first * width;
        const int64_t rows = std::min(kRows, n - first);
        for (int64_t r = 0; r < rows; ++r) {
          CopyShort(reinterpret_cast<const char*>(x + r * stride + in.to),
                    reinterpret_cast<char*>(out + r * width + in.from),
                    in.n * int64_t{sizeof(T)});
        }
        const int64_t* of_column = all_sources;
        for (const Column& column : border) {
          SumColumns<Low>(x, stride, rows,
                          absl::MakeConstSpan(of_column, column.count),
                          out + column.at, width);
          of_column += column.count;
        }
      }
    });
  }

  // A row to which several rows are added.
  template <typename T>
  void Sum(const T* grad, int64_t row, float* sums, T* to) const {
    const int64_t height = axes[3].size, depth = axes[2].size;
    const T* image = grad + SourceOf(row, 0, 0);
    ForIsa([=, width = axes[4].size, extent = axes[4].extent,
            rows_of_plane = axes[3].extent,
            planes = absl::MakeConstSpan(went[0][row / height % depth]),
            rows = absl::MakeConstSpan(went[1][row % height]),
            along = absl::MakeConstSpan(runs)](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      float* buffer = sums + width + kMost;
      std::fill_n(sums, width, 0.0f);
      for (const int64_t d : planes) {
        for (const int64_t h : rows) {
          const float* x = RowAsFloat<Low>(
              image + (d * rows_of_plane + h) * extent, extent, buffer);
          for (const RowRun& run : along) {
            if (run.from >= 0) AddRun(x, run, sums);
          }
        }
      }
      const auto sum_at = [=](int64_t i, float* v) { Low::Load(sums + i, v); };
      if (width >= Low::kSize) return StoreLow<Low>(to, width, sum_at);
      // All of its vector would be written over other rows.
      T made[Low::kSize];
      StoreLow<Low>(made, width, sum_at);
      std::copy_n(made, width, to);
    });
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void AddRun(const float* x,
                                                  const RowRun& run,
                                                  float* sums) {
    const float* from = x + run.to;
    float* to = sums + run.from;
    if (run.step == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < run.n; ++i) to[i] += from[i];
    } else {
      for (int64_t i = 0; i < run.n; ++i) to[i * run.step] += from[i];
    }
  }
};

Candidate MakePadGrad() {
  Candidate candidate = MakeCandidate(
      "rows", [](const BoundOp& op) { return PadGradKernel(op); });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return std::max(1, op.context().threads) *
           PadGradKernel::BufferBytes(op.Output("XGrad").dims[4],
                                      op.Input("OutGrad").dims[4]);
  };
  return candidate;
}

}  // namespace

void RegisterCpuMove(KernelRegistry& registry) {
  Candidate move =
      MakeCandidate("runs", [](const BoundOp& op) { return MoveKernel(op); });
  move.supports = MoveKernel::Fits;
  for (const char* op : kMoves) AddForSchema(registry, op, move);
  AddForSchema(registry, "pad3d_grad", MakePadGrad());
}

}  // namespace kernels
}  // namespace halftone
