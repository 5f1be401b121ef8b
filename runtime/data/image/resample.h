// Pictures to another size.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_RESAMPLE_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_RESAMPLE_H_

#include <cstdint>

#include "runtime/data/image/image.h"

namespace halftone {
namespace runtime {

// `box` of `in` (within it), and nothing around it, in width x height pixels:
// bilinear, and where it
// shrinks a triangle as wide as the step, as Pillow's resize and torchvision's
// with antialias. Rounded to the nearest integer after each of the directions.
void Resample(const Image& in, const RealBox& box, int64_t width,
              int64_t height, Image* out);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_RESAMPLE_H_
