#include "tests/models/training.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "gtest/gtest.h"
#include "kernels/kernel_registry.h"
#include "tests/support/compile_model.h"
#include "tools/common/run_flags.h"

namespace halftone {
namespace runtime {
namespace {

std::vector<passes::Override> Overrides(const std::vector<std::string>& texts) {
  std::vector<passes::Override> overrides;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    overrides.push_back({parts.first, parts.second, "--set"});
  }
  return overrides;
}

struct Ranks {
  explicit Ranks(int n) {
    communicators = n == 1 ? std::vector<std::unique_ptr<Communicator>>()
                           : MakeInProcessCommunicators(n, absl::Seconds(120));
    if (n == 1) communicators.push_back(MakeSingleCommunicator());
    for (int r = 0; r < n; ++r) {
      devices.push_back(MakeCpuDevice(r, 1));
      resources.push_back({devices[r].get(), communicators[r].get()});
    }
  }
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<RankResources> resources;
};

}  // namespace

const char kScaleModel[] = R"(name: "scale"  format: 1
feed  { name: "x" dtype: F32 dims: [-1, 10] }
feed  { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [10] init { constant: 1 } }
param { name: "b" dims: [10] init { uniform { bound: 0.1 } } }
op { type: "elementwise_mul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
     out { slot: "Out" var: "scaled" } }
op { type: "elementwise_add" in { slot: "X" var: "scaled" } in { slot: "Y" var: "b" }
     out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" }
     out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
op { type: "correct_count" in { slot: "X" var: "logits" } in { slot: "Label" var: "label" }
     out { slot: "Out" var: "correct" } attr { name: "k" i: 1 } }
loss { var: "loss" mean_over: "ce" }
metric { name: "top1" var: "correct" over: "label" }  output: "logits"
)";

const char kScaleStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.1 constant: true }
train { batch_size: 16 epochs: 2 seed: 1 }
)";

absl::StatusOr<CompiledModel> CompileText(
    const std::string& model, const std::string& strategy,
    const std::vector<std::string>& overrides) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ParseModel(model, "model.pbtxt"));
  const std::string path = FreshDirectory() + ".strategy.pbtxt";
  HT_RETURN_IF_ERROR(WriteFileAtomically(path, strategy));
  HT_ASSIGN_OR_RETURN(const passes::StrategyFile read,
                      passes::ReadStrategy(path));
  return CompileModel(file, read, Overrides(overrides));
}

absl::StatusOr<CompiledModel> CompileFile(
    const std::string& model, const std::string& strategy,
    const std::vector<std::string>& overrides) {
  return CompileModel(model, strategy, Overrides(overrides));
}

TrainConfig ConfigOf(const CompiledModel& model, const std::string& data,
                     const std::string& out) {
  TrainConfig config;
  EXPECT_TRUE(tools::FillConfig(model, &config).ok());
  config.data = data;
  config.out = out;
  return config;
}

Trained TrainOn(const CompiledModel& model, const TrainConfig& config,
                int ranks, const Wrap& wrap, const WrapDevice& wrap_device,
                const kernels::KernelRegistry& kernels) {
  Ranks local(ranks);
  for (int r = 0; wrap_device != nullptr && r < ranks; ++r) {
    local.devices[r] = wrap_device(r, std::move(local.devices[r]));
    local.resources[r].device = local.devices[r].get();
  }
  for (int r = 0; wrap != nullptr && r < ranks; ++r) {
    local.communicators[r] = wrap(r, std::move(local.communicators[r]));
    local.resources[r].communicator = local.communicators[r].get();
  }
  Trained trained;
  trained.status =
      Train(*model.program, kernels, config, local.resources, &trained.signal);
  return trained;
}

absl::StatusOr<EvalReport> EvaluateOn(const CompiledModel& model,
                                      const TrainConfig& config, int ranks) {
  Ranks local(ranks);
  return Evaluate(*model.program, kernels::Kernels(), config, local.resources);
}

std::string FreshDirectory() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = absl::StrCat(info->test_suite_name(), ".", info->name());
  std::replace(name.begin(), name.end(), '/', '.');
  return ::testing::TempDir() + "/" + name;
}

std::vector<Json> Events(const std::string& out, const std::string& kind) {
  std::vector<Json> events;
  const auto content = ReadFile(out + "/metrics.jsonl");
  EXPECT_TRUE(content.ok()) << content.status();
  if (!content.ok()) return events;
  for (const absl::string_view line :
       absl::StrSplit(*content, '\n', absl::SkipEmpty())) {
    Json event = Json::parse(std::string(line));
    if (event["event"] != kind) continue;
    for (const char* timed : {"ms", "time", "seconds"}) event.erase(timed);
    events.push_back(std::move(event));
  }
  return events;
}

Json Summary(const std::string& out) {
  const auto content = ReadFile(out + "/summary.json");
  EXPECT_TRUE(content.ok()) << content.status();
  return content.ok() ? Json::parse(*content) : Json();
}

Checkpoint Newest(const std::string& out) {
  std::vector<std::string> skipped;
  auto checkpoint = ReadLatestCheckpoint(out + "/ckpt", &skipped);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
}

Outcome LookAt(const TrainConfig& config, const absl::Status& status) {
  Outcome run;
  run.status = status;
  if (!status.ok()) return run;
  run.out = config.out;
  run.summary = Summary(config.out);
  run.steps = Events(config.out, "step");
  run.evals = Events(config.out, "eval");
  run.state = Newest(config.out);
  return run;
}

std::string NewDirectory() {
  static int runs = 0;
  return absl::StrCat(FreshDirectory(), ".", runs++);
}

Outcome TrainText(const std::string& model, const std::string& strategy,
                  const std::vector<std::string>& overrides,
                  const std::string& data, int ranks) {
  const auto compiled = CompileText(model, strategy, overrides);
  if (!compiled.ok()) {
    Outcome run;
    run.status = compiled.status();
    return run;
  }
  TrainConfig config = ConfigOf(*compiled, data, NewDirectory());
  config.log_every = 1;
  return LookAt(config, TrainOn(*compiled, config, ranks).status);
}

void ExpectClose(const Outcome& a, const Outcome& b, double tolerance) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    const double x = a.steps[i]["loss"], y = b.steps[i]["loss"];
    EXPECT_NEAR(x, y, tolerance) << "step " << i;
  }
  ASSERT_EQ(a.state.tensors.size(), b.state.tensors.size());
  for (const Tensor& tensor : a.state.tensors) {
    if (tensor.name[0] == '@') continue;  // clocks and loss scale
    const std::vector<float> x = Values(a.state, tensor.name);
    const std::vector<float> y = Values(b.state, tensor.name);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], y[i], tolerance) << tensor.name << " " << i;
    }
  }
}

std::vector<float> Values(const Checkpoint& checkpoint,
                          const std::string& name) {
  for (const Tensor& tensor : checkpoint.tensors) {
    if (tensor.name != name) continue;
    const auto f32 = ConvertTensor(tensor, DType::kF32);
    EXPECT_TRUE(f32.ok()) << f32.status();
    std::vector<float> values(f32->bytes.size() / sizeof(float));
    std::memcpy(values.data(), f32->bytes.data(), f32->bytes.size());
    return values;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

}  // namespace runtime
}  // namespace halftone
