#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/common/shapes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/reduction.h"

namespace halftone {
namespace kernels {
namespace {

// Elements of one partial sum where neighbours are added.
constexpr int64_t kRun = 8 * kConvertBlock;
// Rows of one partial sum where rows are added.
constexpr int64_t kRowsPerChunk = 128;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t OffsetOf(const Nest& nest, int64_t index) {
  int64_t offset = 0;
  for (int i = nest.rank() - 1; i >= 0; --i) {
    offset += index % nest.dims[i] * nest.strides[i];
    index /= nest.dims[i];
  }
  return offset;
}

void Prepend(Nest& nest, int64_t extent, int64_t stride) {
  nest.dims.insert(nest.dims.begin(), extent);
  nest.strides.insert(nest.strides.begin(), stride);
}

// Rows that are added in one pass over their sums.
constexpr int64_t kRowsAtOnce = 4;

// into[i] = f(into[i], x[i]) for each row, in their order.
template <typename F>
void FoldInto(const float* x, int64_t stride, int64_t rows, float* into,
              int64_t n) {
  ForIsa([=] {
    const F f;
    int64_t r = 0;
    for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
      const float *a = x + r * stride, *b = a + stride;
      const float *c = b + stride, *d = c + stride;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        into[i] = f(f(f(f(into[i], a[i]), b[i]), c[i]), d[i]);
      }
    }
    for (; r < rows; ++r) {
      const float* row = x + r * stride;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) into[i] = f(into[i], row[i]);
    }
  });
}

// FoldInto of sums of 16-bit elements, converted in registers.
template <typename Low, int kRows, typename T>
inline void AddVectorsTo(const T* x, int64_t stride, float* sums, int64_t n) {
  constexpr int kSize = Low::kSize;
  int64_t i = 0;
  for (; i + kSize <= n; i += kSize) {
    float rows[kRows][kSize];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) Low::Load(x + r * stride + i, rows[r]);
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
    for (int j = 0; j < kSize; ++j) {
      float sum = sums[i + j];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum += rows[r][j];
      sums[i + j] = sum;
    }
  }
#pragma GCC unroll 1
  for (; i < n; ++i) {
    for (int r = 0; r < kRows; ++r) {
      sums[i] += static_cast<float>(x[r * stride + i]);
    }
  }
}
void AddLowTo(DType dtype, const void* x, int64_t at, int64_t stride,
              int64_t rows, float* sums, int64_t n) {
  const auto add = [=](auto zero) {
    using T = decltype(zero);
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      const T* from = static_cast<const T*>(x) + at;
      int64_t r = 0;
      for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
        AddVectorsTo<Low, kRowsAtOnce>(from + r * stride, stride, sums, n);
      }
      for (; r < rows; ++r) {
        AddVectorsTo<Low, 1>(from + r * stride, stride, sums, n);
      }
    });
  };
  dtype == DType::kF16 ? add(half()) : add(bfloat16());
}

void SumRows(const float* x, int64_t rows, int64_t n, float* results) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) results[r] = SumOfRow(x + r * n, n);
  });
}
float SumOfRun(const float* x, int64_t n) {
  float sum;
  ForIsa([=, to = &sum] { *to = SumOf(n, [=](int64_t i) { return x[i]; }); });
  return sum;
}
// SumOfRun of 16-bit elements, converted in registers: the same order.
template <typename Low, typename T>
inline float SumOfLow(const T* x, int64_t n) {
  constexpr int kSize = Low::kSize;
  alignas(4 * kVector) float lanes[kLanes] = {}, v[kSize];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kLanes; k += kSize) {
      Low::Load(x + i + k, v);
#pragma GCC unroll 1  // else it becomes no vector
      for (int j = 0; j < kSize; ++j) lanes[k + j] += v[j];
    }
  }
  for (int j = 0; i + j < n; ++j) lanes[j] += static_cast<float>(x[i + j]);
  return SumOfLanes(reinterpret_cast<const Vector*>(lanes));
}
float SumOfLowRun(DType dtype, const void* x, int64_t at, int64_t n) {
  float sum;
  const auto add = [=, to = &sum](auto zero) {
    using T = decltype(zero);
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      *to = SumOfLow<Low>(static_cast<const T*>(x) + at, n);
    });
  };
  dtype == DType::kF16 ? add(half()) : add(bfloat16());
  return sum;
}

template <typename F>
void FoldRows(const float* x, int64_t rows, int64_t n, float* results) {
  ForIsa([=, none = F::template None<float>()] {
    const F f;
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + r * n;
      if (n < kLanes) {  // one after the other
        float folded = none;
        for (int64_t i = 0; i < n; ++i) folded = f(folded, row[i]);
        results[r] = folded;
        continue;
      }
      float lanes[kLanes];
      for (int j = 0; j < kLanes; ++j) lanes[j] = row[j];
      int64_t i = kLanes;
      if constexpr (!std::is_same<F, functors::ProductOf>::value) {
        // Of two first: the same bits, and half as many that wait for another.
        for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
          for (int j = 0; j < kLanes; ++j) {
            lanes[j] = f(lanes[j], f(row[i + j], row[i + kLanes + j]));
          }
        }
      }
      for (; i + kLanes <= n; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) lanes[j] = f(lanes[j], row[i + j]);
      }
      for (int j = 0; i + j < n; ++j) lanes[j] = f(lanes[j], row[i + j]);
        // Loops of their own, not unrolled: they become vectors.
#pragma GCC unroll 1
      for (int j = 0; j < 16; ++j) lanes[j] = f(lanes[j], lanes[j + 16]);
#pragma GCC unroll 1
      for (int j = 0; j < 8; ++j) lanes[j] = f(lanes[j], lanes[j + 8]);
#pragma GCC unroll 1
      for (int j = 0; j < 4; ++j) lanes[j] = f(lanes[j], lanes[j + 4]);
      results[r] = f(f(lanes[0], lanes[2]), f(lanes[1], lanes[3]));
    }
  });
}
template <typename F>
float FoldRun(const float* x, int64_t n) {
  float folded;
  FoldRows<F>(x, 1, n, &folded);
  return folded;
}

template <typename F>
Folding FoldingOf() {
  Folding folding = {F::template None<float>(), FoldRun<F>, FoldInto<F>,
                     FoldRows<F>};
  folding.exact = !std::is_same<F, functors::ProductOf>::value;
  return folding;
}

template <typename F>
void MapBlock(const float* x, float* to, int64_t n, float) {
  ApplyUnary(F(), x, to, n);
}
void PowerOfEach(const float* x, float* to, int64_t n, float order) {
  ApplyUnary(functors::AbsPowerOp{order}, x, to, n);
}

}  // namespace

Folding Sums() {
  return {0.0f,    SumOfRun, FoldInto<functors::AddOp>,
          SumRows, AddLowTo, SumOfLowRun};
}
Folding Greatest() { return FoldingOf<functors::GreaterOf>(); }
Folding Least() { return FoldingOf<functors::LesserOf>(); }
Folding Products() { return FoldingOf<functors::ProductOf>(); }

Folding Norms(float order) {
  Folding folding = Sums();
  if (order == functors::Infinity() || order == -functors::Infinity()) {
    folding = order > 0 ? Greatest() : Least();
    if (order > 0) folding.none = 0.0f;
    folding.map = MapBlock<functors::AbsOp>;
  } else if (order == 0.0f) {
    folding.map = MapBlock<functors::NotZeroOp>;
  } else if (order == 1.0f) {
    folding.map = MapBlock<functors::AbsOp>;
  } else if (order == 2.0f) {
    folding.map = MapBlock<functors::SquareOp>;
    folding.finish = [](float* x, int64_t n, float) {
      MapBlock<functors::SqrtOp>(x, x, n, 0.0f);
    };
  } else {
    folding.parameter = order;
    folding.map = PowerOfEach;
    folding.finish = [](float* x, int64_t n, float p) {
      PowerOfEach(x, x, n, 1.0f / p);
    };
  }
  return folding;
}

Reduction::Reduction(const TensorDesc& x, const TensorDesc& out,
                     const std::vector<bool>& reduced, bool mean,
                     const Folding& folding)
    : folding_(folding), in_(x.dtype), out_(out.dtype) {
  const Extents strides = StridesOf(x);
  const Extents order = ReductionOrder(x, out, reduced);
  bool in_inner = true;
  int64_t summands = 1;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const int64_t i = *at;
    if (reduced[i]) summands *= x.dims[i];
    if (x.dims[i] == 1) continue;
    in_inner = in_inner && strides[i] == inner_;
    if (in_inner && inner_ == 1) inner_is_reduced_ = reduced[i];
    in_inner = in_inner && reduced[i] == inner_is_reduced_;
    if (in_inner) {
      inner_ *= x.dims[i];
    } else {
      AddDim(x.dims[i], strides[i], reduced[i]);
    }
  }
  kept_inside_ = kept_.rank() > 0 && reduced_.rank() > 0 &&
                 kept_.strides.back() < reduced_.strides.back();
  if (mean) divisor_ = static_cast<float>(summands);
  pieces_ = inner_is_reduced_ ? reduced_count_ * CeilDiv(inner_, kRun)
                              : CeilDiv(reduced_count_, kRowsPerChunk);
}

void Reduction::AddDim(int64_t extent, int64_t stride, bool reduced) {
  Prepend(reduced ? reduced_ : kept_, extent, stride);
  (reduced ? reduced_count_ : kept_count_) *= extent;
}

int64_t Reduction::workspace_bytes() const {
  if (pieces_ <= 1) return 0;
  const int64_t width = inner_is_reduced_ ? 1 : inner_;
  return kept_count_ * pieces_ * width * int64_t{sizeof(float)};
}

void Reduction::Run(const void* x, void* out, void* workspace,
                    int threads) const {
  float* partial = static_cast<float*>(workspace);
  if (inner_is_reduced_) {
    RunInner(x, out, partial, threads);
  } else {
    RunOuter(x, out, partial, threads);
  }
  if (pieces_ > 1) Combine(partial, out, threads);
}

// ---- Neighbours are added.

const float* Reduction::Load(const void* x, int64_t at, int64_t n,
                             float* buffer) const {
  const float* from = LoadBlock(in_, x, at, n, buffer);
  if (folding_.map == nullptr) return from;
  folding_.map(from, buffer, n, folding_.parameter);
  return buffer;
}

float Reduction::SumRun(const void* x, int64_t offset, int64_t n) const {
  if (folding_.exact && folding_.map == nullptr && in_ == DType::kF32) {
    return folding_.run(static_cast<const float*>(x) + offset, n);
  }
  float sum = folding_.none;
  alignas(64) float buffer[kConvertBlock];
  const bool low =
      folding_.map == nullptr && IsLow(in_) && folding_.run_low != nullptr;
  ForBlocks(offset, offset + n, [&](int64_t at, int64_t count) {
    const float block = low ? folding_.run_low(in_, x, at, count)
                            : folding_.run(Load(x, at, count, buffer), count);
    if (at == offset) {
      sum = block;
    } else {
      folding_.add(&block, 0, 1, &sum, 1);
    }
  });
  return sum;
}

bool Reduction::HasShortRows() const {
  if (inner_ == 0 || inner_ > kConvertBlock || reduced_count_ != 1) {
    return false;
  }
  int64_t stride = inner_;
  for (int i = kept_.rank() - 1; i >= 0; --i) {
    if (kept_.strides[i] != stride) return false;
    stride *= kept_.dims[i];
  }
  return true;
}

void Reduction::RunRows(const void* x, void* out, int threads) const {
  const bool in_place = in_ == DType::kF32 && folding_.map == nullptr;
  const int64_t most = in_place ? std::min(kConvertBlock, kRun / inner_)
                                : kConvertBlock / inner_;
  const int64_t grain = (kMapGrain / (most * inner_) + 1) * most;
  // Of the last rows vectors would reach behind x: they are folded apart.
  const int64_t apart = kept_count_ - CeilDiv(kVector, inner_);
  ParallelFor(threads, kept_count_, grain, [&](int64_t begin, int64_t end) {
    alignas(64) float buffer[kConvertBlock + kVector];
    float results[kConvertBlock];
    for (int64_t row = begin; row < end;) {
      int64_t n = std::min(most, end - row);
      if (in_place && row < apart) n = std::min(n, apart - row);
      const float* from = Load(x, row * inner_, n * inner_, buffer);
      if (in_place && row >= apart) {
        from = std::copy_n(from, n * inner_, buffer) - n * inner_;
      }
      folding_.rows(from, n, inner_, results);
      Finish(results, out, row, n);
      row += n;
    }
  });
}

void Reduction::RunInner(const void* x, void* out, float* partial,
                         int threads) const {
  if (HasShortRows()) return RunRows(x, out, threads);
  const int64_t runs = CeilDiv(inner_, kRun);
  const int64_t run_length = std::min(inner_, kRun);
  const int64_t grain =
      std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, run_length));
  const int64_t tasks = kept_count_ * std::max<int64_t>(1, pieces_);
  ParallelFor(threads, tasks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      if (pieces_ == 0) {  // a sum over nothing
        float none = folding_.none;
        Finish(&none, out, task, 1);
        continue;
      }
      // In the order of memory where what is kept lies inside.
      const int64_t kept = kept_inside_ ? task % kept_count_ : task / pieces_;
      const int64_t piece = kept_inside_ ? task / kept_count_ : task % pieces_;
      const int64_t at = piece % runs * kRun;
      const int64_t offset =
          OffsetOf(kept_, kept) + OffsetOf(reduced_, piece / runs) + at;
      float sum = SumRun(x, offset, std::min(kRun, inner_ - at));
      if (pieces_ == 1) {
        Finish(&sum, out, kept, 1);
      } else {
        partial[kept * pieces_ + piece] = sum;
      }
    }
  });
}

// ---- Rows are added.

void Reduction::SumRows(const void* x, int64_t kept, int64_t chunk,
                        int64_t column, int64_t columns, float* sums) const {
  alignas(64) float buffer[kConvertBlock];
  std::fill_n(sums, columns, folding_.none);
  const int64_t base = OffsetOf(kept_, kept) + column;
  const int64_t first = chunk * kRowsPerChunk;
  const int64_t last = std::min(first + kRowsPerChunk, reduced_count_);
  const bool as_stored = folding_.map == nullptr && in_ == DType::kF32;
  const bool low =
      folding_.map == nullptr && IsLow(in_) && folding_.add_low != nullptr;
  for (int64_t r = first; r < last;) {
    const int64_t offset = base + OffsetOf(reduced_, r);
    // Those that lie a stride apart.
    const bool one = reduced_.rank() == 0;
    const int64_t extent = one ? 1 : reduced_.dims.back();
    const int64_t stride = one ? 0 : reduced_.strides.back();
    const int64_t rows = std::min(last - r, extent - r % extent);
    if (as_stored) {
      folding_.add(static_cast<const float*>(x) + offset, stride, rows, sums,
                   columns);
    } else if (low) {
      folding_.add_low(in_, x, offset, stride, rows, sums, columns);
    } else {
      for (int64_t k = 0; k < rows; ++k) {
        folding_.add(Load(x, offset + k * stride, columns, buffer), 0, 1, sums,
                     columns);
      }
    }
    r += rows;
  }
}

void Reduction::RunOuter(const void* x, void* out, float* partial,
                         int threads) const {
  const int64_t blocks = CeilDiv(inner_, kConvertBlock);
  const int64_t chunks = std::max<int64_t>(1, pieces_);
  const int64_t task_elements =
      std::min(inner_, kConvertBlock) * std::min(reduced_count_, kRowsPerChunk);
  const int64_t grain =
      std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, task_elements));
  ParallelFor(
      threads, kept_count_ * chunks * blocks, grain,
      [&](int64_t begin, int64_t end) {
        alignas(64) float buffer[kConvertBlock];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % blocks * kConvertBlock;
          const int64_t columns = std::min(kConvertBlock, inner_ - column);
          const int64_t row = task / blocks;  // kept * chunks + chunk
          float* sums = pieces_ > 1 ? partial + row * inner_ + column : buffer;
          SumRows(x, row / chunks, row % chunks, column, columns, sums);
          if (pieces_ <= 1) Finish(sums, out, row * inner_ + column, columns);
        }
      });
}

// ---- Partial sums are added.

void Reduction::Combine(const float* partial, void* out, int threads) const {
  const int64_t width = inner_is_reduced_ ? 1 : inner_;
  const int64_t blocks = CeilDiv(width, kConvertBlock);
  const int64_t grain = std::max<int64_t>(
      1, kMapGrain / (pieces_ * std::min(width, kConvertBlock) + 1));
  ParallelFor(
      threads, kept_count_ * blocks, grain, [&](int64_t begin, int64_t end) {
        alignas(64) float sums[kConvertBlock];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % blocks * kConvertBlock;
          const int64_t columns = std::min(kConvertBlock, width - column);
          const int64_t kept = task / blocks;
          const float* from = partial + kept * pieces_ * width + column;
          std::copy_n(from, columns, sums);
          folding_.add(from + width, width, pieces_ - 1, sums, columns);
          Finish(sums, out, kept * width + column, columns);
        }
      });
}

void Reduction::Finish(float* sums, void* out, int64_t at, int64_t n) const {
  if (divisor_ != 1.0f) {
    for (int64_t i = 0; i < n; ++i) {
      sums[i] = divisor_ == 0.0f ? 0.0f : sums[i] / divisor_;
    }
  }
  if (folding_.finish != nullptr) {
    folding_.finish(sums, n, folding_.parameter);
  }
  char* to = static_cast<char*>(out) + at * SizeOf(out_);
  FromFloat(out_, sums, to, n);
}

}  // namespace kernels
}  // namespace halftone
