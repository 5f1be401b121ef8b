// Sizes of memory as people write them.
#ifndef HALFTONE_PASSES_OPTIONS_BYTE_TEXT_H_
#define HALFTONE_PASSES_OPTIONS_BYTE_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace halftone {
namespace passes {

// "8GiB", "512MB", "1.5g", "4096"; nothing: it is no such number, or not above
// 0.
std::optional<int64_t> BytesFromText(absl::string_view text);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_BYTE_TEXT_H_
