// Recurrent layers and their gradients on one thread: to be held against
// PyTorch's of the same sizes (compare_recurrent.py).
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "graph/ops/recurrent_mode.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using kernels::Tensor;

struct Case {
  const char* mode;
  int64_t steps, batch, width;
};
const Case kCases[] = {
    {"LSTM", 35, 20, 650}, {"LSTM", 35, 20, 200}, {"LSTM", 128, 32, 256},
    {"GRU", 35, 20, 650},  {"GRU", 128, 32, 256}, {"RNN_TANH", 35, 20, 650},
};

Tensor Small(DType dtype, std::vector<int64_t> dims) {
  int64_t n = 1;
  for (const int64_t dim : dims) n *= dim;
  return {dtype, std::move(dims), kernels::Draws(n, -0.1, 0.1)};
}

void AddLayer(KernelRun& run, const Case& c, DType dtype) {
  const int64_t rows =
      ops::WeightGates(*ops::RecurrentModeOf(c.mode)) * c.width;
  run.In("Input", Small(dtype, {c.steps, c.batch, c.width}));
  for (int i = 0; i < 2; ++i) {
    run.In("WeightList", Small(dtype, {rows, c.width}));
  }
  for (int i = 0; i < 2; ++i) run.In("WeightList", Small(dtype, {rows}));
  run.In("Seed", kernels::Scalar(1, DType::kI64));
  run.In("Step", kernels::Scalar(1, DType::kI64));
  run.In("FirstSample", kernels::Scalar(0, DType::kI64));
  run.Attr("mode", std::string(c.mode)).Attr("hidden_size", c.width);
}

void Forward(benchmark::State& state, const Case& c, DType dtype) {
  KernelRun run("rnn");
  AddLayer(run, c, dtype);
  run.Run();
  for (auto step : state) run.Enqueue();
}

void Backward(benchmark::State& state, const Case& c, DType dtype) {
  const ops::RecurrentMode mode = *ops::RecurrentModeOf(c.mode);
  KernelRun run("rnn_grad");
  AddLayer(run, c, dtype);
  run.In("Gates", Small(DType::kF32,
                        {1, c.steps, c.batch, ops::KeptGates(mode) * c.width}));
  run.In("Carried", Small(DType::kF32,
                          {ops::States(mode), c.steps + 1, c.batch, c.width}));
  run.In("OutGrad", Small(dtype, {c.steps, c.batch, c.width}));
  run.Out("InputGrad").Out("WeightListGrad", 4);
  run.Run();
  for (auto step : state) run.Enqueue();
}

void RegisterAll() {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Case& c : kCases) {
      const std::string name =
          absl::StrCat(c.mode, "_", c.steps, "_", c.batch, "_", c.width);
      for (const auto& [end, run] :
           {std::pair("", Forward), std::pair("_grad", Backward)}) {
        benchmark::RegisterBenchmark(
            absl::StrCat(name, end, "/", Name(dtype)).c_str(),
            [&c, dtype, run = run](benchmark::State& state) {
              run(state, c, dtype);
            })
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace halftone
