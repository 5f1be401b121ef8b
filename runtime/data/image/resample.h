// Pictures to another size.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_RESAMPLE_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_RESAMPLE_H_

#include <cstdint>

#include "runtime/data/image/image.h"

namespace halftone {
namespace runtime {

// `box` of `in` in width x height pixels: bilinear, and where it shrinks a
// triangle as wide as the step, as Pillow's resize and torchvision's with
// antialias. What is outside of `seen`, which holds the box and lies within
// `in`, is not looked at, as if it had been cut off before: where both are the
// box, nothing around it. Rounded to the nearest integer after each of the
// directions.
void Resample(const Image& in, const RealBox& box, const RealBox& seen,
              int64_t width, int64_t height, Image* out);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_RESAMPLE_H_
