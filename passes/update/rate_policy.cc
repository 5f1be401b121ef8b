#include "passes/update/rate_policy.h"

namespace halftone {
namespace passes {
namespace {

AttrValue Word(const std::string& word) { return AttrValue(word); }
template <typename T>
AttrValue Number(T value) {
  return AttrValue(static_cast<double>(value));
}
std::vector<double> Numbers(
    const google::protobuf::RepeatedField<double>& numbers) {
  return std::vector<double>(numbers.begin(), numbers.end());
}

RateAttrs Of(const proto::Cosine& s) {
  return {{"min_ratio", Number(s.min_ratio())}, {"policy", Word("cosine")}};
}
RateAttrs Of(const proto::Linear& s) {
  return {{"min_ratio", Number(s.min_ratio())}, {"policy", Word("linear")}};
}
RateAttrs Of(const proto::Piecewise& s) {
  return {{"boundaries", AttrValue(Numbers(s.boundary()))},
          {"values", AttrValue(Numbers(s.factor()))},
          {"policy", Word("piecewise")}};
}
RateAttrs Of(const proto::StepDecay& s) {
  return {{"policy", Word("step")},
          {"gamma", Number(s.gamma())},
          {"every", Word(s.every())},
          {"length", Number(s.step_size())}};
}
RateAttrs Of(const proto::MultiStep& s) {
  const std::vector<double> milestones(s.milestones().begin(),
                                       s.milestones().end());
  return {{"policy", Word("multi_step")},
          {"gamma", Number(s.gamma())},
          {"every", Word(s.every())},
          {"boundaries", AttrValue(milestones)}};
}
RateAttrs Of(const proto::Polynomial& s) {
  return {{"policy", Word("poly")},        {"power", Number(s.power())},
          {"every", Word(s.every())},      {"length", Number(s.decay_steps())},
          {"cycle", AttrValue(s.cycle())}, {"end_lr", Number(s.end_lr())}};
}
RateAttrs Of(const proto::Exponential& s) {
  return {{"policy", Word("exponential")},
          {"gamma", Number(s.gamma())},
          {"every", Word(s.every())}};
}
RateAttrs Of(const proto::OneCycle& s) {
  RateAttrs attrs = {{"policy", Word("one_cycle")},
                     {"pct_start", Number(s.pct_start())},
                     {"div_factor", Number(s.div_factor())},
                     {"final_div_factor", Number(s.final_div_factor())},
                     {"three_phase", AttrValue(s.three_phase())},
                     {"anneal", Word(s.anneal_strategy())}};
  if (s.has_max_lr()) attrs.emplace_back("max_lr", Number(s.max_lr()));
  if (s.has_factor()) attrs.emplace_back("factor", Number(s.factor()));
  return attrs;
}
RateAttrs Of(const proto::Noam& s) {
  return {{"policy", Word("noam")},
          {"length", Number(s.warmup_steps())},
          {"d_model", Number(s.d_model())}};
}
RateAttrs Of(const proto::Cyclic& s) {
  RateAttrs attrs = {
      {"policy", Word("cyclic")},
      {"gamma", Number(s.gamma())},
      {"every", Word(s.every())},
      {"length", Number(s.step_size_up())},
      {"length_down",
       Number(s.has_step_size_down() ? s.step_size_down() : s.step_size_up())},
      {"max_lr", Number(s.max_lr())},
      {"mode", Word(s.mode())}};
  if (s.has_base_lr()) attrs.emplace_back("low_lr", Number(s.base_lr()));
  return attrs;
}
RateAttrs Of(const proto::CosineRestarts& s) {
  return {{"policy", Word("cosine_restarts")},
          {"min_ratio", Number(s.min_ratio())},
          {"every", Word(s.every())},
          {"length", Number(s.t_0())},
          {"growth", Number(s.t_mult())}};
}

}  // namespace

RateAttrs RatePolicyOf(const proto::LearningRate& lr) {
  switch (lr.schedule_case()) {
    case proto::LearningRate::kCosine:
      return Of(lr.cosine());
    case proto::LearningRate::kLinear:
      return Of(lr.linear());
    case proto::LearningRate::kPiecewise:
      return Of(lr.piecewise());
    case proto::LearningRate::kStep:
      return Of(lr.step());
    case proto::LearningRate::kMultiStep:
      return Of(lr.multi_step());
    case proto::LearningRate::kPolynomial:
      return Of(lr.polynomial());
    case proto::LearningRate::kExponential:
      return Of(lr.exponential());
    case proto::LearningRate::kOneCycle:
      return Of(lr.one_cycle());
    case proto::LearningRate::kNoam:
      return Of(lr.noam());
    case proto::LearningRate::kCyclic:
      return Of(lr.cyclic());
    case proto::LearningRate::kCosineRestarts:
      return Of(lr.cosine_restarts());
    case proto::LearningRate::kConstant:
    case proto::LearningRate::SCHEDULE_NOT_SET:
      break;
  }
  return {{"policy", Word("constant")}};
}

bool CountsEpochs(const RateAttrs& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name == "every") return std::get<std::string>(value) != "steps";
  }
  return false;
}

}  // namespace passes
}  // namespace halftone
