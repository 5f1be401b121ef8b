#include "runtime/data/unpack.h"

#include <algorithm>

#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kAlwaysUnpacked = int64_t{16} << 20;

}  // namespace

// Real images and labels are packed to a tenth or so.
absl::Status CheckUnpacked(int64_t claimed, int64_t packed,
                           absl::string_view file, int64_t max_unpack) {
  const int64_t needed = claimed / std::max<int64_t>(packed, 1) + 1;
  if (claimed <= kAlwaysUnpacked || needed <= max_unpack) {
    return absl::OkStatus();
  }
  return ModelError(file, ": ", HumanBytes(packed), " that claim to be ",
                    HumanBytes(claimed), " unpacked: expected at ", "most ",
                    max_unpack, " times as much; if you trust the ",
                    "file, add --max-unpack ", needed);
}

}  // namespace runtime
}  // namespace halftone
