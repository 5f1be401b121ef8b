// Values that only live inside of fusions, fetched: what the program without a
// fusion computes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "graph/ir/well_known.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/run_steps.h"
#include "tools/common/keep_fetched.h"

namespace halftone {
namespace runtime {
namespace {

// s1 is an output, but made in one piece with h1; so are s2 and h2.
std::string Chain() {
  std::string text =
      "name: \"chain\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 10] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n";
  std::string before = "x";
  for (const std::string n : {"1", "2"}) {
    text += Param("a" + n, "10") +
            Binary("elementwise_mul", before, "a" + n, "m" + n) +
            Add("m" + n, "m" + n, "s" + n) + Unary("relu", "s" + n, "h" + n);
    before = "h" + n;
  }
  return text + Unary("scale", before, "logits") + CrossEntropy() +
         "output: \"s1\"\n";
}

constexpr char kStrategy[] = R"(
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.1 constant: true }
train { batch_size: 16 }
)";

struct Case {
  const char* name;
  const char* model;  // a file; null: the chain
  const char* level;
  const char* dtype;
  double tolerance;  // of the largest element
};

class FetchedValues : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> Settings() const {
    std::vector<std::string> settings = {
        absl::StrCat("amp.level=", GetParam().level),
        absl::StrCat("amp.dtype=", GetParam().dtype)};
    if (GetParam().model == nullptr && GetParam().level != std::string("O0")) {
      settings.push_back("amp.custom_white_list=elementwise_mul");
    }
    return settings;
  }
  CompiledModel Fused() const {
    auto model = GetParam().model == nullptr
                     ? CompileText(Chain(), kStrategy, Settings())
                     : CompileFile(GetParam().model, "models/mnist_fp32.pbtxt",
                                   Settings());
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  // From the same source and strategy by kernels without patterns, and with
  // all that is fetched as results.
  CompiledModel Unfused(const CompiledModel& fused,
                        const std::vector<std::string>& fetches) const {
    std::vector<std::string> keys = kernels::Kernels().Keys();
    keys.erase(std::remove_if(keys.begin(), keys.end(),
                              [](const std::string& key) {
                                return absl::StartsWith(key, "pattern:");
                              }),
               keys.end());
    passes::StrategyFile strategy;
    strategy.strategy = fused.strategy;
    strategy.op_lists = fused.op_lists;
    const auto options = passes::ResolveOptions(strategy, {});
    EXPECT_TRUE(options.ok()) << options.status();
    passes::CompileFlags flags;
    flags.taps = fetches;
    auto model = passes::Compile(fused.WholeSource(), *options,
                                 passes::KernelSet("cpu", keys), flags);
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
};

// Floats of fusions' bodies that are none of their results.
std::vector<std::string> Hidden(const Program& program) {
  std::vector<std::string> names;
  const Block& train = program.FindEntry(kTrainEntry)->block();
  for (const OpId id : train.ops()) {
    const Block* body = train.op(id).body.get();
    if (body == nullptr) continue;
    for (const OpId inner : body->ops()) {
      for (const ValueId value : body->op(inner).outputs.all()) {
        const std::string name(body->name(value));
        if (!train.FindValue(name).valid() && IsFloat(body->dtype(value))) {
          names.push_back(name);
        }
      }
    }
  }
  return names;
}

StepsResult MustRun(const Program& program, int ranks, const std::string& data,
                    const std::vector<std::string>& fetches) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = 16;
  spec.steps = 1;
  spec.data = data;
  spec.fetches = fetches;
  auto result = RunSteps(program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

TEST_P(FetchedValues, AreThoseOfTheUnfusedProgram) {
  CompiledModel fused = Fused();
  const std::vector<std::string> hidden = Hidden(*fused.program);
  ASSERT_FALSE(hidden.empty());
  if (GetParam().model == nullptr) {
    EXPECT_THAT(hidden, ::testing::IsSupersetOf({"s1", "s2"}));
  }
  const CompiledModel unfused = Unfused(fused, hidden);
  EXPECT_TRUE(Hidden(*unfused.program).empty());
  const std::string data =
      GetParam().model == nullptr ? "synthetic:64" : "idx:models/digits";
  // One by one, the others stay hidden, and all at once.
  std::vector<std::vector<std::string>> asked = {hidden};
  for (const std::string& name : hidden) asked.push_back({name});
  for (const std::vector<std::string>& names : asked) {
    CompiledModel kept = Fused();
    TrainConfig config;
    config.fetches = names;
    const absl::Status status =
        tools::KeepFetched(&kept, /*threads=*/1, &config);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(config.notes.size(), 1u);
    for (const int ranks : {1, 2}) {
      const auto found = MustRun(*kept.program, ranks, data, names).fetched;
      const auto exact = MustRun(*unfused.program, ranks, data, names).fetched;
      ASSERT_EQ(found.size(), names.size());
      for (const auto& [name, values] : found) {
        const std::vector<float>& expected = exact.at(name);
        ASSERT_EQ(values.size(), expected.size()) << name;
        ASSERT_FALSE(values.empty()) << name;
        float largest = 0;
        for (const float v : expected) largest = std::max(largest, std::abs(v));
        EXPECT_GT(largest, 0) << name;
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], expected[i], GetParam().tolerance * largest)
              << name << " " << i << " of " << ranks << " ranks";
        }
      }
    }
  }
}

// Of the program before lowering: it renames gradients, and what fusions make
// again for themselves is no value of the model.
TEST(FetchedGlobs, MatchWhatTheModelHas) {
  auto model =
      CompileFile("models/mnist_convnet.pbtxt", "models/mnist_fp32.pbtxt", {});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config;
  config.fetches = {"relu1*", "bn1.gra*"};
  const absl::Status status =
      tools::KeepFetched(&*model, /*threads=*/1, &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(config.fetches,
              ::testing::IsSupersetOf({"relu1", "relu1.grad", "bn1.grad"}));
  EXPECT_THAT(config.fetches,
              ::testing::Each(::testing::Not(::testing::HasSubstr(".again"))));
  MustRun(*model->program, 1, "idx:models/digits", config.fetches);
}

// The gradients of both reads of h are the gradient of e, one of them with a
// sign: whichever is kept takes the place of the others.
TEST(FetchedValuesTest, EqualOnesAreAllKept) {
  const std::string text =
      "name: \"equal\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 4] }\n" +
      Param("w", "4, 3") + Param("b", "3") + Binary("matmul", "x", "w", "h") +
      Binary("elementwise_sub", "h", "b", "s") +
      Binary("elementwise_sub", "s", "h", "d") + Unary("square", "d", "e") +
      Unary("mean", "e", "loss") + "loss { var: \"loss\" mean_over: \"e\" }\n";
  auto model = CompileText(text, kStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config;
  config.fetches = {"s.grad.Out", "d.grad.Out"};
  const absl::Status status =
      tools::KeepFetched(&*model, /*threads=*/1, &config);
  ASSERT_TRUE(status.ok()) << status;
  const Entry& train = *model->program->FindEntry(kTrainEntry);
  for (const std::string& name : config.fetches) {
    EXPECT_TRUE(train.FindResult(name).valid() ||
                train.block().FindValue(name).valid())
        << name;
  }
}

// In f32 what is fused is computed alike, but for sums in another order; in low
// precision a value that a fusion keeps in f32 is not rounded, so that what
// follows is off by a unit in the last place or two.
INSTANTIATE_TEST_SUITE_P(
    Models, FetchedValues,
    ::testing::Values(Case{"ChainF32", nullptr, "O0", "fp16", 1e-6},
                      Case{"ChainF16", nullptr, "O1", "fp16", 2e-3},
                      Case{"ChainBF16", nullptr, "O2", "bf16", 1.6e-2},
                      Case{"MlpF32", "models/mlp.pbtxt", "O0", "fp16", 1e-5},
                      Case{"MlpF16", "models/mlp.pbtxt", "O1", "fp16", 4e-3}),
    [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace runtime
}  // namespace halftone
