// Running sums. Rows of columns are added to each other; a row alone is one
// sum after the other.
#include <algorithm>
#include <functional>

#include "kernels/common/dispatch.h"
#include "kernels/common/reduced.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduction.h"
#include "kernels/functors/cast.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kColumns = 256;

template <typename T>
struct ScanKernel {
  using Sum = decltype(functors::Widen(T()));
  AlongAxis along;
  bool exclusive, reverse;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    const int64_t width = std::min(along.inner, kColumns);
    if (width == 0 || along.length == 0) return;
    const int64_t tasks = (along.inner + width - 1) / width;
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / (along.length * width));
    ParallelFor(stream.threads(), along.outer * tasks, grain,
                [&](int64_t begin, int64_t end) {
                  if (along.inner == 1) {
                    return Rows(x + begin * along.length,
                                out + begin * along.length, end - begin);
                  }
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
  void Rows(const T* x, T* out, int64_t rows) const {
    const int64_t length = along.length;
    if constexpr (functors::IsStorageFloat<T>::value) {
      if (length > kConvertBlock) {
        for (int64_t r = 0; r < rows; ++r) {
          LongLowRow(x + r * length, out + r * length);
        }
        return;
      }
      // Whole rows as f32, a block at a time.
      alignas(64) float block[kConvertBlock];
      const int64_t group = kConvertBlock / length;
      for (int64_t row = 0; row < rows; row += group) {
        const int64_t n = std::min(group, rows - row);
        ToFloat(x + row * length, block, n * length);
        for (int64_t r = 0; r < n; ++r) {
          Scan(block + r * length, length, 0, block + r * length);
        }
        FromFloat(block, out + row * length, n * length);
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        Scan(x + r * length, length, 0, out + r * length);
      }
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
    alignas(64) Sum sums[kColumns] = {};
    alignas(64) Sum row[kColumns];
    for (int64_t k = 0; k < along.length; ++k) {
      const int64_t at = (reverse ? along.length - 1 - k : k) * along.inner;
      Load(x + at, row, columns);
      if (exclusive) Store(sums, out + at, columns);
      ForIsa([&sums, &row, columns] {
        for (int64_t i = 0; i < columns; ++i) sums[i] = Add(sums[i], row[i]);
      });
      if (!exclusive) Store(sums, out + at, columns);
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
  static void Load(const T* from, Sum* to, int64_t n) {
    if constexpr (functors::IsStorageFloat<T>::value) {
      ToFloat(from, to, n);
    } else {
      std::copy_n(from, n, to);
    }
  }
  static void Store(const Sum* from, T* to, int64_t n) {
    if constexpr (functors::IsStorageFloat<T>::value) {
      FromFloat(from, to, n);
    } else {
      std::copy_n(from, n, to);
    }
  }
};

Candidate MakeScan() {
  return MakeCandidate("rows", [](const BoundOp& op) {
    using Numbers = TypeList<float, half, bfloat16, int32_t, int64_t>;
    std::function<void(const Buffers&, runtime::Stream&)> run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      run = ScanKernel<typename decltype(tag)::type>{
          AlongAxisOf(op), op.Bool("exclusive"), op.Bool("reverse")};
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
