// Physical order of a tensor's elements.
#ifndef HALFTONE_GRAPH_BASE_LAYOUT_H_
#define HALFTONE_GRAPH_BASE_LAYOUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace halftone {

// Dims stay logical (NCHW, OIHW) in either.
enum class Layout : uint8_t { kRowMajor = 0, kChannelsLast = 1 };
absl::string_view Name(Layout layout);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_LAYOUT_H_
