// Ops that sum up, choose or accumulate along axes.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "graph/export/onnx_rules.h"

namespace halftone {
namespace onnx_export {
namespace {

IntList AllAxes(int rank) {
  IntList axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// The sum's axes are an input since opset 13, the others' an attribute.
NodeMaker Reduction(SourceOp& op, absl::string_view type, const std::string& x,
                    const IntList& axes, bool keeps) {
  NodeMaker node = op.Node(type);
  node.In(x);
  if (type == "ReduceSum") {
    node.In(op.builder().Ints(axes));
  } else {
    node.Attr("axes", axes);
  }
  return node.Attr("keepdims", keeps);
}

void Reduce(SourceOp& op, const Rule& rule) {
  const int rank = op.Rank("X");
  IntList axes = op.Ints("dim");
  if (axes.empty() || op.Bool("reduce_all")) axes = AllAxes(rank);
  for (int64_t& axis : axes) axis = op.Axis(axis, rank);
  if (rank == 0) return op.Same(op.In("X"));
  Reduction(op, rule.onnx, op.In("X"), axes, op.Bool("keep_dim")).Out();
}

void Mean(SourceOp& op, const Rule&) {
  if (op.Rank("X") == 0) return op.Same(op.In("X"));
  Reduction(op, "ReduceMean", op.In("X"), AllAxes(op.Rank("X")), false).Out();
}

void Softmax(SourceOp& op, const Rule& rule) {
  op.Node(rule.onnx)
      .In(op.In("X"))
      .Attr("axis", op.Axis(op.Int("axis"), op.Rank("X")))
      .Out();
}

// (sum of |X|^p)^(1/p), and what that tends to.
void PNorm(SourceOp& op, const Rule&) {
  const double p = op.Float("porder");
  const bool all = op.Bool("asvector");
  const IntList axes = all ? AllAxes(op.Rank("X"))
                           : IntList{op.Axis(op.Int("axis"), op.Rank("X"))};
  const DType dtype = op.dtype("X");
  const std::string x = Wide(op, "X");
  const auto number = [&](double value) {
    return op.builder().Number(value, DType::kF32);
  };
  const auto reduced = [&](absl::string_view type, const std::string& of) {
    return Reduction(op, type, of, axes, op.Bool("keepdim")).Made();
  };
  std::string norm;
  if (p == 1 || p == 2) {
    norm = reduced(p == 1 ? "ReduceL1" : "ReduceL2", x);
  } else if (std::isinf(p)) {
    norm = reduced(p > 0 ? "ReduceMax" : "ReduceMin", op.Make("Abs", x));
  } else if (p == 0) {
    const std::string zero = op.Make("Equal", x, number(0));
    norm = reduced("ReduceSum",
                   op.Cast(op.Make("Not", zero), DType::kBool, DType::kF32));
  } else {
    const std::string power = op.Make("Pow", op.Make("Abs", x), number(p));
    norm = op.Make("Pow", reduced("ReduceSum", power), number(1 / p));
  }
  op.Same(
      op.Cast(norm, IsLow(dtype) ? DType::kF32 : dtype, op.OutType().dtype));
}

// Along an axis, or over all elements.
std::string Along(SourceOp& op, int64_t* axis) {
  *axis = op.Axis(op.Int("axis"), op.Rank("X"));
  if (!op.Bool("flatten")) return op.In("X");
  *axis = 0;
  return op.Make("Reshape", op.In("X"), op.builder().Ints({-1}));
}

void ArgBest(SourceOp& op, const Rule& rule) {
  int64_t axis = 0;
  const std::string x = Along(op, &axis);
  const std::string index =
      op.Node(rule.onnx)
          .In(x)
          .Attr("axis", axis)
          .Attr("keepdims", op.Bool("keepdims") && !op.Bool("flatten"))
          .Made();
  const Dims& dims = op.OutType().dims;
  const Dims made = op.Bool("flatten") ? Dims() : dims;
  op.Same(
      op.Cast(op.Reshaped(index, made, dims), DType::kI64, op.OutType().dtype));
}

void CumSum(SourceOp& op, const Rule&) {
  int64_t axis = 0;
  const std::string x = Along(op, &axis);
  op.Node("CumSum")
      .In(x)
      .In(op.builder().Number(static_cast<double>(axis), DType::kI64))
      .Attr("exclusive", op.Bool("exclusive"))
      .Attr("reverse", op.Bool("reverse"))
      .Out();
}

void TopK(SourceOp& op, const Rule&) {
  const std::vector<std::string> best =
      op.Node("TopK")
          .In(op.In("X"))
          .In(op.builder().Ints({op.Int("k")}))
          .Attr("axis", int64_t{-1})
          .MadeAll(2);
  op.Same(best[0], "Out");
  op.Same(best[1], "Indices");
}

}  // namespace

const std::vector<Rule>& ReductionRules() {
  static const auto& rules = *new std::vector<Rule>{
      {"arg_max", ArgBest, "ArgMax"},
      {"arg_min", ArgBest, "ArgMin"},
      {"cumsum", CumSum},
      {"log_softmax", Softmax, "LogSoftmax"},
      {"mean", Mean},
      {"p_norm", PNorm},
      {"reduce_max", Reduce, "ReduceMax"},
      {"reduce_mean", Reduce, "ReduceMean"},
      {"reduce_min", Reduce, "ReduceMin"},
      {"reduce_prod", Reduce, "ReduceProd"},
      {"reduce_sum", Reduce, "ReduceSum"},
      {"softmax", Softmax, "Softmax"},
      {"top_k", TopK},
  };
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone
