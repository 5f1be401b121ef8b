// Several operands read along one output: loops whose neighbours are merged
// where they move together in all of them.
#ifndef HALFTONE_KERNELS_COMMON_BROADCAST_H_
#define HALFTONE_KERNELS_COMMON_BROADCAST_H_

#include <array>
#include <cstdint>

#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {

// `kOperands` of them. Never without a loop: a scalar is one of length 1.
template <int kOperands>
struct Broadcast {
  Extents dims;  // outermost first
  std::array<Extents, kOperands> strides;

  // `operand`: strides per logical dim of `out`.
  Broadcast(const TensorDesc& out,
            const std::array<Extents, kOperands>& operand) {
    for (const int64_t dim : MemoryOrder(out)) {
      const int64_t extent = out.dims[dim];
      if (extent == 1) continue;
      bool merges = !dims.empty();
      for (int k = 0; merges && k < kOperands; ++k) {
        merges = strides[k].back() == operand[k][dim] * extent;
      }
      if (merges) {
        dims.back() *= extent;
      } else {
        dims.push_back(extent);
      }
      for (int k = 0; k < kOperands; ++k) {
        if (merges) strides[k].pop_back();
        strides[k].push_back(operand[k][dim]);
      }
    }
    if (!dims.empty()) return;
    dims.push_back(1);
    for (Extents& of_operand : strides) of_operand.push_back(0);
  }

  int64_t row() const { return dims.back(); }
  int64_t stride(int operand) const { return strides[operand].back(); }

  // visit(position in the output, offsets in the operands, n) for each run of
  // an innermost row within [begin, end) of the output's elements.
  template <typename Visit>
  void ForRows(int64_t begin, int64_t end, const Visit& visit) const {
    while (begin < end) {
      const int64_t at = begin % row();
      const int64_t n = end - begin < row() - at ? end - begin : row() - at;
      std::array<int64_t, kOperands> offsets;
      for (int k = 0; k < kOperands; ++k) offsets[k] = at * stride(k);
      int64_t outer = begin / row();
      for (int i = static_cast<int>(dims.size()) - 2; i >= 0; --i) {
        const int64_t index = outer % dims[i];
        outer /= dims[i];
        for (int k = 0; k < kOperands; ++k) {
          offsets[k] += index * strides[k][i];
        }
      }
      visit(begin, offsets, n);
      begin += n;
    }
  }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_BROADCAST_H_
