#include "tests/numerics/optimizer_steps.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {

using kernels::KernelRun;
using kernels::Scalar;
using kernels::Tensor;

const std::vector<OptimizerCase>& OptimizerCases() {
  static const auto& cases = *new std::vector<OptimizerCase>{
      {"sgd", "sgd", {}, {{"weight_decay", 0.01}}},
      {"momentum", "momentum", {{"Velocity"}}, {{"weight_decay", 0.01}}},
      {"nesterov", "momentum", {{"Velocity"}}, {{"use_nesterov", true}}},
      {"adam",
       "adam",
       {{"Moment1"}, {"Moment2"}},
       {{"weight_decay", 0.01}},
       true},
      {"adamw",
       "adamw",
       {{"Moment1"}, {"Moment2"}},
       {{"weight_decay", 0.1}},
       true},
      {"adagrad", "adagrad", {{"SquareSum"}}, {}, true},
      {"adagrad_decays",
       "adagrad",
       {{"SquareSum", 0.5}},
       {{"weight_decay", 0.01}, {"lr_decay", 0.1}},
       true},
      {"rmsprop", "rmsprop", {{"MeanSquare"}}, {{"weight_decay", 0.01}}},
      {"rmsprop_momentum",
       "rmsprop",
       {{"MeanSquare"}, {"Momentum"}},
       {{"momentum", 0.9}}},
      {"rmsprop_centered",
       "rmsprop",
       {{"MeanSquare"}, {"MeanGrad"}},
       {{"alpha", 0.9}}},
      {"rmsprop_both",
       "rmsprop",
       {{"MeanSquare"}, {"MeanGrad"}, {"Momentum"}},
       {{"momentum", 0.5}, {"weight_decay", 0.01}}},
      {"adadelta",
       "adadelta",
       {{"MeanSquare"}, {"MeanDelta"}},
       {{"weight_decay", 0.01}},
       false,
       1.0},
      {"adamax",
       "adamax",
       {{"Moment"}, {"InfNorm"}},
       {{"weight_decay", 0.01}},
       true},
      {"lion", "lion", {{"Moment"}}, {{"weight_decay", 0.1}}},
      {"lars", "lars", {{"Velocity"}}, {{"weight_decay", 0.0005}}, false, 1.0},
      {"lars_no_ratio",
       "lars",
       {{"Velocity"}},
       {{"weight_decay", 0.01}, {"trust_ratio", false}}},
      {"lamb",
       "lamb",
       {{"Moment1"}, {"Moment2"}},
       {{"weight_decay", 0.01}},
       true},
      {"lamb_no_ratio",
       "lamb",
       {{"Moment1"}, {"Moment2"}},
       {{"weight_decay", 0.01}, {"trust_ratio", false}},
       true}};
  return cases;
}

OptimizerSteps::OptimizerSteps(const OptimizerCase& method,
                               std::vector<Values> parameters, DType grad,
                               int threads)
    : method_(method),
      grad_(grad),
      threads_(threads),
      parameters_(std::move(parameters)) {
  for (const OptimizerState& state : method.states) {
    states_.emplace_back();
    for (const Values& p : parameters_) {
      states_.back().push_back(Values(p.size(), state.initial));
    }
  }
}

void OptimizerSteps::Step(const std::vector<Values>& gradients, bool reject) {
  KernelRun run(method_.op);
  const int members = static_cast<int>(parameters_.size());
  for (int i = 0; i < members; ++i) {
    const int64_t n = static_cast<int64_t>(parameters_[i].size());
    run.In("Param", kernels::F32({n}, parameters_[i]));
    run.In("Grad", Tensor{grad_, {n}, gradients[i]});
    for (size_t s = 0; s < states_.size(); ++s) {
      run.In(method_.states[s].slot, kernels::F32({n}, states_[s][i]));
    }
  }
  run.Out("ParamOut", members).Out("LowOut", members).Bind("L", DType::kF16);
  for (const OptimizerState& state : method_.states) {
    run.Out(absl::StrCat(state.slot, "Out"), members);
    run.Alias(absl::StrCat(state.slot, "Out"), state.slot);
  }
  run.Alias("ParamOut", "Param").Threads(threads_);
  run.In("LearningRate", Scalar(method_.rate));
  if (method_.reads_applied) {
    run.In("Applied", kernels::I64({}, {static_cast<double>(applied_)}));
  }
  run.In("FoundInf", Scalar(reject, DType::kBool));
  run.In("InvScale", Scalar(1.0 / 64));
  for (const auto& [name, value] : method_.attrs) run.Attr(name, value);
  for (int i = 0; i < members; ++i) {
    parameters_[i] = run.Get("ParamOut", i);
    EXPECT_EQ(run.Get("LowOut", i),
              kernels::Rounded(DType::kF16, parameters_[i]));
    for (size_t s = 0; s < states_.size(); ++s) {
      states_[s][i] = run.Get(absl::StrCat(method_.states[s].slot, "Out"), i);
    }
  }
  if (!reject) ++applied_;
}

}  // namespace halftone
