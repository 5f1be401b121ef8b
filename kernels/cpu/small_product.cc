#include "kernels/cpu/small_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace {

using Pairs16 = int32_t __attribute__((vector_size(64), aligned(4), may_alias));

// From a row of a left factor to the next, and from a column to the next.
struct Steps {
  int64_t row, column;
};
template <int kRows>
struct TileSteps {
  static constexpr int64_t row = 1, column = kRows;
};

// Of floats, or of 16 bits, to which sums are rounded. `streams`: around the
// caches, where a row of a tile is whole lines. `bias`: null for none.
template <typename Out>
struct Result {
  Out* data;
  int64_t stride;
  bool add, streams;
  const float* bias;
};

// What an instruction set multiplies: floats, rounded with their sum once where
// there are instructions for that, or pairs of bf16.
enum class Product { kFloats, kFusedFloats, kPairs };

// sum += x * y.
template <Product kProduct, typename Vector>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddProduct(const Vector& x,
                                                    const Vector& y,
                                                    Vector* sum) {
#ifdef HT_ISA_X86
  if constexpr (kProduct == Product::kPairs) {
    asm("vdpbf16ps %1, %2, %0" : "+v"(*sum) : "v"(x), "v"(y));
    return;
  }
#endif
  AddFloatProduct<kProduct == Product::kFusedFloats>(x, y, sum);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline int32_t AsPair(const float& x) {
  int32_t pair;
  std::memcpy(&pair, &x, sizeof(pair));
  return pair;
}

// The same of some vectors y and one number x. AVX-512 multiplies by a number
// where it lies in memory: it costs a single vector a quarter of its rate to
// take that to a register first, as compilers do.
template <Product kProduct, int kVectors, typename Vector>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddProducts(const float& x,
                                                     const Vector* y,
                                                     Vector* sums) {
#ifdef HT_ISA_X86
  if constexpr (kVectors == 1 && sizeof(Vector) == 64) {
    if constexpr (kProduct == Product::kPairs) {
      asm("vdpbf16ps %1%{1to16%}, %2, %0" : "+v"(*sums) : "m"(x), "v"(*y));
    } else {
      asm("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(*sums) : "m"(x), "v"(*y));
    }
    return;
  }
#endif
  Vector all;
  if constexpr (kProduct == Product::kPairs) {
    all = (Vector)(Pairs16{} + AsPair(x));
  } else {
    all = x * (Vector{} + 1.0f);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) AddProduct<kProduct>(all, y[v], &sums[v]);
}

#ifdef HT_ISA_X86
template <typename Vector>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void StoreLine(const Vector& x,
                                                   bool streams, void* to) {
  Vector* const line = static_cast<Vector*>(to);
  if (streams) {
    asm("vmovntps %1, %0" : "=m"(*line) : "v"(x));
  } else {
    *line = x;
  }
}
#endif

// A row of a tile.
template <Product, int kVectors, typename Vector>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void StoreRow(const Vector* sums,
                                                  bool streams, float* to) {
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#ifdef HT_ISA_X86
    if constexpr (sizeof(Vector) == 64) {
      StoreLine(sums[v], streams, to + v * kLanes);
      continue;
    }
#endif
    *reinterpret_cast<Vector*>(to + v * kLanes) = sums[v];
  }
}
// Rounded: two vectors of AVX-512 as a line. Sums of products of pairs are no
// subnormal numbers, which the instruction that rounds two takes for zeros.
template <Product kProduct, int kVectors, typename Vector, typename Out>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void StoreRow(const Vector* sums,
                                                  bool streams, Out* to) {
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  using Low = LowVector<kLanes == 16 ? Isa::kAvx512 : Isa::kAvx2>;
#ifdef HT_ISA_X86
  if constexpr (kVectors == 2 && kLanes == 16) {
    Vector line;
    if constexpr (kProduct == Product::kPairs) {
      asm("vcvtne2ps2bf16 %1, %2, %0"
          : "=v"(line)
          : "v"(sums[0]), "v"(sums[1]));
    } else {
      typedef int64_t Half __attribute__((vector_size(32), may_alias));
      typedef int64_t Whole __attribute__((vector_size(64), may_alias));
      Half low, high;
      Low::Store(reinterpret_cast<const float*>(sums),
                 reinterpret_cast<Out*>(&low));
      Low::Store(reinterpret_cast<const float*>(sums + 1),
                 reinterpret_cast<Out*>(&high));
      const Whole both =
          __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
      line = (Vector)both;
    }
    return StoreLine(line, streams, to);
  }
#endif
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    Low::Store(reinterpret_cast<const float*>(sums + v), to + v * kLanes);
  }
}

// Tiles of rows, one after another: how many, and from one's left factor to the
// next one's.
struct Tiles {
  int64_t count, step;
};

// Tiles of `kRows` rows of `kPanels` panels, each all in registers. `kAhead`:
// what p.ahead has comes near, a cache line with each column.
template <typename Vector, Product kProduct, int kRows, int kPanels,
          bool kAhead, typename LeftSteps, typename Out>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MultiplyTiles(
    const PartsProduct& p, const Tiles& tiles, const float* left_at,
    LeftSteps steps, const float* right_at, const Result<Out>& to) {
  const absl::Span<const DepthPart> parts = p.parts;
  const int64_t depth = p.depth, right_step = p.right.row_step;
  const int64_t panel_stride = p.right.stride;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  constexpr int kEach = kPanel / kLanes, kVectors = kPanels * kEach;
  Out* out = to.data;
  const int64_t out_stride = to.stride;
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    Vector sums[kRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Vector{};
        const float* from = nullptr;
        if (to.bias != nullptr) from = to.bias + v * kLanes;
        if constexpr (std::is_same_v<Out, float>) {
          if (to.add) from = out + r * out_stride + v * kLanes;
        }
        if (from != nullptr) {
          sums[r][v] = *reinterpret_cast<const Vector*>(from);
        }
      }
    }
    const char* ahead = nullptr;
    int64_t ahead_step = 0;
    if constexpr (kAhead) {
      ahead = p.ahead->Take(depth * static_cast<int64_t>(parts.size()));
      if (ahead != nullptr) {
        ahead_step = ReadAhead::kLine;
      } else {  // what is near already
        ahead = reinterpret_cast<const char*>(left_at);
      }
    }
    for (const DepthPart& part : parts) {
      const float* left = left_at + part.left;
      const float* right = right_at + part.right;
      for (int64_t k = 0; k < depth; ++k) {
        Vector y[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          y[v] = *reinterpret_cast<const Vector*>(
              right + v / kEach * panel_stride + v % kEach * kLanes);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          AddProducts<kProduct, kVectors>(left[r * steps.row], y, sums[r]);
        }
        left += steps.column;
        right += right_step;
        if constexpr (kAhead) {
          __builtin_prefetch(ahead, /*rw=*/0, ReadAhead::kSecondLevel);
          ahead += ahead_step;
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      StoreRow<kProduct, kVectors>(sums[r], to.streams, out + r * out_stride);
    }
    left_at += tiles.step;
    out += kRows * out_stride;
  }
}

// The instruction sets: as many rows and panels as there are registers for. A
// function for each number of rows, as compilers keep sums in registers only in
// small ones; it runs through the tiles, for it finds the addresses of their
// rows in as many instructions as some rounds of its inner loop take.
struct Avx512 {
  static constexpr int kRows = 12, kPanels = 2;
  static constexpr Product kFloats = Product::kFusedFloats;
  template <Product kProduct, int kRowsOf, int kPanelsOf, bool kAhead,
            typename LeftSteps, typename Out>
  HT_TARGET_AVX512 __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE static void
  Run(const PartsProduct& p, const Tiles& tiles, const float* left,
      LeftSteps steps, const float* right, const Result<Out>& to) {
    MultiplyTiles<WideVector<16>, kProduct, kRowsOf, kPanelsOf, kAhead>(
        p, tiles, left, steps, right, to);
  }
};
struct Avx2 {
  static constexpr int kRows = 6, kPanels = 1;
  static constexpr Product kFloats = Product::kFusedFloats;
  template <Product kProduct, int kRowsOf, int kPanelsOf, bool kAhead,
            typename LeftSteps, typename Out>
  HT_TARGET_AVX2 __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE static void
  Run(const PartsProduct& p, const Tiles& tiles, const float* left,
      LeftSteps steps, const float* right, const Result<Out>& to) {
    MultiplyTiles<WideVector<8>, kProduct, kRowsOf, kPanelsOf, kAhead>(
        p, tiles, left, steps, right, to);
  }
};
struct Baseline {
  static constexpr int kRows = 3, kPanels = 1;
  static constexpr Product kFloats = Product::kFloats;
  template <Product kProduct, int kRowsOf, int kPanelsOf, bool kAhead,
            typename LeftSteps, typename Out>
  __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE static void Run(
      const PartsProduct& p, const Tiles& tiles, const float* left,
      LeftSteps steps, const float* right, const Result<Out>& to) {
    MultiplyTiles<WideVector<4>, kProduct, kRowsOf, kPanelsOf, kAhead>(
        p, tiles, left, steps, right, to);
  }
};

// Of tiles of at most kRows rows.
template <typename Set, Product kProduct, int kRows, int kPanels,
          typename LeftSteps, typename Out>
void MultiplyRows(int64_t rows, const PartsProduct& p, const Tiles& tiles,
                  const float* left, LeftSteps steps, const float* right,
                  const Result<Out>& to) {
  // Of one panel, there is no room between products.
  constexpr bool kMayAhead = std::is_same_v<LeftSteps, Steps> && kPanels > 1;
  if (rows == kRows) {
    if (kMayAhead && p.ahead != nullptr) {
      return Set::template Run<kProduct, kRows, kPanels, kMayAhead>(
          p, tiles, left, steps, right, to);
    }
    Set::template Run<kProduct, kRows, kPanels, false>(p, tiles, left, steps,
                                                       right, to);
  } else if constexpr (kRows > 1) {
    MultiplyRows<Set, kProduct, kRows - 1, kPanels>(rows, p, tiles, left, steps,
                                                    right, to);
  }
}

// Of a left factor that is cut into tiles already.
template <typename Set, Product kProduct, int kPanels>
void MultiplyPacked(const PartsProduct& p, const float* right,
                    Result<float> to) {
  constexpr int kRows = Set::kRows;
  const TileSteps<kRows> steps;
  const Tiles whole = {p.rows / kRows, p.tile_stride};
  if (whole.count > 0) {
    if (p.ahead == nullptr) {
      Set::template Run<kProduct, kRows, kPanels, false>(p, whole, p.left.data,
                                                         steps, right, to);
    } else {
      Set::template Run<kProduct, kRows, kPanels, true>(p, whole, p.left.data,
                                                        steps, right, to);
    }
  }
  if (p.rows % kRows == 0) return;
  to.data += whole.count * kRows * to.stride;
  MultiplyRows<Set, kProduct, kRows, kPanels>(
      p.rows % kRows, p, {1, 0}, p.left.data + whole.count * whole.step, steps,
      right, to);
}

// The rows of some panels as tiles of nearly one size, as a few rows take as
// long as some more do.
template <typename Set, Product kProduct, int kPanels, typename Out>
void MultiplyPanels(const PartsProduct& p, const float* right, Result<Out> to) {
  constexpr int kRows = Set::kRows;
  const float* left = p.left.data;
  const Steps steps = {p.left.stride, p.left.column_stride};
  const auto run = [&](int64_t rows, int64_t count) {
    if (count == 0) return;
    const Tiles tiles = {count, rows * steps.row};
    Result<Out> of_line = to;
    for (int64_t line = 0; line < p.lines.count; ++line) {
      MultiplyRows<Set, kProduct, kRows, kPanels>(
          rows, p, tiles, left + line * p.lines.left, steps, right, of_line);
      of_line.data += p.lines.out;
    }
    left += count * tiles.step;
    to.data += count * rows * to.stride;
  };
  const int64_t tiles = (p.rows + kRows - 1) / kRows;
  if (tiles == 0) return;
  const int64_t rows = p.rows / tiles, longer = p.rows % tiles;
  run(rows + 1, longer);
  run(rows, tiles - longer);
}

template <typename Set, Product kProduct, typename Out>
void MultiplyAll(const PartsProduct& p, const Result<Out>& result) {
  int64_t panel = 0;
  const auto run = [&](auto panels) {
    constexpr int kPanels = decltype(panels)::value;
    for (; panel + kPanels <= p.panels; panel += kPanels) {
      Result<Out> to = result;
      to.data += panel * kPanel;
      if (to.bias != nullptr) to.bias += panel * kPanel;
      const float* const right = p.right.data + panel * p.right.stride;
      if constexpr (std::is_same_v<Out, float>) {
        if (p.tile_stride > 0) {
          MultiplyPacked<Set, kProduct, kPanels>(p, right, to);
          continue;
        }
      }
      MultiplyPanels<Set, kProduct, kPanels>(p, right, to);
    }
  };
  run(std::integral_constant<int, Set::kPanels>());
  run(std::integral_constant<int, 1>());
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

}  // namespace

bool HasPairs() { return kHostHasBf16; }

int64_t TileRows() {
  return ForSet([](auto set) { return set.kRows; });
}

int64_t PanelsAtOnce() {
  return ForSet([](auto set) { return set.kPanels; });
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

void FillPanels(const PairRows& x, int64_t rows, int64_t columns,
                int64_t stride, float* to) {
  ForIsa([=] {
    uint32_t* const panels = reinterpret_cast<uint32_t*>(to);
    const uint16_t* const second = x.second == nullptr ? x.first : x.second;
    const uint32_t mask = x.second == nullptr ? 0 : 0xffff;
    for (int64_t r = 0; r < rows; ++r) {
      const uint16_t* const low = x.first + r * x.stride;
      const uint16_t* const high = second + r * x.stride;
      uint32_t* row = panels + r * kPanel;
      int64_t c = 0;
      for (; c + kPanel <= columns; c += kPanel, row += stride) {
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
        for (int64_t i = 0; i < kPanel; ++i) {
          row[i] = low[c + i] | (high[c + i] & mask) << 16;
        }
      }
      if (c == columns) continue;
      for (int64_t i = 0; i < kPanel; ++i) {
        row[i] = c + i < columns ? low[c + i] | (high[c + i] & mask) << 16 : 0;
      }
    }
  });
}

Panels ToPanels(const Matrix32& x, int64_t rows, int64_t columns, float* to) {
  const int64_t stride = rows * kPanel;
  FillPanels(x, rows, columns, stride, to);
  return {to, stride};
}

namespace {

// kPanel rows and columns.
void TransposePanelBlock(const float* from, int64_t stride, float* to) {
  ForIsa([=] { TransposeSquare<kPanel>(from, stride, to, kPanel); });
}

}  // namespace

Panels ToPanelsTransposed(const Matrix32& x, int64_t rows, int64_t columns,
                          float* to) {
  constexpr int64_t kBlock =
      kPanel;  // columns whose panel rows stay in a cache
  const int64_t stride = columns * kPanel;
  for (int64_t first = 0; first < rows; first += kPanel) {
    float* panel = to + first / kPanel * stride;
    const int64_t n = std::min(kPanel, rows - first);
    if (n < kPanel) std::fill_n(panel, stride, 0.0f);
    for (int64_t block = 0; block < columns; block += kBlock) {
      const int64_t end = std::min(columns, block + kBlock);
      if (n == kPanel && end - block == kBlock) {
        TransposePanelBlock(x.data + first * x.stride + block, x.stride,
                            panel + block * kPanel);
        continue;
      }
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
  Result<float> result = {out, out_stride, add, product.streams, product.bias};
  if (product.pairs) {
    if (HasAmx() && product.bias != nullptr) {
      for (int64_t r = 0; r < product.rows; ++r) {
        std::copy_n(product.bias, product.panels * kPanel,
                    out + r * out_stride);
      }
      result.add = true;
    }
    if (MultiplyAmx(product, result.add, out, out_stride)) return;
    return MultiplyAll<Avx512, Product::kPairs>(product, result);
  }
  ForSet([&](auto set) {
    MultiplyAll<decltype(set), decltype(set)::kFloats>(product, result);
  });
}

bool RoundsProducts(bool pairs) {
  return pairs ? !HasAmx() : HostIsa() != Isa::kBaseline;
}

template <typename Out>
void MultiplyRounded(const PartsProduct& product, Out* out,
                     int64_t out_stride) {
  const Result<Out> result = {out, out_stride, /*add=*/false, product.streams,
                              product.bias};
  if constexpr (std::is_same_v<Out, bfloat16>) {
    if (product.pairs) {
      return MultiplyAll<Avx512, Product::kPairs>(product, result);
    }
  }
  if (HostIsa() == Isa::kAvx512) {
    MultiplyAll<Avx512, Avx512::kFloats>(product, result);
  } else {
    MultiplyAll<Avx2, Avx2::kFloats>(product, result);
  }
}
template void MultiplyRounded(const PartsProduct&, half*, int64_t);
template void MultiplyRounded(const PartsProduct&, bfloat16*, int64_t);

}  // namespace kernels
}  // namespace halftone
