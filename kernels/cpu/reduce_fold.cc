// What a Reduction does to elements: read as they are stored, a vector at a
// time, and folded in registers. Neighbours go to 32 lanes, then a tree, as in
// sums.h.
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_rows.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/sums.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/wide_vector.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/reduction.h"

namespace halftone {
namespace kernels {
namespace {

// ---- Of a number or of a vector, V: to = f(to, x), and what is folded of x.

template <typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Fold(functors::AddOp, const V& x,
                                              V* to) {
  *to += x;
}
template <typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Fold(functors::ProductOf, const V& x,
                                              V* to) {
  *to *= x;
}
// Fold of an extreme of vectors of AVX-512, which compilers compare element by
// element. Where one is a NaN the instruction gives x.
template <typename F, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FoldWide(const V& x, V* to) {
#ifdef HT_ISA_X86
  V made;
  if constexpr (std::is_same<F, functors::GreaterOf>::value) {
    asm("vmaxps %2, %1, %0" : "=v"(made) : "v"(*to), "v"(x));
  } else {
    asm("vminps %2, %1, %0" : "=v"(made) : "v"(*to), "v"(x));
  }
  uint16_t nan;
  asm("vcmpunordps %2, %2, %1\n\tvmovaps %2, %0%{%1%}"
      : "+v"(made), "=&Yk"(nan)
      : "v"(*to));
  *to = made;
#endif
}
template <typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Fold(functors::GreaterOf, const V& x,
                                              V* to) {
  if constexpr (sizeof(V) == 64) {
    FoldWide<functors::GreaterOf>(x, to);
  } else {
    const V greater = *to > x ? *to : x;
    *to = *to != *to ? *to : greater;
  }
}
template <typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Fold(functors::LesserOf, const V& x,
                                              V* to) {
  if constexpr (sizeof(V) == 64) {
    FoldWide<functors::LesserOf>(x, to);
  } else {
    const V lesser = *to < x ? *to : x;
    *to = *to != *to ? *to : lesser;
  }
}

template <typename F>
constexpr bool kAdds = std::is_same<F, functors::AddOp>::value;
template <typename F>
constexpr bool kCompares = std::is_same<F, functors::GreaterOf>::value ||
                           std::is_same<F, functors::LesserOf>::value;
template <typename F>
float NoneOf() {
  if constexpr (kAdds<F>) {
    return 0.0f;
  } else {
    return F::template None<float>();
  }
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TakeSize(float* x) {
  *x = functors::Abs(*x);
}
template <typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TakeSize(V* x) {
  typedef int32_t Bits __attribute__((vector_size(sizeof(V))));
  *x = reinterpret_cast<V>(reinterpret_cast<Bits>(*x) & 0x7fffffff);
}

struct AsItIs {
  explicit AsItIs(float) {}
  template <typename V>
  void operator()(V*) const {}
};
struct Square {
  explicit Square(float) {}
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void operator()(V* x) const {
    *x *= *x;
  }
};
// |x| ^ 3 and so on: each product is rounded, but the norm's root divides
// their errors by as many as there are.
struct WholePower {
  int more;  // factors than three
  explicit WholePower(float order) : more(static_cast<int>(order) - 3) {}
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void operator()(V* x) const {
    TakeSize(x);
    const V size = *x;
    *x *= size;
    *x *= size;
#pragma GCC unroll 1
    for (int i = 0; i < more; ++i) *x *= size;
  }
};
constexpr float kMostWholePower = 8;

template <typename Low, typename Map, typename T, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Read(const Map& map, const T* x,
                                              V* v) {
  ReadVector<Low>(x, v);
  map(v);
}

// ---- Neighbours.

// x[0, n) to one vector; the elements that are no whole vector lie at `rest`,
// a vector of them may be read.
template <typename Low, typename F, typename Map, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FoldToVector(const Map& map,
                                                      const T* x, int64_t n,
                                                      const T* rest,
                                                      Vector* to) {
  using V = WideVector<Low::kSize>;
  constexpr int kSize = Low::kSize, kVectors = kLanes / kSize;
  const float nothing = NoneOf<F>();
  V none = {}, v;
  none = nothing - none;
  V lanes[kLanes / kVector] = {none, none, none, none};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Read<Low>(map, x + i + k * kSize, &v);
      Fold(F(), v, &lanes[k]);
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) {
    if (i >= n) break;
    if (i + kSize <= n) {
      Read<Low>(map, x + i, &v);
    } else {
      Read<Low>(map, rest, &v);
      SetRest<Low>(n - i, nothing, reinterpret_cast<float*>(&v));
    }
    Fold(F(), v, &lanes[k]);
    i += kSize;
  }
  if constexpr (kSize == kVector) {
    Fold(F(), lanes[2], &lanes[0]);
    Fold(F(), lanes[3], &lanes[1]);
    Fold(F(), lanes[1], &lanes[0]);
    *to = lanes[0];
  } else {
    Fold(F(), lanes[1], &lanes[0]);
    *to = __builtin_shufflevector(lanes[0], lanes[0], 0, 1, 2, 3, 4, 5, 6, 7);
    const Vector upper = __builtin_shufflevector(lanes[0], lanes[0], 8, 9, 10,
                                                 11, 12, 13, 14, 15);
    Fold(F(), upper, to);
  }
}

// Lane i of `to`: the lanes of folded[i], as a tree. Changes `folded`.
template <typename F>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FoldLanes(Vector* folded, Vector* to) {
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    Vector low, high;
    Deal<4>(folded[k], folded[k + 4], &low, &high);
    Fold(F(), high, &low);
    folded[k] = low;
  }
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) {
    Vector low, high;
    Deal<2>(folded[k], folded[k + 2], &low, &high);
    Fold(F(), high, &low);
    folded[k] = low;
  }
  Vector high;
  Deal<1>(folded[0], folded[1], to, &high);
  Fold(F(), high, to);
}

template <typename F, typename Map, typename T>
void FoldRowsOf(const Map map, const T* x, int64_t rows, int64_t n,
                float* results) {
  ForIsa([=](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    const int64_t whole = n / Low::kSize * Low::kSize;
    Vector folded[kVector], made;
    for (int64_t r = 0; r < rows; r += kVector) {
      const int64_t group = rows - r < kVector ? rows - r : kVector;
#pragma GCC unroll 1
      for (int64_t k = 0; k < group; ++k) {
        const int64_t row = (r + k) * n;
        const T* rest = x + row + whole;
        T buffer[Low::kSize] = {};
        if (row + whole + Low::kSize > rows * n) {  // nothing behind x is read
          for (int64_t i = whole; i < n; ++i) buffer[i - whole] = x[row + i];
          rest = buffer;
        }
        FoldToVector<Low, F>(map, x + row, n, rest, &folded[k]);
      }
      for (int64_t k = group; k < kVector; ++k) folded[k] = folded[0];
      FoldLanes<F>(folded, &made);
      for (int64_t k = 0; k < group; ++k) results[r + k] = made[k];
    }
  });
}

// ---- Rows, one after the other.

// Those that are added in one pass over their sums.
constexpr int64_t kRowsAtOnce = 4;

template <typename Low, typename F, int kRows, typename Map, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddRows(const Map& map, const T* x,
                                                 int64_t stride, float* into,
                                                 int64_t n) {
  using V = WideVector<Low::kSize>;
  int64_t i = 0;
  for (; i + Low::kSize <= n; i += Low::kSize) {
    V* const sums = reinterpret_cast<V*>(into + i);
    V sum = *sums, v;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(x + (r + kRows) * stride + i);  // the next ones
      Read<Low>(map, x + r * stride + i, &v);
      Fold(F(), v, &sum);
    }
    *sums = sum;
  }
#pragma GCC unroll 1
  for (; i < n; ++i) {
    float sum = into[i];
    for (int r = 0; r < kRows; ++r) {
      float v = static_cast<float>(x[r * stride + i]);
      map(&v);
      Fold(F(), v, &sum);
    }
    into[i] = sum;
  }
}
// Of a few vectors of columns, whose sums stay in registers.
template <typename Low, typename F, int kVectors, typename Map, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddColumns(const Map& map, const T* x,
                                                    int64_t stride,
                                                    int64_t rows, float* into) {
  using V = WideVector<Low::kSize>;
  V* const sums_at = reinterpret_cast<V*>(into);
  V sums[kVectors], v;
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) sums[k] = sums_at[k];
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Read<Low>(map, x + r * stride + k * Low::kSize, &v);
      Fold(F(), v, &sums[k]);
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) sums_at[k] = sums[k];
}
template <typename F, typename Map, typename T>
void AddRowsOf(const Map map, const T* x, int64_t stride, int64_t rows,
               float* into, int64_t n) {
  ForIsa([=](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    if (n == Low::kSize) {
      return AddColumns<Low, F, 1>(map, x, stride, rows, into);
    }
    if (n == 2 * Low::kSize) {
      return AddColumns<Low, F, 2>(map, x, stride, rows, into);
    }
    int64_t r = 0;
    for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
      AddRows<Low, F, kRowsAtOnce>(map, x + r * stride, stride, into, n);
    }
    for (; r < rows; ++r) {
      AddRows<Low, F, 1>(map, x + r * stride, stride, into, n);
    }
  });
}

// ---- The table.

template <typename F, typename Map = AsItIs>
Folding FoldingOf(float parameter = 0.0f) {
  Folding folding;
  folding.none = NoneOf<F>();
  folding.parameter = parameter;
  folding.rows = [](const StoredElements& x, int64_t at, int64_t rows,
                    int64_t n, float* results, float parameter) {
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      const auto* from =
          static_cast<const typename decltype(tag)::type*>(x.data);
      FoldRowsOf<F>(Map(parameter), from + at, rows, n, results);
    });
  };
  folding.add = [](const StoredElements& x, int64_t at, int64_t stride,
                   int64_t rows, float* into, int64_t n, float parameter) {
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      const auto* from =
          static_cast<const typename decltype(tag)::type*>(x.data);
      AddRowsOf<F>(Map(parameter), from + at, stride, rows, into, n);
    });
  };
  folding.join = [](const float* x, int64_t stride, int64_t rows, float* into,
                    int64_t n) {
    AddRowsOf<F>(AsItIs(0.0f), x, stride, rows, into, n);
  };
  folding.exact = kCompares<F>;
  return folding;
}

// ---- Maps of blocks, for foldings that are rare: a form in registers of each
// takes seconds to compile.

void PowerOfEach(const float* x, float* to, int64_t n, float order) {
  ApplyUnary(functors::AbsPowerOp{order}, x, to, n);
}
void SizeOfEach(const float* x, float* to, int64_t n, float) {
  ApplyUnary(functors::AbsOp(), x, to, n);
}
void OneOfEach(const float* x, float* to, int64_t n, float) {
  ApplyUnary([](float v) { return v != 0.0f ? 1.0f : 0.0f; }, x, to, n);
}
template <typename F>
Folding MappedFoldingOf(decltype(&SizeOfEach) map) {
  Folding folding = FoldingOf<F>();
  folding.map = map;
  return folding;
}

}  // namespace

Folding Sums() { return FoldingOf<functors::AddOp>(); }
Folding Greatest() { return FoldingOf<functors::GreaterOf>(); }
Folding Least() { return FoldingOf<functors::LesserOf>(); }
Folding Products() { return FoldingOf<functors::ProductOf>(); }

Folding Norms(float order) {
  using functors::AddOp;
  if (order == functors::Infinity()) {
    Folding folding = MappedFoldingOf<functors::GreaterOf>(SizeOfEach);
    folding.none = 0.0f;
    return folding;
  }
  if (order == -functors::Infinity()) {
    return MappedFoldingOf<functors::LesserOf>(SizeOfEach);
  }
  if (order == 0.0f) return MappedFoldingOf<AddOp>(OneOfEach);
  if (order == 1.0f) return MappedFoldingOf<AddOp>(SizeOfEach);
  if (order == 2.0f) {
    Folding folding = FoldingOf<AddOp, Square>();
    folding.finish = [](float* x, int64_t n, float) {
      ApplyUnary(functors::SqrtOp(), x, x, n);
    };
    return folding;
  }
  const bool whole = order > 2.0f && order <= kMostWholePower &&
                     order == static_cast<float>(static_cast<int>(order));
  Folding folding =
      whole ? FoldingOf<AddOp, WholePower>(order) : FoldingOf<AddOp>(order);
  if (!whole) folding.map = PowerOfEach;
  folding.finish = [](float* x, int64_t n, float p) {
    PowerOfEach(x, x, n, 1.0f / p);
  };
  return folding;
}

}  // namespace kernels
}  // namespace halftone
