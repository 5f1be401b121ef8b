// What a program's dim symbols ("dim B, T") stand for in one binding.
#ifndef HALFTONE_GRAPH_BASE_SYMBOL_VALUES_H_
#define HALFTONE_GRAPH_BASE_SYMBOL_VALUES_H_

#include <array>
#include <cstdint>

namespace halftone {

// A program declares at most this many.
inline constexpr int kMaxSymbols = 8;

// By the symbol's index.
struct SymbolValues : std::array<int64_t, kMaxSymbols> {
  // Ranks that a sharded tensor is spread over.
  int64_t shards = 1;
};

// Elements of a sharded tensor on each rank: the same everywhere, whole cache
// lines, the last ones padded. Rank r has those from r times as many on, in
// the order of memory.
inline int64_t ShardElements(int64_t elements, int64_t shards) {
  constexpr int64_t kWhole = 64;
  if (shards <= 1) return elements;
  const int64_t least = (elements + shards - 1) / shards;
  return (least + kWhole - 1) / kWhole * kWhole;
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SYMBOL_VALUES_H_
