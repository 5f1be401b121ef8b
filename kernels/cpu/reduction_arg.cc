// Where the extremes of rows lie: the best so far and its place, of each lane
// of a row that lies side by side in memory, else of each column.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/reduced.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/wide_vector.h"
#include "kernels/functors/reduction.h"

namespace halftone {
namespace kernels {
namespace {

// Longer rows of floats are cut into runs, of which the extremes are found
// first.
constexpr int64_t kRun = 8 * kConvertBlock;

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

// ---- Rows side by side, floats.

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

// Eight elements and their places.
template <typename Low, typename F, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void See(const T* x,
                                             const VectorMask& place,
                                             Lanes* lanes) {
  Vector value;
  ReadVector<Low>(x, &value);
  VectorMask better;
  Preceding<F>(value, lanes->best, &better);
  TakeBetter(better, value, place, lanes);
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

// A row of eight or more; some elements are seen twice, in other lanes.
template <typename Low, typename F, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SeeRow(const T* x, int64_t n,
                                                Lanes* lanes) {
  const VectorMask first = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto see = [&](int64_t at, Lanes* to) {
    See<Low, F>(x + at, first + static_cast<int32_t>(at), to);
  };
  Lanes even, odd;
  ReadVector<Low>(x, &even.best);
  even.place = first;
  odd = even;
  int64_t i = kVector;
  for (; i + 2 * kVector <= n; i += 2 * kVector) {
    see(i, &odd);
    see(i + kVector, &even);
  }
  if (i + kVector < n) see(i, &odd);
  see(n - kVector, &even);
  Merge<F>(odd, &even);
  *lanes = even;
}

template <int kRun>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void DealParts(const Lanes& a,
                                                   const Lanes& b, Lanes* even,
                                                   Lanes* odd) {
  Deal<kRun>(a.best, b.best, &even->best, &odd->best);
  Deal<kRun>(a.place, b.place, &even->place, &odd->place);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void PlacesOf(const Lanes& lanes,
                                                  VectorMask* places) {
  *places = lanes.place;
}

// ---- Rows side by side, 16 bits: where an element stands among all numbers is
// one, too, and with its place behind it the largest is what is wanted.

using Halves = int16_t __attribute__((vector_size(32), aligned(2), may_alias));
constexpr int64_t kHalves = 16;
static_assert(kRun <= UINT16_MAX, "places in it have 16 bits");

// The largest of each lane.
struct Orders {
  VectorMask most;
};

// Of the elements of x[at, at + 16): eight of them, and the others.
template <typename F, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void OrdersAt(const T* x, int64_t at,
                                                  Orders* some,
                                                  Orders* others) {
  constexpr int16_t kInfinity = std::is_same<T, half>::value ? 0x7c00 : 0x7f80;
  const Halves bits = *reinterpret_cast<const Halves*>(x + at);
  const Halves size = bits & 0x7fff;
  const Halves sign = bits >> 15;
  Halves order = (size ^ sign) - sign;  // 0 of either sign
  if (std::is_same<F, functors::LesserOf>::value) order = -order;
  // A NaN is before all.
  order = size > kInfinity ? Halves{} + 0x7fff : order;
  // The first of equal ones is the largest.
  const Halves lanes = {-1, -2,  -3,  -4,  -5,  -6,  -7,  -8,
                        -9, -10, -11, -12, -13, -14, -15, -16};
  const Halves behind = lanes - static_cast<int16_t>(at);
  some->most = reinterpret_cast<VectorMask>(__builtin_shufflevector(
      behind, order, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27));
  others->most = reinterpret_cast<VectorMask>(
      __builtin_shufflevector(behind, order, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28,
                              13, 29, 14, 30, 15, 31));
}

template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Merge(const Orders& other,
                                               Orders* orders) {
  orders->most = other.most > orders->most ? other.most : orders->most;
}

// A row of sixteen or more; some elements are seen twice.
template <typename F, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SeeRow(const T* x, int64_t n,
                                                Orders* orders) {
  Orders some, others, more[2];
  OrdersAt<F>(x, 0, &some, &others);
  const auto see = [&](int64_t at) {
    OrdersAt<F>(x, at, &more[0], &more[1]);
    Merge<F>(more[0], &some);
    Merge<F>(more[1], &others);
  };
  for (int64_t i = kHalves; i + kHalves <= n; i += kHalves) see(i);
  see(n - kHalves);
  Merge<F>(others, &some);
  *orders = some;
}

template <int kRun>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void DealParts(const Orders& a,
                                                   const Orders& b,
                                                   Orders* even, Orders* odd) {
  Deal<kRun>(a.most, b.most, &even->most, &odd->most);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void PlacesOf(const Orders& orders,
                                                  VectorMask* places) {
  *places = ~orders.most & 0xffff;
}

// ---- Rows, eight at a time.

// The even runs of both, merged with the odd ones.
template <typename F, int kRun, typename Seen>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MergeParts(const Seen& other,
                                                    Seen* seen) {
  Seen even, odd;
  DealParts<kRun>(*seen, other, &even, &odd);
  Merge<F>(odd, &even);
  *seen = even;
}

// What is best in each of eight rows: lane i of `places`. Changes `rows`.
template <typename F, typename Seen>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MergeRows(Seen* rows,
                                                   VectorMask* places) {
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) MergeParts<F, 4>(rows[k + 4], &rows[k]);
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) MergeParts<F, 2>(rows[k + 2], &rows[k]);
  MergeParts<F, 1>(rows[1], &rows[0]);
  PlacesOf(rows[0], places);
}

// see(row, to) sees a row.
template <typename F, typename Seen, typename See>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void PlacesByEight(int64_t rows,
                                                       const See& see,
                                                       int64_t* places) {
  Seen seen[kVector];
  VectorMask found;
  for (int64_t r = 0; r < rows; r += kVector) {
    const int64_t group = rows - r < kVector ? rows - r : kVector;
#pragma GCC unroll 1
    for (int64_t k = 0; k < group; ++k) see(r + k, &seen[k]);
    for (int64_t k = group; k < kVector; ++k) seen[k] = seen[0];
    MergeRows<F>(seen, &found);
    for (int64_t k = 0; k < group; ++k) places[r + k] = found[k];
  }
}

template <typename F, typename T>
int64_t PlaceInRow(const T* x, int64_t n) {
  int64_t place = 0;
  for (int64_t i = 1; i < n; ++i) {
    place = Precedes<F>(static_cast<float>(x[i]), static_cast<float>(x[place]))
                ? i
                : place;
  }
  return place;
}

// Of `rows` rows of n, kRun at most.
template <typename F, typename T>
void PlacesInRows(const T* x, int64_t rows, int64_t n, int64_t* places) {
  ForIsa([=](auto isa) {
    using Low = Eight<decltype(isa)::value>;
    if (n < kVector) {
      for (int64_t r = 0; r < rows; ++r) {
        places[r] = PlaceInRow<F>(x + r * n, n);
      }
      return;
    }
    if constexpr (sizeof(T) == sizeof(int16_t)) {
      if (n >= kHalves) {
        const auto see = [=](int64_t row, Orders* to) {
          SeeRow<F>(x + row * n, n, to);
        };
        return PlacesByEight<F, Orders>(rows, see, places);
      }
    }
    const auto see = [=](int64_t row, Lanes* to) {
      SeeRow<Low, F>(x + row * n, n, to);
    };
    PlacesByEight<F, Lanes>(rows, see, places);
  });
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

// Columns of a task: as many as the best so far and their places stay in the
// first-level cache, so that much of a row is read at once.
constexpr int64_t kColumns = 2048, kLeastColumns = 256;
// Rows that are seen in one pass over the best.
constexpr int kRowsAtOnce = 4;

// The whole vectors of kRows rows, the first of which is `place`.
template <typename Low, typename F, int kRows, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SeeEights(const T* x, int64_t stride,
                                                   int32_t place,
                                                   int64_t columns, float* best,
                                                   int32_t* places) {
  using Places =
      int32_t __attribute__((vector_size(32), aligned(4), may_alias));
  for (int64_t i = 0; i + kVector <= columns; i += kVector) {
    Places* at = reinterpret_cast<Places*>(places + i);
    Lanes lanes = {VectorAt(best + i), *at};
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      See<Low, F>(x + r * stride + i, VectorMask{} + (place + r), &lanes);
    }
    VectorAt(best + i) = lanes.best;
    *at = lanes.place;
  }
}

// `place` and `value` where that precedes the best: Preceding and TakeBetter of
// vectors of AVX-512, which compilers compare element by element.
template <typename F, typename V, typename Places>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TakePreceding(const V& value,
                                                       const Places& place,
                                                       V* best,
                                                       Places* places) {
#ifdef HT_ISA_X86
  uint16_t better;
  if constexpr (std::is_same<F, functors::GreaterOf>::value) {
    asm("vcmpordps %1, %1, %0\n\tvcmpnleps %1, %2, %0%{%0%}"
        : "=&Yk"(better)
        : "v"(*best), "v"(value));
  } else {
    asm("vcmpordps %1, %1, %0\n\tvcmpngeps %1, %2, %0%{%0%}"
        : "=&Yk"(better)
        : "v"(*best), "v"(value));
  }
  asm("vmovaps %1, %0%{%2%}" : "+v"(*best) : "v"(value), "Yk"(better));
  asm("vmovdqa32 %1, %0%{%2%}" : "+v"(*places) : "v"(place), "Yk"(better));
#endif
}

// SeeEights of vectors of AVX-512.
template <typename Low, typename F, int kRows, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SeeWides(const T* x, int64_t stride,
                                                  int32_t place,
                                                  int64_t columns, float* best,
                                                  int32_t* places) {
  using V = WideVector<16>;
  using Places =
      int32_t __attribute__((vector_size(64), aligned(4), may_alias));
  for (int64_t i = 0; i + Low::kSize <= columns; i += Low::kSize) {
    V* const best_at = reinterpret_cast<V*>(best + i);
    Places* const at = reinterpret_cast<Places*>(places + i);
    V most = *best_at, value;
    Places where = *at;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(x + (r + kRows) * stride + i);  // the next ones
      ReadVector<Low>(x + r * stride + i, &value);
      TakePreceding<F>(value, Places{} + (place + r), &most, &where);
    }
    *best_at = most;
    *at = where;
  }
}

// kRows rows, the first of which is `place`.
template <typename Low, typename F, int kRows, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void SeeRows(const T* x, int64_t stride,
                                                 int32_t place, int64_t columns,
                                                 float* best, int32_t* places) {
  int64_t i = columns / Low::kSize * Low::kSize;
  if constexpr (Low::kSize == kVector) {
    SeeEights<Low, F, kRows>(x, stride, place, columns, best, places);
  } else {
    SeeWides<Low, F, kRows>(x, stride, place, columns, best, places);
  }
#pragma GCC unroll 1
  for (; i < columns; ++i) {
    for (int r = 0; r < kRows; ++r) {
      const float value = static_cast<float>(x[r * stride + i]);
      const bool better = Precedes<F>(value, best[i]);
      best[i] = better ? value : best[i];
      places[i] = better ? place + r : places[i];
    }
  }
}

template <typename F, typename T>
void ExtremesOfColumns(const T* x, int64_t length, int64_t stride,
                       int64_t columns, int32_t* places) {
  alignas(64) float best[kColumns];
  ToFloat(x, best, columns);
  std::fill_n(places, columns, 0);
  ForIsa([=, best = &best[0]](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    int64_t r = 1;
    for (; r + kRowsAtOnce <= length; r += kRowsAtOnce) {
      SeeRows<Low, F, kRowsAtOnce>(x + r * stride, stride,
                                   static_cast<int32_t>(r), columns, best,
                                   places);
    }
    for (; r < length; ++r) {
      SeeRows<Low, F, 1>(x + r * stride, stride, static_cast<int32_t>(r),
                         columns, best, places);
    }
  });
}

template <typename F, typename T>
void ExtremesOfIntegerColumns(const T* x, int64_t length, int64_t stride,
                              int64_t columns, int32_t* places) {
  alignas(64) T best[kColumns];
  std::copy_n(x, columns, best);
  std::fill_n(places, columns, 0);
  for (int64_t r = 1; r < length; ++r) {
    ForIsa([row = x + r * stride, best = &best[0], places, columns,
            r = static_cast<int32_t>(r)] {
      for (int64_t i = 0; i < columns; ++i) {
        const bool better = Precedes<F>(row[i], best[i]);
        best[i] = better ? row[i] : best[i];
        places[i] = better ? r : places[i];
      }
    });
  }
}

// ----

// How many runs all rows have; 0 of rows that are none or one.
int64_t RunsOf(const BoundOp& op) {
  const AlongAxis along = AlongAxisOf(op);
  const bool in_runs =
      along.inner == 1 && along.length > kRun && IsFloat(op.Input("X").dtype);
  return in_runs ? along.outer * ((along.length + kRun - 1) / kRun) : 0;
}

template <typename T, typename F>
struct ArgKernel {
  AlongAxis along;
  bool wide;  // i64, else i32
  int64_t runs;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    if constexpr (!std::is_integral<T>::value) {
      if (runs > 0) {
        return FindByRuns(x, static_cast<float*>(buffers.workspace),
                          buffers.outputs[0], stream.threads());
      }
    }
    // Rows, or columns of one, whose places are found together.
    const int64_t width =
        along.inner == 1 ? RowsOfTask() : ColumnsOfTask(stream.threads());
    if (width == 0) return;
    const int64_t line = along.inner == 1 ? along.outer : along.inner;
    const int64_t tasks = (line + width - 1) / width;
    const int64_t lines = along.inner == 1 ? 1 : along.outer;
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / (along.length * width + 1));
    ParallelFor(stream.threads(), lines * tasks, grain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t at = task % tasks * width;
                    const int64_t n = std::min(width, line - at);
                    Find(x, task / tasks, at, n, buffers.outputs[0],
                         task / tasks * line + at);
                  }
                });
  }

 private:
  // The place is looked for in the first run that has the extreme of its row.
  void FindByRuns(const T* x, float* extremes, void* out, int threads) const {
    const Folding folding =
        std::is_same<F, functors::GreaterOf>::value ? Greatest() : Least();
    const int64_t of_row = runs / along.outer;
    const auto run_at = [&](int64_t run, int64_t* n) {
      const int64_t at = run % of_row * kRun;
      *n = std::min(kRun, along.length - at);
      return run / of_row * along.length + at;
    };
    ParallelFor(threads, runs, kMapGrain / kRun,
                [&](int64_t begin, int64_t end) {
                  for (int64_t run = begin; run < end; ++run) {
                    int64_t n;
                    const int64_t at = run_at(run, &n);
                    folding.rows({DTypeOf<T>(), x}, at, 1, n, &extremes[run],
                                 folding.parameter);
                  }
                });
    ParallelFor(threads, along.outer, kMapGrain / kRun,
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t first = row * of_row;
                    int64_t n, place;
                    const int64_t at = run_at(
                        first + PlaceInRow<F>(extremes + first, of_row), &n);
                    PlacesInRows<F>(x + at, 1, n, &place);
                    place += at - row * along.length;
                    Store(&place, 1, out, row);
                  }
                });
  }
  // As many as fit a block.
  int64_t RowsOfTask() const {
    const int64_t rows = kConvertBlock / std::max<int64_t>(1, along.length);
    return std::clamp<int64_t>(rows, 1, kLeastColumns);
  }
  // Whole vectors, so that each thread has some.
  int64_t ColumnsOfTask(int threads) const {
    const int64_t fair = along.inner / std::max(1, threads) / kVector * kVector;
    return std::min(along.inner, std::clamp(fair, kLeastColumns, kColumns));
  }

  // Of n rows from `at` on, or of columns of `row`; where to store them.
  void Find(const T* x, int64_t row, int64_t at, int64_t n, void* out,
            int64_t to) const {
    if (along.inner == 1) {
      int64_t places[kLeastColumns] = {};
      if (along.length > 0) FindInRows(x + at * along.length, n, places);
      return Store(places, n, out, to);
    }
    int32_t places[kColumns] = {};
    if (along.length > 0) {  // else a batch of nothing
      const T* from = x + row * along.length * along.inner + at;
      if constexpr (std::is_integral<T>::value) {
        ExtremesOfIntegerColumns<F>(from, along.length, along.inner, n, places);
      } else {
        ExtremesOfColumns<F>(from, along.length, along.inner, n, places);
      }
    }
    Store(places, n, out, to);
  }
  void FindInRows(const T* x, int64_t n, int64_t* places) const {
    if constexpr (std::is_integral<T>::value) {
      for (int64_t r = 0; r < n; ++r) {
        places[r] = ExtremeOfIntegers<T, F>(x + r * along.length, along.length);
      }
    } else {
      PlacesInRows<F>(x, n, along.length, places);
    }
  }
  template <typename Place>
  void Store(const Place* places, int64_t n, void* out, int64_t at) const {
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
                            op.Output("Out").dtype == DType::kI64, RunsOf(op)};
    });
    return run;
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return RunsOf(op) * int64_t{sizeof(float)};
  };
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
