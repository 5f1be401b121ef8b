// Pictures as u8 pixels, and boxes of them.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_IMAGE_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_IMAGE_H_

#include <cstdint>
#include <vector>

namespace halftone {
namespace runtime {

// [height, width, channels], channels inmost: 1 (gray) or 3 (RGB).
struct Image {
  int64_t width = 0, height = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;

  void Resize(int64_t new_width, int64_t new_height, int new_channels) {
    width = new_width;
    height = new_height;
    channels = new_channels;
    pixels.resize(width * height * channels);
  }
  uint8_t* row(int64_t y) { return &pixels[y * width * channels]; }
  const uint8_t* row(int64_t y) const { return &pixels[y * width * channels]; }
};

// A part of a picture, in its pixels; (0, 0) is the upper left corner.
struct Box {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// The same where a picture was scaled down as it was decoded.
struct RealBox {
  double x = 0, y = 0, width = 0, height = 0;
};

// ITU-R BT.601 luma, in 16 bits of fraction as Pillow has it.
inline uint8_t LumaOf(int red, int green, int blue) {
  return static_cast<uint8_t>(
      (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_IMAGE_H_
