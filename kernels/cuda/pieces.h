// Lists of tensors cut into pieces of bounded length, a block for each, so
// that one launch works on all of them. The table of members, with their
// pointers, is a kernel parameter: nothing is copied to the device for it.
#ifndef HALFTONE_KERNELS_CUDA_PIECES_H_
#define HALFTONE_KERNELS_CUDA_PIECES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/bound_op.h"
#include "kernels/cuda/launch.h"

namespace halftone {
namespace kernels {
namespace cuda {

struct Piece {
  int32_t member;  // within the table
  int64_t begin, n;
};

// `kPointers` tensors per member, `kMembers` members at most. Parameters of a
// kernel may take 32,764 bytes.
template <int kPointers, int kMembers>
struct PieceTable {
  static constexpr int kMost = kMembers;
  int32_t count;
  int32_t length;               // elements of a piece at most
  int32_t first[kMembers + 1];  // piece of each member
  int64_t elements[kMembers];
  void* data[kMembers][kPointers];

  int32_t pieces() const { return first[count]; }

  HT_DEVICE Piece At(int32_t piece) const {
    int32_t low = 0, high = count;  // the last member whose first is <= piece
    while (high - low > 1) {
      const int32_t middle = (low + high) / 2;
      if (first[middle] <= piece) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const int64_t begin = static_cast<int64_t>(piece - first[low]) * length;
    const int64_t rest = elements[low] - begin;
    return {low, begin, rest < length ? rest : length};
  }
};

inline int64_t PiecesOf(const TensorDesc& desc, int32_t length) {
  return CeilDiv(desc.elements(), length);
}

// Members [begin, begin + table->count) of a list, without their pointers.
template <typename Table>
void FillTable(absl::Span<const TensorDesc> members, int begin, int32_t length,
               Table* table) {
  const int count =
      std::min<int>(Table::kMost, static_cast<int>(members.size()) - begin);
  table->count = count;
  table->length = length;
  table->first[0] = 0;
  for (int i = 0; i < count; ++i) {
    const TensorDesc& member = members[begin + i];
    table->elements[i] = member.elements();
    table->first[i + 1] =
        table->first[i] + static_cast<int32_t>(PiecesOf(member, length));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_PIECES_H_
