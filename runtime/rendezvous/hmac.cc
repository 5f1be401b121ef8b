#include "runtime/rendezvous/hmac.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "graph/base/check.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kBlock = 64;  // bytes

// The first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

uint32_t Rotate(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

void Absorb(State& state, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (int i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15];
    const uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (Rotate(a, 7) ^ Rotate(a, 18) ^ (a >> 3)) + w[i - 7] +
           (Rotate(b, 17) ^ Rotate(b, 19) ^ (b >> 10));
  }
  State s = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t e = s[4];
    const uint32_t a = s[0];
    const uint32_t t1 = s[7] + (Rotate(e, 6) ^ Rotate(e, 11) ^ Rotate(e, 25)) +
                        ((e & s[5]) ^ (~e & s[6])) + kRound[i] + w[i];
    const uint32_t t2 = (Rotate(a, 2) ^ Rotate(a, 13) ^ Rotate(a, 22)) +
                        ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

}  // namespace

std::string Sha256(absl::string_view bytes) {
  // The fractional parts of the square roots of the first 8 primes.
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(bytes);
  padded.push_back('\x80');
  while (padded.size() % kBlock != kBlock - 8) padded.push_back('\0');
  const uint64_t bits = uint64_t{8} * bytes.size();
  for (int shift = 56; shift >= 0; shift -= 8) {
    padded.push_back(static_cast<char>(bits >> shift));
  }
  for (size_t at = 0; at < padded.size(); at += kBlock) {
    Absorb(state, reinterpret_cast<const uint8_t*>(padded.data() + at));
  }
  std::string digest;
  for (uint32_t word : state) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      digest.push_back(static_cast<char>(word >> shift));
    }
  }
  return digest;
}

std::string HmacSha256(absl::string_view key, absl::string_view message) {
  std::string padded = key.size() > kBlock ? Sha256(key) : std::string(key);
  padded.resize(kBlock, '\0');
  std::string inner = padded;
  std::string outer = padded;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  inner.append(message.data(), message.size());
  return Sha256(outer + Sha256(inner));
}

bool EqualSecrets(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == 0;
}

std::string RandomBytes(int bytes) {
  std::string data(bytes, '\0');
  HT_CHECK(getrandom(&data[0], data.size(), 0) == bytes,
           "the system gives no random bytes");
  return data;
}

}  // namespace runtime
}  // namespace halftone
