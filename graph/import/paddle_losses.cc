// Losses, and the share of right answers.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/import/paddle_rules.h"

namespace halftone {

using paddle::OpDesc;

// A sum is one of the rows' losses; a mean is divided by the sum of the rows'
// weights, which are the losses of logarithms that are all -1: 0 where a label
// is ignored.
void NegativeLogLikelihood(const OpDesc& op, const Rule& rule,
                           PaddleScope& scope, ImportedOp* result) {
  OpDesc copy = op;
  const std::string reduction = StringAttr(op, "reduction", "mean");
  for (OpDesc::Attr& attr : *copy.mutable_attrs()) {
    if (attr.name() == "reduction") attr.set_s("none");
  }
  ByName(copy, rule, scope, result);
  if (reduction == "none" || !result->refusals.empty()) return;
  proto::OpNode& loss = result->nodes.back();
  std::string* const rows = loss.mutable_out(0)->mutable_var(0);
  const std::string out = *rows;
  const auto unused = [&](const char* suffix) {
    return scope.Unused(absl::StrCat(out, suffix));
  };
  *rows = unused(".rows");
  const std::string of_rows = *rows;
  if (reduction == "sum") {
    AddNode("reduce_sum", of_rows, "", out, result);
    return;
  }
  proto::OpNode weights = loss;
  proto::SlotVars* x = nullptr;
  for (proto::SlotVars& in : *weights.mutable_in()) {
    if (in.slot() == "X") x = &in;
  }
  if (x == nullptr) {
    result->refusals.push_back({"it has no input X"});
    return;
  }
  const std::string zeros = unused(".zeros"), minus = unused(".minus_one");
  AddNode("fill_zeros_like", x->var(0), "", zeros, result);
  AddNode("scale", zeros, "", minus, result);
  SetLast("bias", -1.0, result);
  x->set_var(0, minus);
  const std::string of_weights = unused(".weights");
  weights.mutable_out(0)->set_var(0, of_weights);
  result->nodes.push_back(std::move(weights));
  const std::string sum = unused(".sum"), divisor = unused(".weight");
  AddNode("reduce_sum", of_rows, "", sum, result);
  AddNode("reduce_sum", of_weights, "", divisor, result);
  AddNode("elementwise_div", sum, divisor, out, result);
}

// Softmax, if it is read, is an op of its own.
void CrossEntropy(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                  ImportedOp* result) {
  OpDesc loss = op;
  const auto& softmax = OutputsOf(op, "Softmax");
  if (!softmax.empty() && scope.IsRead(softmax[0])) {
    OpDesc probabilities;
    probabilities.set_type("softmax");
    probabilities.add_inputs()->set_parameter("X");
    *probabilities.mutable_inputs(0)->mutable_arguments() =
        InputsOf(op, "Logits");
    probabilities.add_outputs()->set_parameter("Out");
    probabilities.mutable_outputs(0)->add_arguments(softmax[0]);
    if (const OpDesc::Attr* const axis = FindAttr(op, "axis")) {
      *probabilities.add_attrs() = *axis;
    }
    ByName(probabilities, rule, scope, result);
    for (OpDesc::Var& out : *loss.mutable_outputs()) {
      if (out.parameter() == "Softmax") out.clear_arguments();
    }
  }
  ByName(loss, rule, scope, result);
}

// The share of samples whose label is among the best k, from top_k and
// accuracy: a count and a metric.
void CountCorrect(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  const auto& best = InputsOf(op, "Indices");
  const auto& label = InputsOf(op, "Label");
  const auto& out = OutputsOf(op, "Accuracy");
  const OpDesc* const top = best.empty() ? nullptr : scope.Writer(best[0]);
  if (top == nullptr || label.empty() || out.empty() ||
      (top->type() != "top_k_v2" && top->type() != "top_k") ||
      InputsOf(*top, "X").empty() || !InputsOf(*top, "K").empty()) {
    result->refusals.push_back({"expected the indices that a top_k_v2 finds"});
    return;
  }
  const int64_t k = IntAttr(*top, "k", 1);
  proto::OpNode node;
  node.set_type("correct_count");
  proto::SlotVars& x = *node.add_in();
  x.set_slot("X");
  x.add_var(scope.Read(InputsOf(*top, "X")[0]));
  proto::SlotVars& labels = *node.add_in();
  labels.set_slot("Label");
  labels.add_var(scope.Read(label[0]));
  proto::SlotVars& count = *node.add_out();
  count.set_slot("Out");
  count.add_var(scope.Unused(absl::StrCat(out[0], ".count")));
  result->nodes.push_back(std::move(node));
  SetLast("k", k, result);
  proto::Metric metric;
  metric.set_name(absl::StrCat("top", k));
  metric.set_var(result->nodes.back().out(0).var(0));
  metric.set_over(scope.Read(label[0]));
  result->metrics.push_back(std::move(metric));
  for (const OpDesc::Var& values : op.outputs()) {
    for (const std::string& name : values.arguments()) {
      result->taken.push_back(name);
    }
  }
}

}  // namespace halftone
