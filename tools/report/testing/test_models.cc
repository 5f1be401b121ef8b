#include "tools/report/testing/test_models.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

CompiledModel MustCompile(const ModelFlags& flags) {
  absl::StatusOr<CompiledModel> model =
      LoadOrCompile(flags, /*may_recompile=*/true);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? std::move(*model) : CompiledModel();
}

}  // namespace

CompiledModel CompileConvnet(const std::vector<passes::Override>& overrides) {
  ModelFlags flags;
  flags.path = "models/mnist_convnet.pbtxt";
  flags.strategy = "models/mnist_o1.pbtxt";
  flags.overrides = overrides;
  return MustCompile(flags);
}

const CompiledModel& Convnet() {
  static const CompiledModel& model = *new CompiledModel(CompileConvnet({}));
  return model;
}

CompiledModel CompileText(const std::string& pbtxt) {
  static int files = 0;
  ModelFlags flags;
  flags.path =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-", files++, ".pbtxt");
  std::ofstream(flags.path) << pbtxt;
  flags.overrides = {{"amp.level", "O1", "--level"}};
  return MustCompile(flags);
}

ModelFacts FixedFacts(const CompiledModel& model) {
  absl::StatusOr<ModelFacts> facts = FactsOf(model);
  EXPECT_TRUE(facts.ok()) << facts.status();
  if (!facts.ok()) return ModelFacts();
  facts->peak_bytes = 5000000;
  return *facts;
}

runtime::TuningTable MeasuredRates() {
  runtime::TuningTable table;
  table.device_description = "a CPU";
  table.rates = {20'000'000'000, 500'000'000'000, 400'000'000'000};
  return table;
}

}  // namespace tools
}  // namespace halftone
