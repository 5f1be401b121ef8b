#include "runtime/checkpoint/cell_tensor.h"

#include <utility>

namespace halftone {
namespace runtime {

std::vector<int64_t> DimsOf(const Cell& cell) {
  std::vector<int64_t> dims;
  for (const Dim& dim : cell.type.dims) dims.push_back(dim.coefficient());
  return dims;
}

Tensor TensorOf(const Cell& cell, std::string name, std::string bytes) {
  return {std::move(name), cell.type.dtype, DimsOf(cell), std::move(bytes)};
}

}  // namespace runtime
}  // namespace halftone
