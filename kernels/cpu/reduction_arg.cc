// Where the extremes of rows lie: the best so far and its place, of each lane
// of a row that lies side by side in memory, else of each column.
#include <algorithm>
#include <functional>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/reduced.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduction.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/reduction.h"

namespace halftone {
namespace kernels {
namespace {

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

// ---- Rows side by side, f32.

// The best of each lane, and where it was.
struct Lanes {
  Vector best;
  VectorMask place;
};

// Lanes of `better` (a mask) from `other`.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TakeBetter(const VectorMask& better,
                                                    const Vector& value,
                                                    const VectorMask& place,
                                                    Lanes* lanes) {
  lanes->best = better ? value : lanes->best;
  lanes->place = better ? place : lanes->place;
}

// What of `value` precedes the best.
template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Preceding(const Vector& value,
                                                   const Vector& best,
                                                   VectorMask* better) {
  const VectorMask not_behind = std::is_same<F, functors::GreaterOf>::value
                                    ? ~(value <= best)
                                    : ~(value >= best);  // or a NaN
  *better = not_behind & (best == best);
}

// x[at, at + 8), which may have been seen, in other lanes.
template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void See(const float* x, int64_t at,
                                             Lanes* lanes) {
  const VectorMask offsets = {0, 1, 2, 3, 4, 5, 6, 7};
  const Vector value = VectorAt(x + at);
  VectorMask better;
  Preceding<F>(value, lanes->best, &better);
  TakeBetter(better, value, offsets + static_cast<int32_t>(at), lanes);
}

// Of two lanes that are equal, the lower place stays.
template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Merge(const Lanes& other,
                                               Lanes* lanes) {
  VectorMask better, worse;
  Preceding<F>(other.best, lanes->best, &better);
  Preceding<F>(lanes->best, other.best, &worse);
  better |= ~worse & (other.place < lanes->place);
  TakeBetter(better, other.best, other.place, lanes);
}

template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline int64_t PlaceInRow(const float* x,
                                                       int64_t n) {
  if (n < kVector) {
    int64_t place = 0;
    for (int64_t i = 1; i < n; ++i) {
      place = Precedes<F>(x[i], x[place]) ? i : place;
    }
    return place;
  }
  Lanes even = {VectorAt(x), {0, 1, 2, 3, 4, 5, 6, 7}}, odd = even;
  int64_t i = kVector;
  for (; i + 2 * kVector <= n; i += 2 * kVector) {
    See<F>(x, i, &odd);
    See<F>(x, i + kVector, &even);
  }
  if (i + kVector < n) See<F>(x, i, &odd);
  See<F>(x, n - kVector, &even);
  Merge<F>(odd, &even);
  Lanes other = {HT_LANES(even.best, 4, 5, 6, 7),
                 HT_LANES(even.place, 4, 5, 6, 7)};
  Merge<F>(other, &even);
  other = {HT_LANES(even.best, 2, 3, 2, 3), HT_LANES(even.place, 2, 3, 2, 3)};
  Merge<F>(other, &even);
  other = {HT_LANES(even.best, 1, 1, 1, 1), HT_LANES(even.place, 1, 1, 1, 1)};
  Merge<F>(other, &even);
  return even.place[0];
}

// Of `rows` rows of n <= kConvertBlock.
template <typename F>
void PlacesInRows(const float* x, int64_t rows, int64_t n, int64_t* places) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) places[r] = PlaceInRow<F>(x + r * n, n);
  });
}

// Of a row of any length.
template <typename F>
int64_t PlaceInLongRow(DType dtype, const void* x, int64_t length) {
  alignas(64) float buffer[kConvertBlock];
  int64_t place = 0;
  float best = 0;
  ForBlocks(0, length, [&](int64_t at, int64_t n) {
    const float* block = LoadBlock(dtype, x, at, n, buffer);
    int64_t in_block;
    PlacesInRows<F>(block, 1, n, &in_block);
    if (at > 0 && !Precedes<F>(block[in_block], best)) return;
    best = block[in_block];
    place = at + in_block;
  });
  return place;
}

// ---- Rows of integers.

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
  bool wide;  // i64, else i32

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    // Rows, or columns of one, whose places are found together.
    const int64_t width =
        along.inner == 1 ? RowsOfTask() : std::min(along.inner, kColumns);
    if (width == 0) return;
    const int64_t line = along.inner == 1 ? along.outer : along.inner;
    const int64_t tasks = (line + width - 1) / width;
    const int64_t lines = along.inner == 1 ? 1 : along.outer;
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / (along.length * width + 1));
    ParallelFor(stream.threads(), lines * tasks, grain,
                [&](int64_t begin, int64_t end) {
                  int64_t places[kColumns];
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t at = task % tasks * width;
                    const int64_t n = std::min(width, line - at);
                    const int64_t row = task / tasks;
                    Find(x, row, at, n, places);
                    Store(places, n, buffers.outputs[0], row * line + at);
                  }
                });
  }

 private:
  // As many as fit a block.
  int64_t RowsOfTask() const {
    const int64_t rows = kConvertBlock / std::max<int64_t>(1, along.length);
    return std::clamp<int64_t>(rows, 1, kColumns);
  }

  // Of n rows from `at` on, or of columns of `row`.
  void Find(const T* x, int64_t row, int64_t at, int64_t n,
            int64_t* places) const {
    if (along.length == 0) {  // a batch of nothing
      std::fill_n(places, n, 0);
    } else if (along.inner == 1) {
      FindInRows(x + at * along.length, n, places);
    } else {
      ExtremesOfColumns<T, F>(x + row * along.length * along.inner + at,
                              along.length, along.inner, n, places);
    }
  }
  void FindInRows(const T* x, int64_t n, int64_t* places) const {
    if constexpr (std::is_integral<T>::value) {
      for (int64_t r = 0; r < n; ++r) {
        places[r] = ExtremeOfIntegers<T, F>(x + r * along.length, along.length);
      }
    } else if (along.length > kConvertBlock) {
      places[0] = PlaceInLongRow<F>(DTypeOf<T>(), x, along.length);
    } else {
      alignas(64) float buffer[kConvertBlock];
      const int64_t elements = n * along.length;
      PlacesInRows<F>(LoadBlock(DTypeOf<T>(), x, 0, elements, buffer), n,
                      along.length, places);
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
Candidate MakeArg() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    std::function<void(const Buffers&, runtime::Stream&)> run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = ArgKernel<T, F>{AlongAxisOf(op),
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
  AddForSchema(registry, "arg_max", MakeArg<functors::GreaterOf>());
  AddForSchema(registry, "arg_min", MakeArg<functors::LesserOf>());
}

}  // namespace kernels
}  // namespace halftone
