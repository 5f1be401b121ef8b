// A step of micro-batches is a step of the whole batch: the same losses, and
// the same parameters to the rounding of f32 sums in another order.
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } clip { global_norm: 0.5 } }
lr { base: 0.1 constant: true }
train { batch_size: 8 epochs: 3 seed: 3 }
)";

// Its random numbers are those of samples, whatever batch they are in.
std::string Dropout() {
  return absl::StrCat(
      kSixFeatures, Param("w1", "6, 12"), Param("w2", "12, 4"),
      Matmul("x", "w1", "", "h"),
      Op("dropout", {{"X", "h"}}, "Out", "d", "attr { name: \"p\" f: 0.3 }"),
      Matmul("d", "w2", "", "logits"), CrossEntropy());
}

std::string Normed() {
  return absl::StrCat(
      kSixFeatures, Param("w1", "6, 5"), Param("s", "5", "constant: 1"),
      Param("b", "5", "constant: 0"), Param("w2", "5, 4"),
      Matmul("x", "w1", "", "h"), BatchNorm("h", 5, "s", "b", "y"),
      Matmul("y", "w2", "", "logits"), CrossEntropy());
}

std::string Merge(int k) {
  return absl::StrCat("dist.gradient_merge.k_steps=", k);
}

Outcome Train(const std::string& model,
              const std::vector<std::string>& overrides,
              const std::string& data, int ranks) {
  return TrainText(model, kStrategy, overrides, data, ranks);
}

// `tolerance`: relative to 1 + |value|.
void ExpectNear(const Outcome& a, const Outcome& b, double tolerance) {
  ASSERT_TRUE(a.status.ok()) << a.status;
  ASSERT_TRUE(b.status.ok()) << b.status;
  EXPECT_EQ(a.summary["steps_applied"], b.summary["steps_applied"]);
  EXPECT_EQ(a.summary["steps_skipped"], b.summary["steps_skipped"]);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i]["lr"], b.steps[i]["lr"]) << i;
    if (!a.steps[i]["loss"].is_number()) continue;  // nothing was counted
    const double x = a.steps[i]["loss"], y = b.steps[i]["loss"];
    EXPECT_NEAR(x, y, tolerance * (1 + std::abs(x))) << "step " << i;
  }
  // Micro-batches leave nothing behind that a checkpoint knows.
  ASSERT_EQ(a.state.tensors.size(), b.state.tensors.size());
  for (size_t t = 0; t < a.state.tensors.size(); ++t) {
    const Tensor& tensor = a.state.tensors[t];
    ASSERT_EQ(tensor.name, b.state.tensors[t].name);
    if (tensor.name[0] == '@') {  // clocks and loss scale
      EXPECT_TRUE(tensor.bytes == b.state.tensors[t].bytes) << tensor.name;
      continue;
    }
    const std::vector<float> x = Values(a.state, tensor.name);
    const std::vector<float> y = Values(b.state, tensor.name);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], y[i], tolerance * (1 + std::abs(x[i])))
          << tensor.name << " " << i;
    }
  }
}

// Over 12 steps of f32 with a momentum of 0.9.
constexpr double kRounding = 3e-5;

class GradientMerge : public ::testing::TestWithParam<int> {};

// Batches of 8 and a last one of 3: of which some ranks have one sample, and
// of more micro-batches than samples only as many as there are.
TEST_P(GradientMerge, IsTheWholeBatch) {
  const int ranks = GetParam();
  for (const std::string& model : {Perceptron(), Dropout(), Masked()}) {
    const Outcome whole = Train(model, {}, "synthetic:27", 1);
    EXPECT_EQ(whole.summary["steps_applied"], 12);
    for (const int k : {2, 3, 8}) {
      SCOPED_TRACE(absl::StrCat(model.substr(0, 400), "\nk ", k));
      ExpectNear(whole, Train(model, {Merge(k)}, "synthetic:27", ranks),
                 kRounding);
    }
  }
}

// No step is skipped, and the numbers are those of the batch as far as 16 bits
// go (a relative 1e-3 or 8e-3 a gradient, of which 12 steps make at most 1).
TEST_P(GradientMerge, InLowPrecision) {
  const int ranks = GetParam();
  for (const char* level : {"O1", "O2"}) {
    for (const char* dtype : {"fp16", "bf16"}) {
      SCOPED_TRACE(absl::StrCat(level, " ", dtype));
      const std::vector<std::string> amp = {
          absl::StrCat("amp.level=", level), absl::StrCat("amp.dtype=", dtype),
          "amp.loss_scaling.init_loss_scaling=1024"};
      std::vector<std::string> merged = amp;
      merged.push_back(Merge(4));
      const Outcome whole = Train(Perceptron(), amp, "synthetic:27", ranks);
      EXPECT_EQ(whole.summary["steps_skipped"], 0);
      ExpectNear(whole, Train(Perceptron(), merged, "synthetic:27", ranks),
                 2e-2);
    }
  }
}

// Backward of each micro-batch makes values again instead of keeping them.
TEST_P(GradientMerge, RecomputeChangesNoBit) {
  const int ranks = GetParam();
  for (const std::string& model : {Dropout(), Normed()}) {
    const Outcome kept = Train(model, {Merge(3)}, "synthetic:27", ranks);
    const Outcome again = Train(model, {Merge(3), "memory.recompute.within=1"},
                                "synthetic:27", ranks);
    ASSERT_TRUE(again.status.ok()) << again.status;
    ExpectClose(kept, again, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GradientMerge, ::testing::Values(1, 2, 3));

std::string Data(const std::vector<float>& x) {
  std::vector<int64_t> label;
  const size_t samples = x.size() / 6;
  for (size_t i = 0; i < samples; ++i) label.push_back(i % 4);
  ZipFile file;
  file.members = {
      {"x.npy",
       NpyFile{"<f4", absl::StrCat(samples, ", 6"), BytesOf(x)}.Serialize()},
      {"label.npy",
       NpyFile{"<i8", absl::StrCat(samples, ","), BytesOf(label)}.Serialize()}};
  const std::string path = FreshDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

std::vector<float> Inputs(int samples) {
  std::vector<float> x;
  for (int i = 0; i < samples * 6; ++i) x.push_back((i * 7 % 11) / 8.0f - 0.5f);
  return x;
}

// One sample of 16 has an inf, wherever it lies in its step: that step is
// skipped, and the other one is as if there had been no such step.
TEST(RejectedMicroBatch, RejectsItsStep) {
  std::vector<float> x = Inputs(16);
  x[6 * 5 + 2] = std::numeric_limits<float>::infinity();
  const std::string data = Data(x);
  for (const int ranks : {1, 2}) {
    const Outcome whole = Train(Perceptron(), {}, data, ranks);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    EXPECT_EQ(whole.summary["steps_skipped"], 3);
    for (const int k : {2, 4}) {
      ExpectNear(whole, Train(Perceptron(), {Merge(k)}, data, ranks),
                 kRounding);
    }
  }
}

// Nor does a running statistic change, though earlier micro-batches have gone
// on from those of the step's begin: gradients overflow f16 in every step.
TEST(RejectedMicroBatch, ChangesNoStatistic) {
  const Outcome run = Train(Normed(),
                            {Merge(4), "amp.level=O1",
                             "amp.loss_scaling.use_dynamic_loss_scaling=false",
                             "amp.loss_scaling.init_loss_scaling=1e30"},
                            "synthetic:8", 1);
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.summary["steps_skipped"], 3);
  EXPECT_EQ(Values(run.state, "m"), std::vector<float>(5, 0));
  EXPECT_EQ(Values(run.state, "v"), std::vector<float>(5, 1));
}

// Statistics of two micro-batches are chained like those of two batches: where
// nothing else changes they are the same bits.
TEST(RunningStatistics, AreChained) {
  for (const int ranks : {1, 2}) {
    for (const char* sync : {"true", "false"}) {
      const std::string synced = absl::StrCat("dist.sync_batch_norm=", sync);
      const Outcome merged =
          Train(Normed(), {Merge(2), synced, "lr.base=0", "train.epochs=1"},
                "synthetic:16", ranks);
      const Outcome two =
          Train(Normed(),
                {"train.batch_size=4", synced, "lr.base=0", "train.epochs=1"},
                "synthetic:16", 1);
      ASSERT_TRUE(merged.status.ok()) << merged.status;
      ASSERT_TRUE(two.status.ok()) << two.status;
      EXPECT_EQ(merged.summary["steps_applied"], 2);
      EXPECT_EQ(two.summary["steps_applied"], 4);
      if (ranks > 1) continue;  // slices of a batch: other samples together
      for (const char* name : {"m", "v"}) {
        EXPECT_EQ(Values(merged.state, name), Values(two.state, name)) << name;
        EXPECT_NE(Values(merged.state, name)[0], name[0] == 'm' ? 0 : 1);
      }
    }
  }
}

// f16 gradients of 40,000, of which a sum of 4 is beyond f16 and the mean not.
TEST(Sums, DoNotOverflowWhereMeansDoNot) {
  const std::string model = absl::StrCat(
      R"(name: "sum"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
)",
      Param("w", "6, 1"), Matmul("x", "w", "", "y"), Unary("mean", "y", "loss"),
      "loss { var: \"loss\" mean_over: \"y\" }\n");
  std::vector<float> ones(6 * 8, 1);
  ZipFile file;
  file.members = {{"x.npy", NpyFile{"<f4", "8, 6", BytesOf(ones)}.Serialize()}};
  const std::string path = FreshDirectory() + ".npz";
  ASSERT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  for (const int k : {1, 4, 5}) {
    const Outcome run =
        Train(model,
              {Merge(k), "amp.level=O1", "train.epochs=1",
               "amp.loss_scaling.use_dynamic_loss_scaling=false",
               "amp.loss_scaling.init_loss_scaling=40000"},
              "npz:" + path, 1);
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.summary["steps_applied"], 1) << k;
    EXPECT_EQ(run.summary["steps_skipped"], 0) << k;
  }
}

TEST(Resume, GoesOnBitForBit) {
  const auto model = CompileText(Normed(), kStrategy, {Merge(3)});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig whole = ConfigOf(*model, "synthetic:27", FreshDirectory());
  ASSERT_TRUE(TrainOn(*model, whole, 2).status.ok());
  TrainConfig stopped = ConfigOf(*model, "synthetic:27", whole.out + ".again");
  stopped.on_activity = [](int64_t step, const char* what) {
    if (step == 6 && std::string(what) == "train") ::kill(::getpid(), SIGTERM);
  };
  const Trained first = TrainOn(*model, stopped, 2);
  ASSERT_TRUE(first.status.ok()) << first.status;
  EXPECT_EQ(first.signal, SIGTERM);
  EXPECT_LT(Newest(stopped.out).manifest.step, 12);
  stopped.on_activity = nullptr;
  stopped.resume = true;
  ASSERT_TRUE(TrainOn(*model, stopped, 2).status.ok());
  const Checkpoint a = Newest(whole.out), b = Newest(stopped.out);
  EXPECT_EQ(a.manifest.step, 12);
  EXPECT_EQ(a.manifest.numbers, b.manifest.numbers);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_TRUE(a.tensors[i].bytes == b.tensors[i].bytes) << a.tensors[i].name;
  }
}

TEST(Refused, NamesBothFields) {
  const auto message = [](const std::vector<std::string>& overrides) {
    const Outcome run = Train(Perceptron(), overrides, "synthetic:27", 1);
    EXPECT_FALSE(run.status.ok());
    return std::string(run.status.message());
  };
  EXPECT_THAT(message({Merge(0)}), HasSubstr("k_steps"));
  EXPECT_THAT(message({Merge(9)}),
              AllOf(HasSubstr("k_steps"), HasSubstr("batch_size")));
  // At the start of a run, too, whose batch may be another.
  const auto model = CompileText(Perceptron(), kStrategy, {Merge(8)});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:27", FreshDirectory());
  config.strategy.mutable_train()->set_batch_size(7);
  const absl::Status status = TrainOn(*model, config, 1).status;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("k_steps"), HasSubstr("batch_size")));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
