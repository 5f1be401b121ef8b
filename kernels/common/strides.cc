#include "kernels/common/strides.h"

#include "graph/base/layout.h"

namespace halftone {
namespace kernels {

Extents MemoryOrder(const TensorDesc& desc) {
  if (desc.layout == Layout::kChannelsLast && desc.rank() == 4) {
    return {0, 2, 3, 1};
  }
  Extents order;
  for (int i = 0; i < desc.rank(); ++i) order.push_back(i);
  return order;
}

Extents StridesOf(const TensorDesc& desc) {
  const Extents order = MemoryOrder(desc);
  Extents strides(desc.rank(), 1);
  int64_t stride = 1;
  for (int i = desc.rank() - 1; i >= 0; --i) {
    strides[order[i]] = stride;
    stride *= desc.dims[order[i]];
  }
  return strides;
}

int FirstAlignedDim(int operand_rank, int out_rank, int64_t axis) {
  return axis == -1 ? out_rank - operand_rank : static_cast<int>(axis);
}

Extents BroadcastStrides(const TensorDesc& operand, const TensorDesc& out,
                         int first) {
  const Extents own = StridesOf(operand);
  Extents strides(out.rank(), 0);
  for (int i = 0; i < operand.rank() && first + i < out.rank(); ++i) {
    if (operand.dims[i] != 1) strides[first + i] = own[i];
  }
  return strides;
}

Nest MakeNest(const TensorDesc& out, const Extents& strides) {
  Nest nest;
  for (int64_t dim : MemoryOrder(out)) {
    const int64_t extent = out.dims[dim];
    const int64_t stride = strides[dim];
    if (extent == 1) continue;
    if (nest.rank() > 0 && nest.strides.back() == stride * extent) {
      nest.dims.back() *= extent;
      nest.strides.back() = stride;
    } else {
      nest.dims.push_back(extent);
      nest.strides.push_back(stride);
    }
  }
  return nest;
}

NestWalk::NestWalk(const Nest& nest, int64_t begin)
    : nest_(nest), index_(nest.rank() > 0 ? nest.rank() : 1, 0) {
  if (nest.rank() == 0) return;
  row_ = nest.dims.back();
  for (int i = nest.rank() - 1; i >= 0; --i) {
    index_[i] = begin % nest.dims[i];
    begin /= nest.dims[i];
    offset_ += index_[i] * nest.strides[i];
  }
}

void NestWalk::Advance(int64_t n) {
  if (nest_.rank() == 0) return;
  int i = nest_.rank() - 1;
  index_[i] += n;
  offset_ += n * nest_.strides[i];
  while (index_[i] == nest_.dims[i]) {
    offset_ -= index_[i] * nest_.strides[i];
    index_[i] = 0;
    if (i == 0) return;
    --i;
    ++index_[i];
    offset_ += nest_.strides[i];
  }
}

}  // namespace kernels
}  // namespace halftone
