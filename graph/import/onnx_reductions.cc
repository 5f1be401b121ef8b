// Nodes that make one element of many.
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

// Adds the reduction, of whatever `x` has become, as the node's output.
struct Reduction {
  IntList axes;
  bool keep = true, none = false;
};

Reduction ReductionOf(OnnxNode& node) {
  Reduction reduction;
  reduction.axes = node.Axes("axes", 1, {});
  reduction.keep = node.Int("keepdims", 1) != 0;
  const bool nothing = node.Int("noop_with_empty_axes", 0) != 0;
  reduction.none = nothing && reduction.axes.empty();
  const int rank = node.Rank(0);
  for (int64_t& axis : reduction.axes) axis = node.Axis(axis, rank);
  return reduction;
}

std::string Reduced(OnnxNode& node, absl::string_view ours,
                    const std::string& x, const Reduction& reduction) {
  if (reduction.none || node.TypeOf(x).rank() == 0) return x;
  return node.Op(ours)
      .In("X", x)
      .Attr("dim", reduction.axes)
      .Attr("keep_dim", reduction.keep)
      .Made();
}

void Reduce(OnnxNode& node, const Rule& rule) {
  const Reduction reduction = ReductionOf(node);
  node.Same(0, OnnxOfFloats(node, node.In(0), [&](const std::string& x) {
              return Reduced(node, rule.ours, x, reduction);
            }));
}

// The sum of what `rule.ours` makes of each element.
void SumOf(OnnxNode& node, const Rule& rule) {
  const Reduction reduction = ReductionOf(node);
  node.Same(0, OnnxOfFloats(node, node.In(0), [&](const std::string& x) {
              const std::string each = node.Op(rule.ours).In("X", x).Made();
              const std::string sum =
                  Reduced(node, "reduce_sum", each, reduction);
              if (rule.type != "ReduceL2") return sum;
              return node.Op("sqrt").In("X", sum).Made();
            }));
}

void LogSum(OnnxNode& node, const Rule&) {
  const Reduction reduction = ReductionOf(node);
  const std::string sum = Reduced(node, "reduce_sum", node.In(0), reduction);
  node.Op("log").In("X", sum).Out();
}

// The maximum plus the logarithm of the sum of exp(X - maximum).
void LogSumExp(OnnxNode& node, const Rule&) {
  Reduction reduction = ReductionOf(node);
  const std::string x = node.In(0);
  if (node.failed()) return;
  if (reduction.none) return node.Same(0, x);
  const bool keep = reduction.keep;
  reduction.keep = true;
  const std::string most = Reduced(node, "reduce_max", x, reduction);
  const std::string exp =
      node.Op("exp")
          .In("X", OnnxBinary(node, "elementwise_sub", x, most))
          .Made();
  const std::string log =
      node.Op("log")
          .In("X", Reduced(node, "reduce_sum", exp, reduction))
          .Made();
  const std::string sum = OnnxBinary(node, "elementwise_add", log, most);
  if (keep || node.failed()) return node.Same(0, sum);
  Dims dims;
  const Dims from = node.TypeOf(x).dims;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool gone = reduction.axes.empty() ||
                      std::count(reduction.axes.begin(), reduction.axes.end(),
                                 static_cast<int64_t>(i)) > 0;
    if (!gone) dims.push_back(from[i]);
  }
  node.ReshapeTo(sum, dims);
}

void ArgExtreme(OnnxNode& node, const Rule& rule) {
  const int64_t axis = node.Int("axis", 0);
  const bool keep = node.Int("keepdims", 1) != 0;
  const std::string x = node.In(0);
  if (node.Int("select_last_index", 0) == 0) {
    return node.Op(rule.ours)
        .In("X", x)
        .Attr("axis", axis)
        .Attr("keepdims", keep)
        .Out();
  }
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int64_t at = node.Axis(axis, static_cast<int>(dims.size()));
  if (node.failed() || !dims[at].is_constant()) {
    return node.Refuse("the last of the batch");
  }
  // The first from the other end.
  const std::string flipped =
      node.Op("flip").In("X", x).Attr("axis", IntList{at}).Made();
  const std::string place = node.Op(rule.ours)
                                .In("X", flipped)
                                .Attr("axis", axis)
                                .Attr("keepdims", keep)
                                .Made();
  const double last = static_cast<double>(dims[at].coefficient() - 1);
  const std::string turned =
      OnnxScale(node, node.Cast(place, DType::kF32), -1, last);
  node.Same(0, node.Cast(turned, DType::kI64));
}

void CumSum(OnnxNode& node, const Rule&) {
  const int64_t axis = node.KnownInt(1, 0);
  node.Op("cumsum")
      .In("X", node.In(0))
      .Attr("axis", axis)
      .Attr("exclusive", node.Int("exclusive", 0) != 0)
      .Attr("reverse", node.Int("reverse", 0) != 0)
      .Out();
}

void TopK(OnnxNode& node, const Rule&) {
  const int64_t k = node.HasAttr("k") ? node.Int("k", 1) : node.KnownInt(1, 1);
  const bool largest = node.Int("largest", 1) != 0;
  node.Int("sorted", 1);  // ours always are
  std::string x = node.In(0);
  if (node.failed()) return;
  const int rank = node.TypeOf(x).rank();
  const int64_t axis = node.Axis(node.Int("axis", -1), rank);
  if (node.failed()) return;
  IntList order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[rank - 1]);
  const bool moves = axis != rank - 1;
  const auto moved = [&](const std::string& value) {
    if (!moves) return value;
    return node.Op("transpose").In("X", value).Attr("axis", order).Made();
  };
  // Ours is of floats: whole numbers are exact up to 2^24.
  const DType dtype = node.TypeOf(x).dtype;
  x = moved(node.ToF32(x));
  if (!largest) x = OnnxScale(node, x, -1, 0);
  const std::vector<std::string> made =
      node.Op("top_k").In("X", x).Attr("k", k).MadeAll({"Out", "Indices"});
  const std::string values =
      largest ? made[0] : OnnxScale(node, made[0], -1, 0);
  node.Same(0, node.Cast(moved(values), dtype));
  node.Same(1, moved(made[1]));
}

// exp(X - maximum) as shares of their sum; before opset 13 over all dims from
// axis on.
void Softmax(OnnxNode& node, const Rule& rule) {
  const bool flattens = node.opset() < 13;
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int rank = static_cast<int>(dims.size());
  const int64_t axis = node.Axis(node.Int("axis", flattens ? 1 : -1), rank);
  if (node.failed()) return;
  if (!flattens || axis == rank - 1) {
    return node.Op(rule.ours).In("X", x).Attr("axis", axis).Out();
  }
  Dims two = {Dim(1), Dim(1)};
  for (int i = 0; i < rank; ++i) two[i >= axis] = two[i >= axis] * dims[i];
  const std::string made =
      node.Op(rule.ours).In("X", node.Reshaped(x, two)).Made();
  node.ReshapeTo(made, dims);
}

// 1 at the first greatest, else 0.
void Hardmax(OnnxNode& node, const Rule&) {
  const bool flattens = node.opset() < 13;
  const std::string x = node.In(0);
  if (node.failed()) return;
  const TensorType type = node.TypeOf(x);
  const int rank = type.rank();
  const int64_t axis = node.Axis(node.Int("axis", flattens ? 1 : -1), rank);
  if (node.failed()) return;
  if (!type.dims[axis].is_constant() || (flattens && axis != rank - 1)) {
    return node.Refuse("an axis that is not the last or not known");
  }
  const std::string place =
      node.Op("arg_max").In("X", x).Attr("axis", axis).Made();
  std::string hot = node.Op("one_hot_v2")
                        .In("X", place)
                        .Attr("depth", type.dims[axis].coefficient())
                        .Made();
  if (axis != rank - 1) {
    IntList order(rank - 1);
    std::iota(order.begin(), order.end(), 0);
    order.insert(order.begin() + axis, rank - 1);
    hot = node.Op("transpose").In("X", hot).Attr("axis", order).Made();
  }
  node.Same(0, hot);
}

void LpNormalization(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  const std::string norm =
      node.Op("p_norm")
          .In("X", x)
          .Attr("porder", static_cast<double>(node.Int("p", 2)))
          .Attr("axis", node.Int("axis", -1))
          .Attr("keepdim", true)
          .Made();
  if (node.failed()) return;
  // Of nothing but zeros: 0.
  const std::string zero = node.Number(0);
  const std::string none = OnnxBinary(node, "equal", norm, zero);
  node.Op("where")
      .In("Condition", none)
      .In("X", zero)
      .In("Y", OnnxBinary(node, "elementwise_div", x, norm))
      .Out();
}

}  // namespace

const std::vector<OnnxRule>& OnnxReductionRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"ArgMax", ArgExtreme, "arg_max"},
      {"ArgMin", ArgExtreme, "arg_min"},
      {"CumSum", CumSum},
      {"Hardmax", Hardmax},
      {"LogSoftmax", Softmax, "log_softmax"},
      {"LpNormalization", LpNormalization},
      {"ReduceL1", SumOf, "abs"},
      {"ReduceL2", SumOf, "square"},
      {"ReduceLogSum", LogSum},
      {"ReduceLogSumExp", LogSumExp},
      {"ReduceMax", Reduce, "reduce_max"},
      {"ReduceMean", Reduce, "reduce_mean"},
      {"ReduceMin", Reduce, "reduce_min"},
      {"ReduceProd", Reduce, "reduce_prod"},
      {"ReduceSum", Reduce, "reduce_sum"},
      {"ReduceSumSquare", SumOf, "square"},
      {"Softmax", Softmax, "softmax"},
      {"TopK", TopK},
  };
  return rules;
}

}  // namespace halftone
