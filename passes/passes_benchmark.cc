// Time of each pass on programs of 10,000 to 1,000,000 ops: it must grow
// linearly. Run: bazel run -c opt //passes:passes_benchmark
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "graph/base/check.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/options/options.h"
#include "passes/pipeline.h"
#include "passes/pipelines.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

TensorType F32(Dims dims) {
  TensorType type;
  type.dtype = DType::kF32;
  type.dims = std::move(dims);
  return type;
}

ValueId Add(Block& block, OpBuilder builder) {
  const absl::StatusOr<OpId> op = builder.Build();
  HT_CHECK(op.ok(), op.status().ToString().c_str());
  return block.op(*op).out(0);
}

// How many products in a row read the same weight.
constexpr int kShared = 64;

// `ops` ops: blocks of a product, an activation in f16, one in f32 and a
// residual.
std::unique_ptr<Program> DeepProgram(int ops) {
  auto program = std::make_unique<Program>();
  program->name = "deep";
  Block& block = program->AddEntry(kTrainEntry).block();
  const Dim batch = Dim::Symbol(program->Symbol("B"));
  ValueId h = block.AddFeed("x", F32({batch, 8}));
  ValueId w;
  for (int i = 0; block.num_ops() + 1 < ops; ++i) {
    if (i % kShared == 0) {
      Cell cell;
      cell.name = absl::StrCat("w", i);
      cell.type = F32({8, 8});
      cell.trainable = true;
      w = block.CellValue(program->AddCell(cell).id);
    }
    const auto name = [i](const char* op) { return absl::StrCat(op, i); };
    const ValueId y = Add(block, OpBuilder(&block, "matmul")
                                     .In("X", h)
                                     .In("Y", w)
                                     .Out("Out", name("y")));
    const ValueId r =
        Add(block, OpBuilder(&block, "relu").In("X", y).Out("Out", name("r")));
    const ValueId e = Add(
        block, OpBuilder(&block, "square").In("X", r).Out("Out", name("e")));
    h = Add(block, OpBuilder(&block, "elementwise_add")
                       .In("X", e)
                       .In("Y", r)
                       .Out("Out", name("h")));
  }
  Add(block, OpBuilder(&block, "mean").In("X", h).Out("Out", "loss"));
  program->loss = {"loss", program->loss.mean_over, ""};
  program->loss.mean_over = std::string(block.name(h));
  return program;
}

void BM_Compile(benchmark::State& state) {
  const std::vector<Override> overrides = {
      {"amp.level", "O1", "--set"},
      {"optimizer.momentum.momentum", "0.9", "--set"}};
  const Options options = *ResolveOptions(StrategyFile{}, overrides);
  const KernelSet kernels = AllKernels();
  std::vector<PassRun> runs;
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<Program> program = DeepProgram(state.range(0));
    PassPipeline pipeline = MakePipeline(options, kernels, {});
    state.ResumeTiming();
    const absl::Status status = pipeline.Run(*program);
    HT_CHECK(status.ok(), status.ToString().c_str());
    runs = pipeline.runs();
    state.PauseTiming();
    program.reset();
    state.ResumeTiming();
  }
  double passes = 0;
  for (const PassRun& run : runs) {
    state.counters[run.name + " ms"] = run.ms;
    passes += run.ms;
  }
  state.counters["all passes ms"] = passes;
}
BENCHMARK(BM_Compile)
    ->Arg(10000)
    ->Arg(100000)
    ->Arg(1000000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace passes
}  // namespace halftone
