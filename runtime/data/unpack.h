// How much packed data may grow.
#ifndef HALFTONE_RUNTIME_DATA_UNPACK_H_
#define HALFTONE_RUNTIME_DATA_UNPACK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Whether `packed` bytes that claim to be `claimed` unpacked may be unpacked:
// up to `max_unpack` times as much, or 16 MiB. To be asked before memory is
// taken. Errors: kModel, with what to add if the file is to be trusted.
absl::Status CheckUnpacked(int64_t claimed, int64_t packed,
                           absl::string_view file, int64_t max_unpack);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_UNPACK_H_
