// Ops that compute element by element.
#include <cmath>
#include <string>
#include <vector>

#include "graph/export/onnx_rules.h"
#include "graph/import/onnx_same.h"

namespace halftone {
namespace onnx_export {
namespace {

// ---- What is the same in ONNX, but for names.

void Same(SourceOp& op, const Rule& rule) {
  const OnnxSame& same = *FindOnnxSame(rule.onnx);
  NodeMaker node = op.Node(rule.onnx);
  node.In(op.In("X"));
  for (const OnnxSame::Attr& attr : same.attrs) {
    node.Attr(attr.onnx, op.Float(attr.ours));
  }
  node.Out();
}

// Y in dims that go with the last of X's.
std::string Aligned(SourceOp& op) {
  const int x_rank = op.Rank("X"), y_rank = op.Rank("Y");
  const int64_t axis = op.Int("axis");
  IntList behind;
  if (axis >= 0) {
    for (int64_t i = axis + y_rank; i < x_rank; ++i) {
      behind.push_back(i - axis);
    }
  }
  return op.Unsqueezed(op.In("Y"), behind);
}

void Binary(SourceOp& op, const Rule& rule) {
  op.Node(rule.onnx).In(op.In("X")).In(Aligned(op)).Out();
}

void NotEqual(SourceOp& op, const Rule&) {
  op.Node("Not").In(op.Make("Equal", op.In("X"), Aligned(op))).Out();
}

// What is not 0 is true.
void Logical(SourceOp& op, const Rule& rule) {
  const std::string x = op.Cast(op.In("X"), op.dtype("X"), DType::kBool);
  if (rule.onnx == "Not") return op.Node("Not").In(x).Out();
  op.Node(rule.onnx)
      .In(x)
      .In(op.Cast(Aligned(op), op.dtype("Y"), DType::kBool))
      .Out();
}

// ---- Arithmetic.

std::string Number(SourceOp& op, double value) {
  return op.builder().Number(value, op.dtype("X"));
}

void Scale(SourceOp& op, const Rule&) {
  const double scale = op.Float("scale"), bias = op.Float("bias");
  const bool bias_first = !op.Bool("bias_after_scale");
  std::string x = op.In("X");
  if (scale == -1 && bias == 0) return op.Node("Neg").In(x).Out();
  if (bias != 0 && bias_first) x = op.Make("Add", x, Number(op, bias));
  if (bias != 0 && !bias_first) {
    if (scale != 1) x = op.Make("Mul", x, Number(op, scale));
    return op.Node("Add").In(x).In(Number(op, bias)).Out();
  }
  if (scale == 1) return op.Same(x);
  op.Node("Mul").In(x).In(Number(op, scale)).Out();
}

void Square(SourceOp& op, const Rule&) {
  op.Node("Mul").In(op.In("X")).In(op.In("X")).Out();
}

void Rsqrt(SourceOp& op, const Rule&) {
  op.Node("Reciprocal").In(op.Make("Sqrt", op.In("X"))).Out();
}

void Pow(SourceOp& op, const Rule&) {
  op.Node("Pow").In(op.In("X")).In(Number(op, op.Float("factor"))).Out();
}

// Halves go away from zero: what |X| + 0.5 would round itself.
void Round(SourceOp& op, const Rule&) {
  const std::string x = op.In("X");
  if (op.String("ties") == "even") return op.Node("Round").In(x).Out();
  const std::string size = op.Make("Abs", x);
  const std::string floor = op.Make("Floor", size);
  const std::string up =
      op.Make("GreaterOrEqual", op.Make("Sub", size, floor), Number(op, 0.5));
  const std::string whole = op.Node("Where")
                                .In(up)
                                .In(op.Make("Add", floor, Number(op, 1)))
                                .In(floor)
                                .Made();
  op.Node("Mul").In(op.Make("Sign", x)).In(whole).Out();
}

// (1 - epsilon) * X + epsilon / the number of classes.
void LabelSmooth(SourceOp& op, const Rule&) {
  const double epsilon = op.Float("epsilon");
  const double classes =
      static_cast<double>(op.DimsOf("X").back().coefficient());
  const std::string kept = op.Make("Mul", op.In("X"), Number(op, 1 - epsilon));
  op.Node("Add").In(kept).In(Number(op, epsilon / classes)).Out();
}

// X kept within two bounds.
std::string Kept(SourceOp& op, const std::string& x, double low, double high) {
  return op.Node("Clip").In(x).In(Number(op, low)).In(Number(op, high)).Made();
}

void Clip(SourceOp& op, const Rule& rule) {
  double low = 0, high = 0;
  if (rule.ours == "relu6") {
    high = op.Float("threshold");
  } else {
    const bool clip = rule.ours == "clip";
    low = op.Float(clip ? "min" : "t_min");
    high = op.Float(clip ? "max" : "t_max");
  }
  op.Node("Clip").In(op.In("X")).In(Number(op, low)).In(Number(op, high)).Out();
}

// All X in f32, one after the other, rounded once.
void Sum(SourceOp& op, const Rule&) {
  const DType dtype = op.dtype("X");
  const DType wide = IsLow(dtype) ? DType::kF32 : dtype;
  std::string sum = op.Cast(op.In("X"), dtype, wide);
  for (int i = 1; i < op.Count("X"); ++i) {
    sum = op.Make("Add", sum, op.Cast(op.In("X", i), dtype, wide));
  }
  FromWide(op, sum, "Out");
}

void Where(SourceOp& op, const Rule&) {
  op.Node("Where").In(op.In("Condition")).In(op.In("X")).In(op.In("Y")).Out();
}

void Cast(SourceOp& op, const Rule&) {
  op.Node("Cast").In(op.In("X")).Attr("to", op.OutType().dtype).Out();
}

// ---- Activations that opset 17 has no op for, computed in f32.

// X / 2 * (1 + erf(X / sqrt(2))), or with tanh as gelu's doc has it.
void Gelu(SourceOp& op, const Rule&) {
  const std::string x = Wide(op, "X");
  const auto number = [&](double value) {
    return op.builder().Number(value, DType::kF32);
  };
  std::string phi;
  if (op.String("approximate") == "tanh") {
    const std::string cube = op.Make("Mul", op.Make("Mul", x, x), x);
    const std::string inner =
        op.Make("Add", x, op.Make("Mul", cube, number(0.044715)));
    phi = op.Make(
        "Tanh", op.Make("Mul", inner, number(std::sqrt(2 / std::acos(-1.0)))));
  } else {
    phi = op.Make("Erf", op.Make("Div", x, number(std::sqrt(2.0))));
  }
  const std::string both = op.Make("Add", phi, number(1));
  FromWide(op, op.Make("Mul", op.Make("Mul", x, both), number(0.5)), "Out");
}

void Swish(SourceOp& op, const Rule& rule) {
  const std::string x = Wide(op, "X");
  const double beta = rule.ours == "silu" ? 1 : op.Float("beta");
  std::string inner = x;
  if (beta != 1) {
    inner = op.Make("Mul", x, op.builder().Number(beta, DType::kF32));
  }
  FromWide(op, op.Make("Mul", x, op.Make("Sigmoid", inner)), "Out");
}

// Of f32 ln(1 + exp(X)) is X itself from here on.
constexpr double kAlike = 17;

void Mish(SourceOp& op, const Rule&) {
  const double threshold = op.Float("threshold");
  const std::string x = Wide(op, "X");
  std::string inner = op.Make("Softplus", x);
  if (threshold < kAlike) {
    const std::string linear =
        op.Make("Greater", x, op.builder().Number(threshold, DType::kF32));
    inner = op.Node("Where").In(linear).In(x).In(inner).Made();
  }
  FromWide(op, op.Make("Mul", x, op.Make("Tanh", inner)), "Out");
}

void HardSwish(SourceOp& op, const Rule&) {
  const double threshold = op.Float("threshold"), scale = op.Float("scale");
  const double offset = op.Float("offset");
  const std::string x = op.In("X");
  if (threshold == 6 && scale == 6 && offset == 3) {
    return op.Node("HardSwish").In(x).Out();
  }
  const std::string kept =
      Kept(op, op.Make("Add", x, Number(op, offset)), 0, threshold);
  op.Node("Div").In(op.Make("Mul", x, kept)).In(Number(op, scale)).Out();
}

// ln(1 + exp(beta * X)) / beta, or X above a threshold.
void Softplus(SourceOp& op, const Rule&) {
  const double beta = op.Float("beta"), threshold = op.Float("threshold");
  const std::string x = op.In("X");
  if (beta == 1 && threshold >= kAlike) return op.Node("Softplus").In(x).Out();
  const std::string times = op.Make("Mul", x, Number(op, beta));
  const std::string made =
      op.Make("Div", op.Make("Softplus", times), Number(op, beta));
  const std::string linear = op.Make("Greater", times, Number(op, threshold));
  op.Node("Where").In(linear).In(x).In(made).Out();
}

// The slope in dims that go with the last of X's.
void Prelu(SourceOp& op, const Rule&) {
  const Dims dims = op.DimsOf("X");
  Dims slope = {Dim(1)};
  if (op.String("mode") == "channel") {
    slope.assign(dims.size() - 1, Dim(1));
    slope[0] = dims[1];
  } else if (op.String("mode") == "element") {
    slope.assign(dims.begin() + 1, dims.end());
  }
  op.Node("PRelu")
      .In(op.In("X"))
      .In(op.Reshaped(op.In("Alpha"), op.DimsOf("Alpha"), slope))
      .Out();
}

void Identity(SourceOp& op, const Rule&) { op.Same(op.In("X")); }

}  // namespace

const std::vector<Rule>& ElementwiseRules() {
  static const auto& rules = *[] {
    auto* all = new std::vector<Rule>{
        {"assign", Identity},
        {"share_data", Identity},
        {"brelu", Clip},
        {"cast", Cast},
        {"clip", Clip},
        {"elementwise_max", Binary, "Max"},
        {"elementwise_min", Binary, "Min"},
        {"elementwise_pow", Binary, "Pow"},
        {"gelu", Gelu},
        {"hard_swish", HardSwish},
        {"hard_tanh", Clip},
        {"label_smooth", LabelSmooth},
        {"logical_and", Logical, "And"},
        {"logical_not", Logical, "Not"},
        {"logical_or", Logical, "Or"},
        {"logical_xor", Logical, "Xor"},
        {"mish", Mish},
        {"not_equal", NotEqual},
        {"pow", Pow},
        {"prelu", Prelu},
        {"relu6", Clip},
        {"round", Round},
        {"rsqrt", Rsqrt},
        {"scale", Scale},
        {"silu", Swish},
        {"softplus", Softplus},
        {"square", Square},
        {"sum", Sum},
        {"swish", Swish},
        {"where", Where},
    };
    for (const OnnxSame& same : OnnxSameOps()) {
      all->push_back({same.ours, same.inputs == 2 ? Binary : Same, same.onnx});
    }
    return all;
  }();
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone
