#include "kernels/cpu/small_product.h"

#include <algorithm>
#include <cstring>

#include "absl/base/attributes.h"
#include "kernels/cpu/isa.h"

namespace halftone {
namespace kernels {
namespace {

// Registers of the instruction sets.
using Vector4 = float __attribute__((vector_size(16), aligned(4), may_alias));
using Vector8 = float __attribute__((vector_size(32), aligned(4), may_alias));
using Vector16 = float __attribute__((vector_size(64), aligned(4), may_alias));

// From a row of a left factor to the next, and from a column to the next.
struct Steps {
  int64_t row, column;
};
template <int kRows>
struct TileSteps {
  static constexpr int64_t row = 1, column = kRows;
};

struct Result {
  float* data;
  int64_t stride;
  bool add;
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
template <typename Vector, int kRows, bool kFused, typename LeftSteps>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MultiplyRows(const PartsProduct& p,
                                                      const float* left_at,
                                                      LeftSteps steps,
                                                      const float* right_at,
                                                      const Result& to) {
  const absl::Span<const DepthPart> parts = p.parts;
  const int64_t depth = p.depth, right_step = p.right.row_step;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  constexpr int kVectors = kPanel / kLanes;
  Vector sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const float* from = to.data + r * to.stride + v * kLanes;
      sums[r][v] = to.add ? *reinterpret_cast<const Vector*>(from) : Vector{};
    }
  }
  for (const DepthPart& part : parts) {
    const float* left = left_at + part.left;
    const float* right = right_at + part.right;
    for (int64_t k = 0; k < depth; ++k) {
      Vector y[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        y[v] = *reinterpret_cast<const Vector*>(right + v * kLanes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vector x = left[r * steps.row] * (Vector{} + 1.0f);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          AddProduct<Vector, kFused>(x, y[v], &sums[r][v]);
        }
      }
      left += steps.column;
      right += right_step;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* out = to.data + r * to.stride + v * kLanes;
      *reinterpret_cast<Vector*>(out) = sums[r][v];
    }
  }
}

// The instruction sets: as many rows as there are registers for. A function for
// each number of rows, as compilers keep sums in registers only in small ones.
struct Avx512 {
  static constexpr int kRows = 12;
  template <int kRowsOf, typename LeftSteps>
  HT_TARGET_AVX512 __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE static void
  Rows(const PartsProduct& p, const float* left, LeftSteps steps,
       const float* right, const Result& to) {
    MultiplyRows<Vector16, kRowsOf, true>(p, left, steps, right, to);
  }
};
struct Avx2 {
  static constexpr int kRows = 6;
  template <int kRowsOf, typename LeftSteps>
  HT_TARGET_AVX2 __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE static void
  Rows(const PartsProduct& p, const float* left, LeftSteps steps,
       const float* right, const Result& to) {
    MultiplyRows<Vector8, kRowsOf, true>(p, left, steps, right, to);
  }
};
struct Baseline {
  static constexpr int kRows = 3;
  template <int kRowsOf, typename LeftSteps>
  __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE static void Rows(
      const PartsProduct& p, const float* left, LeftSteps steps,
      const float* right, const Result& to) {
    MultiplyRows<Vector4, kRowsOf, false>(p, left, steps, right, to);
  }
};

// At most kRows rows.
template <typename Set, int kRows, typename LeftSteps>
void MultiplyRest(int64_t rows, const PartsProduct& p, const float* left,
                  LeftSteps steps, const float* right, const Result& to) {
  if (rows == kRows) {
    Set::template Rows<kRows>(p, left, steps, right, to);
  } else if constexpr (kRows > 1) {
    MultiplyRest<Set, kRows - 1>(rows, p, left, steps, right, to);
  }
}

// The rows as tiles of nearly one size, as a few rows take as long as some more
// do; packed ones are cut already.
template <typename Set>
void MultiplyAll(const PartsProduct& p, const Result& result) {
  constexpr int kRows = Set::kRows;
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    Result to = result;
    to.data += panel * kPanel;
    const float* right = p.right.data + panel * p.right.stride;
    const float* left = p.left.data;
    int64_t tiles = (p.rows + kRows - 1) / kRows;
    for (int64_t rest = p.rows; rest > 0; --tiles) {
      int64_t rows = std::min<int64_t>(rest, kRows);
      if (p.tile_stride > 0) {
        MultiplyRest<Set, kRows>(rows, p, left, TileSteps<kRows>(), right, to);
        left += p.tile_stride;
      } else {
        rows = (rest + tiles - 1) / tiles;
        const Steps steps = {p.left.stride, p.left.column_stride};
        MultiplyRest<Set, kRows>(rows, p, left, steps, right, to);
        left += rows * p.left.stride;
      }
      to.data += rows * to.stride;
      rest -= rows;
    }
  }
}

// Calls body(set) with this machine's.
template <typename Body>
auto ForSet(const Body& body) {
  switch (HostIsa()) {
    case Isa::kAvx512:
      return body(Avx512());
    case Isa::kAvx2:
      return body(Avx2());
    case Isa::kBaseline:
      break;
  }
  return body(Baseline());
}

template <int kRows>
void FillTilesOf(const Matrix32& x, int64_t rows, int64_t columns,
                 int64_t stride, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data + r * x.stride;
    float* tile = to + r * kRows;
    int64_t c = 0;
    for (; c + kRows <= columns; c += kRows, tile += stride) {
      std::memcpy(tile, from + c, kRows * sizeof(float));
    }
    std::copy(from + c, from + columns, tile);
  }
}

}  // namespace

int64_t TileRows() {
  return ForSet([](auto set) { return set.kRows; });
}

void FillTiles(const Matrix32& x, int64_t rows, int64_t columns, int64_t stride,
               float* to) {
  ForSet([&](auto set) {
    FillTilesOf<decltype(set)::kRows>(x, rows, columns, stride, to);
  });
}

void FillPanels(const Matrix32& x, int64_t rows, int64_t columns,
                int64_t stride, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data + r * x.stride;
    float* row = to + r * kPanel;
    int64_t c = 0;
    for (; c + kPanel <= columns; c += kPanel, row += stride) {
      std::memcpy(row, from + c, kPanel * sizeof(float));
    }
    if (c == columns) continue;
    std::copy(from + c, from + columns, row);
    std::fill(row + (columns - c), row + kPanel, 0.0f);
  }
}

Panels ToPanels(const Matrix32& x, int64_t rows, int64_t columns, float* to) {
  const int64_t stride = rows * kPanel;
  FillPanels(x, rows, columns, stride, to);
  return {to, stride};
}

Panels ToPanelsTransposed(const Matrix32& x, int64_t rows, int64_t columns,
                          float* to) {
  constexpr int64_t kBlock = 16;  // columns whose panel rows stay in a cache
  const int64_t stride = columns * kPanel;
  for (int64_t first = 0; first < rows; first += kPanel) {
    float* panel = to + first / kPanel * stride;
    const int64_t n = std::min(kPanel, rows - first);
    if (n < kPanel) std::fill_n(panel, stride, 0.0f);
    for (int64_t block = 0; block < columns; block += kBlock) {
      const int64_t end = std::min(columns, block + kBlock);
      for (int64_t r = 0; r < n; ++r) {
        const float* from = x.data + (first + r) * x.stride;
        for (int64_t c = block; c < end; ++c) panel[c * kPanel + r] = from[c];
      }
    }
  }
  return {to, stride};
}

void Multiply(int64_t rows, int64_t panels, int64_t depth, const Matrix32& left,
              const Panels& right, bool add, float* out, int64_t out_stride) {
  const DepthPart whole;
  PartsProduct product;
  product.rows = rows;
  product.panels = panels;
  product.parts = absl::MakeConstSpan(&whole, 1);
  product.depth = depth;
  product.left = left;
  product.right = right;
  Multiply(product, add, out, out_stride);
}

void Multiply(const PartsProduct& product, bool add, float* out,
              int64_t out_stride) {
  const Result result = {out, out_stride, add};
  ForSet([&](auto set) { MultiplyAll<decltype(set)>(product, result); });
}

}  // namespace kernels
}  // namespace halftone
