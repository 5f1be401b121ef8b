// Where the extremes of rows lie. Rows that lie side by side in memory are read
// twice, once for the extreme and once, up to there, for its place; others go
// by, with the best of each column so far.
#include <algorithm>
#include <functional>

#include "kernels/common/dispatch.h"
#include "kernels/common/reduced.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduction.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/reduction.h"

namespace halftone {
namespace kernels {
namespace {

// ---- Rows side by side.

// Of f32; blocks of other floats are converted.
template <typename T>
int64_t ExtremeOfRow(const T* row, int64_t length, const Folding& folding) {
  const DType dtype = DTypeOf<T>();
  alignas(64) float buffer[kConvertBlock];
  float best = folding.none;
  ForBlocks(0, length, [&](int64_t at, int64_t n) {
    const float block = folding.run(LoadBlock(dtype, row, at, n, buffer), n);
    folding.add(&block, &best, 1);
  });
  for (int64_t at = 0; at < length; at += kConvertBlock) {
    const int64_t n = std::min(kConvertBlock, length - at);
    const float* x = LoadBlock(dtype, row, at, n, buffer);
    for (int64_t i = 0; i < n; ++i) {
      if (x[i] == best || (best != best && x[i] != x[i])) return at + i;
    }
  }
  return 0;
}

template <typename T, typename F>
int64_t ExtremeOfIntegers(const T* row, int64_t length) {
  const F f;
  T best = F::template None<T>();
  for (int64_t i = 0; i < length; ++i) best = f(best, row[i]);
  return std::find(row, row + length, best) - row;
}

// ---- Columns.

// Columns of a task.
constexpr int64_t kColumns = 256;

// Whether x goes before `best`, which came first.
template <typename F, typename A>
inline bool Precedes(A x, A best) {
  if constexpr (std::is_integral<A>::value) {
    return F()(x, best) != best;
  } else {
    const bool beyond =
        std::is_same<F, functors::GreaterOf>::value ? x > best : x < best;
    return beyond | ((x != x) & (best == best));
  }
}

template <typename T, typename F>
void ExtremesOfColumns(const T* x, int64_t length, int64_t stride,
                       int64_t columns, int64_t* places) {
  using A = decltype(functors::Widen(T()));
  alignas(64) A row[kColumns];
  alignas(64) A best[kColumns];
  alignas(64) int32_t place[kColumns];
  const auto load = [&](int64_t r, A* to) {
    if constexpr (functors::IsStorageFloat<T>::value) {
      ToFloat(x + r * stride, to, columns);
    } else {
      std::copy_n(x + r * stride, columns, to);
    }
  };
  load(0, best);
  std::fill_n(place, columns, 0);
  for (int64_t r = 1; r < length; ++r) {
    load(r, row);
    ForIsa([&row, &best, &place, columns, r = static_cast<int32_t>(r)] {
      for (int64_t i = 0; i < columns; ++i) {
        const bool better = Precedes<F>(row[i], best[i]);
        best[i] = better ? row[i] : best[i];
        place[i] = better ? r : place[i];
      }
    });
  }
  std::copy_n(place, columns, places);
}

// ----

template <typename T, typename F>
struct ArgKernel {
  AlongAxis along;
  Folding folding;
  bool wide;  // i64, else i32

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    const int64_t width = std::min(along.inner, kColumns);
    if (width == 0) return;
    const int64_t tasks = (along.inner + width - 1) / width;
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / (along.length * width + 1));
    ParallelFor(
        stream.threads(), along.outer * tasks, grain,
        [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) {
            const int64_t column = task % tasks * width;
            const int64_t n = std::min(width, along.inner - column);
            const int64_t row = task / tasks;
            int64_t places[kColumns];
            Find(x + row * along.length * along.inner + column, n, places);
            Store(places, n, buffers.outputs[0], row * along.inner + column);
          }
        });
  }

 private:
  void Find(const T* x, int64_t columns, int64_t* places) const {
    if (along.length == 0) {  // a batch of nothing
      std::fill_n(places, columns, 0);
    } else if (along.inner > 1) {
      ExtremesOfColumns<T, F>(x, along.length, along.inner, columns, places);
    } else if constexpr (std::is_integral<T>::value) {
      *places = ExtremeOfIntegers<T, F>(x, along.length);
    } else {
      *places = ExtremeOfRow(x, along.length, folding);
    }
  }
  void Store(const int64_t* places, int64_t n, void* out, int64_t at) const {
    if (wide) {
      std::copy_n(places, n, static_cast<int64_t*>(out) + at);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<int32_t*>(out)[at + i] = static_cast<int32_t>(places[i]);
      }
    }
  }
};

using Numbers = TypeList<float, half, bfloat16, int32_t, int64_t>;

template <typename F>
Candidate MakeArg(Folding (*folding)()) {
  Candidate candidate = MakeCandidate("rows", [folding](const BoundOp& op) {
    std::function<void(const Buffers&, runtime::Stream&)> run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = ArgKernel<T, F>{AlongAxisOf(op), folding(),
                            op.Output("Out").dtype == DType::kI64};
    });
    return run;
  });
  // Places of columns are counted in 32 bits.
  candidate.supports = [](const BoundOp& op) {
    const AlongAxis along = AlongAxisOf(op);
    return along.inner == 1 || along.length <= INT32_MAX;
  };
  return candidate;
}

}  // namespace

void RegisterCpuArg(KernelRegistry& registry) {
  AddForSchema(registry, "arg_max", MakeArg<functors::GreaterOf>(Greatest));
  AddForSchema(registry, "arg_min", MakeArg<functors::LesserOf>(Least));
}

}  // namespace kernels
}  // namespace halftone
