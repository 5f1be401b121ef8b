// LocalSGD (dist.localsgd, dist.adaptive_localsgd): ranks that go on by
// themselves and average are the ones that a simulation by hand makes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/samples.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

constexpr int kSamples = 22, kBatch = 7, kFeatures = 6, kClasses = 4;
constexpr int kEpochs = 4;
constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.3 constant: true }
train { batch_size: 7 epochs: 4 seed: 3 }
)";

// ---- The data: 4 steps an epoch, of 7, 7, 7 and 1 samples: of the last one a
// rank has none.

float Feature(int sample, int i) {
  return static_cast<float>((sample * 7 + i * 5) % 11) / 8 - 0.5f;
}
int LabelOf(int sample) { return (sample * 5 + sample / 3) % kClasses; }

// `bad_sample`: it has an infinite feature.
std::string Data(int bad_sample = -1) {
  return WriteNpz({kSamples, kFeatures, Feature, LabelOf}, bad_sample);
}

std::string Linear() {
  return absl::StrCat(kSixFeatures, Param("w", "6, 4", "constant: 0"),
                      Param("b", "4", "constant: 0"),
                      Matmul("x", "w", "b", "logits"), CrossEntropy());
}

TrainConfig Config(const CompiledModel& model, const std::string& data,
                   const std::string& out) {
  TrainConfig config = ConfigOf(model, data, out);
  config.shuffle = false;
  config.log_every = 1;
  return config;
}

Outcome Train(const std::vector<std::string>& overrides, int ranks,
              const std::string& data = Data(),
              const std::string& text = Linear()) {
  const auto model = CompileText(text, kStrategy, overrides);
  if (!model.ok()) return {model.status()};
  const TrainConfig config = Config(*model, data, NewDirectory());
  return LookAt(config, TrainOn(*model, config, ranks).status);
}

// ---- By hand, in f64: softmax regression, momentum, and averages of changes.

struct Sim {
  int ranks = 2;
  double rate = 0.3, momentum = 0.9;
  int k = 1, begin = 1;
  bool adaptive = false;
  int skipped = -1;  // a step that every rank rejects, 1, 2, ...

  using Vector = std::vector<double>;  // w, then b
  std::vector<Vector> w, v;
  std::vector<double> losses;
  std::vector<int> averaged_after;

  double Loss(const Vector& p, int first, int count, Vector* grad) const;
  void Average();
  Sim Run();
};

// The mean over those samples, and its gradient; a sum if there are none.
double Sim::Loss(const Vector& p, int first, int count, Vector* grad) const {
  grad->assign(p.size(), 0);
  double loss = 0;
  for (int s = first; s < first + count; ++s) {
    double logits[kClasses], sum = 0;
    for (int c = 0; c < kClasses; ++c) {
      logits[c] = p[kFeatures * kClasses + c];
      for (int i = 0; i < kFeatures; ++i) {
        logits[c] += static_cast<double>(Feature(s, i)) * p[i * kClasses + c];
      }
      sum += std::exp(logits[c]);
    }
    loss += (std::log(sum) - logits[LabelOf(s)]) / count;
    for (int c = 0; c < kClasses; ++c) {
      const double g =
          (std::exp(logits[c]) / sum - (c == LabelOf(s) ? 1 : 0)) / count;
      (*grad)[kFeatures * kClasses + c] += g;
      for (int i = 0; i < kFeatures; ++i) {
        (*grad)[i * kClasses + c] += g * static_cast<double>(Feature(s, i));
      }
    }
  }
  return loss;
}

void Sim::Average() {
  Vector mean(w[0].size(), 0);
  for (const Vector& of_rank : w) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += of_rank[i] / ranks;
  }
  for (Vector& of_rank : w) of_rank = mean;
}

Sim Sim::Run() {
  const size_t size = kFeatures * kClasses + kClasses;
  w.assign(ranks, Vector(size, 0));
  v = w;
  int last = adaptive ? 0 : begin, period = k;
  double first_loss = 0;
  const int steps_per_epoch = (kSamples + kBatch - 1) / kBatch;
  const int steps = steps_per_epoch * kEpochs;
  for (int step = 1; step <= steps; ++step) {
    const int begin_sample = (step - 1) % steps_per_epoch * kBatch;
    const int count = std::min(kBatch, kSamples - begin_sample);
    int at = begin_sample;
    double loss = 0;
    for (int r = 0; r < ranks; ++r) {
      const int own = count / ranks + (r < count % ranks ? 1 : 0);
      Vector grad;
      loss += Loss(w[r], at, own, &grad) * own / count;
      at += own;
      if (step == skipped) continue;
      for (size_t i = 0; i < size; ++i) {
        v[r][i] = momentum * v[r][i] + grad[i];
        w[r][i] -= rate * v[r][i];
      }
    }
    losses.push_back(loss);
    if (step == 1) first_loss = loss;
    const bool ends = step <= begin || step - last == period;
    if (ends || step == steps) {
      Average();
      averaged_after.push_back(step);
    }
    if (!ends) continue;
    last = step;
    if (!adaptive) continue;
    period = static_cast<int>(std::ceil(std::sqrt(loss / first_loss * k)));
    period = std::min(16, std::max(1, period));
  }
  return *this;
}

std::vector<float> Joined(const Checkpoint& state, const std::string& prefix,
                          const std::string& suffix) {
  std::vector<float> all = Values(state, prefix + "w" + suffix);
  const std::vector<float> b = Values(state, prefix + "b" + suffix);
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// f32 of 16 steps, of values of about 1.
constexpr double kRounding = 2e-5;

void ExpectNear(const std::vector<float>& found,
                const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], kRounding) << what << " " << i;
  }
}

void ExpectIs(const Outcome& run, const Sim& sim) {
  ASSERT_TRUE(run.status.ok()) << run.status;
  ExpectNear(Joined(run.state, "", ""), sim.w[0], "parameters");
  ExpectNear(Joined(run.state, "", ".velocity"), sim.v[0], "rank 0");
  for (int r = 1; r < sim.ranks; ++r) {
    const std::string prefix = absl::StrCat("@rank.", r, "/");
    ExpectNear(Joined(run.state, prefix, ".velocity"), sim.v[r], prefix);
  }
  ASSERT_EQ(run.steps.size(), sim.losses.size());
  for (size_t i = 0; i < sim.losses.size(); ++i) {
    if (static_cast<int>(i) + 1 == sim.skipped) continue;
    EXPECT_NEAR(run.steps[i]["loss"], sim.losses[i], kRounding) << "step " << i;
  }
}

std::vector<std::string> Every(int k, int begin = 1) {
  return {absl::StrCat("dist.localsgd.k_steps=", k),
          absl::StrCat("dist.localsgd.begin_step=", begin)};
}
std::vector<std::string> Adaptive(int k, int begin = 1) {
  return {absl::StrCat("dist.adaptive_localsgd.init_k_steps=", k),
          absl::StrCat("dist.adaptive_localsgd.begin_step=", begin)};
}

class LocalSgd : public ::testing::TestWithParam<int> {};

TEST_P(LocalSgd, IsTheSimulation) {
  for (const auto& [k, begin] :
       {std::pair(1, 1), std::pair(3, 1), std::pair(4, 3), std::pair(5, 0)}) {
    SCOPED_TRACE(absl::StrCat("k ", k, " from ", begin));
    Sim sim;
    sim.ranks = GetParam();
    sim.k = k;
    sim.begin = begin;
    ExpectIs(Train(Every(k, begin), sim.ranks), sim.Run());
  }
}

TEST_P(LocalSgd, AdaptsToTheLoss) {
  for (const auto& [k, begin] : {std::pair(9, 1), std::pair(4, 3)}) {
    SCOPED_TRACE(absl::StrCat("k ", k, " from ", begin));
    Sim sim;
    sim.ranks = GetParam();
    sim.k = k;
    sim.begin = begin;
    sim.adaptive = true;
    sim.Run();
    // Periods get shorter as the loss falls: it is not the fixed schedule.
    Sim fixed = sim;
    fixed.adaptive = false;
    EXPECT_NE(sim.averaged_after, fixed.Run().averaged_after);
    ExpectIs(Train(Adaptive(k, begin), sim.ranks), sim);
  }
}

// What rejects the step on one rank rejects it on all; the period goes on.
TEST_P(LocalSgd, RejectsAStepOnAllRanks) {
  // The second step's first and last sample: of the first and the last rank.
  for (const int sample : {7, 13}) {
    const Outcome run = Train(Every(3), GetParam(), Data(sample));
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.summary["steps_skipped"], kEpochs) << sample;
    for (const Json& step : run.steps) {
      EXPECT_EQ(step["found_inf"], step["step"].get<int>() % 4 == 2) << step;
    }
  }
}

TEST_P(LocalSgd, GoesOnBehindARejectedStep) {
  const std::string data = Data(9);
  Sim sim;
  sim.ranks = GetParam();
  sim.k = 3;
  sim.skipped = 2;
  const auto model = CompileText(Linear(), kStrategy,
                                 {"train.epochs=1", "dist.localsgd.k_steps=3"});
  ASSERT_TRUE(model.ok()) << model.status();
  const TrainConfig config = Config(*model, data, NewDirectory());
  const Outcome run = LookAt(config, TrainOn(*model, config, sim.ranks).status);
  ASSERT_TRUE(run.status.ok()) << run.status;
  ASSERT_EQ(run.steps.size(), 4u);
  EXPECT_TRUE(run.steps[1]["found_inf"]);
  // Losses of later steps are those of parameters without it.
  sim.Run();
  for (const int i : {0, 2, 3}) {
    EXPECT_NEAR(run.steps[i]["loss"], sim.losses[i], kRounding) << i;
  }
}

// What is saved, shown and compared between steps changes no number.
TEST_P(LocalSgd, DoesNotDependOnWhenItIsSaved) {
  const auto model = CompileText(Linear(), kStrategy, Every(3));
  ASSERT_TRUE(model.ok()) << model.status();
  const Outcome plain = Train(Every(3), GetParam());
  ASSERT_TRUE(plain.status.ok()) << plain.status;
  TrainConfig config = Config(*model, Data(), NewDirectory());
  config.checkpoint_every = {Cadence::Unit::kSteps, 2};
  config.compare_every = {Cadence::Unit::kSteps, 1};
  config.keep_checkpoints = 100;
  const Outcome often =
      LookAt(config, TrainOn(*model, config, GetParam()).status);
  ASSERT_TRUE(often.status.ok()) << often.status;
  ASSERT_EQ(plain.state.tensors.size(), often.state.tensors.size());
  for (size_t i = 0; i < plain.state.tensors.size(); ++i) {
    EXPECT_TRUE(plain.state.tensors[i].bytes == often.state.tensors[i].bytes)
        << plain.state.tensors[i].name;
  }
  // Steps 2, 4, ... are due; ranks are equal after 1, 4, 7, 10, 13 and 16.
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : ListCheckpoints(config.out + "/ckpt")) {
    steps.push_back(info.step);
  }
  EXPECT_THAT(steps, ::testing::UnorderedElementsAre(4, 7, 10, 13, 16));
}

// ---- A run that is stopped and goes on.

struct Resumed {
  Outcome run;
  int64_t stopped_at = 0;
};

Resumed StopAndResume(const std::vector<std::string>& overrides, int ranks,
                      int ranks_then, int at_step) {
  Resumed resumed;
  const auto model = CompileText(Linear(), kStrategy, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return resumed;
  const std::string data = Data();
  TrainConfig config = Config(*model, data, NewDirectory());
  config.on_activity = [at_step](int64_t step, const char* what) {
    if (step == at_step && std::string(what) == "train") {
      ::kill(::getpid(), SIGTERM);
    }
  };
  const Trained stopped = TrainOn(*model, config, ranks);
  EXPECT_TRUE(stopped.status.ok()) << stopped.status;
  EXPECT_EQ(stopped.signal, SIGTERM);
  resumed.stopped_at = Newest(config.out).manifest.step;
  config.on_activity = nullptr;
  config.resume = true;
  resumed.run = LookAt(config, TrainOn(*model, config, ranks_then).status);
  return resumed;
}

TEST_P(LocalSgd, GoesOnBitForBit) {
  for (const std::vector<std::string>& set : {Every(5), Adaptive(9)}) {
    SCOPED_TRACE(set[0]);
    const Outcome through = Train(set, GetParam());
    ASSERT_TRUE(through.status.ok()) << through.status;
    const Resumed resumed = StopAndResume(set, GetParam(), GetParam(), 3);
    ASSERT_TRUE(resumed.run.status.ok()) << resumed.run.status;
    // Not in the middle of a period: where ranks are equal.
    EXPECT_GT(resumed.stopped_at, 3);
    EXPECT_LT(resumed.stopped_at, 16);
    ASSERT_EQ(through.state.tensors.size(), resumed.run.state.tensors.size());
    for (size_t i = 0; i < through.state.tensors.size(); ++i) {
      EXPECT_TRUE(through.state.tensors[i].bytes ==
                  resumed.run.state.tensors[i].bytes)
          << through.state.tensors[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LocalSgd, ::testing::Values(2, 3));

// On other ranks each takes the mean of what the velocities were, which moves
// the mean of the parameters as these did.
TEST(LocalSgdCheckpoint, GoesOnOnOtherRanks) {
  for (const auto& [ranks, then] :
       {std::pair(3, 2), std::pair(2, 3), std::pair(2, 1)}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks, then ", then));
    const Resumed resumed = StopAndResume(Every(5), ranks, then, 3);
    ASSERT_TRUE(resumed.run.status.ok()) << resumed.run.status;
    EXPECT_EQ(resumed.run.state.manifest.step, 16);
    int of_others = 0;
    for (const Tensor& tensor : resumed.run.state.tensors) {
      of_others += tensor.name.rfind("@rank.", 0) == 0;
    }
    EXPECT_EQ(of_others, 2 * (then - 1));
    // The same model to what 12 steps of unlike batches differ by.
    const Outcome through = Train(Every(5), ranks);
    const std::vector<float> a = Joined(through.state, "", "");
    const std::vector<float> b = Joined(resumed.run.state, "", "");
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.3) << i;
  }
}

// ---- One rank has nobody to average with: the run is the plain one.
TEST(OneRank, IsThePlainRun) {
  const Outcome plain = Train({}, 1);
  const Outcome local = Train(Every(3), 1);
  ASSERT_TRUE(plain.status.ok()) << plain.status;
  ASSERT_TRUE(local.status.ok()) << local.status;
  ASSERT_EQ(plain.state.tensors.size(), local.state.tensors.size());
  for (size_t i = 0; i < plain.state.tensors.size(); ++i) {
    EXPECT_TRUE(plain.state.tensors[i].bytes == local.state.tensors[i].bytes)
        << plain.state.tensors[i].name;
  }
}

// ---- Running statistics are each rank's, and averaged: with a rate of 0 all
// but them stands still, and what a norm sees is the data.

std::string Normed() {
  return absl::StrCat(kSixFeatures, Param("s", "6", "constant: 1"),
                      Param("c", "6", "constant: 0"),
                      Param("w", "6, 4", "constant: 0"),
                      BatchNorm("x", 6, "s", "c", "y"),
                      Matmul("y", "w", "", "logits"), CrossEntropy());
}

TEST(RunningStatistics, AreAveraged) {
  constexpr int kRanks = 2;
  const Outcome run =
      Train({"lr.base=0", "dist.localsgd.k_steps=3"}, kRanks, Data(), Normed());
  ASSERT_TRUE(run.status.ok()) << run.status;
  for (int i = 0; i < kFeatures; ++i) {
    double mean[kRanks] = {0, 0}, variance[kRanks] = {1, 1};
    for (int step = 0; step < 4 * kEpochs; ++step) {
      int at = step % 4 * kBatch;
      const int count = std::min(kBatch, kSamples - at);
      for (int r = 0; r < kRanks; ++r) {
        const int own = count / kRanks + (r < count % kRanks ? 1 : 0);
        double sum = 0, squares = 0;
        for (int s = at; s < at + own; ++s) {
          sum += Feature(s, i);
          squares += static_cast<double>(Feature(s, i)) * Feature(s, i);
        }
        at += own;
        if (own == 0) continue;  // no samples: nothing is learnt of them
        const double batch = sum / own;
        mean[r] = 0.9 * mean[r] + 0.1 * batch;
        variance[r] = 0.9 * variance[r] + 0.1 * (squares / own - batch * batch);
      }
      if (step % 3 != 0) continue;  // steps 1, 4, 7, ... 16
      mean[0] = mean[1] = (mean[0] + mean[1]) / 2;
      variance[0] = variance[1] = (variance[0] + variance[1]) / 2;
    }
    EXPECT_NEAR(Values(run.state, "m")[i], mean[0], kRounding) << i;
    EXPECT_NEAR(Values(run.state, "v")[i], variance[0], kRounding) << i;
  }
}

// ---- At every level, with what goes with it; that ranks are equal at the end
// every run checks.

TEST(LocalSgdAtLevels, TrainsAndStaysEqual) {
  for (const char* level : {"O1", "O2", "O3"}) {
    for (const char* dtype : {"fp16", "bf16"}) {
      SCOPED_TRACE(absl::StrCat(level, " ", dtype));
      std::vector<std::string> set = Every(3);
      set.push_back(absl::StrCat("amp.level=", level));
      set.push_back(absl::StrCat("amp.dtype=", dtype));
      set.push_back("optimizer.ema.decay=0.9");
      set.push_back("optimizer.clip.global_norm=1");
      set.push_back("optimizer.momentum.use_nesterov=true");
      set.push_back("dist.fuse_all_reduce_ops=false");
      const Outcome run = Train(set, 3, Data(), Normed());
      ASSERT_TRUE(run.status.ok()) << run.status;
      EXPECT_EQ(run.summary["steps_skipped"], 0);
      EXPECT_LT(run.steps.back()["loss"], run.steps[0]["loss"]);
    }
  }
}

// ---- Real data.

TEST(Digits, AreLearntAsWell) {
  double accuracy[3];
  const std::vector<std::vector<std::string>> settings = {
      {}, Every(8), Adaptive(4)};
  for (int i = 0; i < 3; ++i) {
    std::vector<std::string> set = settings[i];
    set.push_back("train.epochs=3");
    set.push_back("dist.sync_batch_norm=false");
    const auto model =
        CompileFile("models/mnist_convnet.pbtxt", "models/mnist_o1.pbtxt", set);
    ASSERT_TRUE(model.ok()) << model.status();
    TrainConfig config = ConfigOf(*model, "idx:models/digits", NewDirectory());
    const Outcome run = LookAt(config, TrainOn(*model, config, 2).status);
    ASSERT_TRUE(run.status.ok()) << run.status;
    accuracy[i] = run.summary["metrics"]["top1"]["value"];
  }
  // Seeds differ by 0.8 %, and a sample of 359 is 0.3 %.
  EXPECT_GT(accuracy[1], accuracy[0] - 0.03);
  EXPECT_GT(accuracy[2], accuracy[0] - 0.03);
}

// ---- What does not go together.

TEST(Refused, NamesBothFields) {
  const std::string k = "dist.localsgd.k_steps=4";
  for (const auto& [other, named] :
       std::vector<std::pair<std::string, std::string>>{
           {"dist.adaptive_localsgd.init_k_steps=2", "dist.adaptive_localsgd"},
           {"dist.gradient_merge.k_steps=2", "dist.gradient_merge.k_steps"},
           {"dist.sharding.stage=1", "dist.sharding"},
           {"dist.reduce=exact_order", "dist.reduce"},
           {"dist.gradient_mean=ranks", "dist.gradient_mean"},
           {"dist.fp16_allreduce=true", "dist.fp16_allreduce"},
           {"dist.allreduce_always_fp32=true", "dist.allreduce_always_fp32"},
           {"dist.delay_allreduce=true", "dist.delay_allreduce"},
           {"dist.gradient_predivide_factor=2",
            "dist.gradient_predivide_factor"},
           {"dist.sync_batch_norm=true", "dist.sync_batch_norm"},
           {"dist.batch_norm_statistics=rank0", "dist.batch_norm_statistics"},
           {"optimizer.adam.beta1=0.9", "optimizer.adam"}}) {
    const auto model = CompileText(Linear(), kStrategy, {k, other});
    EXPECT_FALSE(model.ok()) << other;
    EXPECT_THAT(std::string(model.status().message()),
                AllOf(HasSubstr("dist.localsgd"), HasSubstr(named)));
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
