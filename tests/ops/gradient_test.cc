// The gradient that each op's schema emits, by each device's kernels, against
// central differences of the CPU's forward kernel, in f32: conformance_test
// holds the other devices' to the same numbers, and an emulated one is slow.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "tests/ops/devices.h"
#include "tests/ops/op_case.h"
#include "tests/ops/op_instance.h"
#include "tests/ops/op_runner.h"

namespace halftone {
namespace {

using BlockValues = std::map<ValueId, std::vector<double>>;

// Two steps h and 2 h, combined so that the error is of order h^4. Powers of
// two keep the literals of the cases exact.
constexpr double kStep = 1.0 / 64;
// Rounding of f32 sums of a few units divided by the step: 1e-7 * 10 / h.
constexpr double kNear = 2e-4;

// Ops that have case files and a gradient.
std::vector<std::string> OpsWithGradients() {
  std::vector<std::string> ops;
  for (const std::string& op : CaseFileOps()) {
    const OpSchema* schema = Ops().Find(op);
    if (schema == nullptr || IsLeftOut(op)) continue;
    if (schema->has_grad()) ops.push_back(op);
  }
  return ops;
}

class Gradients : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto file = ReadCaseFile(GetParam());
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    auto runner = OpRunner::Create(TestedDevices()[0], 1);
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    auto cpu = OpRunner::Create("cpu", 1);
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    cpu_ = *std::move(cpu);
  }

  // The loss is the sum of weights * first output.
  absl::StatusOr<double> Loss(const OpInstance& forward,
                              const std::vector<std::vector<double>>& inputs,
                              const std::vector<double>& weights) {
    const kernels::BoundOp op = forward.Bind(cpu_->context());
    HT_ASSIGN_OR_RETURN(const auto candidates, kernels::Kernels().Find(op));
    HT_ASSIGN_OR_RETURN(const RunResult result,
                        cpu_->Run(op, *candidates[0], inputs));
    double loss = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      loss += weights[i] * result.values[0][i];
    }
    return loss;
  }

  absl::StatusOr<double> Slope(const OpInstance& forward, size_t input,
                               size_t element,
                               const std::vector<double>& weights) {
    double difference[2];
    for (int k = 0; k < 2; ++k) {
      const double h = kStep * (k + 1);
      auto inputs = forward.inputs;
      inputs[input][element] = forward.inputs[input][element] + h;
      HT_ASSIGN_OR_RETURN(const double above, Loss(forward, inputs, weights));
      inputs[input][element] = forward.inputs[input][element] - h;
      HT_ASSIGN_OR_RETURN(const double below, Loss(forward, inputs, weights));
      difference[k] = (above - below) / (2 * h);
    }
    return (4 * difference[0] - difference[1]) / 3;
  }

  // The gradient of each input by flat position, from the emitted ops; an
  // empty one where there is none.
  absl::StatusOr<std::vector<std::vector<double>>> Emitted(
      const OpInstance& forward, const std::vector<double>& weights) {
    Block& block = *forward.block;
    const Op& op = block.op(forward.op);
    GradContext::Gradients out_grads(op.outputs.all().size());
    out_grads[0] = block.AddFeed("out_grad", block.type(op.outputs.all()[0]));
    GradContext::Wanted wanted;
    for (ValueId value : op.inputs.all()) {
      wanted.push_back(IsFloat(block.dtype(value)));
    }
    GradContext context(&block, forward.op, out_grads, wanted);
    HT_RETURN_IF_ERROR(op.schema->RunGrad(context));
    BlockValues values;
    for (size_t i = 0; i < forward.inputs.size(); ++i) {
      values[op.inputs.all()[i]] = forward.inputs[i];
    }
    values[out_grads[0]] = weights;
    HT_RETURN_IF_ERROR(runner_->RunBlock(block, &values));
    std::vector<std::vector<double>> gradients;
    for (ValueId gradient : context.in_grads()) {
      gradients.push_back(gradient.valid() ? values[gradient]
                                           : std::vector<double>());
    }
    return gradients;
  }

  void CheckCase(const OpCase& c) {
    KernelKey key;
    key.op = file_.schema->name();
    for (const TypeVar& var : file_.schema->type_vars()) {
      std::vector<DType> allowed(var.allowed.begin(), var.allowed.end());
      const auto only = c.only.find(var.name);
      if (only != c.only.end()) allowed = only->second;
      if (!Binds(file_, c, var)) allowed = {DType::kInvalid};
      const bool f32 =
          std::count(allowed.begin(), allowed.end(), DType::kF32) > 0;
      key.binding.push_back(f32 ? DType::kF32 : allowed[0]);  // indices
    }
    ASSERT_TRUE(Fits(file_, c, key)) << "a gradient is checked in f32";
    const auto forward = MakeInstance(file_, c, key);
    ASSERT_TRUE(forward.ok()) << forward.status();
    const auto weights = kernels::Rounded(
        DType::kF32, kernels::Draws(forward->outputs[0]->values.size()));
    const auto emitted = Emitted(*forward, weights);
    ASSERT_TRUE(emitted.ok()) << emitted.status();
    const Op& op = forward->block->op(forward->op);
    for (size_t i = 0; i < forward->inputs.size(); ++i) {
      const int slot = op.inputs.SlotOf(static_cast<int>(i));
      const std::string& name = file_.schema->inputs()[slot].name;
      if (std::count(c.gradient.begin(), c.gradient.end(), name) == 0) continue;
      ++checked_;
      ASSERT_EQ((*emitted)[i].size(), forward->inputs[i].size())
          << "gradient of " << name;
      for (size_t e = 0; e < forward->inputs[i].size(); ++e) {
        const auto slope = Slope(*forward, i, e, weights);
        ASSERT_TRUE(slope.ok()) << slope.status();
        ASSERT_NEAR((*emitted)[i][e], *slope, kNear * (1 + std::abs(*slope)))
            << "gradient of " << name << ", input " << i << ", element " << e;
      }
    }
  }

  CaseFile file_;
  std::unique_ptr<OpRunner> runner_, cpu_;
  int checked_ = 0;
};

TEST_P(Gradients, EqualCentralDifferences) {
  for (const OpCase& c : file_.cases) {
    if (c.gradient.empty()) continue;
    SCOPED_TRACE(absl::StrCat(file_.path, ":", c.line, ": case ", c.name));
    CheckCase(c);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(checked_, 0) << file_.path << ": no case says `gradient <slots>`";
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradients,
                         ::testing::ValuesIn(OpsWithGradients()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace halftone
