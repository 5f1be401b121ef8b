// dist.virtual_shards: a step's sums are those of its shards in one fixed tree,
// so that losses, parameters and evaluations are the same bits on any number of
// ranks that divides the shards, with any number of threads.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/samples.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

using Settings = std::vector<std::string>;

constexpr char kShards[] = "dist.virtual_shards=8";

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } clip { global_norm: 0.5 } }
lr { base: 0.1 constant: true }
train { batch_size: 12 epochs: 2 seed: 3 }
)";

Settings With(Settings settings, const Settings& more = {}) {
  settings.push_back(kShards);
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Everything that a run leaves, but for times.
void ExpectSameBits(const Outcome& a, const Outcome& b) {
  ASSERT_TRUE(a.status.ok()) << a.status;
  ASSERT_TRUE(b.status.ok()) << b.status;
  EXPECT_GT(a.steps.size(), 0);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.evals, b.evals);
  ASSERT_EQ(a.state.tensors.size(), b.state.tensors.size());
  for (size_t i = 0; i < a.state.tensors.size(); ++i) {
    EXPECT_TRUE(a.state.tensors[i].bytes == b.state.tensors[i].bytes)
        << a.state.tensors[i].name;
  }
}

// Of a compiled model on so many ranks.
Outcome TrainModel(const absl::StatusOr<CompiledModel>& model,
                   const std::string& data, int ranks, int threads = 1) {
  if (!model.ok()) return {model.status()};
  TrainConfig config = ConfigOf(*model, data, NewDirectory());
  config.log_every = 1;
  const WrapDevice wrap = [threads](int rank, std::unique_ptr<Device>) {
    return MakeCpuDevice(rank, threads);
  };
  return LookAt(config, TrainOn(*model, config, ranks, nullptr, wrap).status);
}

absl::StatusOr<CompiledModel> ConvNet(const Settings& settings) {
  return CompileFile(
      "models/mnist_convnet.pbtxt", "models/mnist_o1.pbtxt",
      With({"train.epochs=1", "dist.sync_batch_norm=false"}, settings));
}
constexpr char kDigits[] = "idx:models/digits";

absl::StatusOr<CompiledModel> Transformer(const Settings& settings) {
  HT_ASSIGN_OR_RETURN(const std::string model, SmallGpt2());
  return CompileText(model, R"(
amp { level: "O1" loss_scaling { init_loss_scaling: 1024 } }
optimizer { adam {} }
lr { base: 0.001 constant: true }
train { batch_size: 9 epochs: 1 seed: 3 }
)",
                     With({}, settings));
}

// Random numbers are those of samples, a norm's statistics those of its shard.
std::string DropoutAndNorm() {
  return absl::StrCat(
      kSixFeatures, Param("w1", "6, 12"), Param("s", "12", "constant: 1"),
      Param("b", "12", "constant: 0"), Param("w2", "12, 4"),
      Matmul("x", "w1", "", "h"), BatchNorm("h", 12, "s", "b", "y"),
      Op("dropout", {{"X", "y"}}, "Out", "d", "attr { name: \"p\" f: 0.3 }"),
      Matmul("d", "w2", "", "logits"), CrossEntropy());
}

// 27 samples in batches of 12 and a last one of 3, in which most shards are
// empty.
TEST(VirtualShards, AreTheSameOnAnyNumberOfRanks) {
  for (const Settings& settings :
       std::vector<Settings>{{},
                             {"amp.level=O1"},
                             {"amp.level=O2", "amp.dtype=bf16"},
                             {"amp.level=O3"},
                             {"train.tail=pad"},
                             {"train.tail=drop"}}) {
    SCOPED_TRACE(settings.empty() ? "" : settings[0]);
    const auto model = CompileText(DropoutAndNorm(), kStrategy, With(settings));
    const Outcome one = TrainModel(model, "synthetic:27", 1);
    for (const int ranks : {2, 4, 8}) {
      SCOPED_TRACE(ranks);
      ExpectSameBits(one, TrainModel(model, "synthetic:27", ranks));
    }
  }
}

TEST(VirtualShards, OfTheConvNet) {
  for (const Settings& settings :
       std::vector<Settings>{{}, {"amp.level=O0"}, {"amp.level=O3"}}) {
    const auto model = ConvNet(settings);
    const Outcome one = TrainModel(model, kDigits, 1);
    EXPECT_EQ(one.summary["steps_applied"], 23);
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(ranks);
      ExpectSameBits(one, TrainModel(model, kDigits, ranks));
    }
    ExpectSameBits(one, TrainModel(model, kDigits, 1, /*threads=*/3));
  }
}

TEST(VirtualShards, RecomputeChangesNoBit) {
  const auto run = [](const Settings& more) {
    return TrainModel(ConvNet(more), kDigits, 2);
  };
  ExpectSameBits(run({}), run({"memory.recompute.within=1"}));
}

// State that is spread over the ranks, here as without, and in what one rank
// has to itself.
TEST(VirtualShards, WithShardedState) {
  for (const char* level : {"amp.level=O0", "amp.level=O1", "amp.level=O2"}) {
    SCOPED_TRACE(level);
    const auto whole = CompileText(DropoutAndNorm(), kStrategy, With({level}));
    const auto sharded = CompileText(DropoutAndNorm(), kStrategy,
                                     With({level, "dist.sharding.stage=1"}));
    const Outcome one = TrainModel(whole, "synthetic:27", 1);
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(ranks);
      ExpectSameBits(one, TrainModel(sharded, "synthetic:27", ranks));
    }
  }
}

TEST(VirtualShards, OfATransformer) {
  for (const Settings& settings :
       std::vector<Settings>{{"amp.level=O0"}, {"amp.level=O2"}}) {
    const auto model = Transformer(settings);
    const Outcome one = TrainModel(model, "synthetic:20", 1);
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(ranks);
      ExpectSameBits(one, TrainModel(model, "synthetic:20", ranks));
    }
    ExpectSameBits(one, TrainModel(model, "synthetic:20", 1, /*threads=*/3));
  }
}

// What counts, clips and updates: a mask of which some shards have no 1, a
// scale that is too large at first, methods that take norms of parameters.
TEST(VirtualShards, OfMasksVerdictsAndMethods) {
  const auto same = [](const std::string& model, const std::string& method,
                       const Settings& settings) {
    const auto compiled = CompileText(
        model,
        absl::StrCat("optimizer { ", method, " }\n",
                     "lr { base: 0.01 constant: true }\n",
                     "train { batch_size: 12 epochs: 2 seed: 3 }\n"),
        With(settings));
    const Outcome one = TrainModel(compiled, "synthetic:27", 1);
    SCOPED_TRACE(method);
    ExpectSameBits(one, TrainModel(compiled, "synthetic:27", 4));
    return one;
  };
  same(Masked(), "momentum { momentum: 0.9 } clip { global_norm: 0.1 }", {});
  const Outcome skipped =
      same(Perceptron(), "sgd {}",
           {"amp.level=O1", "amp.loss_scaling.init_loss_scaling=16777216"});
  EXPECT_GT(skipped.summary["steps_skipped"], 0);
  for (const char* method : {"adamw { weight_decay: 0.1 }", "lamb {}",
                             "lars { momentum: 0.9 }", "adagrad {}"}) {
    same(Perceptron(), method, {"amp.level=O2"});
  }
}

// Shards of another number are other sums, and all are the whole batch's.
TEST(VirtualShards, AreTheWholeBatch) {
  const Settings settings = {"train.epochs=1"};
  const Outcome whole =
      TrainText(Perceptron(), kStrategy, settings, "synthetic:27", 1);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  for (const char* shards : {"1", "2", "4", "8"}) {
    Settings with = settings;
    with.push_back(absl::StrCat("dist.virtual_shards=", shards));
    const Outcome run =
        TrainText(Perceptron(), kStrategy, with, "synthetic:27", 1);
    ASSERT_TRUE(run.status.ok()) << run.status;
    ASSERT_EQ(run.steps.size(), whole.steps.size());
    for (size_t i = 0; i < run.steps.size(); ++i) {
      // Of f32 sums in another order.
      EXPECT_NEAR(run.steps[i]["loss"].get<double>(),
                  whole.steps[i]["loss"].get<double>(), 3e-5)
          << shards << " step " << i;
    }
  }
}

TEST(VirtualShards, ARunGoesOnOnOtherRanks) {
  const auto model = ConvNet({"train.epochs=2"});
  ASSERT_TRUE(model.ok()) << model.status();
  const Outcome whole = TrainModel(model, kDigits, 2);
  TrainConfig config = ConfigOf(*model, kDigits, NewDirectory());
  config.log_every = 1;
  config.on_activity = [](int64_t step, const char* what) {
    if (step == 9 && std::string(what) == "train") ::kill(::getpid(), SIGTERM);
  };
  EXPECT_EQ(TrainOn(*model, config, 4).signal, SIGTERM);
  EXPECT_LT(Newest(config.out).manifest.step, 23);
  config.on_activity = nullptr;
  config.resume = true;
  ExpectSameBits(whole, LookAt(config, TrainOn(*model, config, 1).status));
}

TEST(VirtualShards, AreRefusedOnRanksThatDoNotDivideThem) {
  const Outcome run =
      TrainText(Perceptron(), kStrategy, With({}), "synthetic:27", 3);
  EXPECT_EQ(ExitCodeOf(run.status), ExitCode::kModel) << run.status;
  EXPECT_THAT(std::string(run.status.message()),
              HasSubstr("dist.virtual_shards 8: expected a number of ranks "
                        "that divides it (1, 2, 4, 8), found 3; run on one of "
                        "these or"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
