// Attention of BERT-base's heads and its gradient, on one thread: to be held
// against PyTorch's on the same tensors (compare_attention.py).
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using kernels::Tensor;

constexpr int64_t kBatch = 4, kHeads = 12, kWidth = 64;

void RunCase(benchmark::State& state, bool gradient, DType dtype, bool causal,
             int64_t length) {
  KernelRun run(gradient ? "scaled_dot_product_attention_grad"
                         : "scaled_dot_product_attention");
  const std::vector<int64_t> dims = {kBatch, length, kHeads, kWidth};
  const Tensor x = {dtype, dims,
                    kernels::Draws(kBatch * length * kHeads * kWidth, -2, 2),
                    Layout::kRowMajor};
  for (const char* slot : {"Q", "K", "V"}) run.In(slot, x);
  if (gradient) {
    // About what random scores give.
    const double sum = std::log(static_cast<double>(length)) + 0.5;
    run.In("Out", x)
        .In("LogSumExp",
            kernels::F32({kBatch, kHeads, length},
                         std::vector<double>(kBatch * kHeads * length, sum)))
        .In("OutGrad", x);
  }
  for (const char* slot : {"Seed", "Step", "FirstSample"}) {
    run.In(slot, kernels::I64({}, {1}));
  }
  run.Attr("causal", causal).Run();
  for (auto step : state) run.Enqueue();
}

void RegisterAll() {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const bool gradient : {false, true}) {
      for (const bool causal : {false, true}) {
        for (const int64_t length : {128, 256, 512, 1024}) {
          const std::string name = absl::StrCat(
              "attention", causal ? "_causal" : "", gradient ? "_grad" : "",
              "_", length, "/", Name(dtype));
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State&
                                                             state) {
            RunCase(state, gradient, dtype, causal, length);
          })->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace halftone
