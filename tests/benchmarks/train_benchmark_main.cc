// Whole training steps through the compiler and the executor, on a GPU or the
// CPU: the median of N steps with synthetic data, as one line of JSON.
//
//   train_benchmark --model resnet50 --level O1 --batch 256 --gpu 0
//   train_benchmark --model mnist_convnet --batch 64 --scaling-cost
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/error.h"
#include "nlohmann/json.hpp"
#include "runtime/device/host_info.h"
#include "tests/benchmarks/peak_rss.h"
#include "tests/benchmarks/trained_model.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace {

struct Flags {
  TrainedModelSpec spec;
  int64_t steps = 50, warmup = 10;
  int gpu = -1;
  int threads = 0;
  std::string library = "tools/libhalftone_cuda.so";
  bool constant_scaling = false, scaling_cost = false;
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) +
                                    0.5)];
}

struct Measured {
  std::vector<double> step_ms, enqueue_us;
};

absl::Status Measure(TrainedModel& model, int64_t steps, Measured* measured) {
  for (int64_t i = 0; i < steps; ++i) {
    HT_ASSIGN_OR_RETURN(const double ms, model.Step());
    measured->step_ms.push_back(ms);
    measured->enqueue_us.push_back(model.enqueue_us());
  }
  return absl::OkStatus();
}

// Milliseconds of the first step, with its results; then the others that do
// not count.
absl::StatusOr<double> WarmUp(TrainedModel& model, int64_t steps) {
  Measured ignored;
  const auto begin = std::chrono::steady_clock::now();
  HT_RETURN_IF_ERROR(Measure(model, 1, &ignored));
  HT_RETURN_IF_ERROR(model.Finish());
  const std::chrono::duration<double, std::milli> first =
      std::chrono::steady_clock::now() - begin;
  HT_RETURN_IF_ERROR(Measure(model, steps - 1, &ignored));
  return first.count();
}

// What dynamic loss scaling adds to a step, in per cent: blocks of steps with
// and without it in alternation, so that both see the same machine.
absl::StatusOr<double> ScalingCost(const Flags& flags,
                                   const BenchmarkDevice& device,
                                   TrainedModel& dynamic) {
  TrainedModelSpec spec = flags.spec;
  spec.dynamic_scaling = false;
  HT_ASSIGN_OR_RETURN(const auto constant, TrainedModel::Create(spec, device));
  HT_RETURN_IF_ERROR(WarmUp(*constant, flags.warmup).status());
  Measured with, without;
  constexpr int64_t kBlock = 10;
  for (int64_t done = 0; done < flags.steps; done += kBlock) {
    for (const auto& [model, times] :
         {std::pair(&dynamic, &with), std::pair(constant.get(), &without)}) {
      HT_RETURN_IF_ERROR(model->Finish());
      Measured block, start;
      // The pipeline fills: the first steps of a block wait for nothing.
      HT_RETURN_IF_ERROR(Measure(*model, 3, &start));
      HT_RETURN_IF_ERROR(Measure(*model, kBlock, times));
    }
  }
  return 100 *
         (Quantile(with.step_ms, 0.5) / Quantile(without.step_ms, 0.5) - 1);
}

absl::StatusOr<nlohmann::ordered_json> Run(Flags& flags) {
  const int threads =
      flags.threads > 0 ? flags.threads : runtime::UsableCores();
  HT_ASSIGN_OR_RETURN(const BenchmarkDevice device,
                      OpenBenchmarkDevice(flags.gpu, threads, flags.library));
  flags.spec.dynamic_scaling = !flags.constant_scaling;
  const int64_t rss_before = PeakRss();
  HT_ASSIGN_OR_RETURN(const auto model,
                      TrainedModel::Create(flags.spec, device));
  HT_ASSIGN_OR_RETURN(const double first_ms, WarmUp(*model, flags.warmup));
  Measured measured;
  HT_RETURN_IF_ERROR(Measure(*model, flags.steps, &measured));
  HT_RETURN_IF_ERROR(model->Finish());
  const double step_ms = Quantile(measured.step_ms, 0.5);
  nlohmann::ordered_json json = {
      {"schema", 1},
      {"system", "halftone"},
      {"model", flags.spec.model},
      {"level", flags.spec.level},
      {"dtype", flags.spec.dtype},
      {"batch", flags.spec.batch},
      {"device", device.device->Description()},
      {"target", device.device->target()},
      {"loss_scaling", flags.constant_scaling ? "constant" : "dynamic"},
      {"deterministic", flags.spec.deterministic},
      {"feeds", flags.spec.copy_feeds ? "copied" : "on the device"},
      {"steps", flags.steps},
      {"warmup", flags.warmup},
      {"samples_per_second",
       static_cast<double>(flags.spec.batch) / step_ms * 1000},
      {"step_ms", step_ms},
      {"step_ms_p05", Quantile(measured.step_ms, 0.05)},
      {"step_ms_p95", Quantile(measured.step_ms, 0.95)},
      {"first_step_ms", first_ms},
      {"peak_bytes", model->peak_bytes()},
      {"rss_growth_bytes", PeakRss() - rss_before},
      {"planned_steps", model->planned_steps()},
      {"standalone_casts", model->standalone_casts()},
      {"loss", model->loss()},
      {"scale", model->scale()},
      {"rejected", model->rejected()}};
  if (flags.gpu >= 0) {
    json["enqueue_us"] = Quantile(measured.enqueue_us, 0.5);
  }
  if (flags.scaling_cost && !flags.constant_scaling) {
    HT_ASSIGN_OR_RETURN(json["scaling_cost_percent"],
                        ScalingCost(flags, device, *model));
  }
  return json;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "error    %s\n", std::string(status.message()).c_str());
  return static_cast<int>(ExitCodeOf(status));
}

int Main(int argc, char** argv) {
  tools::CommandLine line("train_benchmark");
  tools::Verb app = line.program();
  app.SetHelp("Measures whole training steps; one line of JSON.");
  Flags flags;
  app.AddOption("--model", &flags.spec.model, "of the zoo, or a file");
  app.AddOption("--level", &flags.spec.level, "O0 | O1 | O2 | O3");
  app.AddOption("--dtype", &flags.spec.dtype, "fp16 | bf16");
  app.AddOption("--batch", &flags.spec.batch, "samples (default 256)");
  app.AddOption("--sequence", &flags.spec.sequence,
                "tokens, of models of the zoo that read them")
      .InRange(1, 1 << 20);
  app.AddOption("--steps", &flags.steps, "measured (default 50)")
      .InRange(1, 1000000);
  app.AddOption("--warmup", &flags.warmup, "before them (default 10)")
      .InRange(1, 1000000);
  app.AddOption("--gpu", &flags.gpu, "CUDA's number of it; default: the CPU");
  app.AddOption("--threads", &flags.threads, "on the CPU; default: all cores");
  app.AddOption("--gpu-library", &flags.library, "libhalftone_cuda.so");
  app.AddSwitch("!--no-graph", &flags.spec.use_graphs, "step by step");
  app.AddSwitch("!--no-deterministic", &flags.spec.deterministic,
                "also kernels whose bits vary from run to run");
  app.AddSwitch(
      "--copy-feeds", &flags.spec.copy_feeds,
      "copy the batch to the device in every step, as a training does");
  app.AddSwitch("--constant-scaling", &flags.constant_scaling,
                "no dynamic loss scaling");
  app.AddSwitch("--scaling-cost", &flags.scaling_cost,
                "what dynamic loss scaling adds to a step, in per cent");
  const auto help = line.Parse(std::vector<std::string>(argv + 1, argv + argc));
  if (!help.ok()) return Fail(help.status());
  if (!help->empty()) return std::fputs(help->c_str(), stdout) < 0;
  const auto json = Run(flags);
  if (!json.ok()) return Fail(json.status());
  std::printf("%s\n", json->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) { return halftone::Main(argc, argv); }
