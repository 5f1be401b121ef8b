// An ONNX model as a model: `halftone import x.onnx`.
//
// Values keep their names. What is computed from shapes and constants is
// computed here; sizes may be the batch's. Layers in parts are one op
// (onnx_parts.h), and what lay between their parts is no value.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_IMPORT_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_IMPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/import/imported_model.h"
#include "graph/import/onnx_file.h"
#include "graph/import/onnx_graph.h"

namespace halftone {

struct OnnxOptions {
  std::string name;  // of the model
  // "cross_entropy:VALUE", "mse:VALUE", "bce:VALUE": a loss on it is added,
  // with a feed of labels; empty: none.
  std::string loss;
  // Of the logits of cross_entropy, as PyTorch's; negative ones count from the
  // end.
  std::optional<int64_t> class_axis;  // default: 1
  // By feed: dims in place of those that the graph has.
  std::map<std::string, std::vector<int64_t>> dims;
};

struct OnnxModel {
  ImportedModel imported;
  // Of the model's parameters and statistics; bytes may be of the file's
  // content.
  std::vector<OnnxWeight> weights;
};

// Errors (kModel): what cannot be taken is told at once (refusals.h); then what
// is wrong with the model that came out.
absl::StatusOr<OnnxModel> ImportOnnx(const OnnxFile& file,
                                     const OnnxOptions& options);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_IMPORT_H_
