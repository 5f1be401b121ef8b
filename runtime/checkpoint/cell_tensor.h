// A cell's value as a tensor of a file.
#ifndef HALFTONE_RUNTIME_CHECKPOINT_CELL_TENSOR_H_
#define HALFTONE_RUNTIME_CHECKPOINT_CELL_TENSOR_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "runtime/checkpoint/safetensors.h"

namespace halftone {
namespace runtime {

// A cell's dims are constant.
std::vector<int64_t> DimsOf(const Cell& cell);

// `bytes`: all of it, logical row-major. Called `name`.
Tensor TensorOf(const Cell& cell, std::string name, std::string bytes);

// What the tensor is called that is a rank's of a cell in which ranks differ:
// rank 0's as the cell, rank r's "@rank.<r>/<name>".
std::string NameOfRank(const std::string& cell, int rank);

// Rank 0, without a cell: of no name of that form.
struct OfRank {
  int rank = 0;
  std::string cell;
};
OfRank ParseNameOfRank(absl::string_view name);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CHECKPOINT_CELL_TENSOR_H_
