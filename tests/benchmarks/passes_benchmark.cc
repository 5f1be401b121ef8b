// All passes, from the parsed program on, on models whose train entry has
// 10,000, 100,000 and 1,000,000 ops at the end: time of each pass, and the most
// memory that the process has taken so far. Once for a target without fusions
// and once with the CPU's, which leave about half of the ops that there were.
//
// The process keeps its memory from one iteration to the next. Otherwise the
// small sizes, of which there are many iterations, would find theirs mapped and
// the largest, of which there is one, would not, and a ratio of the two would
// say little. `first_ms` is what a size took that no memory was there for;
// run each size in a process of its own for it:
//   passes_benchmark --benchmark_filter=unfused/1000000
#include <malloc.h>

#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/options/options.h"
#include "passes/pipeline.h"
#include "passes/pipelines.h"
#include "passes/testing/kernels.h"
#include "tests/benchmarks/peak_rss.h"

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

// Options and kernels outlive every pipeline.
PassPipeline MakeO1Pipeline(bool fused) {
  static const std::vector<Override> overrides = {
      {"amp.level", "O1", "--set"},
      {"optimizer.momentum.momentum", "0.9", "--set"}};
  static const Options& options =
      *new Options(*ResolveOptions(StrategyFile{}, overrides));
  static const KernelSet& plain = *new KernelSet(AllKernels({}));
  static const KernelSet& fusing = *new KernelSet(
      AllKernels({.patterns = {"conv_bias_relu", "matmul_bias_relu",
                               "elementwise_chain"}}));
  return MakePipeline({options, fused ? fusing : plain}, {});
}

int TrainOps(const Program& program) {
  return program.FindEntry(kTrainEntry)->block().num_ops();
}

// Compiles and returns the ops of the train entry.
int Compile(Program& program, PassPipeline& pipeline) {
  const absl::Status status = pipeline.Run(program);
  HT_CHECK(status.ok(), status.ToString().c_str());
  return TrainOps(program);
}

double PeakMebibytes() { return static_cast<double>(PeakRss()) / (1 << 20); }

// Compiles a new model; says how long it took.
double CompileNew(int ops, bool fused) {
  const std::unique_ptr<Program> program = DeepProgram(ops);
  PassPipeline pipeline = MakeO1Pipeline(fused);
  const auto start = std::chrono::steady_clock::now();
  Compile(*program, pipeline);
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

void KeepMemory() {
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_MMAP_MAX, 0);
}

void Passes(benchmark::State& state, bool fused) {
  KeepMemory();
  // Ops of the model per op of its train entry, from a small one.
  constexpr int kSample = 4000;
  std::unique_ptr<Program> sample = DeepProgram(kSample);
  PassPipeline sample_pipeline = MakeO1Pipeline(fused);
  const double ratio =
      static_cast<double>(kSample) / Compile(*sample, sample_pipeline);
  const int ops = static_cast<int>(state.range(0) * ratio);
  const double first_ms = CompileNew(ops, fused);
  std::unique_ptr<Program> program;
  int train_ops = 0;
  std::map<std::string, double> ms;
  for (auto _ : state) {
    state.PauseTiming();
    program = DeepProgram(ops);
    PassPipeline pipeline = MakeO1Pipeline(fused);
    state.ResumeTiming();
    train_ops = Compile(*program, pipeline);
    state.PauseTiming();
    for (const PassRun& run : pipeline.runs()) ms[run.name] += run.ms;
    state.ResumeTiming();
  }
  for (const auto& [pass, total] : ms) {
    state.counters[pass] =
        benchmark::Counter(total, benchmark::Counter::kAvgIterations);
  }
  state.counters["first_ms"] = first_ms;
  state.counters["train_ops"] = train_ops;
  state.counters["peak_MB"] = PeakMebibytes();
}
void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int ops : {10000, 100000, 1000000}) benchmark->Arg(ops);
  benchmark->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Passes, unfused, false)->Apply(Sizes);
BENCHMARK_CAPTURE(Passes, fused, true)->Apply(Sizes);

}  // namespace
}  // namespace passes
}  // namespace halftone
