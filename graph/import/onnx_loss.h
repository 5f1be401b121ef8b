// A loss for an ONNX model, which has none of its own.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_LOSS_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_LOSS_H_

#include <string>

#include "absl/status/status.h"
#include "graph/import/onnx_graph.h"

namespace halftone {

// Adds what `wish` says: "cross_entropy:LOGITS", with the feed `label`, i64, a
// class for each row of logits (or, of [N, C, ...], for each place), and the
// metric top1; "mse:VALUE" and "bce:VALUE", with the feed `label`, f32, of the
// value's dims. bce takes logits, or what a sigmoid makes of them. `file` is
// for errors: another loss (kUsage), a value that is not there or whose dims do
// not fit (kModel).
absl::Status AddOnnxLoss(const std::string& wish, const std::string& file,
                         OnnxGraph* graph);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_LOSS_H_
