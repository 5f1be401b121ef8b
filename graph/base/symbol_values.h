// What a program's dim symbols ("dim B, T") stand for in one binding.
#ifndef HALFTONE_GRAPH_BASE_SYMBOL_VALUES_H_
#define HALFTONE_GRAPH_BASE_SYMBOL_VALUES_H_

#include <array>
#include <cstdint>

namespace halftone {

// A program declares at most this many.
inline constexpr int kMaxSymbols = 8;

// By the symbol's index.
using SymbolValues = std::array<int64_t, kMaxSymbols>;

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SYMBOL_VALUES_H_
