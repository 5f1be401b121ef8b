// A loss for an ONNX model, which has none of its own.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_LOSS_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_LOSS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "graph/import/onnx_graph.h"

namespace halftone {

// Adds what `wish` says: "cross_entropy:LOGITS", with the feed `label`, i64, a
// class for each place beside the class axis (1, as PyTorch has it, unless it
// is given), and the metric top1, both over the labels that are not -100, which
// PyTorch ignores; "mse:VALUE" and "bce:VALUE", with the feed
// `label`, f32, of the value's dims. bce takes logits, or what a sigmoid makes
// of them. Returns where the loss is from, for the report. `file` is for
// errors: another loss, or one without classes (kUsage), a value that is not
// there or whose dims do not fit (kModel).
absl::StatusOr<std::string> AddOnnxLoss(const std::string& wish,
                                        std::optional<int64_t> class_axis,
                                        const std::string& file,
                                        OnnxGraph* graph);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_LOSS_H_
