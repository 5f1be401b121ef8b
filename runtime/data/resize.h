// Bilinear resize of one u8 plane.
#ifndef HALFTONE_RUNTIME_DATA_RESIZE_H_
#define HALFTONE_RUNTIME_DATA_RESIZE_H_

#include <cstdint>

namespace halftone {
namespace runtime {

// Half-pixel centres (source = (i + 0.5) * in / out - 0.5), edges clamped,
// rounded to the nearest integer. In order of rows.
void ResizeBilinear(const uint8_t* in, int64_t in_height, int64_t in_width,
                    uint8_t* out, int64_t out_height, int64_t out_width);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_RESIZE_H_
