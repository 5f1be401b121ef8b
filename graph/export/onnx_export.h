// A program as an ONNX model: `halftone export --format onnx`.
#ifndef HALFTONE_GRAPH_EXPORT_ONNX_EXPORT_H_
#define HALFTONE_GRAPH_EXPORT_ONNX_EXPORT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {

// The opset that is written, and the version of the format that came with it.
inline constexpr int64_t kOnnxOpset = 17, kOnnxIrVersion = 8;

struct OnnxExportOptions {
  std::string file;  // for errors
  // Of the file beside the model that weights go into where protobuf ends: at
  // `most_bytes` of them.
  std::string data_file;
  int64_t most_bytes = (int64_t{1} << 31) - (int64_t{1} << 24);
};

// Files in parts, one after the other; those of weights are views of what
// ExportOnnx was given, the others of `made`.
struct OnnxExport {
  std::vector<absl::string_view> model, data;  // data: empty, or external
  std::deque<std::string> made;
  int64_t nodes = 0, initializers = 0, weight_bytes = 0;
  std::vector<std::string> inputs, outputs;
};

// The entry, eval as the passes of precision leave it, before fusion: feeds as
// inputs, results as outputs under their names, cells as initialisers, `cells`
// holding their bytes by name, in the cell's dtype, row-major. A dim of the
// batch is symbolic. What ONNX has no op for is made of several. Errors
// (kModel): what cannot be exported is told at once (graph/import/refusals.h).
absl::StatusOr<OnnxExport> ExportOnnx(
    const Program& program, const Entry& entry,
    const std::map<std::string, absl::string_view>& cells,
    const OnnxExportOptions& options);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_EXPORT_ONNX_EXPORT_H_
