// Ops of Paddle's that compute element by element and are several of ours.
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/import/functions.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using paddle::OpDesc;
using paddle::VarType;

// Of whole numbers, which go through f32, exact up to 2^24; and of f64.
std::string AsFloat(Parts& parts, const PaddleOperand& x,
                    const std::string& value) {
  return IsOurFloat(x.dtype) ? value : parts.ToF32(value, x.dtype);
}
void BackFromFloat(Parts& parts, const PaddleOperand& x,
                   const std::string& made) {
  if (!IsOurFloat(x.dtype)) parts.Cast(made, x.dtype);
}

}  // namespace

void Function(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  const ImportedFunction& function = *FindPaddleFunction(op.type());
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  std::vector<double> settings;
  for (const ImportedFunction::Setting& setting : function.of_paddle) {
    settings.push_back(FloatAttr(op, setting.name, setting.otherwise));
  }
  Parts parts = in.Write();
  function.write(parts, in[0].value, settings);
  parts.End();
}

// isnan, isinf, isfinite: a NaN is neither less than anything nor equal to it.
void FiniteOrNot(const OpDesc& op, const Rule&, PaddleScope& scope,
                 ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string x = AsFloat(parts, in[0], in[0].value);
  if (op.type() == "isnan_v2") {
    parts.Binary("not_equal", {x, x});
  } else {
    const std::string most =
        parts.Number(std::numeric_limits<double>::infinity());
    parts.Binary(op.type() == "isinf_v2" ? "equal" : "less_than",
                 {parts.Of("abs", x), most});
  }
  parts.End();
}

// The greater or the less of two, of a NaN and a number the number; X has the
// gradient of ties.
void ExtremeNumber(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  PaddleReader in(op, {"X", "Y"}, scope, result);
  if (!in.ok()) return;
  if (in[0].rank() != in[1].rank() && IntAttr(op, "axis", -1) != -1) {
    return RefuseDimsOf(in[1], "expected a Y of X's rank", result);
  }
  const std::string x = in[0].value, y = in[1].value;
  Parts parts = in.Write();
  const bool most = op.type() == "elementwise_fmax";
  const std::string first =
      parts.Binary(most ? "greater_equal" : "less_equal", {x, y});
  const std::string alone = parts.Binary("not_equal", {y, y});
  const std::string takes = parts.Binary("logical_or", {first, alone});
  parts.Add("where", {{"Condition", takes}, {"X", x}, {"Y", y}});
  parts.End();
}

// By its name; of whole numbers as floats.
void Arithmetic(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                ImportedOp* result) {
  if (ReadsFloats(op, scope)) return ByName(op, rule, scope, result);
  PaddleReader in(op, {"X", "Y"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string left = AsFloat(parts, in[0], in[0].value);
  const std::string right = AsFloat(parts, in[1], in[1].value);
  const std::string made =
      parts.Add(op.type().c_str(), {{"X", left}, {"Y", right}},
                {{"axis", IntAttr(op, "axis", -1)}});
  BackFromFloat(parts, in[0], made);
  parts.End();
}

// By its name; of whole numbers as a float.
void OfOneNumber(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                 ImportedOp* result) {
  if (ReadsFloats(op, scope)) return ByName(op, rule, scope, result);
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  BackFromFloat(
      parts, in[0],
      parts.Of(op.type().c_str(), AsFloat(parts, in[0], in[0].value)));
  parts.End();
}

// Of truths: bitwise_and is logical_and, and so on.
void OfBits(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  const auto& inputs = InputsOf(op, "X");
  const VarType::TensorDesc* const x =
      inputs.empty() ? nullptr : TensorOf(inputs[0], scope);
  if (x == nullptr || x->data_type() != VarType::BOOL) {
    result->refusals.push_back({"of whole numbers, where ours are of truths"});
    return;
  }
  OpDesc logical = op;
  logical.set_type(
      absl::StrCat("logical", absl::StripPrefix(op.type(), "bitwise")));
  ByName(logical, rule, scope, result);
}

// The quotient rounded down, or what it leaves of X, which has Y's sign. No
// gradient goes through either, as in Paddle.
void DivideDown(const OpDesc& op, const Rule&, PaddleScope& scope,
                ImportedOp* result) {
  PaddleReader in(op, {"X", "Y"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const AttrValue axis = IntAttr(op, "axis", -1);
  std::string x = AsFloat(parts, in[0], in[0].value);
  std::string y = AsFloat(parts, in[1], in[1].value);
  const bool rest = op.type() == "elementwise_mod";
  if (rest && x == in[0].value) x = parts.Of("share_data", x);
  if (rest && y == in[1].value) y = parts.Of("share_data", y);
  const auto by_y = [&](const char* type, const std::string& value) {
    return parts.Add(type, {{"X", value}, {"Y", y}}, {{"axis", axis}});
  };
  std::string made = parts.Of("floor", by_y("elementwise_div", x));
  if (rest) {
    made = parts.Binary("elementwise_sub", {x, by_y("elementwise_mul", made)});
  }
  BackFromFloat(parts, in[0], made);
  parts.End();
}

// X + Weight (Y - X).
void Interpolate(const OpDesc& op, const Rule&, PaddleScope& scope,
                 ImportedOp* result) {
  PaddleReader in(op, {"X", "Y", "Weight"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string way =
      parts.Binary("elementwise_sub", {in[1].value, in[0].value});
  const std::string part = parts.Binary("elementwise_mul", {way, in[2].value});
  parts.Binary("elementwise_add", {part, in[0].value});
  parts.End();
}

void Increment(const OpDesc& op, const Rule&, PaddleScope& scope,
               ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string x = AsFloat(parts, in[0], in[0].value);
  BackFromFloat(parts, in[0], parts.Scaled(x, 1, FloatAttr(op, "step", 1)));
  parts.End();
}

// The greatest or the least; ties share the gradient: their sum over how many
// there are.
void ExtremeOfTies(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  std::vector<int64_t> axes = IntsAttr(op, "dim");
  if (axes.empty() || BoolAttr(op, "reduce_all", false)) {
    axes = AxesOf(in[0].rank());
  }
  const AttrValue keep = BoolAttr(op, "keep_dim", false);
  const std::string x = in[0].value;
  Parts parts = in.Write();
  const std::string most =
      parts.Add(op.type() == "reduce_amax" ? "reduce_max" : "reduce_min",
                {{"X", x}}, {{"dim", axes}, {"keep_dim", true}});
  const auto sum = [&](const std::string& of) {
    return parts.Add("reduce_sum", {{"X", of}},
                     {{"dim", axes}, {"keep_dim", keep}});
  };
  const std::string tie = parts.Binary("equal", {x, most});
  const std::string all = sum(parts.Add(
      "where", {{"Condition", tie}, {"X", x}, {"Y", parts.Number(0)}}));
  const std::string count = sum(parts.Cast(tie, VarType::FP32));
  parts.Binary("elementwise_div", {all, count});
  parts.End();
}

// One of several values for each sample, as Ids says.
void Multiplex(const OpDesc& op, const Rule&, PaddleScope& scope,
               ImportedOp* result) {
  PaddleReader in(op, {"Ids", "X*"}, scope, result);
  if (!in.ok()) return;
  if (in[0].rank() != 2) {
    return RefuseDimsOf(in[0], "expected Ids of [samples, 1]", result);
  }
  std::string chosen = in[0].value;
  Parts parts = in.Write();
  std::vector<int64_t> more;  // dims of 1
  for (int i = 2; i < in[1].rank(); ++i) more.push_back(i);
  if (!more.empty()) {
    chosen = parts.Add("unsqueeze2", {{"X", chosen}}, {{"axes", more}});
  }
  const int last = in.size() - 1;
  std::string made = in[last].value;
  for (int i = 1; i < last; ++i) {
    const std::string number = parts.Add(
        "fill_constant", {},
        {{"value", static_cast<double>(i - 1)}, {"dtype", in[0].dtype}});
    const std::string own = parts.Binary("equal", {chosen, number});
    made = parts.Add("where",
                     {{"Condition", own}, {"X", in[i].value}, {"Y", made}});
  }
  parts.EndWith(made);
}

}  // namespace halftone
