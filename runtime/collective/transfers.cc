#include "runtime/collective/transfers.h"

#include <algorithm>

namespace halftone {
namespace runtime {

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

}  // namespace runtime
}  // namespace halftone
