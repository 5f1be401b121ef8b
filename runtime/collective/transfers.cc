#include "runtime/collective/transfers.h"

#include <algorithm>

#include "graph/base/check.h"

namespace halftone {
namespace runtime {

int PlaceIn(absl::Span<const int> ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  HT_CHECK(found != ranks.end(), "a rank works with others alone");
  return static_cast<int>(found - ranks.begin());
}

ElementRange PieceOfPart(int rank, int world_size, int64_t index, int64_t piece,
                         int64_t count) {
  const int64_t blocks = (count + kPartElements - 1) / kPartElements;
  const auto boundary = [&](int part) {
    return std::min(count, blocks * part / world_size * kPartElements);
  };
  const int64_t end = boundary(rank + 1);
  ElementRange range;
  range.start = std::min(end, boundary(rank) + index * piece);
  range.count = std::min(piece, end - range.start);
  return range;
}

int64_t NodePart(int64_t count, int64_t element_bytes, int ranks_per_node) {
  constexpr int64_t kSmallBytes = 32 << 10;
  if (count * element_bytes <= kSmallBytes) return 0;
  return count / ranks_per_node / kPartElements * kPartElements;
}

}  // namespace runtime
}  // namespace halftone
