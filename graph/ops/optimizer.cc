// Learning rate and multi-tensor parameter updates.
//
// All updates work on g = Grad * InvScale * ClipFactor (each where present) in
// f32, clamped to +-clip_value where that is not 0, scaled down where its norm
// is above clip_norm and that is not 0, and give select(FoundInf, old, new).
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/well_known.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/optimizer_dgc.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

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

// Every list output has one value per parameter; LowOut may have none, and the
// new values of a state that is left out have to be.
absl::Status SetMembers(InferContext& c, const Slot& output) {
  const std::string& slot = output.name;
  const auto params = c.InputList("Param");
  const int count = c.OutputCount(slot);
  const bool low = slot == "LowOut";
  if (low && count == 0) return absl::OkStatus();
  const bool left_out =
      output.optional() && !low &&
      c.InputList(c.schema().inputs()[output.may_alias - 1].name).empty();
  const int expected = left_out ? 0 : static_cast<int>(params.size());
  if (count != expected) {
    return c.Error(
        "slot ", slot, ": expected ", expected, " values, ",
        left_out ? "as the state is left out" : "one per member of Param",
        low ? ", or none" : "", ", found ", count, "; name each output");
  }
  for (int i = 0; i < count; ++i) {
    c.SetOutput(slot, params[i].dims, i);
    c.SetOutputLayout(slot, params[i].layout, i);
  }
  return absl::OkStatus();
}

// Of clip_norm: which of SquaredNorm is whose.
absl::Status InferNorms(const InferContext& c) {
  const bool clips = std::get<double>(c.Attr("clip_norm")) > 0;
  if (clips != c.HasInput("SquaredNorm")) {
    return c.Error("slot SquaredNorm: expected ", clips ? "f32[n]" : "nothing",
                   " with clip_norm ", clips ? "above 0" : "0", ", found ",
                   clips ? "nothing" : "a value");
  }
  if (!clips) return absl::OkStatus();
  HT_RETURN_IF_ERROR(ExpectRank(c, "SquaredNorm", 1, "[n]"));
  const int64_t n = c.Input("SquaredNorm").dims[0].coefficient();
  const auto& places = std::get<std::vector<int64_t>>(c.Attr("norm_of"));
  const bool within = std::all_of(places.begin(), places.end(),
                                  [n](int64_t i) { return i >= 0 && i < n; });
  if (within && places.size() == c.InputList("Param").size()) {
    return absl::OkStatus();
  }
  return AttrMismatch(
      c, "norm_of",
      absl::StrCat("a place from 0 to ", n - 1, " for each member of Param"));
}

double LargestOf(absl::string_view attr) {
  if (attr == "beta1" || attr == "beta2") return kLargestBeta;
  return attr == "alpha" || attr == "rho" ? 1 : kMaxDouble;
}

absl::Status InferUpdate(InferContext& c) {
  if (c.InputList("Param").empty()) {
    return SlotMismatch(c, "Param", "one value or more");
  }
  for (const Slot& slot : c.schema().inputs()) {
    if (slot.list() && slot.optional() && c.InputList(slot.name).empty()) {
      continue;
    }
    if (slot.name == "SquaredNorm") continue;
    HT_RETURN_IF_ERROR(slot.list() ? ExpectMembers(c, slot.name)
                                   : ExpectScalars(c, {slot.name}));
  }
  for (const Slot& slot : c.schema().outputs()) {
    HT_RETURN_IF_ERROR(SetMembers(c, slot));
  }
  HT_RETURN_IF_ERROR(InferNorms(c));
  for (const AttrSpec& attr : c.schema().attrs()) {
    if (KindOf(attr.default_value) != AttrKind::kFloat) continue;
    HT_RETURN_IF_ERROR(ExpectRange(c, attr.name, 0, LargestOf(attr.name)));
  }
  return absl::OkStatus();
}

// Slots, whose order is part of file formats: Param, Grad, state...,
// LearningRate, (Applied,) FoundInf, InvScale, ClipFactor, SquaredNorm ->
// ParamOut, state outs, LowOut.
struct State {
  const char* slot;
  uint32_t flags = kList;
};
constexpr uint32_t kMaybe = kList | kOptional;

OpSchema UpdateSchema(absl::string_view name, absl::string_view doc,
                      const std::vector<State>& states, bool applied) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("P", kFloatTypes)
      .TypeVar("G", kFloatTypes)
      .TypeVar("L", kLowTypes)
      .In("Param", "P", "parameters", kList)
      .In("Grad", "G", "their gradients, reduced", kList);
  for (const State& state : states) {
    schema.In(state.slot, "f32", "dims of Param", state.flags);
  }
  schema.In("LearningRate", "f32", "[]");
  if (applied) schema.In("Applied", "i64", "[]: steps applied before this one");
  schema.In("FoundInf", "bool", "[]: the step is rejected")
      .In("InvScale", "f32", "[]", kOptional)
      .In("ClipFactor", "f32", "[]", kOptional)
      .In("SquaredNorm", "f32", "[n]: of unscaled gradients, for clip_norm",
          kOptional)
      .Out("ParamOut", "P", "new parameters", kList)
      .MayAlias("ParamOut", "Param");
  for (const State& state : states) {
    const std::string out = absl::StrCat(state.slot, "Out");
    schema.Out(out, "f32", absl::StrCat("new ", state.slot), state.flags)
        .MayAlias(out, state.slot);
  }
  schema
      .Out("LowOut", "L", "ParamOut rounded to 16 bits; all or none",
           kList | kOptional)
      .Attr("weight_decay", 0.0, "see above; 0: none")
      .Attr("clip_value", 0.0, "g is clamped to +-clip_value; 0: it is not")
      .Attr("clip_norm", 0.0,
            "g *= min(1, clip_norm / (|g| + 1e-6)), of each parameter; 0: not")
      .Attr("norm_of", std::vector<int64_t>(),
            "with clip_norm: the place of each member in SquaredNorm")
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
      {{"Moment1"}, {"Moment2"}}, /*applied=*/true);
  schema.Attr("beta1", 0.9, "decay of the first moment")
      .Attr("beta2", 0.999, "decay of the second moment")
      .Attr("epsilon", 1e-8, "added to the root");
  return schema;
}

// As torch.optim has them.
void RegisterAdaptive(OpRegistry& registry) {
  registry.Add(
      UpdateSchema("adagrad",
                   "torch.optim's: g += weight_decay * p; s += g^2; p -= "
                   "LearningRate / (1 + Applied * lr_decay) * g / (sqrt(s) + "
                   "epsilon).",
                   {{"SquareSum"}}, true)
          .Attr("lr_decay", 0.0, "how the rate falls with the steps applied")
          .Attr("epsilon", 1e-10, "added to the root"));
  registry.Add(
      UpdateSchema("rmsprop",
                   "torch.optim's: g += weight_decay * p; s = alpha * s + (1 - "
                   "alpha) * g^2; d = g / (sqrt(s) + epsilon), where MeanGrad "
                   "is there of s - m^2 in place of s, not below 0, with m = "
                   "alpha * m + (1 - alpha) * g; p -= LearningRate * d or, "
                   "where Momentum is there, v = momentum * v + d; p -= "
                   "LearningRate * v.",
                   {{"MeanSquare"}, {"MeanGrad", kMaybe}, {"Momentum", kMaybe}},
                   false)
          .Attr("alpha", 0.99, "decay of the means")
          .Attr("epsilon", 1e-8, "added to the root")
          .Attr("momentum", 0.0, "how much of Momentum stays"));
  registry.Add(
      UpdateSchema("adadelta",
                   "torch.optim's: g += weight_decay * p; s = rho * s + (1 - "
                   "rho) * g^2; d = sqrt(a + epsilon) / sqrt(s + epsilon) * g; "
                   "a = rho * a + (1 - rho) * d^2; p -= LearningRate * d.",
                   {{"MeanSquare"}, {"MeanDelta"}}, false)
          .Attr("rho", 0.9, "decay of both means")
          .Attr("epsilon", 1e-6, "added below the roots"));
  registry.Add(
      UpdateSchema("adamax",
                   "torch.optim's: g += weight_decay * p; m = beta1 * m + (1 - "
                   "beta1) * g; u = max(beta2 * u, |g| + epsilon) and, with t "
                   "= Applied + 1, p -= LearningRate / (1 - beta1^t) * m / u.",
                   {{"Moment"}, {"InfNorm"}}, true)
          .Attr("beta1", 0.9, "decay of the moment")
          .Attr("beta2", 0.999, "decay of the largest gradient")
          .Attr("epsilon", 1e-8, "added to the gradient's magnitude"));
  registry.Add(
      UpdateSchema("lion",
                   "Chen et al. 2023: p *= 1 - LearningRate * weight_decay; p "
                   "-= LearningRate * sign(beta1 * m + (1 - beta1) * g); m = "
                   "beta2 * m + (1 - beta2) * g.",
                   {{"Moment"}}, false)
          .Attr("beta1", 0.9, "weight of the moment in the direction")
          .Attr("beta2", 0.99, "decay of the moment"));
}

constexpr char kTrustRatioDoc[] = "false: the ratio is 1";

// |x|: the square root of the sum of all squares of one parameter.
void RegisterByNorms(OpRegistry& registry) {
  registry.Add(
      UpdateSchema("lars",
                   "You et al. 2017, as Paddle's LarsMomentum: v = mu * v + "
                   "LearningRate * ratio * (g + weight_decay * p); p -= v. "
                   "ratio = lars_coeff * |p| / (|g| + weight_decay * |p| + "
                   "epsilon), of each parameter; 1 where weight_decay or a "
                   "norm is 0.",
                   {{"Velocity"}}, false)
          .Attr("mu", 0.9, "decay of the velocity")
          .Attr("lars_coeff", 0.001, "trust in a layer's direction")
          .Attr("epsilon", 0.0, "added to the norms below the line")
          .Attr("trust_ratio", true, kTrustRatioDoc));
  registry.Add(
      UpdateSchema("lamb",
                   "You et al. 2019, version 3: m = beta1 * m + (1 - beta1) * "
                   "g, v = beta2 * v + (1 - beta2) * g^2 and, with t = Applied "
                   "+ 1, r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + "
                   "epsilon) + weight_decay * p; p -= LearningRate * |p| / |r| "
                   "* r, of each parameter; without the ratio where a norm is "
                   "0.",
                   {{"Moment1"}, {"Moment2"}}, true)
          .Attr("beta1", 0.9, "decay of the first moment")
          .Attr("beta2", 0.999, "decay of the second moment")
          .Attr("epsilon", 1e-6, "added to the root")
          .Attr("trust_ratio", true, kTrustRatioDoc));
}

absl::Status InferAverage(InferContext& c) {
  const auto params = c.InputList("Param");
  if (params.empty()) return SlotMismatch(c, "Param", "one value or more");
  HT_RETURN_IF_ERROR(ExpectMembers(c, "Average"));
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Applied", "FoundInf"}));
  HT_RETURN_IF_ERROR(ExpectRange(c, "decay", 0, 1));
  return SetMembers(c, c.schema().outputs()[0]);
}

OpSchema AverageSchema() {
  return OpSchema("ema")
      .Doc(
          "select(FoundInf, a, d * a + (1 - d) * p), with d = decay or, with "
          "warmup and t = Applied + 1, min(decay, (1 + t) / (10 + t)).")
      .TypeVar("P", kFloatTypes)
      .In("Average", "f32", "dims of Param", kList)
      .In("Param", "P", "new parameters", kList)
      .In("Applied", "i64", "[]: steps applied before this one")
      .In("FoundInf", "bool", "[]: the step is rejected")
      .Out("AverageOut", "f32", "new averages", kList)
      .MayAlias("AverageOut", "Average")
      .Attr("decay", 0.999, "what stays of the average")
      .Attr("warmup", false, "a smaller decay at first")
      .Infer(InferAverage)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kBlack)
      .Layout(LayoutRule::kAny)
      .Guarded();
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
                   {{"Velocity"}}, false)
          .Attr("mu", 0.9, "decay of the velocity")
          .Attr("use_nesterov", false, "look ahead along the velocity"));
  registry.Add(AdamSchema("adam", "g += weight_decay * p."));
  registry.Add(AdamSchema("adamw", "p *= 1 - LearningRate * weight_decay."));
  RegisterAdaptive(registry);
  RegisterByNorms(registry);
  RegisterDgc(registry);
  registry.Add(AverageSchema());
}

}  // namespace ops
}  // namespace halftone
