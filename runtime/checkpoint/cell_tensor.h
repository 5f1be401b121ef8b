// A cell's value as a tensor of a file.
#ifndef HALFTONE_RUNTIME_CHECKPOINT_CELL_TENSOR_H_
#define HALFTONE_RUNTIME_CHECKPOINT_CELL_TENSOR_H_

#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "runtime/checkpoint/safetensors.h"

namespace halftone {
namespace runtime {

// A cell's dims are constant.
std::vector<int64_t> DimsOf(const Cell& cell);

// `bytes`: all of it, logical row-major. Called `name`.
Tensor TensorOf(const Cell& cell, std::string name, std::string bytes);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CHECKPOINT_CELL_TENSOR_H_
