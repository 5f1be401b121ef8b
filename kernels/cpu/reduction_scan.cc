// Running sums. Rows of columns are added to each other; a row alone is one
// sum after the other.
#include <algorithm>
#include <functional>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/reduced.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/streamed_output.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/wide_vector.h"
#include "kernels/functors/cast.h"

namespace halftone {
namespace kernels {
namespace {

// Columns of a task: their sums stay in the first-level cache, and much of a
// row is read at once.
constexpr int64_t kColumns = 2048, kLeastColumns = 256;
// Rows that are added in one pass over the sums.
constexpr int kRowsAtOnce = 4;

// out = sums of x and the rows before, kRows of them; `exclusive`: without x.
template <typename Low, int kRows, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ScanRows(const T* x, int64_t stride,
                                                  int64_t columns,
                                                  bool exclusive, float* sums,
                                                  T* out) {
  using V = WideVector<Low::kSize>;
  int64_t i = 0;
  for (; i + Low::kSize <= columns; i += Low::kSize) {
    V* const sums_at = reinterpret_cast<V*>(sums + i);
    V sum = *sums_at, v;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = r * stride + i;
      __builtin_prefetch(x + kRows * stride + at);  // the next ones
      ReadVector<Low>(x + at, &v);
      const V next = sum + v;
      v = exclusive ? sum : next;
      if constexpr (std::is_same<T, float>::value) {
        *reinterpret_cast<V*>(out + at) = v;  // Store goes by halves
      } else {
        Low::Store(reinterpret_cast<const float*>(&v), out + at);
      }
      sum = next;
    }
    *sums_at = sum;
  }
#pragma GCC unroll 1
  for (; i < columns; ++i) {
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = r * stride + i;
      const float next = sums[i] + static_cast<float>(x[at]);
      out[at] = static_cast<T>(exclusive ? sums[i] : next);
      sums[i] = next;
    }
  }
}

// Running sums of kTransposed rows of n: eight columns become eight vectors of
// the rows' elements. `out` may be x.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ScanEightRows(
    const float* x, int64_t n, bool exclusive, bool reverse, float* out) {
  alignas(32) float block[kTransposed * kTransposed];
  Vector sum = {};
  const int64_t whole = n / kTransposed * kTransposed;
  const auto rest = [&] {
    for (int64_t k = whole; k < n; ++k) {
      const int64_t i = reverse ? whole + n - 1 - k : k;
      Vector v;
#pragma GCC unroll 8
      for (int r = 0; r < kTransposed; ++r) v[r] = x[r * n + i];
      const Vector next = sum + v;
      v = exclusive ? sum : next;
      sum = next;
#pragma GCC unroll 8
      for (int r = 0; r < kTransposed; ++r) out[r * n + i] = v[r];
    }
  };
  if (reverse) rest();
  for (int64_t done = 0; done < whole; done += kTransposed) {
    const int64_t at = reverse ? whole - kTransposed - done : done;
    TransposeBlock(x + at, n, block, kTransposed);
#pragma GCC unroll 1
    for (int k = 0; k < kTransposed; ++k) {
      Vector& v =
          VectorAt(block + (reverse ? kTransposed - 1 - k : k) * kTransposed);
      const Vector next = sum + v;
      v = exclusive ? sum : next;
      sum = next;
    }
    TransposeBlock(block, kTransposed, out + at, n);
  }
  if (!reverse) rest();
}

template <typename T>
struct ScanKernel {
  using Sum = decltype(functors::Widen(T()));
  DType dtype;
  AlongAxis along;
  bool exclusive, reverse;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    const int64_t fair =
        along.inner / std::max(1, stream.threads()) / kVector * kVector;
    const int64_t width =
        std::min(along.inner, std::clamp(fair, kLeastColumns, kColumns));
    if (width == 0 || along.length == 0) return;
    const int64_t tasks = (along.inner + width - 1) / width;
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / (along.length * width));
    const StreamedOutput output = StreamedOutput::Of(
        buffers, 0, dtype, along.outer * along.length * along.inner);
    ParallelFor(stream.threads(), along.outer * tasks, grain,
                [&](int64_t begin, int64_t end) {
                  if (along.inner == 1) return Rows(x, output, begin, end);
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t column = task % tasks * width;
                    const int64_t at =
                        task / tasks * along.length * along.inner + column;
                    Columns(x + at, out + at,
                            std::min(width, along.inner - column));
                  }
                });
  }

 private:
  void Rows(const T* x, const StreamedOutput& output, int64_t first,
            int64_t end) const {
    const int64_t length = along.length;
    // Whole rows, a block of them at a time.
    const int64_t group = std::max<int64_t>(1, kConvertBlock / length);
    for (int64_t row = first; row < end; row += group) {
      const int64_t n = std::min(group, end - row), at = row * length;
      output.WritePart(at, n * length, [&](void* to) {
        RowsOfBlock(x + at, n, static_cast<T*>(to));
      });
    }
    FinishStores();
  }
  void RowsOfBlock(const T* x, int64_t rows, T* out) const {
    if constexpr (functors::IsStorageFloat<T>::value) {
      const int64_t elements = rows * along.length;
      if (elements > kConvertBlock) return LongLowRow(x, out);
      alignas(64) float block[kConvertBlock];
      ToFloat(x, block, elements);
      ScanAll(block, rows, block);
      FromFloat(block, out, elements);
    } else {
      ScanAll(x, rows, out);
    }
  }
  // `out` may be x.
  void ScanAll(const Sum* x, int64_t rows, Sum* out) const {
    const int64_t length = along.length;
    int64_t done = 0;
    if constexpr (std::is_same<Sum, float>::value) {
      done = rows / kTransposed * kTransposed;
      ForIsa([=, by_exclusive = exclusive, by_reverse = reverse] {
        for (int64_t r = 0; r < done; r += kTransposed) {
          ScanEightRows(x + r * length, length, by_exclusive, by_reverse,
                        out + r * length);
        }
      });
    }
    for (int64_t r = done; r < rows; ++r) {
      Scan(x + r * length, length, 0, out + r * length);
    }
  }
  void LongLowRow(const T* x, T* out) const {
    alignas(64) float block[kConvertBlock];
    float sum = 0;
    for (int64_t done = 0; done < along.length; done += kConvertBlock) {
      const int64_t n = std::min(kConvertBlock, along.length - done);
      const int64_t at = reverse ? along.length - done - n : done;
      ToFloat(x + at, block, n);
      sum = Scan(block, n, sum, block);
      FromFloat(block, out + at, n);
    }
  }
  // `out` may be x. What it all adds up to, `sum` first.
  Sum Scan(const Sum* x, int64_t n, Sum sum, Sum* out) const {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = reverse ? n - 1 - k : k;
      const Sum next = Add(sum, x[i]);
      out[i] = exclusive ? sum : next;
      sum = next;
    }
    return sum;
  }
  void Columns(const T* x, T* out, int64_t columns) const {
    const int64_t first = reverse ? (along.length - 1) * along.inner : 0;
    const int64_t step = reverse ? -along.inner : along.inner;
    x += first;
    out += first;
    alignas(64) Sum sums[kColumns] = {};
    if constexpr (std::is_same<Sum, float>::value) {
      ForIsa([=, length = along.length, without = exclusive,
              sums = &sums[0]](auto isa) {
        using Low = LowVector<decltype(isa)::value>;
        int64_t k = 0;
        for (; k + kRowsAtOnce <= length; k += kRowsAtOnce) {
          ScanRows<Low, kRowsAtOnce>(x + k * step, step, columns, without, sums,
                                     out + k * step);
        }
        for (; k < length; ++k) {
          ScanRows<Low, 1>(x + k * step, step, columns, without, sums,
                           out + k * step);
        }
      });
    } else {
      for (int64_t k = 0; k < along.length; ++k) {
        for (int64_t i = 0; i < columns; ++i) {
          const int64_t at = k * step + i;
          const Sum next = Add(sums[i], x[at]);
          out[at] = exclusive ? sums[i] : next;
          sums[i] = next;
        }
      }
    }
  }

  static Sum Add(Sum a, Sum b) {
    if constexpr (std::is_integral<Sum>::value) {
      using Unsigned = std::make_unsigned_t<Sum>;  // wraps
      return static_cast<Sum>(static_cast<Unsigned>(a) +
                              static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

Candidate MakeScan() {
  return MakeCandidate("rows", [](const BoundOp& op) {
    using Numbers = TypeList<float, half, bfloat16, int32_t, int64_t>;
    std::function<void(const Buffers&, runtime::Stream&)> run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      run = ScanKernel<typename decltype(tag)::type>{
          op.Input("X").dtype, AlongAxisOf(op), op.Bool("exclusive"),
          op.Bool("reverse")};
    });
    return run;
  });
}

}  // namespace

void RegisterCpuScan(KernelRegistry& registry) {
  AddForSchema(registry, "cumsum", MakeScan());
}

}  // namespace kernels
}  // namespace halftone
