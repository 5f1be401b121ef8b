#include "runtime/data/image/decoder.h"

#include "graph/base/error.h"
#include "runtime/data/image/formats.h"
#include "runtime/data/unpack.h"

namespace halftone {
namespace runtime {

absl::StatusOr<std::unique_ptr<ImageDecoder>> OpenImage(absl::string_view bytes,
                                                        absl::string_view name,
                                                        int64_t max_unpack) {
  std::unique_ptr<ImageDecoder> decoder;
  if (IsJpeg(bytes)) {
    HT_ASSIGN_OR_RETURN(decoder, OpenJpeg(bytes, std::string(name)));
  } else if (IsPng(bytes)) {
    HT_ASSIGN_OR_RETURN(decoder, OpenPng(bytes, std::string(name)));
  } else {
    return ModelError(name, ": expected a JPEG or PNG picture, found ",
                      bytes.empty() ? "an empty file" : "something else",
                      "; take it out, or set train.broken_samples: \"skip\"");
  }
  const int64_t width = decoder->width(), height = decoder->height();
  if (width < 1 || height < 1 || width > kMostPixels / height) {
    return ModelError(name, ": expected a picture of 1 to ", kMostPixels,
                      " pixels, found ", width, " x ", height,
                      "; make it smaller");
  }
  HT_RETURN_IF_ERROR(CheckUnpacked(3 * width * height,
                                   static_cast<int64_t>(bytes.size()), name,
                                   max_unpack));
  return decoder;
}

}  // namespace runtime
}  // namespace halftone
