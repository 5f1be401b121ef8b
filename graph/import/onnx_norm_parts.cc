#include "graph/import/onnx_norm_parts.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "graph/import/model_ops.h"

namespace halftone {
namespace {

using proto::OpNode;

class RmsNorms {
 public:
  explicit RmsNorms(OnnxGraph* graph) : graph_(*graph), ops_(&graph->model()) {}

  void Join(OpNode* op) const {
    double epsilon = 0;
    for (const auto& [x, other] : ModelOps::Operands(*op, "elementwise_mul")) {
      if (IsInverseRoot(other, x, &epsilon)) return Norm(x, epsilon, op);
      if (TakeScale(x, other, op)) return;
    }
    if (op->type() == "elementwise_div" && op->attr_size() == 0) {
      const std::string x = InputOf(*op, "X");
      if (IsRoot(InputOf(*op, "Y"), x, &epsilon)) Norm(x, epsilon, op);
    }
  }

 private:
  // 1 / sqrt(mean(x x) + epsilon).
  bool IsInverseRoot(const std::string& name, const std::string& x,
                     double* epsilon) const {
    if (const OpNode* const rsqrt = ops_.Inner(name, "rsqrt")) {
      return IsVariance(InputOf(*rsqrt, "X"), x, epsilon);
    }
    const OpNode* const inverse = ops_.Inner(name, "reciprocal");
    return inverse != nullptr && IsRoot(InputOf(*inverse, "X"), x, epsilon);
  }

  bool IsRoot(const std::string& name, const std::string& x,
              double* epsilon) const {
    const OpNode* const root = ops_.Inner(name, "sqrt");
    return root != nullptr && IsVariance(InputOf(*root, "X"), x, epsilon);
  }

  bool IsVariance(const std::string& name, const std::string& x,
                  double* epsilon) const {
    const OpNode* const sum = ops_.Inner(name, "scale");
    if (sum == nullptr || RealOf(*sum, "scale", 1) != 1) return false;
    *epsilon = RealOf(*sum, "bias", 0);
    const OpNode* const mean = ops_.Inner(InputOf(*sum, "X"), "reduce_mean");
    const int64_t last = graph_.TypeOf(x).rank() - 1;
    if (*epsilon <= 0 || mean == nullptr || last < 1 ||
        !BoolOf(*mean, "keep_dim") ||
        (!IsList(*mean, "dim", {last}) && !IsList(*mean, "dim", {-1}))) {
      return false;
    }
    const std::string squares = InputOf(*mean, "X");
    if (const OpNode* const square = ops_.Inner(squares, "square")) {
      return InputOf(*square, "X") == x;
    }
    const OpNode* const product = ops_.Inner(squares, "elementwise_mul");
    return product != nullptr && product->attr_size() == 0 &&
           InputOf(*product, "X") == x && InputOf(*product, "Y") == x;
  }

  static void Norm(const std::string& x, double epsilon, OpNode* op) {
    BecomeOp("rms_norm", x, op);
    op->mutable_out(0)->set_slot("Y");
    op->add_attr()->set_name("epsilon");
    op->mutable_attr(0)->set_f(epsilon);
  }

  bool TakeScale(const std::string& normalized, const std::string& scale,
                 OpNode* op) const {
    const OpNode* const norm = ops_.Inner(normalized, "rms_norm");
    if (norm == nullptr || !InputOf(*norm, "Scale").empty() ||
        graph_.TypeOf(scale).dims !=
            Dims{graph_.TypeOf(normalized).dims.back()}) {
      return false;
    }
    BecomeWith(*norm, "Scale", scale, op);
    return true;
  }

  const OnnxGraph& graph_;
  const ModelOps ops_;
};

}  // namespace

void JoinRmsNorms(OnnxGraph* const graph) {
  const RmsNorms norms(graph);
  for (OpNode& op : *graph->model().mutable_op()) norms.Join(&op);
}

}  // namespace halftone
