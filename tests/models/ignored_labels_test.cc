// The cross entropy of an imported ONNX model is PyTorch's: labels of -100 are
// left out of loss, gradients and top1, on ranks and in micro-batches, too.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/import/onnx_import_testing.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.5 constant: true }
train { batch_size: 8 epochs: 4 seed: 3 }
)";

// From x, f32[N,4,6], to three classes for each of 4 places.
std::string Net() {
  std::string weights = "initializer { name: \"w\" data_type: 1 dims: [6, 3]";
  for (int i = 0; i < 18; ++i) {
    absl::StrAppend(&weights, " float_data: ", (i * 5 % 7) / 8.0 - 0.4);
  }
  OnnxOptions options;
  options.loss = "cross_entropy:y";
  options.class_axis = -1;
  return onnx_testing::Import(
      onnx_testing::Graph(weights + " }\n" +
                          onnx_testing::Node("MatMul", {"x", "w"}, "y")),
      options);
}

// Whether any, and all, of a sample's four labels are ignored.
bool IgnoresSome(int sample) { return sample % 2 == 0; }
bool IgnoresAll(int sample) { return sample >= 4; }

std::string Write(int samples, const std::vector<float>& x,
                  const std::vector<int64_t>& label) {
  const auto member = [](const std::string& name, const NpyFile& array) {
    return ZipFile::Member{name, array.Serialize(), /*deflate=*/false};
  };
  ZipFile file;
  file.members = {
      member("x.npy", {"<f4", absl::StrCat(samples, ", 4, 6"), BytesOf(x)}),
      member("label.npy",
             {"<i8", absl::StrCat(samples, ", 4"), BytesOf(label)})};
  const std::string path = NewDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

// Eight samples, or those alone of which something counts.
std::string Data(bool with_ignored) {
  std::vector<float> x;
  std::vector<int64_t> label;
  int samples = 0;
  for (int s = 0; s < 8; ++s) {
    if (!with_ignored && IgnoresAll(s)) continue;
    ++samples;
    for (int i = 0; i < 24; ++i) {
      x.push_back(((s * 24 + i) * 7 % 11) / 8.0f - 0.5f);
    }
    for (int i = 0; i < 4; ++i) {
      const bool ignored = IgnoresAll(s) || (IgnoresSome(s) && i == 2);
      label.push_back(ignored ? -100 : (s + i) % 3);
    }
  }
  return Write(samples, x, label);
}

struct Split {
  int ranks, micro_batches;
};

// A step is of all samples; on two ranks one of them has none that counts.
TEST(IgnoredLabelsTest, TrainsAsIfTheyWereNotThere) {
  const std::string model = Net();
  const Outcome without =
      TrainText(model, kStrategy, {"train.batch_size=4"}, Data(false), 1);
  ASSERT_TRUE(without.status.ok()) << without.status;
  ASSERT_EQ(without.steps.size(), 4u);
  const std::string data = Data(true);
  for (const Split& split : {Split{1, 1}, {2, 1}, {1, 4}, {2, 2}}) {
    SCOPED_TRACE(absl::StrCat(split.ranks, " ranks, ", split.micro_batches,
                              " micro-batches"));
    const Outcome with = TrainText(
        model, kStrategy,
        {absl::StrCat("dist.gradient_merge.k_steps=", split.micro_batches)},
        data, split.ranks);
    ASSERT_TRUE(with.status.ok()) << with.status;
    ExpectClose(with, without, 1e-5);  // f32 sums in another order
  }
}

TEST(IgnoredLabelsTest, EvaluatesAsIfTheyWereNotThere) {
  const std::string with = Data(true), without = Data(false);
  const Outcome run = TrainText(Net(), kStrategy, {}, with, 1);
  ASSERT_TRUE(run.status.ok()) << run.status;
  const auto model = CompileText(Net(), kStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto evaluate = [&](const std::string& data, int batch, int ranks) {
    TrainConfig config = ConfigOf(*model, data, run.out);
    config.strategy.mutable_train()->set_batch_size(batch);
    const auto report = EvaluateOn(*model, config, ranks);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(EvalReport());
  };
  const EvalReport expected = evaluate(without, 4, 1);
  EXPECT_EQ(expected.metrics.at("top1").total, 14);  // of 16
  EXPECT_GT(expected.metrics.at("top1").correct, 0);
  for (const int ranks : {1, 2}) {
    for (const int batch : {2, 8}) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, batch ", batch));
      const EvalReport found = evaluate(with, batch, ranks);
      EXPECT_NEAR(found.loss, expected.loss, 1e-5);
      EXPECT_EQ(found.metrics.at("top1").correct,
                expected.metrics.at("top1").correct);
      EXPECT_EQ(found.metrics.at("top1").total, 14);
    }
  }
}

// Half of the steps have one sample, of which nothing counts.
TEST(IgnoredLabelsTest, AStepOfNothingElseIsNotSkipped) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    const Outcome run =
        TrainText(Net(), kStrategy,
                  {"train.batch_size=1", absl::StrCat("amp.level=", level)},
                  Data(true), 1);
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.summary["steps_applied"], 32) << level;
    EXPECT_EQ(run.summary["steps_skipped"], 0) << level;
  }
}

// One of 131,072: its share of all is less than what f16 can divide by.
TEST(IgnoredLabelsTest, OneThatCountsOfVeryManyIsEnough) {
  constexpr int kSamples = 32768;
  std::vector<int64_t> label(kSamples * 4, -100);
  label[7] = 1;
  const std::string data =
      Write(kSamples, std::vector<float>(kSamples * 24, 0.5f), label);
  const auto loss = [&](const char* level) {
    const Outcome run =
        TrainText(Net(), kStrategy,
                  {absl::StrCat("train.batch_size=", kSamples),
                   "train.epochs=1", absl::StrCat("amp.level=", level)},
                  data, 1);
    EXPECT_TRUE(run.status.ok()) << run.status;
    return run.steps.empty() ? NAN : run.steps[0]["loss"].get<double>();
  };
  const double exact = loss("O0");
  EXPECT_GT(exact, 0.5);
  for (const char* level : {"O1", "O2", "O3"}) {
    EXPECT_NEAR(loss(level), exact, 0.01) << level;
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
