// One step of a hash of 64-bit words.
#ifndef HALFTONE_GRAPH_BASE_MIX_H_
#define HALFTONE_GRAPH_BASE_MIX_H_

#include <cstdint>

namespace halftone {

// The two halves of a 128-bit product, folded (as wyhash does). No defence
// against words that were made to collide.
inline uint64_t Mix(uint64_t state, uint64_t word) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  const auto product =
      static_cast<unsigned __int128>(state ^ word) * kOdd + kOdd;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_MIX_H_
