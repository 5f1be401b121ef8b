#include "kernels/cpu/random.h"

#include "graph/base/philox.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {

const uint32_t* DrawBits(uint64_t key, uint64_t step, uint64_t sample,
                         int64_t first, int64_t n, uint32_t* buffer) {
  const uint32_t first_block = static_cast<uint32_t>(first / 4);
  const int64_t skip = first % 4;
  const int blocks = static_cast<int>((skip + n + 3) / 4);
  ForIsa([=] {
    for (int i = 0; i < blocks; ++i) {
      const Philox4 draw =
          PhiloxDraw(key, step, sample, first_block + static_cast<uint32_t>(i));
      for (int j = 0; j < 4; ++j) buffer[4 * i + j] = draw.x[j];
    }
  });
  return buffer + skip;
}

void ApplyDropout(const functors::DropoutOp& dropout, uint64_t key,
                  uint64_t step, uint64_t sample, int64_t first, int64_t n,
                  const float* x, float* y) {
  alignas(64) uint32_t words[kConvertBlock + 8];
  ForBlocks(0, n, [&](int64_t at, int64_t count) {
    const uint32_t* bits =
        DrawBits(key, step, sample, first + at, count, words);
    ForIsa([=, f = dropout, from = x + at, to = y + at] {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = f(from[i], bits[i]);
    });
  });
}

}  // namespace kernels
}  // namespace halftone
