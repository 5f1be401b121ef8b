// Paddle's .pdiparams: all persistable variables of a program, one after the
// other, by name.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_PARAMS_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_PARAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype_fwd.h"
#include "graph/import/paddle_program.h"

namespace halftone {

struct PaddleTensor {
  std::string name;
  DType dtype{};
  std::vector<int64_t> dims;
  absl::string_view bytes;  // of the file's content; row-major, little-endian
};

// The file has no names: it holds the program's persistables sorted by theirs.
// Errors (kModel): another number of tensors than those, other dims or dtypes,
// a file that is cut off or goes on. Nothing is allocated that the file does
// not hold.
absl::StatusOr<std::vector<PaddleTensor>> ParsePaddleParams(
    absl::string_view content, const std::string& file,
    const paddle::ProgramDesc& program);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_PARAMS_H_
