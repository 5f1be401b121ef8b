// Batch norms' parts on channels-last images of ResNet-50, on one thread and on
// all, beside a copy's bytes: "_56" has 12.8 million elements, which caches do
// not hold, "_7" 1.6 million.
#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/testing/kernel_run.h"
#include "tests/benchmarks/register_cases.h"

namespace halftone {
namespace {

using kernels::KernelRun;

struct Case {
  const char* name;
  const char* op;
  std::vector<const char*> images, vectors;
  std::vector<int64_t> dims;
};

const std::vector<int64_t> kLargeImages = {16, 256, 56, 56};
const std::vector<int64_t> kFewChannels = {16, 64, 56, 56};
const std::vector<int64_t> kManyChannels = {16, 2048, 7, 7};

const Case kCases[] = {
    {"stats_56", "channel_stats", {"X"}, {}, kLargeImages},
    {"stats_56_few", "channel_stats", {"X"}, {}, kFewChannels},
    {"stats_7", "channel_stats", {"X"}, {}, kManyChannels},
    {"grad_reduce_56",
     "bn_grad_reduce",
     {"X", "YGrad"},
     {"BatchMean", "BatchVariance"},
     kLargeImages},
    {"grad_reduce_7",
     "bn_grad_reduce",
     {"X", "YGrad"},
     {"BatchMean", "BatchVariance"},
     kManyChannels},
    {"grad_apply_56",
     "bn_grad_apply",
     {"X", "YGrad"},
     {"Mean", "A", "B", "C0"},
     kLargeImages},
    {"scale_bias_56",
     "scale_bias",
     {"X"},
     {"Scale", "Bias", "Mean", "Variance"},
     kLargeImages},
};

void RunOn(benchmark::State& state, const Case& c, DType dtype, int threads) {
  KernelRun run(c.op);
  run.Threads(threads);
  const int64_t elements = Elements(c.dims);
  for (const char* slot : c.images) {
    run.In(slot,
           {dtype, c.dims, kernels::Eighths(elements), Layout::kChannelsLast});
  }
  for (const char* slot : c.vectors) {
    run.In(slot, kernels::F32({c.dims[1]}, std::vector<double>(c.dims[1], 1)));
  }
  run.Run();
  for (auto step : state) run.Enqueue();
  ReportBytes(state, run.TensorBytes(), threads);
}

void RunOnOne(benchmark::State& state, const Case& c, DType dtype) {
  RunOn(state, c, dtype, 1);
}
void RunOnAll(benchmark::State& state, const Case& c, DType dtype) {
  RunOn(state, c, dtype, AllThreads());
}

const bool kRegistered = RegisterCases(kCases, RunOnOne) &&
                         RegisterCases(kCases, RunOnAll, "/all", true);

}  // namespace
}  // namespace halftone
