// Pictures in files, for tests.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_IMAGE_TESTING_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_IMAGE_TESTING_H_

#include <cstdint>
#include <string>

#include "runtime/data/image/image.h"

namespace halftone {
namespace runtime {

// Smooth, and different in each corner and channel.
Image TestImage(int64_t width, int64_t height, int channels = 3);

struct JpegFile {
  int quality = 95;
  bool progressive = false;
  bool inks = false;         // CMYK as Adobe stores it
  int across = 2, down = 2;  // luma's samples for one of the others
  int orientation = 0;       // 0: no EXIF
};
std::string EncodeJpeg(const Image& image, const JpegFile& file = {});

struct PngFile {
  int bits = 8;          // 8 or 16
  bool alpha = false;    // half transparent everywhere
  bool palette = false;  // of an RGB picture of up to 256 colours
  bool interlaced = false;
};
std::string EncodePng(const Image& image, const PngFile& file = {});

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_IMAGE_TESTING_H_
