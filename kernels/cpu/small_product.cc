#include "kernels/cpu/small_product.h"

#include <algorithm>

#include "absl/base/attributes.h"
#include "kernels/cpu/isa.h"

namespace halftone {
namespace kernels {
namespace {

// Registers of the instruction sets.
using Vector4 = float __attribute__((vector_size(16), aligned(4), may_alias));
using Vector8 = float __attribute__((vector_size(32), aligned(4), may_alias));
using Vector16 = float __attribute__((vector_size(64), aligned(4), may_alias));

struct Tile {
  int64_t depth;
  Matrix32 left;
  const float* right;
  bool add;
  float* out;
  int64_t out_stride;
};

// sum += x * y, rounded once where there are instructions for that (kFused).
// They are written out: the compiler finds them only if it may join statements
// to vectors (-ftree-slp-vectorize), and not always then.
template <typename Vector, bool kFused>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddProduct(const Vector& x,
                                                    const Vector& y,
                                                    Vector* sum) {
#ifdef HT_ISA_X86
  if constexpr (kFused) {
    asm("vfmadd231ps %1, %2, %0" : "+v"(*sum) : "v"(x), "v"(y));
    return;
  }
#endif
  *sum += x * y;
}

// `kRows` rows of one panel, all in registers, as such vectors.
template <typename Vector, int kRows, bool kFused>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MultiplyRows(const Tile& t) {
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  constexpr int kVectors = kPanel / kLanes;
  Vector sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const float* from = t.out + r * t.out_stride + v * kLanes;
      sums[r][v] = t.add ? *reinterpret_cast<const Vector*>(from) : Vector{};
    }
  }
  const float *left = t.left.data, *right = t.right;
  for (int64_t k = 0; k < t.depth; ++k) {
    Vector y[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      y[v] = *reinterpret_cast<const Vector*>(right + v * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vector x = left[r * t.left.stride] * (Vector{} + 1.0f);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        AddProduct<Vector, kFused>(x, y[v], &sums[r][v]);
      }
    }
    left += t.left.column_stride;
    right += kPanel;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* to = t.out + r * t.out_stride + v * kLanes;
      *reinterpret_cast<Vector*>(to) = sums[r][v];
    }
  }
}

// At most kRows rows.
template <typename Vector, int kRows, bool kFused>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MultiplyRest(int64_t rows,
                                                      const Tile& t) {
  if (rows == kRows) {
    MultiplyRows<Vector, kRows, kFused>(t);
  } else if constexpr (kRows > 1) {
    MultiplyRest<Vector, kRows - 1, kFused>(rows, t);
  }
}

struct Product {
  int64_t rows, panels, depth;
  Matrix32 left;
  Panels right;
  bool add;
  float* out;
  int64_t out_stride;
};

template <typename Vector, int kRows, bool kFused>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MultiplyPanels(const Product& p) {
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    Tile t = {p.depth,
              p.left,
              p.right.data + panel * p.right.stride,
              p.add,
              p.out + panel * kPanel,
              p.out_stride};
    int64_t left = p.rows;
    for (; left > kRows; left -= kRows) {
      MultiplyRows<Vector, kRows, kFused>(t);
      t.left.data += kRows * p.left.stride;
      t.out += kRows * p.out_stride;
    }
    MultiplyRest<Vector, kRows, kFused>(left, t);
  }
}

// As many rows as there are registers for.
HT_TARGET_AVX512 __attribute__((flatten)) void MultiplyAvx512(
    const Product& p) {
  MultiplyPanels<Vector16, 12, true>(p);
}
HT_TARGET_AVX2 __attribute__((flatten)) void MultiplyAvx2(const Product& p) {
  MultiplyPanels<Vector8, 6, true>(p);
}
__attribute__((flatten)) void MultiplyBaseline(const Product& p) {
  MultiplyPanels<Vector4, 3, false>(p);
}

}  // namespace

Panels ToPanels(const Matrix32& x, int64_t rows, int64_t columns, float* to) {
  const int64_t stride = rows * kPanel;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data + r * x.stride;
    float* row = to + r * kPanel;
    int64_t c = 0;
    for (; c + kPanel <= columns; c += kPanel, row += stride) {
      std::copy_n(from + c, kPanel, row);
    }
    if (c == columns) continue;
    std::copy(from + c, from + columns, row);
    std::fill(row + (columns - c), row + kPanel, 0.0f);
  }
  return {to, stride};
}

Panels ToPanelsTransposed(const Matrix32& x, int64_t rows, int64_t columns,
                          float* to) {
  const int64_t stride = columns * kPanel;
  for (int64_t first = 0; first < rows; first += kPanel) {
    float* panel = to + first / kPanel * stride;
    const int64_t n = std::min(kPanel, rows - first);
    if (n < kPanel) std::fill_n(panel, stride, 0.0f);
    for (int64_t r = 0; r < n; ++r) {
      const float* from = x.data + (first + r) * x.stride;
      for (int64_t c = 0; c < columns; ++c) panel[c * kPanel + r] = from[c];
    }
  }
  return {to, stride};
}

void Multiply(int64_t rows, int64_t panels, int64_t depth, const Matrix32& left,
              const Panels& right, bool add, float* out, int64_t out_stride) {
  const Product product = {rows,  panels, depth, left,
                           right, add,    out,   out_stride};
  switch (HostIsa()) {
    case Isa::kAvx512:
      return MultiplyAvx512(product);
    case Isa::kAvx2:
      return MultiplyAvx2(product);
    case Isa::kBaseline:
      return MultiplyBaseline(product);
  }
}

}  // namespace kernels
}  // namespace halftone
