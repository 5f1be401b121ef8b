// JPEG and PNG files to pixels.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_DECODER_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_DECODER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image/image.h"

namespace halftone {
namespace runtime {

// What is asked of a picture: `box` of it, in `channels` channels, in no less
// than `least_width` x `least_height` pixels where the box has as many.
struct Wanted {
  Box box;
  int channels = 3;
  int64_t least_width = 0, least_height = 0;
};

// One picture whose header has been read. It is seen upright, as its EXIF
// orientation says; palettes, 16 bits, gray, CMYK become what is wanted, and
// transparency is dropped.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;
  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  // Once. `out` holds `*box` of itself that is what was wanted, and maybe more
  // around it. Errors (kModel): data that is damaged or cut off.
  virtual absl::Status Decode(const Wanted& wanted, Image* out,
                              RealBox* box) = 0;

 protected:
  int64_t width_ = 0, height_ = 0;
};

// More pixels than this are refused: what a header claims costs memory.
inline constexpr int64_t kMostPixels = 100000000;

// `bytes` outlive the decoder; `name` is for errors. Errors (kModel): neither
// JPEG nor PNG, a damaged header, more than kMostPixels, or more than
// `max_unpack` allows (see runtime/data/unpack.h).
absl::StatusOr<std::unique_ptr<ImageDecoder>> OpenImage(absl::string_view bytes,
                                                        absl::string_view name,
                                                        int64_t max_unpack);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_DECODER_H_
