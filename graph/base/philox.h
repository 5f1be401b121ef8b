// Philox-4x32-10, a counter-based random number generator (Salmon, Moraes,
// Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Host
// and device share this functor, so that both draw the same bits.
//
// Halftone's convention: key = (seed, the op's `stream` attr), counter =
// (attempted step, global sample index, element), so that a draw depends
// neither on the number of ranks nor on the order of execution.
#ifndef HALFTONE_GRAPH_BASE_PHILOX_H_
#define HALFTONE_GRAPH_BASE_PHILOX_H_

#include <cstdint>

#include "graph/base/half.h"

namespace halftone {

// The multipliers of a round, what the key's words grow by between two, and how
// many there are.
inline constexpr uint32_t kPhiloxTimes0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxTimes1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxKeyStep1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

struct Philox4 {
  uint32_t x[4];
};

HT_HOST_DEVICE inline Philox4 Philox(uint64_t key, Philox4 counter) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  Philox4 c = counter;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxTimes0} * c.x[0];
    const uint64_t p1 = uint64_t{kPhiloxTimes1} * c.x[2];
    c = Philox4{{static_cast<uint32_t>(p1 >> 32) ^ c.x[1] ^ k0,
                 static_cast<uint32_t>(p1),
                 static_cast<uint32_t>(p0 >> 32) ^ c.x[3] ^ k1,
                 static_cast<uint32_t>(p0)}};
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return c;
}

// One key per (seed, stream): streams are the key's high word.
HT_HOST_DEVICE inline uint64_t PhiloxKey(uint64_t seed, uint32_t stream) {
  const uint32_t folded = static_cast<uint32_t>(seed) ^
                          (static_cast<uint32_t>(seed >> 32) * 0x9E3779B9u);
  return (static_cast<uint64_t>(stream) << 32) | folded;
}

HT_HOST_DEVICE inline Philox4 PhiloxCounter(uint64_t step, uint64_t sample,
                                            uint32_t block) {
  return Philox4{
      {static_cast<uint32_t>(step), static_cast<uint32_t>(sample),
       static_cast<uint32_t>(sample >> 32) ^ static_cast<uint32_t>(step >> 32),
       block}};
}

// The four draws 4 * block .. 4 * block + 3 of one sample of one step.
HT_HOST_DEVICE inline Philox4 PhiloxDraw(uint64_t key, uint64_t step,
                                         uint64_t sample, uint32_t block) {
  return Philox(key, PhiloxCounter(step, sample, block));
}

// Uniform in [0, 1) with 24 random bits.
HT_HOST_DEVICE inline float ToUniform(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_PHILOX_H_
