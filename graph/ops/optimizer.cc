// Learning rate and multi-tensor parameter updates.
//
// All updates work on g = Grad * InvScale * ClipFactor (each where present) in
// f32, clamped to +-clip_value where that is not 0, and give select(FoundInf,
// old, new).
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/well_known.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

constexpr double kMaxDouble = std::numeric_limits<double>::max();
// At 1 - beta the bias correction divides; it must not vanish in f32.
constexpr double kLargestBeta = 1 - 1e-7;

// ---- The learning rate.

// Ascending from 0 up.
absl::Status ExpectBoundaries(const InferContext& c) {
  const auto& boundaries = std::get<std::vector<double>>(c.Attr("boundaries"));
  const bool finite =
      std::all_of(boundaries.begin(), boundaries.end(),
                  [](double b) { return std::isfinite(b) && b >= 0; });
  if (finite && std::is_sorted(boundaries.begin(), boundaries.end())) {
    return absl::OkStatus();
  }
  return AttrMismatch(c, "boundaries", "numbers from 0 up, ascending");
}

absl::Status InferPiecewise(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectBoundaries(c));
  const size_t boundaries =
      std::get<std::vector<double>>(c.Attr("boundaries")).size();
  const auto& values = std::get<std::vector<double>>(c.Attr("values"));
  if (values.size() != boundaries + 1) {
    return AttrMismatch(c, "values",
                        absl::StrCat(boundaries + 1,
                                     " numbers, one more than "
                                     "boundaries"));
  }
  return absl::OkStatus();
}

// What a policy divides by is above 0.
absl::Status InferPolicy(const InferContext& c) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  const std::string& policy = c.Str("policy");
  if (policy == "piecewise") return InferPiecewise(c);
  if (policy == "multi_step") return ExpectBoundaries(c);
  if (policy == "step" || policy == "noam" || policy == "cyclic" ||
      policy == "cosine_restarts") {
    HT_RETURN_IF_ERROR(ExpectRange(c, "length", kLeast, kMaxDouble));
  }
  if (policy == "cyclic") {
    return ExpectRange(c, "length_down", kLeast, kMaxDouble);
  }
  return absl::OkStatus();
}

absl::Status InferLearningRate(InferContext& c) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  HT_RETURN_IF_ERROR(
      ExpectWord(c, "policy",
                 {"constant", "cosine", "linear", "piecewise", "poly",
                  "exponential", "step", "multi_step", "one_cycle", "noam",
                  "cyclic", "cosine_restarts"}));
  HT_RETURN_IF_ERROR(
      ExpectWord(c, "every", {"steps", "epochs", "epoch_parts"}));
  HT_RETURN_IF_ERROR(
      ExpectWord(c, "mode", {"triangular", "triangular2", "exp_range"}));
  HT_RETURN_IF_ERROR(ExpectWord(c, "anneal", {"cos", "linear"}));
  HT_RETURN_IF_ERROR(InferPolicy(c));
  for (const char* attr :
       {"gamma", "power", "length", "length_down", "end_lr", "factor"}) {
    HT_RETURN_IF_ERROR(ExpectRange(c, attr, 0, kMaxDouble));
  }
  for (const char* attr : {"min_ratio", "pct_start"}) {
    HT_RETURN_IF_ERROR(ExpectRange(c, attr, 0, 1));
  }
  for (const char* attr : {"div_factor", "final_div_factor", "d_model"}) {
    HT_RETURN_IF_ERROR(ExpectRange(c, attr, kLeast, kMaxDouble));
  }
  HT_RETURN_IF_ERROR(ExpectRange(c, "growth", 1, kMaxDouble));
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Applied"}));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "Schedule", {Dim(3)}, "base, total steps, warm-up steps"));
  if (c.HasInput("StepsPerEpoch")) {
    HT_RETURN_IF_ERROR(ExpectScalars(c, {"StepsPerEpoch"}));
  } else if (c.Str("every") != "steps") {
    return c.Error("slot StepsPerEpoch: expected ", kStepsPerEpoch,
                   " where every is ", c.Str("every"), ", found nothing");
  }
  c.SetOutput("Out", {});
  return absl::OkStatus();
}

OpSchema& WithRateAttrs(OpSchema& schema) {
  return schema
      .Attr("policy", std::string("constant"),
            "constant, cosine, linear, piecewise, poly, exponential, step, "
            "multi_step, one_cycle, noam, cyclic or cosine_restarts")
      .Attr("boundaries", std::vector<double>(),
            "piecewise: where the factor changes, as fractions of the run up "
            "to 1, as steps above; multi_step: where n gets to")
      .Attr("values", std::vector<double>(),
            "piecewise: factors, one more than boundaries")
      .Attr("gamma", 1.0, "exponential, step, multi_step, cyclic: a factor")
      .Attr("power", 1.0, "poly: exponent")
      .Attr("min_ratio", 0.0,
            "cosine, linear, poly, cosine_restarts: last "
            "factor")
      .Attr("every", std::string("steps"),
            "steps, epochs or epoch_parts: what n counts")
      .Attr("length", 0.0,
            "step, poly (0: the rest of the run), noam (of its warm-up), "
            "cyclic (of the way up), cosine_restarts (of the first cycle)")
      .Attr("length_down", 0.0, "cyclic: of the way down")
      .Attr("growth", 1.0, "cosine_restarts: of a cycle's length to the next")
      .Attr("cycle", false, "poly: begins again, each time longer")
      .Attr("end_lr", 0.0, "poly: last rate")
      .Attr("low_lr", -1.0, "cyclic: lowest rate; below 0: base")
      .Attr("max_lr", -1.0,
            "one_cycle, cyclic: highest rate; below 0: base * factor")
      .Attr("factor", 1.0, "one_cycle, cyclic: of the highest rate to base")
      .Attr("pct_start", 0.3, "one_cycle: share of the way up")
      .Attr("div_factor", 25.0, "one_cycle: of the highest rate to the first")
      .Attr("final_div_factor", 1e4, "one_cycle: of the first to the last")
      .Attr("three_phase", false, "one_cycle: back to the first, then on")
      .Attr("anneal", std::string("cos"), "one_cycle: cos or linear")
      .Attr("d_model", 1.0, "noam")
      .Attr("mode", std::string("triangular"),
            "cyclic: triangular, triangular2 or exp_range");
}

OpSchema LearningRateSchema() {
  OpSchema schema("learning_rate");
  schema
      .Doc(
          "With s = Applied and base, total, warm = Schedule, warm rounded up "
          "to whole steps: while s < warm, Out = (s + 1) / warm of what the "
          "policy begins with. Then, with n = s - warm, under every = epochs "
          "(s - warm) / StepsPerEpoch rounded down, under epoch_parts not "
          "rounded, rest = total - warm in that unit and t = n / max(1, rest), "
          "at most 1: constant: base; cosine: base * "
          "(min_ratio + (1 - min_ratio) * (1 + cos(pi * t)) / 2); linear: base "
          "* (1 - (1 - min_ratio) * t); poly: end_lr + (base - end_lr) * "
          "(min_ratio + (1 - min_ratio) * (1 - t)^power), t = min(1, n / "
          "length) where there is one, with cycle of length * ceil(n / "
          "length); exponential: base * gamma^n; "
          "piecewise: base * values[how many boundaries are passed], one up to "
          "1 at that fraction of total, one above 1 at that step of the run; "
          "step: base * gamma^floor(n / length); multi_step: base * gamma^(how "
          "many boundaries n has got to); one_cycle: with max = max_lr, from "
          "max / div_factor at 0 to max at pct_start * rest - 1, and to max / "
          "div_factor / final_div_factor at rest - 1, or (three_phase) first "
          "to max / div_factor at 2 * pct_start * rest - 2; noam: base / "
          "sqrt(d_model) * min((n + 1)^-0.5, (n + 1) * length^-1.5); cyclic: "
          "from low_lr up to max_lr in length, down in length_down, again, the "
          "height times 1, 2^-cycles (triangular2) or gamma^n (exp_range); "
          "cosine_restarts: base * (min_ratio + (1 - min_ratio) * (1 + cos(pi "
          "* n / length)) / 2), n from 0 again after length, which is growth "
          "times longer then.")
      .In("Applied", "i64", "[]: steps applied before this one")
      .ImplicitIn("Schedule", "f32", kSchedule)
      .In("StepsPerEpoch", "f32", "[]: where every is not steps", kOptional)
      .Out("Out", "f32", "[]");
  return WithRateAttrs(schema)
      .Infer(InferLearningRate)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kBlack);
}

// ---- Updates.

// Slots that hold one value per parameter, with its dims.
absl::Status ExpectMembers(const InferContext& c, absl::string_view slot) {
  const auto params = c.InputList("Param");
  const auto members = c.InputList(slot);
  if (members.size() != params.size()) {
    return c.Error("slot ", slot, ": expected ", params.size(),
                   " values, one per member of Param, found ", members.size(),
                   "; list them in the order of Param");
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].dims == params[i].dims) continue;
    return MemberMismatch(
        c, slot, i,
        absl::StrCat("the dims of Param[", i, "], ", c.Print(params[i])),
        "list them in the order of Param");
  }
  return absl::OkStatus();
}

// Every list output has one value per parameter; LowOut may have none.
absl::Status SetMembers(InferContext& c, absl::string_view slot) {
  const auto params = c.InputList("Param");
  const int count = c.OutputCount(slot);
  if (slot == "LowOut" && count == 0) return absl::OkStatus();
  if (count != static_cast<int>(params.size())) {
    return c.Error("slot ", slot, ": expected ", params.size(),
                   " values, one per member of Param",
                   slot == "LowOut" ? ", or none" : "", ", found ", count,
                   "; name each output");
  }
  for (int i = 0; i < count; ++i) {
    c.SetOutput(slot, params[i].dims, i);
    c.SetOutputLayout(slot, params[i].layout, i);
  }
  return absl::OkStatus();
}

absl::Status InferUpdate(InferContext& c) {
  if (c.InputList("Param").empty()) {
    return SlotMismatch(c, "Param", "one value or more");
  }
  for (const Slot& slot : c.schema().inputs()) {
    HT_RETURN_IF_ERROR(slot.list() ? ExpectMembers(c, slot.name)
                                   : ExpectScalars(c, {slot.name}));
  }
  for (const Slot& slot : c.schema().outputs()) {
    HT_RETURN_IF_ERROR(SetMembers(c, slot.name));
  }
  for (const AttrSpec& attr : c.schema().attrs()) {
    if (KindOf(attr.default_value) != AttrKind::kFloat) continue;
    const bool beta = attr.name == "beta1" || attr.name == "beta2";
    HT_RETURN_IF_ERROR(
        ExpectRange(c, attr.name, 0, beta ? kLargestBeta : kMaxDouble));
  }
  return absl::OkStatus();
}

// Slots, whose order is part of file formats: Param, Grad, state...,
// LearningRate, (Applied,) FoundInf, InvScale, ClipFactor -> ParamOut, state
// outs, LowOut.
OpSchema UpdateSchema(absl::string_view name, absl::string_view doc,
                      const std::vector<std::string>& state, bool applied) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("P", kFloatTypes)
      .TypeVar("G", kFloatTypes)
      .TypeVar("L", kLowTypes)
      .In("Param", "P", "parameters", kList)
      .In("Grad", "G", "their gradients, reduced", kList);
  for (const std::string& slot : state) {
    schema.In(slot, "f32", "dims of Param", kList);
  }
  schema.In("LearningRate", "f32", "[]");
  if (applied) schema.In("Applied", "i64", "[]: steps applied before this one");
  schema.In("FoundInf", "bool", "[]: the step is rejected")
      .In("InvScale", "f32", "[]", kOptional)
      .In("ClipFactor", "f32", "[]", kOptional)
      .Out("ParamOut", "P", "new parameters", kList)
      .MayAlias("ParamOut", "Param");
  for (const std::string& slot : state) {
    const std::string out = absl::StrCat(slot, "Out");
    schema.Out(out, "f32", absl::StrCat("new ", slot), kList)
        .MayAlias(out, slot);
  }
  schema
      .Out("LowOut", "L", "ParamOut rounded to 16 bits; all or none",
           kList | kOptional)
      .Attr("weight_decay", 0.0, "see above; 0: none")
      .Attr("clip_value", 0.0, "g is clamped to +-clip_value; 0: it is not")
      .Infer(InferUpdate)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kBlack)
      .Layout(LayoutRule::kAny)
      .Guarded();
  return schema;
}

OpSchema AdamSchema(absl::string_view name, absl::string_view decay) {
  OpSchema schema = UpdateSchema(
      name,
      absl::StrCat(decay,
                   " Then m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 "
                   "- beta2) * g^2 and, with t = Applied + 1, p -= "
                   "LearningRate * m / (1 - beta1^t) / (sqrt(v / (1 - "
                   "beta2^t)) + epsilon)."),
      {"Moment1", "Moment2"}, /*applied=*/true);
  schema.Attr("beta1", 0.9, "decay of the first moment")
      .Attr("beta2", 0.999, "decay of the second moment")
      .Attr("epsilon", 1e-8, "added to the root");
  return schema;
}

}  // namespace

void RegisterOptimizer(OpRegistry& registry) {
  registry.Add(LearningRateSchema());
  registry.Add(UpdateSchema(
      "sgd", "g += weight_decay * p; p -= LearningRate * g.", {}, false));
  registry.Add(
      UpdateSchema("momentum",
                   "g += weight_decay * p; v = mu * v + g; p -= LearningRate "
                   "* v, or LearningRate * (g + mu * v) with use_nesterov.",
                   {"Velocity"}, false)
          .Attr("mu", 0.9, "decay of the velocity")
          .Attr("use_nesterov", false, "look ahead along the velocity"));
  registry.Add(AdamSchema("adam", "g += weight_decay * p."));
  registry.Add(AdamSchema("adamw", "p *= 1 - LearningRate * weight_decay."));
}

}  // namespace ops
}  // namespace halftone
