#include "kernels/cpu/reduce.h"

#include <algorithm>

#include "kernels/common/shapes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"

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

}  // namespace

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

bool Reduction::IsInPlace() const {
  return folding_.map == nullptr && (in_ == DType::kF32 || IsLow(in_));
}

StoredElements Reduction::Load(const void* x, int64_t at, int64_t n,
                               float* buffer) const {
  const float* from = LoadBlock(in_, x, at, n, buffer);
  if (folding_.map == nullptr) return {DType::kF32, from};
  folding_.map(from, buffer, n, folding_.parameter);
  return {DType::kF32, buffer};
}

float Reduction::FoldRun(const void* x, int64_t offset, int64_t n) const {
  float result = folding_.none;
  const bool in_place = IsInPlace();
  if (folding_.exact && in_place) {
    folding_.rows({in_, x}, offset, 1, n, &result, folding_.parameter);
    return result;
  }
  alignas(64) float buffer[kConvertBlock];
  ForBlocks(offset, offset + n, [&](int64_t at, int64_t count) {
    float block;
    if (in_place) {
      folding_.rows({in_, x}, at, 1, count, &block, folding_.parameter);
    } else {
      folding_.rows(Load(x, at, count, buffer), 0, 1, count, &block,
                    folding_.parameter);
    }
    if (at == offset) {
      result = block;
    } else {
      folding_.join(&block, 0, 1, &result, 1);
    }
  });
  return result;
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
  const bool in_place = IsInPlace();
  const int64_t most = in_place ? std::min(kConvertBlock, kRun / inner_)
                                : kConvertBlock / inner_;
  const int64_t grain = (kMapGrain / (most * inner_) + 1) * most;
  ParallelFor(threads, kept_count_, grain, [&](int64_t begin, int64_t end) {
    alignas(64) float buffer[kConvertBlock];
    float results[kConvertBlock];
    for (int64_t row = begin; row < end; row += most) {
      const int64_t n = std::min(most, end - row), at = row * inner_;
      if (in_place) {
        folding_.rows({in_, x}, at, n, inner_, results, folding_.parameter);
      } else {
        folding_.rows(Load(x, at, n * inner_, buffer), 0, n, inner_, results,
                      folding_.parameter);
      }
      Finish(results, out, row, n);
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
      float sum = FoldRun(x, offset, std::min(kRun, inner_ - at));
      if (pieces_ == 1) {
        Finish(&sum, out, kept, 1);
      } else {
        partial[kept * pieces_ + piece] = sum;
      }
    }
  });
}

// ---- Rows are added.

void Reduction::AddRows(const void* x, int64_t kept, int64_t chunk,
                        int64_t column, int64_t columns, float* sums) const {
  alignas(64) float buffer[kConvertBlock];
  std::fill_n(sums, columns, folding_.none);
  const int64_t base = OffsetOf(kept_, kept) + column;
  const int64_t first = chunk * kRowsPerChunk;
  const int64_t last = std::min(first + kRowsPerChunk, reduced_count_);
  for (int64_t r = first; r < last;) {
    const int64_t offset = base + OffsetOf(reduced_, r);
    // Those that lie a stride apart.
    const bool one = reduced_.rank() == 0;
    const int64_t extent = one ? 1 : reduced_.dims.back();
    const int64_t stride = one ? 0 : reduced_.strides.back();
    const int64_t rows = std::min(last - r, extent - r % extent);
    if (IsInPlace()) {
      folding_.add({in_, x}, offset, stride, rows, sums, columns,
                   folding_.parameter);
    } else {
      for (int64_t k = 0; k < rows; ++k) {
        folding_.add(Load(x, offset + k * stride, columns, buffer), 0, 0, 1,
                     sums, columns, folding_.parameter);
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
          AddRows(x, row / chunks, row % chunks, column, columns, sums);
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
          folding_.join(from + width, width, pieces_ - 1, sums, columns);
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
