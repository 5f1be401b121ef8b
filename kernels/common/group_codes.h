// quantize_groups and dequantize_groups as bound.
#ifndef HALFTONE_KERNELS_COMMON_GROUP_CODES_H_
#define HALFTONE_KERNELS_COMMON_GROUP_CODES_H_

#include <algorithm>
#include <cstdint>

#include "graph/base/group_shape.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

struct GroupsOf {
  GroupShape shape;
  int64_t samples = 0;
  DType dtype{};

  // `values`: what is, or was, packed; `scales`: the groups' scales.
  GroupsOf(const BoundOp& op, const TensorDesc& values,
           const TensorDesc& scales)
      : samples(scales.dims[0]), dtype(values.dtype) {
    shape.elements = values.elements() / std::max<int64_t>(1, samples);
    shape.group = op.Int("group_size");
    shape.bits = static_cast<int>(op.Int("bits"));
  }
  // Of all samples.
  int64_t groups() const { return samples * shape.groups(); }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_GROUP_CODES_H_
