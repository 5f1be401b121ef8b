// Feeds out of an .npz: in samples, and whole in every step.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

// In FP32: feeds stay as they are, parameters have low copies.
constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { sgd { } } lr { base: 0.1 constant: true }
train { batch_size: 4 epochs: 3 seed: 1 })";

// `shift` and `factor` are declared by the text in front.
constexpr char kModel[] = R"(
feed { name: "x" dims: [-1, 4] } feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [4, 3] init { kaiming_uniform { a: 1 } } }
op { type: "elementwise_add" in { slot: "X" var: "w" } in { slot: "Y" var: "shift" } out { slot: "Out" var: "shifted" } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "shifted" } out { slot: "Out" var: "h" } }
op { type: "elementwise_mul" in { slot: "X" var: "h" } in { slot: "Y" var: "factor" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
op { type: "correct_count" in { slot: "X" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Out" var: "correct" } attr { name: "k" i: 1 } }
loss { var: "loss" mean_over: "ce" } metric { name: "top1" var: "correct" over: "label" }
output: "logits"
)";
constexpr char kAsFeeds[] = R"(
feed { name: "shift" dims: [4, 3] } feed { name: "factor" dims: [3] })";
constexpr char kAsParameters[] = R"(
param { name: "shift" dims: [4, 3] trainable: false init { constant: 1 } }
param { name: "factor" dims: [3] trainable: false init { constant: 2 } })";

// Ten samples, and what the parameters above begin with.
std::string Data() {
  std::vector<float> x;
  std::vector<int64_t> label;
  for (int i = 0; i < 40; ++i) x.push_back((i * 7 % 11) / 8.0f - 0.5f);
  for (int i = 0; i < 10; ++i) label.push_back(i % 3);
  const auto member = [](const std::string& name, const NpyFile& array) {
    return ZipFile::Member{name + ".npy", array.Serialize(), /*deflate=*/true};
  };
  ZipFile file;
  file.members = {
      member("x", {"<f4", "10, 4", BytesOf(x)}),
      member("label", {"<i8", "10,", BytesOf(label)}),
      member("shift", {"<f4", "4, 3", BytesOf(std::vector<float>(12, 1))}),
      member("factor", {"<f4", "3,", BytesOf(std::vector<float>(3, 2))})};
  const std::string path = FreshDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

struct Outcome {
  std::vector<Json> steps;
  std::vector<float> w;
  EvalReport eval;
};

Outcome TrainAndEvaluate(const std::string& model_text, const std::string& data,
                         int ranks) {
  Outcome run;
  const auto model = CompileText(model_text, kStrategy);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return run;
  static int runs = 0;
  const std::string out = absl::StrCat(FreshDirectory(), "-", runs++);
  TrainConfig config = ConfigOf(*model, data, out);
  config.log_every = 1;
  const Trained trained = TrainOn(*model, config, ranks);
  EXPECT_TRUE(trained.status.ok()) << trained.status;
  if (!trained.status.ok()) return run;
  run.steps = Events(out, "step");
  run.w = Values(Newest(out), "w");
  const auto eval = EvaluateOn(*model, config, ranks);
  EXPECT_TRUE(eval.ok()) << eval.status();
  if (eval.ok()) run.eval = *eval;
  return run;
}

// A feed without a batch does what a parameter does that does not change.
TEST(NpzFeedsTest, AWholeFeedIsTheSameInEveryStepOfEveryRank) {
  const std::string data = Data();
  for (const int ranks : {1, 3}) {
    const Outcome feeds =
        TrainAndEvaluate(absl::StrCat(kAsFeeds, kModel), data, ranks);
    const Outcome parameters =
        TrainAndEvaluate(absl::StrCat(kAsParameters, kModel), data, ranks);
    ASSERT_EQ(feeds.steps.size(), 9u);
    EXPECT_EQ(feeds.w, parameters.w);
    for (size_t s = 0; s < feeds.steps.size(); ++s) {
      EXPECT_EQ(feeds.steps[s]["loss"], parameters.steps[s]["loss"]) << s;
    }
    EXPECT_EQ(feeds.eval.samples, 10);
    EXPECT_EQ(feeds.eval.loss, parameters.eval.loss);
  }
}

// Without any batch there is one step in an epoch, the same on every rank.
TEST(NpzFeedsTest, AProgramWithoutSamplesTakesItsArraysAtOnce) {
  const std::string data = Data();
  const std::string model = absl::StrReplaceAll(
      absl::StrCat(kAsFeeds, kModel),
      {{"[-1, 4]", "[10, 4]"}, {"dims: [-1]", "dims: [10]"}});
  const Outcome one = TrainAndEvaluate(model, data, 1);
  const Outcome two = TrainAndEvaluate(model, data, 2);
  ASSERT_EQ(one.steps.size(), 3u);
  ASSERT_EQ(two.steps.size(), 3u);
  EXPECT_EQ(one.w, two.w);
  EXPECT_EQ(one.eval.samples, 1);
  EXPECT_LT(one.steps[2]["loss"].get<double>(),
            one.steps[0]["loss"].get<double>());
  EXPECT_EQ(one.steps[2]["loss"], two.steps[2]["loss"]);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
