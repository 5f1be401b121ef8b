// Recurrent layers of bf16 beside those of f32, on numbers that both hold: what
// products are made of (recurrent.cc) may only round. What is computed is held
// by tests/ops/cases.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ops/recurrent_mode.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using Values = std::vector<double>;
using Dims = std::vector<int64_t>;

// Two layers of two directions; of no size is a vector or a panel full.
constexpr int64_t kSteps = 4, kBatch = 3, kInput = 5, kHidden = 17, kLayers = 2,
                  kDirections = 2, kCells = kLayers * kDirections;

Tensor Some(DType dtype, Dims dims, double most) {
  int64_t n = 1;
  for (const int64_t dim : dims) n *= dim;
  return {dtype, std::move(dims), Rounded(DType::kBF16, Draws(n, -most, most))};
}

class RecurrentLayers : public ::testing::TestWithParam<const char*> {
 protected:
  int64_t rows() const { return ops::WeightGates(mode()) * kHidden; }
  ops::RecurrentMode mode() const { return *ops::RecurrentModeOf(GetParam()); }

  void AddLayers(KernelRun& run, DType dtype) const {
    run.In("Input", Some(dtype, {kSteps, kBatch, kInput}, 1));
    for (int64_t cell = 0; cell < kCells; ++cell) {
      const int64_t width = cell < kDirections ? kInput : kDirections * kHidden;
      run.In("WeightList", Some(dtype, {rows(), width}, 0.4));
      run.In("WeightList", Some(dtype, {rows(), kHidden}, 0.4));
    }
    for (int64_t i = 0; i < 2 * kCells; ++i) {
      run.In("WeightList", Some(dtype, {rows()}, 0.4));
    }
    run.In("SequenceLength", {DType::kI64, {kBatch}, {4, 1, 3}});
    run.In("Seed", Scalar(1, DType::kI64)).In("Step", Scalar(2, DType::kI64));
    run.In("FirstSample", Scalar(3, DType::kI64));
    run.Attr("mode", std::string(GetParam())).Attr("hidden_size", kHidden);
    run.Attr("num_layers", kLayers).Attr("is_bidirec", true);
    run.Attr("dropout_prob", 0.5);
  }
  static void ExpectNear(const Values& low, const Values& f32,
                         const std::string& what) {
    ASSERT_EQ(low.size(), f32.size()) << what;
    double largest = 0;
    for (const double x : f32) largest = std::max(largest, std::abs(x));
    EXPECT_GT(largest, 0) << what;
    for (size_t i = 0; i < f32.size(); ++i) {
      EXPECT_NEAR(low[i], f32[i], largest / 64) << what << " " << i;
      // What is dropped, or behind an end.
      if (f32[i] == 0) {
        EXPECT_EQ(low[i], 0) << what << " " << i;
      }
    }
  }
};

TEST_P(RecurrentLayers, OfBf16DifferByRoundingAlone) {
  const int states = static_cast<int>(ops::States(mode()));
  for (const int threads : {1, 3}) {
    KernelRun f32("rnn"), low("rnn");
    for (KernelRun* const run : {&f32, &low}) {
      AddLayers(*run, run == &f32 ? DType::kF32 : DType::kBF16);
      run->Out("State", states).Threads(threads).SpoilWorkspace();
    }
    ExpectNear(low.Get("Out"), f32.Get("Out"), "Out");
    for (int i = 0; i < states; ++i) {
      ExpectNear(low.Get("State", i), f32.Get("State", i), "State");
    }
    KernelRun f32_grad("rnn_grad"), low_grad("rnn_grad");
    for (KernelRun* const run : {&f32_grad, &low_grad}) {
      const DType dtype = run == &f32_grad ? DType::kF32 : DType::kBF16;
      AddLayers(*run, dtype);
      run->In("Gates",
              F32({kCells, kSteps, kBatch, ops::KeptGates(mode()) * kHidden},
                  f32.Get("Gates")));
      run->In("Carried", F32({states * kCells, kSteps + 1, kBatch, kHidden},
                             f32.Get("Carried")));
      run->In("OutGrad",
              Some(dtype, {kSteps, kBatch, kDirections * kHidden}, 1));
      run->Out("InputGrad").Out("WeightListGrad", 4 * kCells);
      run->Threads(threads).SpoilWorkspace();
    }
    ExpectNear(low_grad.Get("InputGrad"), f32_grad.Get("InputGrad"),
               "InputGrad");
    for (int i = 0; i < 4 * kCells; ++i) {
      ExpectNear(low_grad.Get("WeightListGrad", i),
                 f32_grad.Get("WeightListGrad", i),
                 "WeightListGrad " + std::to_string(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, RecurrentLayers,
                         ::testing::Values("LSTM", "GRU", "RNN_TANH",
                                           "RNN_RELU"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace kernels
}  // namespace halftone
