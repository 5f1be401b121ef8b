// Nodes of ONNX as ops of ours: a table per family; what is the same in both,
// onnx_same.h.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_OPS_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_OPS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "graph/import/onnx_node.h"

namespace halftone {

struct OnnxRule {
  absl::string_view type;  // ONNX's
  void (*convert)(OnnxNode& node, const OnnxRule& rule);
  absl::string_view ours = "";  // what `convert` makes of it, if it asks
};

const std::vector<OnnxRule>& OnnxElementwiseRules();
const std::vector<OnnxRule>& OnnxGatherRules();
const std::vector<OnnxRule>& OnnxShapeRules();
const std::vector<OnnxRule>& OnnxPlaceRules();
const std::vector<OnnxRule>& OnnxReductionRules();
const std::vector<OnnxRule>& OnnxLayerRules();
const std::vector<OnnxRule>& OnnxLossRules();
const std::vector<OnnxRule>& OnnxNormRules();
const std::vector<OnnxRule>& OnnxResizeRules();
const std::vector<OnnxRule>& OnnxRecurrentRules();
const std::vector<OnnxRule>& OnnxSequenceRules();
const std::vector<OnnxRule>& OnnxWindowRules();

// Null: there is none.
const OnnxRule* FindOnnxRule(absl::string_view type);
// "; nearest: X", or why there is none.
std::string NearestOnnxRule(absl::string_view type);

// ---- For the families.

// Of the broadcast dims: X and Y's last dims go together. Where they may change
// places, the one of more dims is first, else it is given that many.
OnnxOp OnnxBinaryOp(OnnxNode& node, absl::string_view ours,
                    const std::string& x, const std::string& y);
// Its result.
std::string OnnxBinary(OnnxNode& node, absl::string_view ours,
                       const std::string& x, const std::string& y);
// X over axes, which stay with dim 1.
std::string OnnxReduce(OnnxNode& node, absl::string_view ours,
                       const std::string& x, std::vector<int64_t> axes);
// scale * X + bias.
std::string OnnxScale(OnnxNode& node, const std::string& x, double scale,
                      double bias);
// What `body` makes of X, whose ops are of floats; of whole numbers in f32 and
// back again, exact up to 2^24.
std::string OnnxOfFloats(
    OnnxNode& node, const std::string& x,
    absl::FunctionRef<std::string(const std::string&)> body);
// The value's dims with those of 1 in front that bring it to `rank`.
std::string OnnxToRank(OnnxNode& node, const std::string& x, int rank);
// With its dims of 1 repeated to those of `dims`, of which one may be the
// batch's.
std::string OnnxExpanded(OnnxNode& node, std::string x, const Dims& dims);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_OPS_H_
