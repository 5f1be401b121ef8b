// Element-wise ops, dropout, softmax and batch norm on 64 images of 16 x 28 x
// 28, on one thread: to be held against PyTorch's on the same tensor.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using Dims = std::vector<int64_t>;

const Dims kImages = {64, 16, 28, 28};
constexpr int64_t kElements = 64 * 16 * 28 * 28;

struct Case {
  const char* name;
  const char* op;
  std::vector<std::string> inputs;  // images
  std::string approximate{};        // gelu's
};

const Case kCases[] = {
    {"gelu", "gelu", {"X"}},
    {"gelu_tanh", "gelu", {"X"}, "tanh"},
    {"gelu_grad", "gelu_grad", {"X", "OutGrad"}},
    {"gelu_grad_tanh", "gelu_grad", {"X", "OutGrad"}, "tanh"},
    {"tanh", "tanh", {"X"}},
    {"tanh_grad", "tanh_grad", {"Out", "OutGrad"}},
    {"sigmoid", "sigmoid", {"X"}},
    {"sigmoid_grad", "sigmoid_grad", {"Out", "OutGrad"}},
    {"exp", "exp", {"X"}},
    {"log", "log", {"X"}},
    {"sqrt", "sqrt", {"X"}},
    {"relu", "relu", {"X"}},
    {"square", "square", {"X"}},
    {"abs", "abs", {"X"}},
    {"scale", "scale", {"X"}},
    {"add", "elementwise_add", {"X", "Y"}},
    {"div", "elementwise_div", {"X", "Y"}},
    {"softmax", "softmax", {"X"}},
    {"mean", "mean", {"X"}},
    {"batch_norm", "batch_norm", {"X"}},
    {"batch_norm_grad", "batch_norm_grad", {"X", "YGrad"}},
    {"channel_stats", "channel_stats", {"X"}},
    {"dropout", "dropout", {"X"}},
};

void RunCase(benchmark::State& state, const Case& c, DType dtype) {
  KernelRun run(c.op);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    std::vector<double> values = kernels::Draws(kElements, 0.05, 3);
    for (size_t j = i; j < values.size(); j += 2) {
      if (c.op != absl::string_view("log")) values[j] = -values[j];
    }
    run.In(c.inputs[i], {dtype, kImages, values, Layout::kRowMajor});
  }
  const auto vector = [&](const char* slot) {
    run.In(slot, kernels::F32({16}, std::vector<double>(16, 1)));
  };
  if (c.op == absl::string_view("batch_norm")) {
    for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) vector(slot);
  }
  if (c.op == absl::string_view("batch_norm_grad")) {
    for (const char* slot : {"Scale", "BatchMean", "BatchVariance"}) {
      vector(slot);
    }
  }
  if (c.op == absl::string_view("dropout")) {
    for (const char* slot : {"Seed", "Step", "FirstSample"}) {
      run.In(slot, kernels::I64({}, {1}));
    }
  }
  if (!c.approximate.empty()) run.Attr("approximate", c.approximate);
  run.Run();
  for (auto step : state) run.Enqueue();
}

void RegisterAll() {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Case& c : kCases) {
      benchmark::RegisterBenchmark(
          absl::StrCat(c.name, "/", Name(dtype)).c_str(),
          [&c, dtype](benchmark::State& state) { RunCase(state, c, dtype); })
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace halftone
