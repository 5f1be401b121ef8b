#include "graph/import/onnx_ops.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

const std::map<absl::string_view, const OnnxRule*>& AllRules() {
  static const auto& all = *[] {
    auto* rules = new std::map<absl::string_view, const OnnxRule*>();
    for (const auto* family :
         {&OnnxElementwiseRules(), &OnnxShapeRules(), &OnnxGatherRules(),
          &OnnxPlaceRules(), &OnnxReductionRules(), &OnnxLayerRules(),
          &OnnxLossRules(), &OnnxNormRules(), &OnnxResizeRules(),
          &OnnxRecurrentRules(), &OnnxSequenceRules(), &OnnxWindowRules()}) {
      for (const OnnxRule& rule : *family) (*rules)[rule.type] = &rule;
    }
    return rules;
  }();
  return all;
}

// What comes nearest to an op that is not taken, where spelling does not say
// it.
struct Near {
  absl::string_view type, nearest;
};
constexpr Near kNear[] = {
    {"ConvInteger", "Conv"},     {"DynamicQuantizeLinear", "Cast"},
    {"MatMulInteger", "MatMul"}, {"MaxRoiPool", "MaxPool"},
    {"QLinearConv", "Conv"},     {"QLinearMatMul", "MatMul"},
    {"RoiAlign", "Resize"},
};
// Ops of ours that may read their values in either order. Not those of which
// one value alone gets the gradient where both are equal.
constexpr absl::string_view kCommutative[] = {
    "elementwise_add", "elementwise_mul", "equal",
    "logical_and",     "logical_or",      "logical_xor",
};
// Those that run a graph of their own.
constexpr absl::string_view kControlFlow[] = {"If", "Loop", "Scan",
                                              "SequenceMap"};

}  // namespace

const OnnxRule* FindOnnxRule(absl::string_view type) {
  const auto found = AllRules().find(type);
  return found == AllRules().end() ? nullptr : found->second;
}

std::string NearestOnnxRule(absl::string_view type) {
  const auto end = std::end(kControlFlow);
  if (std::find(std::begin(kControlFlow), end, type) != end) {
    return ": its body is a graph of its own; export without control flow";
  }
  for (const Near& near : kNear) {
    if (near.type == type) return absl::StrCat("; nearest: ", near.nearest);
  }
  std::vector<std::string> names;
  for (const auto& rule : AllRules()) names.emplace_back(rule.first);
  return NearestHint(type, names);
}

std::string OnnxToRank(OnnxNode& node, const std::string& x, int rank) {
  if (x.empty()) return x;
  const Dims own = node.TypeOf(x).dims;
  if (static_cast<int>(own.size()) >= rank) return x;
  Dims dims(rank - own.size(), Dim(1));
  dims.insert(dims.end(), own.begin(), own.end());
  return node.Reshaped(x, dims);
}

OnnxOp OnnxBinaryOp(OnnxNode& node, absl::string_view ours,
                    const std::string& x, const std::string& y) {
  OnnxOp op = node.Op(ours);
  const int x_rank = node.TypeOf(x).rank(), y_rank = node.TypeOf(y).rank();
  const auto end = std::end(kCommutative);
  if (x_rank < y_rank &&
      std::find(std::begin(kCommutative), end, ours) != end) {
    return op.In("X", y).In("Y", x);
  }
  return op.In("X", OnnxToRank(node, x, y_rank)).In("Y", y);
}

std::string OnnxBinary(OnnxNode& node, absl::string_view ours,
                       const std::string& x, const std::string& y) {
  return node.failed() ? "" : OnnxBinaryOp(node, ours, x, y).Made();
}

std::string OnnxReduce(OnnxNode& node, absl::string_view ours,
                       const std::string& x, std::vector<int64_t> axes) {
  return node.Op(ours)
      .In("X", x)
      .Attr("dim", std::move(axes))
      .Attr("keep_dim", true)
      .Made();
}

std::string OnnxScale(OnnxNode& node, const std::string& x, double scale,
                      double bias) {
  return node.Op("scale")
      .In("X", x)
      .Attr("scale", scale)
      .Attr("bias", bias)
      .Made();
}

std::string OnnxOfFloats(
    OnnxNode& node, const std::string& x,
    absl::FunctionRef<std::string(const std::string&)> body) {
  if (node.failed()) return "";
  const DType dtype = node.TypeOf(x).dtype;
  if (IsFloat(dtype)) return body(x);
  const std::string made = body(node.ToF32(x));
  return node.failed() ? "" : node.Cast(made, dtype);
}

}  // namespace halftone
