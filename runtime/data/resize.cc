#include "runtime/data/resize.h"

#include <algorithm>
#include <cmath>

namespace halftone {
namespace runtime {
namespace {

struct Tap {
  int64_t low, high;
  float weight;  // of high
};

Tap TapAt(int64_t i, int64_t in, int64_t out) {
  const float source = (static_cast<float>(i) + 0.5f) * static_cast<float>(in) /
                           static_cast<float>(out) -
                       0.5f;
  const float clamped =
      std::min(std::max(source, 0.0f), static_cast<float>(in - 1));
  const auto low = static_cast<int64_t>(clamped);
  return {low, std::min(low + 1, in - 1), clamped - static_cast<float>(low)};
}

}  // namespace

void ResizeBilinear(const uint8_t* in, int64_t in_height, int64_t in_width,
                    uint8_t* out, int64_t out_height, int64_t out_width) {
  for (int64_t y = 0; y < out_height; ++y) {
    const Tap v = TapAt(y, in_height, out_height);
    const uint8_t* top = in + v.low * in_width;
    const uint8_t* bottom = in + v.high * in_width;
    for (int64_t x = 0; x < out_width; ++x) {
      const Tap h = TapAt(x, in_width, out_width);
      const float a = top[h.low] + h.weight * (top[h.high] - top[h.low]);
      const float b =
          bottom[h.low] + h.weight * (bottom[h.high] - bottom[h.low]);
      *out++ = static_cast<uint8_t>(std::lround(a + v.weight * (b - a)));
    }
  }
}

}  // namespace runtime
}  // namespace halftone
