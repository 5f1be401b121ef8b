// Whole training steps of the convolution nets in models/, one rank, one
// thread, random bytes as data: FP32 beside the levels, so that one run gives
// their ratio.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "kernels/register_all.h"
#include "runtime/exec/executor.h"
#include "tests/support/compile_model.h"

namespace halftone {
namespace {

void TrainStep(benchmark::State& state, const std::string& model_file,
               const std::string& level, const std::string& dtype) {
  const CompiledModel model = *CompileModel(
      model_file, "models/mnist_o2.pbtxt",
      {{"amp.level", level, "--level"}, {"amp.dtype", dtype, "--dtype"}});
  auto device = runtime::MakeCpuDevice(0, 1);
  auto communicator = runtime::MakeSingleCommunicator();
  auto executor = *runtime::Executor::Create(
      model.program.get(), &kernels::Kernels(), device.get(),
      communicator.get(), runtime::TuningTable(), {});
  SymbolValues samples{};
  samples[0] = state.range(0);
  const int binding = *executor->Prepare(kTrainEntry, samples);
  (void)executor->Initialize(1);
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<runtime::FeedData> feeds;
  const std::vector<runtime::PlannedFeed>& slots =
      executor->plan(binding).feeds;
  bytes.reserve(slots.size());
  for (const runtime::PlannedFeed& slot : slots) {
    bytes.emplace_back(slot.slice.bytes, 0);
    if (slot.desc.dtype == DType::kU8) {
      for (size_t i = 0; i < bytes.back().size(); ++i) {
        bytes.back()[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
      }
    }
    feeds.push_back({slot.name, bytes.back()});
  }
  for (auto _ : state) {
    const int64_t ticket = *executor->Execute(binding, feeds);
    benchmark::DoNotOptimize(executor->Read(ticket));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["peak"] =
      static_cast<double>(executor->plan(binding).peak_bytes());
}

#define HT_LEVELS(name, file)                                                \
  BENCHMARK_CAPTURE(TrainStep, name / O0, file, "O0", "fp16")->Arg(64);      \
  BENCHMARK_CAPTURE(TrainStep, name / O1_fp16, file, "O1", "fp16")->Arg(64); \
  BENCHMARK_CAPTURE(TrainStep, name / O1_bf16, file, "O1", "bf16")->Arg(64); \
  BENCHMARK_CAPTURE(TrainStep, name / O2_bf16, file, "O2", "bf16")->Arg(64)

HT_LEVELS(convnet, "models/mnist_convnet.pbtxt");
HT_LEVELS(small_resnet, "models/small_resnet.pbtxt");

}  // namespace
}  // namespace halftone
