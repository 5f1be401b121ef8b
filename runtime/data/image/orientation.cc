#include <cstdint>
#include <utility>

#include "runtime/data/image/formats.h"

namespace halftone {
namespace runtime {
namespace {

// Numbers of a TIFF file, in its byte order; 0 behind its end.
class Tiff {
 public:
  explicit Tiff(absl::string_view bytes)
      : bytes_(bytes), little_(bytes.substr(0, 2) == "II") {}
  uint32_t Number(uint64_t at, int size) const {
    if (at + size > bytes_.size()) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) {
      const auto byte = static_cast<uint8_t>(bytes_[at + i]);
      value |= uint32_t{byte} << 8 * (little_ ? i : size - 1 - i);
    }
    return value;
  }

 private:
  absl::string_view bytes_;
  bool little_;
};

}  // namespace

int OrientationOf(absl::string_view tiff) {
  constexpr int kOrientation = 0x0112, kEntryBytes = 12;
  const Tiff file(tiff);
  const uint64_t directory = file.Number(4, 4);
  const uint32_t entries = file.Number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + uint64_t{i} * kEntryBytes;
    if (file.Number(entry, 2) != kOrientation) continue;
    const uint32_t value = file.Number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

bool IsFromRight(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 6 ||
         orientation == 7;
}

bool IsFromBottom(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 7 ||
         orientation == 8;
}

// 2: mirrored; 3: turned by 180 degrees; 4: upside down; 5 to 8: rows are the
// upright picture's columns, from the left (5, 6 reversed: from the right ...).
void TurnUpright(int orientation, Image* image) {
  if (orientation == 1) return;
  const bool swapped = orientation >= 5;
  Image turned;
  turned.Resize(swapped ? image->height : image->width,
                swapped ? image->width : image->height, image->channels);
  const bool from_right = IsFromRight(orientation);
  const bool from_bottom = IsFromBottom(orientation);
  for (int64_t y = 0; y < turned.height; ++y) {
    uint8_t* to = turned.row(y);
    for (int64_t x = 0; x < turned.width; ++x) {
      const int64_t across = from_right ? turned.width - 1 - x : x;
      const int64_t down = from_bottom ? turned.height - 1 - y : y;
      const uint8_t* from = swapped
                                ? image->row(across) + down * image->channels
                                : image->row(down) + across * image->channels;
      for (int c = 0; c < image->channels; ++c) *to++ = from[c];
    }
  }
  *image = std::move(turned);
}

}  // namespace runtime
}  // namespace halftone
