#include "kernels/cpu/random.h"

#include "graph/base/philox.h"
#include "kernels/cpu/isa.h"

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

}  // namespace kernels
}  // namespace halftone
