#include "kernels/common/settings.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {
namespace {

int32_t Clamped(int64_t steps) {
  return static_cast<int32_t>(
      std::min<int64_t>(steps, std::numeric_limits<int32_t>::max()));
}

functors::RatePolicy PolicyOf(const std::string& name) {
  using functors::RatePolicy;
  if (name == "cosine") return RatePolicy::kCosine;
  if (name == "linear") return RatePolicy::kLinear;
  if (name == "poly") return RatePolicy::kPoly;
  if (name == "exponential") return RatePolicy::kExponential;
  if (name == "piecewise") return RatePolicy::kPiecewise;
  if (name == "step") return RatePolicy::kStep;
  if (name == "multi_step") return RatePolicy::kMultiStep;
  if (name == "one_cycle") return RatePolicy::kOneCycle;
  if (name == "noam") return RatePolicy::kNoam;
  if (name == "cyclic") return RatePolicy::kCyclic;
  if (name == "cosine_restarts") return RatePolicy::kCosineRestarts;
  return RatePolicy::kConstant;
}

float F32(const BoundOp& op, absl::string_view name) {
  return static_cast<float>(op.Float(name));
}
float Decay(const BoundOp& op) { return F32(op, "weight_decay"); }

}  // namespace

float ReductionScale(double predivide, int world_size) {
  if (predivide > 0) return static_cast<float>(1 / predivide);
  float p = 1.0f;
  for (int64_t n = 1; n < world_size; n *= 2) p *= 0.5f;
  return p;
}

float SumScale(const BoundOp& op) {
  if (op.Str("gradient_scale") == "none") return 1;
  return ReductionScale(op.Float("predivide"), op.context().world_size);
}

float ReductionScale(const BoundOp& op) {
  if (op.Str("gradient_scale") == "post") return 1;
  return ReductionScale(op.Float("predivide"), op.context().world_size);
}

int64_t ElementCount(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const int64_t axis = op.Int("axis");
  return axis < 0 ? x.elements() : x.dims[axis];
}

functors::LossScalePolicy LossScalePolicyOf(const BoundOp& op) {
  const double ceiling = op.Float("ceiling");
  return {Clamped(op.Int("incr_every_n_steps")),
          Clamped(op.Int("decr_every_n_nan_or_inf")),
          op.Float("incr_ratio"),
          op.Float("decr_ratio"),
          op.Float("floor"),
          ceiling > 0 ? ceiling : functors::Infinity(),
          op.Bool("clamp")};
}

std::vector<int64_t> NormOrder(const BoundOp& op) {
  std::vector<int64_t> order = op.Ints("order");
  if (!order.empty()) return order;
  for (int64_t i = 0; i < op.inputs()[0].elements(); ++i) order.push_back(i);
  return order;
}

void ReadRule(const BoundOp& op, functors::SgdRule* rule) {
  rule->weight_decay = Decay(op);
}

void ReadRule(const BoundOp& op, functors::MomentumRule* rule) {
  rule->weight_decay = Decay(op);
  rule->mu = static_cast<float>(op.Float("mu"));
  rule->nesterov = op.Bool("use_nesterov");
}

void ReadRule(const BoundOp& op, functors::AdamRule* rule) {
  rule->beta1 = op.Float("beta1");
  rule->beta2 = op.Float("beta2");
  rule->epsilon = op.Float("epsilon");
  rule->weight_decay = Decay(op);
  rule->decoupled = op.type() == "adamw";
}

void ReadRule(const BoundOp& op, functors::AdagradRule* rule) {
  *rule = {op.Float("lr_decay"), Decay(op), F32(op, "epsilon")};
}

void ReadRule(const BoundOp& op, functors::AdadeltaRule* rule) {
  *rule = {op.Float("rho"), Decay(op), F32(op, "epsilon")};
}

void ReadRule(const BoundOp& op, functors::AdamaxRule* rule) {
  *rule = {op.Float("beta1"), op.Float("beta2"), Decay(op), F32(op, "epsilon")};
}

void ReadRule(const BoundOp& op, functors::LarsRule* rule) {
  *rule = {F32(op, "mu"), F32(op, "lars_coeff"), Decay(op), F32(op, "epsilon"),
           op.Bool("trust_ratio")};
}

void ReadRule(const BoundOp& op, functors::LambRule* rule) {
  *rule = {op.Float("beta1"), op.Float("beta2"), Decay(op), F32(op, "epsilon"),
           op.Bool("trust_ratio")};
}

void ReadRule(const BoundOp& op, functors::LionRule* rule) {
  *rule = {op.Float("beta1"), op.Float("beta2"), Decay(op)};
}

Candidate ByRmspropForm(std::vector<Candidate> forms) {
  Candidate candidate = forms[0];
  candidate.prepare = [forms = std::move(forms)](const BoundOp& op,
                                                 runtime::Device& device) {
    const int form =
        2 * (op.InputCount("MeanGrad") > 0) + (op.InputCount("Momentum") > 0);
    return forms[form].prepare(op, device);
  };
  return candidate;
}

UpdateSlots::UpdateSlots(const BoundOp& op)
    : members(op.InputCount("Param")),
      has_low(op.OutputCount("LowOut") > 0),
      learning_rate(op.InputIndex("LearningRate")),
      applied(op.schema().FindInput("Applied") >= 0 ? op.InputIndex("Applied")
                                                    : -1),
      found_inf(op.InputIndex("FoundInf")),
      inv_scale(op.InputIndex("InvScale")),
      clip_factor(op.InputIndex("ClipFactor")),
      squared_norm(op.InputIndex("SquaredNorm")),
      param(op.inputs()[0].dtype),
      grad(op.inputs()[members].dtype),
      clip_norm(F32(op, "clip_norm")),
      norm_of(op.Ints("norm_of")) {
  if (has_low) low = op.Output("LowOut").dtype;
  const float clip = static_cast<float>(op.Float("clip_value"));
  clip_value = clip > 0 ? clip : functors::Infinity();
}

functors::AverageRule AverageRuleOf(const BoundOp& op) {
  return {op.Float("decay"), op.Bool("warmup")};
}

functors::RateSettings RateSettingsOf(const BoundOp& op) {
  const std::string& every = op.Str("every");
  const std::string& mode = op.Str("mode");
  functors::RateSettings s;
  s.policy = PolicyOf(op.Str("policy"));
  s.every = every == "epochs"        ? functors::RateClock::kEpochs
            : every == "epoch_parts" ? functors::RateClock::kEpochParts
                                     : functors::RateClock::kSteps;
  s.mode = mode == "triangular2" ? functors::CyclicMode::kTriangular2
           : mode == "exp_range" ? functors::CyclicMode::kExpRange
                                 : functors::CyclicMode::kTriangular;
  s.begins_again = op.Bool("cycle");
  s.three_phase = op.Bool("three_phase");
  s.anneals_linearly = op.Str("anneal") == "linear";
  s.gamma = op.Float("gamma");
  s.power = op.Float("power");
  s.min_ratio = op.Float("min_ratio");
  s.length = op.Float("length");
  s.length_down = op.Float("length_down");
  s.growth = op.Float("growth");
  s.last_rate = op.Float("end_lr");
  s.low_lr = op.Float("low_lr");
  s.max_lr = op.Float("max_lr");
  s.factor = op.Float("factor");
  s.rise = op.Float("pct_start");
  s.div_factor = op.Float("div_factor");
  s.final_div_factor = op.Float("final_div_factor");
  s.d_model = op.Float("d_model");
  return s;
}

std::vector<float> PerChannel(const std::vector<double>& values,
                              int64_t channels) {
  std::vector<float> result(channels);
  for (int64_t c = 0; c < channels; ++c) {
    result[c] = static_cast<float>(values.size() == 1 ? values[0] : values[c]);
  }
  return result;
}

}  // namespace kernels
}  // namespace halftone
