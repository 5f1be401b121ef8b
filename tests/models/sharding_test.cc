// Ranks that share the optimizer's state make the numbers of ranks that each
// hold all of it, and their checkpoints are the same files.
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

constexpr char kSharding[] = "dist.sharding.stage=1";
constexpr char kHead[] = R"(name: "sharded"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 60] }
feed { name: "label" dtype: I64 dims: [-1] }
)";
constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { adam { } }
lr { base: 0.01 constant: true }
train { batch_size: 12 epochs: 2 seed: 3 }
)";

// Parameters of all kinds: of many shards, of fewer elements than ranks, and of
// a norm, which is f32 where others are low.
std::string Model() {
  return absl::StrCat(kHead, Param("w1", "60, 97"), Param("b1", "97"),
                      Param("s", "97"), Param("c", "97"), Param("w2", "97, 4"),
                      Param("b2", "4"), Matmul("x", "w1", "b1", "h"),
                      BatchNorm("h", 97, "s", "c", "y"),
                      Unary("tanh", "y", "t"),
                      Matmul("t", "w2", "b2", "logits"), CrossEntropy());
}

Outcome Train(const std::vector<std::string>& overrides, int ranks,
              const std::string& data = "synthetic:40") {
  return TrainText(Model(), kStrategy, overrides, data, ranks);
}

std::vector<std::string> With(std::vector<std::string> overrides,
                              const std::string& more) {
  overrides.push_back(more);
  return overrides;
}

void ExpectSameState(const Checkpoint& a, const Checkpoint& b,
                     const std::string& ignored = "") {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].dims, b.tensors[i].dims);
    if (ignored == a.tensors[i].name) continue;
    EXPECT_TRUE(a.tensors[i].bytes == b.tensors[i].bytes) << a.tensors[i].name;
  }
}

// But for norms of gradients, which are sums in another order.
void ExpectSame(const Outcome& whole, const Outcome& sharded) {
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  ASSERT_TRUE(sharded.status.ok()) << sharded.status;
  EXPECT_EQ(whole.summary["steps_applied"], sharded.summary["steps_applied"]);
  EXPECT_EQ(whole.summary["steps_skipped"], sharded.summary["steps_skipped"]);
  ASSERT_EQ(whole.steps.size(), sharded.steps.size());
  for (size_t i = 0; i < whole.steps.size(); ++i) {
    for (const char* key : {"loss", "lr", "loss_scaling"}) {
      EXPECT_EQ(whole.steps[i][key], sharded.steps[i][key]) << i << " " << key;
    }
  }
  EXPECT_EQ(whole.evals, sharded.evals);
  ExpectSameState(whole.state, sharded.state);
}

class Sharding : public ::testing::TestWithParam<int> {};

// Each rank adds the same terms in the same order, and updates go element by
// element: the bits are those without.
TEST_P(Sharding, HasTheBitsOfWholeState) {
  const int ranks = GetParam();
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    for (const char* dtype : {"fp16", "bf16"}) {
      SCOPED_TRACE(absl::StrCat(level, " ", dtype));
      const std::vector<std::string> amp = {absl::StrCat("amp.level=", level),
                                            absl::StrCat("amp.dtype=", dtype)};
      ExpectSame(Train(amp, ranks), Train(With(amp, kSharding), ranks));
    }
  }
}

TEST_P(Sharding, OfEveryMethod) {
  const int ranks = GetParam();
  for (const char* method : {"sgd.weight_decay=0.1", "momentum.momentum=0.9",
                             "adamw.weight_decay=0.1", "adagrad.epsilon=1e-10",
                             "rmsprop.momentum=0.5", "adadelta.rho=0.9",
                             "adamax.beta1=0.9", "lion.beta1=0.9"}) {
    SCOPED_TRACE(method);
    const std::vector<std::string> set = {absl::StrCat("optimizer.", method),
                                          "amp.level=O1"};
    ExpectSame(Train(set, ranks), Train(With(set, kSharding), ranks));
  }
}

TEST_P(Sharding, WithAveragesAndMicroBatches) {
  const int ranks = GetParam();
  for (const std::vector<std::string>& set :
       std::vector<std::vector<std::string>>{
           {"optimizer.ema.decay=0.9"},
           {"optimizer.ema.decay=0.9", "amp.level=O2"},
           {"dist.gradient_merge.k_steps=2", "amp.level=O1"},
           {"dist.sync_batch_norm=true"},
           {"dist.fuse_all_reduce_ops=false"},
           {"optimizer.clip.value=0.01"},
           {"memory.recompute.within=1KiB"}}) {
    SCOPED_TRACE(set[0]);
    ExpectSame(Train(set, ranks), Train(With(set, kSharding), ranks));
  }
}

// A clip takes the norm of all ranks' shards, a sum in another order: a
// rounding of f32 in each step, of which 8 steps of momentum make little. (Adam
// would make much of b1's: what a norm takes away again has no gradient but
// rounding.)
TEST_P(Sharding, ClipsByTheNormOfAllShards) {
  const int ranks = GetParam();
  for (const char* clip : {"global_norm=0.01", "norm=0.005"}) {
    SCOPED_TRACE(clip);
    const std::vector<std::string> set = {absl::StrCat("optimizer.clip.", clip),
                                          "optimizer.momentum.momentum=0.9"};
    const Outcome whole = Train(set, ranks);
    const Outcome sharded = Train(With(set, kSharding), ranks);
    const Outcome free = Train({"optimizer.momentum.momentum=0.9"}, ranks);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    ASSERT_TRUE(sharded.status.ok()) << sharded.status;
    for (const char* name : {"w1", "b2", "w1.velocity"}) {
      const std::vector<float> x = Values(whole.state, name);
      const std::vector<float> y = Values(sharded.state, name);
      EXPECT_NE(x, Values(free.state, name)) << name;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(x[i], y[i], 1e-5) << name << " " << i;
      }
    }
    for (size_t i = 0; i < whole.steps.size(); ++i) {
      const double norm = whole.steps[i]["grad_norm"];
      EXPECT_NEAR(norm, sharded.steps[i]["grad_norm"], 1e-5 * (1 + norm));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Sharding, ::testing::Values(1, 2, 3, 4));

// ---- What a rank holds.

TEST(State, IsAThirdOfTheWholeOnFourRanks) {
  for (const char* level : {"O0", "O2"}) {
    const std::vector<std::string> amp = {absl::StrCat("amp.level=", level)};
    const double whole = Train(amp, 4).summary["optimizer_bytes"];
    const Outcome sharded = Train(With(amp, kSharding), 4);
    ASSERT_TRUE(sharded.status.ok()) << sharded.status;
    EXPECT_LE(sharded.summary["optimizer_bytes"].get<double>(), 0.3 * whole)
        << level;
  }
}

// ---- One element that is not finite, in a gradient of which another rank has
// the shard, rejects the step on all ranks.

std::string Data(int bad_sample) {
  std::vector<float> x;
  std::vector<int64_t> label;
  for (int i = 0; i < 24 * 60; ++i) x.push_back((i * 7 % 11) / 8.0f - 0.5f);
  for (int i = 0; i < 24; ++i) label.push_back(i % 4);
  x[60 * bad_sample + 59] = std::numeric_limits<float>::infinity();
  ZipFile file;
  file.members = {
      {"x.npy", NpyFile{"<f4", "24, 60", BytesOf(x)}.Serialize()},
      {"label.npy", NpyFile{"<i8", "24,", BytesOf(label)}.Serialize()}};
  const std::string path = NewDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

TEST(Verdict, IsThatOfAllRanks) {
  for (const int sample : {3, 22}) {
    const std::string data = Data(sample);
    for (const char* level : {"O0", "O2"}) {
      const std::vector<std::string> amp = {absl::StrCat("amp.level=", level)};
      const Outcome whole = Train(amp, 3, data);
      const Outcome sharded = Train(With(amp, kSharding), 3, data);
      ExpectSame(whole, sharded);
      EXPECT_EQ(sharded.summary["steps_skipped"], 2);
      ASSERT_EQ(whole.steps.size(), sharded.steps.size());
      for (size_t i = 0; i < whole.steps.size(); ++i) {
        EXPECT_EQ(whole.steps[i]["skipped"], sharded.steps[i]["skipped"]) << i;
      }
    }
  }
}

// ---- Checkpoints.

// Stops a run after four of its eight steps and ends it in another way.
Outcome StoppedAndResumed(const std::vector<std::string>& first, int ranks,
                          const std::vector<std::string>& then, int ranks_then,
                          const std::string& data = "synthetic:48") {
  const auto before = CompileText(Model(), kStrategy, first);
  const auto after = CompileText(Model(), kStrategy, then);
  if (!before.ok()) return {before.status()};
  if (!after.ok()) return {after.status()};
  TrainConfig config = ConfigOf(*before, data, NewDirectory());
  config.log_every = 1;
  config.on_activity = [](int64_t step, const char* what) {
    if (step == 3 && std::string(what) == "train") ::kill(::getpid(), SIGTERM);
  };
  const Trained stopped = TrainOn(*before, config, ranks);
  EXPECT_TRUE(stopped.status.ok()) << stopped.status;
  EXPECT_LT(Newest(config.out).manifest.step, 8);
  TrainConfig resumed = ConfigOf(*after, data, config.out);
  resumed.log_every = 1;
  resumed.resume = true;
  return LookAt(resumed, TrainOn(*after, resumed, ranks_then).status);
}

// With and without sharding is the same run, to the bit.
TEST(CheckpointOfShards, GoesOnWithAndWithoutSharding) {
  for (const char* level : {"O0", "O2"}) {
    SCOPED_TRACE(level);
    const std::vector<std::string> whole = {absl::StrCat("amp.level=", level),
                                            "optimizer.ema.decay=0.9"};
    const std::vector<std::string> sharded = With(whole, kSharding);
    const Outcome through = Train(whole, 3, "synthetic:48");
    ASSERT_TRUE(through.status.ok()) << through.status;
    ASSERT_EQ(through.state.manifest.step, 8);
    for (const auto& [first, then] :
         {std::pair(whole, sharded), std::pair(sharded, whole),
          std::pair(sharded, sharded)}) {
      const Outcome run = StoppedAndResumed(first, 3, then, 3);
      ASSERT_TRUE(run.status.ok()) << run.status;
      // Another model does not go on counting under a constant scale.
      ExpectSameState(through.state, run.state, "@good_steps");
    }
  }
}

// On another number of ranks sums have another order; sharding adds nothing to
// that.
TEST(CheckpointOfShards, GoesOnOnOtherRanks) {
  const std::vector<std::string> whole = {"amp.level=O1"};
  const std::vector<std::string> sharded = With(whole, kSharding);
  for (const auto& [ranks, then] :
       {std::pair(4, 2), std::pair(2, 3), std::pair(3, 1), std::pair(1, 4)}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks, then ", then));
    const Outcome a = StoppedAndResumed(whole, ranks, whole, then);
    const Outcome b = StoppedAndResumed(sharded, ranks, sharded, then);
    ASSERT_TRUE(a.status.ok()) << a.status;
    ASSERT_TRUE(b.status.ok()) << b.status;
    ExpectSameState(a.state, b.state);
  }
}

TEST(Refused, NamesBothFields) {
  for (const char* method : {"lars", "lamb"}) {
    const auto model = CompileText(
        Model(), kStrategy,
        {kSharding, absl::StrCat("optimizer.", method, ".epsilon=1e-6")});
    EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel) << model.status();
    EXPECT_THAT(std::string(model.status().message()),
                AllOf(HasSubstr("dist.sharding"), HasSubstr(method)));
  }
  const auto stage = CompileText(Model(), kStrategy, {"dist.sharding.stage=2"});
  EXPECT_EQ(ExitCodeOf(stage.status()), ExitCode::kUsage) << stage.status();
  EXPECT_THAT(std::string(stage.status().message()),
              HasSubstr("dist.sharding.stage"));
}

// A shard of a gradient is no gradient.
TEST(Refused, FetchesOfShards) {
  const auto model = CompileText(Model(), kStrategy, {kSharding});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:48", NewDirectory());
  config.fetches = {"w1.moment1.next"};
  const absl::Status status = TrainOn(*model, config, 2).status;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("dist.sharding"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
