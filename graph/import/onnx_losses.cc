// Nodes that compute a loss.
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

// 1 at each label's class, which becomes dim 1; zeros for what is ignored.
std::string Classes(OnnxNode& node, const std::string& label, const Dim& depth,
                    bool ignores, int64_t ignored) {
  if (node.failed()) return "";
  std::string x = label;
  if (ignores) {
    x = node.Op("where")
            .In("Condition", OnnxBinary(node, "equal", label,
                                        node.Number(ignored, DType::kI64)))
            .In("X", node.Number(-1, DType::kI64))
            .In("Y", label)
            .Made();
  }
  const std::string hot = node.Op("one_hot_v2")
                              .In("X", x)
                              .Attr("depth", depth.coefficient())
                              .Made();
  const int rank = node.TypeOf(label).rank() + 1;
  if (rank <= 2 || node.failed()) return hot;
  IntList order = {0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) order.push_back(i);
  return node.Op("transpose").In("X", hot).Attr("axis", order).Made();
}

// -weight * X at each label's class, and its sum or weighted mean.
void NegativeLikelihood(OnnxNode& node, const std::string& x) {
  const bool ignores = node.HasAttr("ignore_index");
  const int64_t ignored = node.Int("ignore_index", 0);
  const std::string how = node.String("reduction", "mean");
  const std::string label = node.Cast(node.In(1), DType::kI64);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  if (dims.size() < 2 || !dims[1].is_constant()) {
    return node.Refuse("expected [N, C, ...] with a known C");
  }
  std::string weights = Classes(node, label, dims[1], ignores, ignored);
  if (node.Has(2) && !node.failed()) {
    Dims per(dims.size() - 1, Dim(1));
    per[0] = dims[1];
    weights = OnnxBinary(node, "elementwise_mul", weights,
                         node.Reshaped(node.In(2), per));
  }
  const std::string product = OnnxBinary(node, "elementwise_mul", weights, x);
  const std::string each = OnnxScale(
      node,
      node.Op("reduce_sum").In("X", product).Attr("dim", IntList{1}).Made(), -1,
      0);
  if (how == "none") return node.Same(0, each);
  const std::string sum = node.Op("reduce_sum").In("X", each).Made();
  if (how == "sum") return node.Same(0, sum);
  if (how != "mean") return node.Refuse("attribute reduction", " = " + how);
  const std::string all = node.Op("reduce_sum").In("X", weights).Made();
  node.Same(0, OnnxBinary(node, "elementwise_div", sum, all));
}

void LikelihoodLoss(OnnxNode& node, const Rule&) {
  NegativeLikelihood(node, node.In(0));
}

void SoftmaxLoss(OnnxNode& node, const Rule&) {
  const std::string log = node.Op("log_softmax")
                              .In("X", node.In(0))
                              .Attr("axis", int64_t{1})
                              .Made();
  if (node.outputs() > 1) node.Same(1, log);
  NegativeLikelihood(node, log);
}

}  // namespace

const std::vector<OnnxRule>& OnnxLossRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"NegativeLogLikelihoodLoss", LikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", SoftmaxLoss},
  };
  return rules;
}

}  // namespace halftone
