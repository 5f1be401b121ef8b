// Compiles, trains and evaluates a model on ranks that are threads.
#ifndef HALFTONE_TESTS_MODELS_TRAINING_H_
#define HALFTONE_TESTS_MODELS_TRAINING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "kernels/kernel_registry.h"
#include "nlohmann/json.hpp"
#include "passes/options/options.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// ---- Compiling, with the kernels of this binary.
// `overrides` are "path=value". A model's text may be given instead of a file.
absl::StatusOr<CompiledModel> CompileText(
    const std::string& model, const std::string& strategy,
    const std::vector<std::string>& overrides = {});
absl::StatusOr<CompiledModel> CompileFile(
    const std::string& model, const std::string& strategy,
    const std::vector<std::string>& overrides = {});

// A model of one scale and bias per class over 10 f32 inputs: it needs
// element-wise kernels alone. Its strategy: FP32, SGD.
extern const char kScaleModel[];
extern const char kScaleStrategy[];

// ---- Running.
struct Trained {
  absl::Status status;
  int signal = 0;
};
// Strategy fields from the model; all else is `config`'s.
TrainConfig ConfigOf(const CompiledModel& model, const std::string& data,
                     const std::string& out);
// The wraps, if given, may replace a rank's communicator and device.
using Wrap = std::function<std::unique_ptr<Communicator>(
    int rank, std::unique_ptr<Communicator>)>;
using WrapDevice =
    std::function<std::unique_ptr<Device>(int rank, std::unique_ptr<Device>)>;
Trained TrainOn(const CompiledModel& model, const TrainConfig& config,
                int ranks, const Wrap& wrap = nullptr,
                const WrapDevice& wrap_device = nullptr,
                const kernels::KernelRegistry& kernels = kernels::Kernels());
absl::StatusOr<EvalReport> EvaluateOn(const CompiledModel& model,
                                      const TrainConfig& config, int ranks);

// ---- What a run left behind.
std::string FreshDirectory();  // named after the test
std::string NewDirectory();    // another one at each call
using Json = nlohmann::json;
// The events of metrics.jsonl of a kind, without times.
std::vector<Json> Events(const std::string& out, const std::string& kind);
Json Summary(const std::string& out);
Checkpoint Newest(const std::string& out);
// All of it, of a run that went well; else its status alone.
struct Outcome {
  absl::Status status;
  std::string out;
  Json summary;
  std::vector<Json> steps, evals;
  Checkpoint state;
};
Outcome LookAt(const TrainConfig& config, const absl::Status& status);
// Compiles and trains in a directory of its own, a step event per step.
Outcome TrainText(const std::string& model, const std::string& strategy,
                  const std::vector<std::string>& overrides,
                  const std::string& data, int ranks);
// Losses and state, but for clocks and scales. `tolerance` 0: the same bits.
void ExpectClose(const Outcome& a, const Outcome& b, double tolerance);
// A tensor of a checkpoint as f32.
std::vector<float> Values(const Checkpoint& checkpoint,
                          const std::string& name);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_TESTS_MODELS_TRAINING_H_
