// The decoders behind OpenImage; each takes files that begin as its own do.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_FORMATS_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_FORMATS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image/decoder.h"

namespace halftone {
namespace runtime {

bool IsJpeg(absl::string_view bytes);
absl::StatusOr<std::unique_ptr<ImageDecoder>> OpenJpeg(absl::string_view bytes,
                                                       std::string name);
bool IsPng(absl::string_view bytes);
absl::StatusOr<std::unique_ptr<ImageDecoder>> OpenPng(absl::string_view bytes,
                                                      std::string name);

// The orientation, 1 to 8, that TIFF tags say (EXIF 2.3, 4.6.4): how the rows
// of the file lie in the upright picture. 1 where they say none.
int OrientationOf(absl::string_view tiff);

// Whether the file's first column is the upright picture's last, or, of one
// whose rows are columns, the first row; the same of its top.
bool IsFromRight(int orientation);
bool IsFromBottom(int orientation);

// Turns a picture upright.
void TurnUpright(int orientation, Image* image);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_FORMATS_H_
