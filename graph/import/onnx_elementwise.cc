// Nodes that compute element by element.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/import/functions.h"
#include "graph/import/onnx_ops.h"
#include "graph/import/onnx_same.h"
#include "graph/import/onnx_writer.h"
#include "graph/import/paddle_program.h"

namespace halftone {
namespace {

using Rule = OnnxRule;

// The sole input of an op of ours without attributes.
void Unary(OnnxNode& node, const Rule& rule) {
  node.Op(rule.ours).In("X", node.In(0)).Out();
}

// Of the table that both directions read.
void SameUnary(OnnxNode& node, const Rule& rule) {
  const auto over = [&](const std::string& x) {
    OnnxOp op = node.Op(rule.ours);
    op.In("X", x);
    for (const OnnxSame::Attr& attr : FindOnnxSame(rule.type)->attrs) {
      op.Attr(attr.ours, node.Float(attr.onnx, attr.otherwise));
    }
    return op;
  };
  if (node.IsFloat(0)) return over(node.In(0)).Out();
  // Abs, Neg, Sign and the like have forms for whole numbers.
  node.Same(0, OnnxOfFloats(node, node.In(0), [&](const std::string& x) {
              return over(x).Made();
            }));
}

void Identity(OnnxNode& node, const Rule&) { node.Same(0, node.In(0)); }

void Round(OnnxNode& node, const Rule&) {
  node.Op("round").In("X", node.In(0)).Attr("ties", std::string("even")).Out();
}

// ---- Activations.

void Gelu(OnnxNode& node, const Rule&) {
  node.Op("gelu")
      .In("X", node.In(0))
      .Attr("approximate", node.String("approximate", "none"))
      .Out();
}

void Swish(OnnxNode& node, const Rule&) {
  node.Op("swish")
      .In("X", node.In(0))
      .Attr("beta", node.Float("alpha", 1))
      .Out();
}

void PRelu(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0), slope = node.In(1);
  if (node.failed()) return;
  const Dims own = node.TypeOf(x).dims, given = node.TypeOf(slope).dims;
  const Dim count = node.TypeOf(slope).Elements();
  const size_t channels = own.size() - 2;  // of the slope's dims, as broadcast
  const bool channel = own.size() >= 2 && given.size() >= channels + 1 &&
                       given[given.size() - channels - 1] == count &&
                       count == own[1];
  if (count == Dim(1) || channel) {
    return node.Op("prelu")
        .In("X", x)
        .In("Alpha", node.Reshaped(slope, {count}))
        .Attr("mode", std::string(count == Dim(1) ? "all" : "channel"))
        .Out();
  }
  // Others are broadcast as numpy does it.
  const std::string zero = node.Number(0);
  const std::string positive = OnnxBinary(node, "greater_than", x, zero);
  node.Op("where")
      .In("Condition", positive)
      .In("X", x)
      .In("Y", OnnxBinary(node, "elementwise_mul", x, slope))
      .Out();
}

// ---- Functions that are several ops.

void Function(OnnxNode& node, const Rule& rule) {
  const ImportedFunction& function = *FindOnnxFunction(rule.type);
  std::vector<double> settings;
  for (const ImportedFunction::Setting& setting : function.of_onnx) {
    settings.push_back(node.Float(setting.name, setting.otherwise));
  }
  OnnxWriter ops(&node);
  node.Same(0, function.write(ops, node.In(0), settings));
}

void IsNaN(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  node.Op("not_equal").In("X", x).In("Y", x).Out();
}

void IsInf(OnnxNode& node, const Rule&) {
  const bool positive = node.Int("detect_positive", 1) != 0;
  const bool negative = node.Int("detect_negative", 1) != 0;
  if (!positive && !negative) {
    return node.Refuse("attributes", " that detect nothing");
  }
  std::string x = node.In(0);
  if (positive && negative) x = node.Op("abs").In("X", x).Made();
  const double sign = positive ? 1 : -1;
  node.Op("equal")
      .In("X", x)
      .In("Y", node.Number(sign * std::numeric_limits<double>::infinity()))
      .Out();
}

// ---- Two values.

// The one finite number that the input is, where it leaves the other's rank.
const double* OneNumber(OnnxNode& node, int input, double* number) {
  const OnnxConstant* const known = node.Known(input);
  if (known == nullptr || !known->is_float() || known->elements() != 1 ||
      !node.Folds(input) ||
      static_cast<int>(known->dims.size()) > node.Rank(1 - input)) {
    return nullptr;
  }
  *number = Shortest(static_cast<float>(known->reals[0]));
  return std::isfinite(*number) ? number : nullptr;
}

// As a scale, where one of both is a number: no tensor of it is needed, and
// precision is the other's.
bool AsScale(OnnxNode& node, absl::string_view ours) {
  if (node.inputs() != 2 || !node.IsFloat(0) || !node.IsFloat(1)) return false;
  double number = 0;
  const bool right = OneNumber(node, 1, &number) != nullptr;
  if (!right && OneNumber(node, 0, &number) == nullptr) return false;
  if (ours == "elementwise_div" && !right) {
    const std::string inverse =
        node.Op("reciprocal").In("X", node.In(1)).Made();
    node.Same(0, number == 1 ? inverse : OnnxScale(node, inverse, number, 0));
    return true;
  }
  double scale = 1, bias = 0;
  if (ours == "elementwise_add") {
    bias = number;
  } else if (ours == "elementwise_sub") {
    scale = right ? 1 : -1;
    bias = right ? -number : number;
  } else if (ours == "elementwise_mul") {
    scale = number;
  } else if (ours == "elementwise_div" && right && number != 0) {
    scale = 1 / number;
  } else {
    return false;
  }
  node.Op("scale")
      .In("X", node.In(right ? 0 : 1))
      .Attr("scale", scale)
      .Attr("bias", bias)
      .Out();
  return true;
}

// Arithmetic of ours is of floats: whole numbers go through f32, exact up to
// 2^24. The cast back rounds towards 0, as a division of whole numbers does.
std::string OfFloats(OnnxNode& node, absl::string_view ours,
                     const std::string& x, const std::string& y) {
  if (node.failed()) return "";
  const DType dtype = node.TypeOf(x).dtype;
  const std::string made = OnnxBinary(node, ours, node.ToF32(x), node.ToF32(y));
  return node.Cast(made, dtype);
}

bool IsWhole(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kU8;
}

void Power(OnnxNode& node, const Rule& rule) {
  double exponent = 0;
  if (!node.IsFloat(0)) {
    // What a power lacks by rounding is not to be cut off.
    const std::string x = node.In(0), y = node.In(1);
    if (node.failed()) return;
    const std::string power =
        OnnxBinary(node, rule.ours, node.ToF32(x), node.ToF32(y));
    const std::string whole = node.Op("round").In("X", power).Made();
    return node.Same(0, node.Cast(whole, node.TypeOf(x).dtype));
  }
  if (node.IsFloat(1) && OneNumber(node, 1, &exponent) != nullptr) {
    const std::string x = node.In(0);
    if (exponent == 2) return node.Op("square").In("X", x).Out();
    if (exponent == 0.5) return node.Op("sqrt").In("X", x).Out();
    return node.Op("pow").In("X", x).Attr("factor", exponent).Out();
  }
  const std::string x = node.In(0), y = node.Cast(node.In(1), DType::kF32);
  if (node.failed()) return;
  node.Op(rule.ours)
      .In("X", OnnxToRank(node, x, node.TypeOf(y).rank()))
      .In("Y", y)
      .Out();
}

// One of two by a comparison, for integers, of which no op of ours makes the
// greater.
std::string Choose(OnnxNode& node, absl::string_view ours, const std::string& x,
                   const std::string& y) {
  if (node.failed() || IsFloat(node.TypeOf(x).dtype)) {
    return OnnxBinary(node, ours, x, y);
  }
  const bool greatest = ours == "elementwise_max";
  const std::string first =
      OnnxBinary(node, greatest ? "greater_than" : "less_than", x, y);
  return node.Op("where").In("Condition", first).In("X", x).In("Y", y).Made();
}

// Any number of values, two at a time.
void Fold(OnnxNode& node, const Rule& rule) {
  std::string all = node.In(0);
  for (int i = 1; i < node.inputs() && !node.failed(); ++i) {
    const std::string next = node.In(i);
    all = rule.ours == "elementwise_add"
              ? OnnxBinary(node, rule.ours, all, next)
              : Choose(node, rule.ours, all, next);
  }
  if (rule.type == "Mean") {
    all = OnnxScale(node, all, 1.0 / node.inputs(), 0);
  }
  node.Same(0, all);
}

// X less Y times their quotient, rounded towards 0, as C's fmod, or down, as
// Python's %.
void Modulo(OnnxNode& node, const Rule&) {
  const bool towards_zero = node.Int("fmod", 0) != 0;
  if (node.IsFloat(0) && !towards_zero) {
    return node.Refuse("a form", ": expected fmod = 1 for floats");
  }
  const std::string given = node.In(0);
  if (node.failed()) return;
  const DType dtype = node.TypeOf(given).dtype;
  const std::string x = node.ToF32(given);
  const std::string y = node.ToF32(node.In(1));
  std::string whole = OnnxBinary(node, "elementwise_div", x, y);
  if (towards_zero) {
    const std::string sign = node.Op("sign").In("X", whole).Made();
    const std::string size = node.Op("abs").In("X", whole).Made();
    whole = OnnxBinary(node, "elementwise_mul",
                       node.Op("floor").In("X", size).Made(), sign);
  } else {
    whole = node.Op("floor").In("X", whole).Made();
  }
  const std::string multiple = OnnxBinary(node, "elementwise_mul", whole, y);
  const std::string rest = OnnxBinary(node, "elementwise_sub", x, multiple);
  node.Same(0, node.Cast(rest, dtype));
}

void Binary(OnnxNode& node, const Rule& rule) {
  if (AsScale(node, rule.ours)) return;
  const std::string x = node.In(0), y = node.In(1);
  if (node.failed()) return;
  if (IsWhole(node.TypeOf(x).dtype) &&
      absl::StartsWith(rule.ours, "elementwise_")) {
    return node.Same(0, OfFloats(node, rule.ours, x, y));
  }
  OnnxBinaryOp(node, rule.ours, x, y).Out();
}

void Where(OnnxNode& node, const Rule&) {
  node.Op("where")
      .In("Condition", node.In(0))
      .In("X", node.In(1))
      .In("Y", node.In(2))
      .Out();
}

void Clip(OnnxNode& node, const Rule&) {
  constexpr double kMost = std::numeric_limits<float>::max();
  double low = -kMost, high = kMost;
  if (node.HasAttr("min") || node.HasAttr("max")) {
    low = node.Float("min", low);
    high = node.Float("max", high);
  } else {
    low = node.KnownReal(1, low);
    high = node.KnownReal(2, high);
  }
  if (!(low >= -kMost)) low = -kMost;
  if (!(high <= kMost)) high = kMost;
  if (!node.IsFloat(0)) {
    return node.Same(0,
                     OnnxOfFloats(node, node.In(0), [&](const std::string& x) {
                       return node.Op("clip")
                           .In("X", x)
                           .Attr("min", std::min(low, high))
                           .Attr("max", high)
                           .Made();
                     }));
  }
  if (low == 0 && high == 6) return node.Op("relu6").In("X", node.In(0)).Out();
  if (low <= high) {
    node.Op("clip")
        .In("X", node.In(0))
        .Attr("min", low)
        .Attr("max", high)
        .Out();
    return;
  }
  // ONNX takes the lower of both, then: high everywhere.
  const std::string all = OnnxScale(node, node.In(0), 0, high);
  node.Same(0, all);
}

void Cast(OnnxNode& node, const Rule& rule) {
  DType to = DType::kInvalid;
  if (rule.type == "CastLike") {
    to = node.Type(1).dtype;
  } else {
    const auto number = static_cast<int32_t>(node.Int("to", 0));
    node.Ignore("saturate");
    to = FromOnnx(number);
    if (to == DType::kInvalid) {
      return node.Refuse(
          "attribute to",
          absl::StrCat(" = ", NameOfOnnxType(number), " is not taken"));
    }
  }
  // Floats are f32: what is low is the strategy's matter.
  if (IsFloat(to)) to = DType::kF32;
  node.Same(0, node.Cast(node.In(0), to));
}

}  // namespace

const std::vector<OnnxRule>& OnnxElementwiseRules() {
  static const auto& rules = *[] {
    auto* all = new std::vector<OnnxRule>{
        {"And", Binary, "logical_and"},
        {"Cast", Cast},
        {"CastLike", Cast},
        {"Clip", Clip},
        {"Gelu", Gelu},
        {"HardSwish", Unary, "hard_swish"},
        {"Identity", Identity},
        {"IsInf", IsInf},
        {"IsNaN", IsNaN},
        {"Max", Fold, "elementwise_max"},
        {"Mean", Fold, "elementwise_add"},
        {"Min", Fold, "elementwise_min"},
        {"Mish", Unary, "mish"},
        {"Mod", Modulo},
        {"Not", Unary, "logical_not"},
        {"Or", Binary, "logical_or"},
        {"PRelu", PRelu},
        {"Pow", Power, "elementwise_pow"},
        {"Round", Round},
        {"Softplus", Unary, "softplus"},
        {"Sum", Fold, "elementwise_add"},
        {"Swish", Swish},
        {"Where", Where},
        {"Xor", Binary, "logical_xor"},
    };
    for (const ImportedFunction& function : ImportedFunctions()) {
      if (!function.onnx.empty()) all->push_back({function.onnx, Function});
    }
    for (const OnnxSame& same : OnnxSameOps()) {
      const bool two = same.inputs == 2;
      all->push_back({same.onnx, two ? Binary : SameUnary, same.ours});
    }
    return all;
  }();
  return rules;
}

}  // namespace halftone
