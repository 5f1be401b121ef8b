// The executor's own share of a small step: the very plan of a compiled
// perceptron (32-32-10, batch 8, one thread), with kernels that do nothing.
// Beside it the whole step, so that one run gives the ratio.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "graph/ir/well_known.h"
#include "kernels/register_all.h"
#include "runtime/exec/executor.h"
#include "tests/support/compile_model.h"

namespace halftone {
namespace {

constexpr char kModel[] = R"(
name: "tiny" format: 1
feed { name: "x" dims: [-1, 32] } feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w1" dims: [32, 32] init { xavier_uniform {} } }
param { name: "b1" dims: [32] init { constant: 0 } }
param { name: "w2" dims: [32, 10] init { xavier_uniform {} } }
param { name: "b2" dims: [10] init { constant: 0 } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w1" } in { slot: "Bias" var: "b1" } out { slot: "Out" var: "h" } }
op { type: "relu" in { slot: "X" var: "h" } out { slot: "Out" var: "r" } }
op { type: "matmul" in { slot: "X" var: "r" } in { slot: "Y" var: "w2" } in { slot: "Bias" var: "b2" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" }
)";

constexpr char kStrategy[] =
    "optimizer { momentum { momentum: 0.9 } } lr { base: 0.01 constant: true }";

class Nothing : public kernels::KernelInstance {
 public:
  absl::Status Enqueue(const kernels::Buffers&, runtime::Stream&) override {
    return absl::OkStatus();
  }
};

kernels::KernelRegistry Idle() {
  kernels::KernelRegistry registry = kernels::Kernels();
  registry.ForEach([](absl::string_view, kernels::Candidate& candidate) {
    candidate.prepare = [](const kernels::BoundOp&, runtime::Device&)
        -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
      return {std::make_unique<Nothing>()};
    };
  });
  return registry;
}

// One rank with the train entry prepared for eight samples.
struct Rank {
  Rank(const std::string& level, const kernels::KernelRegistry& registry) {
    model = *CompileModel(*ParseModel(kModel, "tiny.pbtxt"),
                          *passes::ParseStrategy(kStrategy, "sgd.pbtxt"),
                          {{"amp.level", level, "--level"}});
    executor = *runtime::Executor::Create(model.program.get(), &registry,
                                          device.get(), communicator.get(),
                                          runtime::TuningTable(), {});
    SymbolValues samples{};
    samples[0] = 8;
    binding = *executor->Prepare(kTrainEntry, samples);
    (void)executor->Initialize(1);
    const runtime::Plan& plan = executor->plan(binding);
    bytes.reserve(plan.feeds.size());
    for (const runtime::PlannedFeed& feed : plan.feeds) {
      bytes.emplace_back(feed.slice.bytes, 0);
      feeds.push_back({feed.name, bytes.back()});
    }
  }
  // As a trainer does: execute step t, read step t - 2.
  void Step() {
    const int64_t ticket = *executor->Execute(binding, feeds);
    if (ticket >= 2) benchmark::DoNotOptimize(executor->Read(ticket - 2));
  }

  CompiledModel model;
  std::unique_ptr<runtime::Device> device = runtime::MakeCpuDevice(0, 1);
  std::unique_ptr<runtime::Communicator> communicator =
      runtime::MakeSingleCommunicator();
  std::unique_ptr<runtime::Executor> executor;
  int binding = -1;
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<runtime::FeedData> feeds;
};

void ExecutorShare(benchmark::State& state, const std::string& level) {
  const kernels::KernelRegistry idle = Idle();
  Rank rank(level, idle);
  for (auto _ : state) rank.Step();
  state.counters["steps"] =
      static_cast<double>(rank.executor->plan(rank.binding).steps.size());
}
void WholeStep(benchmark::State& state, const std::string& level) {
  Rank rank(level, kernels::Kernels());
  for (auto _ : state) rank.Step();
}
BENCHMARK_CAPTURE(ExecutorShare, O0, "O0");
BENCHMARK_CAPTURE(ExecutorShare, O1, "O1");
BENCHMARK_CAPTURE(WholeStep, O0, "O0");
BENCHMARK_CAPTURE(WholeStep, O1, "O1");

}  // namespace
}  // namespace halftone
