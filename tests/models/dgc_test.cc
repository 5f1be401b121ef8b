// Deep gradient compression (dist.dgc): ranks that exchange the largest
// elements of their gradients are the ones that a simulation by hand makes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

constexpr int kSamples = 20, kBatch = 8, kFeatures = 160, kClasses = 128;
constexpr int kWeights = kFeatures * kClasses;  // 20480: compressed
constexpr int kEpochs = 3, kStepsPerEpoch = 3;  // of 8, 8 and 4 samples
constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.5 constant: true }
train { batch_size: 8 epochs: 3 seed: 3 }
)";

// In [-0.5, 0.5), in no order.
float Feature(int sample, int i) {
  const uint32_t hash = (sample * 7919u + i * 104729u + 17u) * 2654435761u;
  return static_cast<float>(hash >> 8) / (1 << 24) - 0.5f;
}
int LabelOf(int sample) { return sample * 37 % kClasses; }

std::string Data(int bad_sample = -1) {
  return WriteNpz({kSamples, kFeatures, Feature, LabelOf}, bad_sample);
}

// The bias is too small to be compressed.
std::string Linear() {
  return absl::StrCat(
      "name: \"linear\"  format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 160] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n",
      Param("w", "160, 128", "constant: 0"), Param("b", "128", "constant: 0"),
      Matmul("x", "w", "b", "logits"), CrossEntropy());
}

TrainConfig Config(const CompiledModel& model, const std::string& data) {
  TrainConfig config = ConfigOf(model, data, NewDirectory());
  config.shuffle = false;
  config.log_every = 1;
  return config;
}

Outcome Train(const std::vector<std::string>& overrides, int ranks,
              const std::string& data = Data()) {
  const auto model = CompileText(Linear(), kStrategy, overrides);
  if (!model.ok()) return {model.status()};
  const TrainConfig config = Config(*model, data);
  return LookAt(config, TrainOn(*model, config, ranks).status);
}

// ---- By hand, in f64.

struct Sim {
  int ranks = 2;
  // By step from 0; below 0: whole gradients.
  std::vector<float> sparsity = std::vector<float>(9, 0.99f);
  bool nesterov = false;
  double decay = 0, clip = 0;

  using Vector = std::vector<double>;
  Vector w = Vector(kWeights), b = Vector(kClasses), b_velocity = b;
  std::vector<Vector> u, v;
  std::vector<double> losses;
  double least_gap = 1;  // between what is sent and what is not

  double Loss(int first, int count, Vector* w_grad, Vector* b_grad) const;
  void Sparse(const std::vector<Vector>& grads, float sparsity);
  void Dense(const std::vector<Vector>& grads);
  Sim Run();
};

// The sum over those samples, and its gradient.
double Sim::Loss(int first, int count, Vector* w_grad, Vector* b_grad) const {
  w_grad->assign(kWeights, 0);
  b_grad->assign(kClasses, 0);
  double loss = 0;
  for (int s = first; s < first + count; ++s) {
    Vector logits = b;
    for (int i = 0; i < kFeatures; ++i) {
      for (int c = 0; c < kClasses; ++c) {
        logits[c] += static_cast<double>(Feature(s, i)) * w[i * kClasses + c];
      }
    }
    double sum = 0;
    for (double logit : logits) sum += std::exp(logit);
    loss += std::log(sum) - logits[LabelOf(s)];
    for (int c = 0; c < kClasses; ++c) {
      const double g = std::exp(logits[c]) / sum - (c == LabelOf(s) ? 1 : 0);
      (*b_grad)[c] += g;
      for (int i = 0; i < kFeatures; ++i) {
        (*w_grad)[i * kClasses + c] += g * static_cast<double>(Feature(s, i));
      }
    }
  }
  return loss;
}

// `grads`: what each rank adds to the mean.
void Sim::Sparse(const std::vector<Vector>& grads, float sparsity) {
  const int kept = static_cast<int>(kWeights * (1 - sparsity));
  const Vector w_before = w;
  for (int r = 0; r < ranks; ++r) {
    double squares = 0;
    for (double g : grads[r]) squares += g * g;
    const double limit = clip / std::sqrt(ranks), norm = std::sqrt(squares);
    const double factor = clip > 0 && norm > limit ? limit / norm : 1;
    for (int i = 0; i < kWeights; ++i) {
      const double g = ranks * grads[r][i] * factor + decay * w_before[i];
      u[r][i] = nesterov ? 0.9 * (u[r][i] + g) : 0.9 * u[r][i] + g;
      v[r][i] += nesterov ? u[r][i] + g : u[r][i];
    }
    std::vector<int> order(kWeights);
    for (int i = 0; i < kWeights; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return std::abs(v[r][a]) > std::abs(v[r][b]);
    });
    const double last = std::abs(v[r][order[kept - 1]]);
    least_gap = std::min(least_gap, 1 - std::abs(v[r][order[kept]]) / last);
    for (int i = 0; i < kept; ++i) {
      const int at = order[i];
      w[at] -= 0.5 * v[r][at] / ranks;
      u[r][at] = v[r][at] = 0;
    }
  }
}

void Sim::Dense(const std::vector<Vector>& grads) {
  for (int i = 0; i < kWeights; ++i) {
    double g = decay * w[i];
    for (const Vector& of_rank : grads) g += of_rank[i];
    u[0][i] = 0.9 * u[0][i] + g;
    w[i] -= 0.5 * (nesterov ? g + 0.9 * u[0][i] : u[0][i]);
  }
  for (Vector& of_rank : u) of_rank = u[0];
}

Sim Sim::Run() {
  u.assign(ranks, Vector(kWeights, 0));
  v = u;
  for (int step = 0; step < kEpochs * kStepsPerEpoch; ++step) {
    int at = step % kStepsPerEpoch * kBatch;
    const int count = std::min(kBatch, kSamples - at);
    std::vector<Vector> grads(ranks);
    Vector b_sum(kClasses, 0);
    double loss = 0;
    for (int r = 0; r < ranks; ++r) {
      const int own = count / ranks + (r < count % ranks ? 1 : 0);
      Vector b_grad;
      loss += Loss(at, own, &grads[r], &b_grad) / count;
      at += own;
      for (double& g : grads[r]) g /= count;
      for (int c = 0; c < kClasses; ++c) b_sum[c] += b_grad[c] / count;
    }
    losses.push_back(loss);
    if (sparsity[step] < 0) {
      Dense(grads);
    } else {
      Sparse(grads, sparsity[step]);
    }
    for (int c = 0; c < kClasses; ++c) {
      const double g = b_sum[c] + decay * b[c];
      b_velocity[c] = 0.9 * b_velocity[c] + g;
      b[c] -= 0.5 * (nesterov ? g + 0.9 * b_velocity[c] : b_velocity[c]);
    }
  }
  return *this;
}

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
  // Else rounding would choose other elements.
  ASSERT_GT(sim.least_gap, 1e-5);
  ASSERT_EQ(run.steps.size(), sim.losses.size());
  for (size_t i = 0; i < sim.losses.size(); ++i) {
    EXPECT_NEAR(run.steps[i]["loss"], sim.losses[i], kRounding) << "step " << i;
  }
  ExpectNear(Values(run.state, "w"), sim.w, "w");
  ExpectNear(Values(run.state, "b"), sim.b, "b");
  ExpectNear(Values(run.state, "b.velocity"), sim.b_velocity, "b.velocity");
  for (int r = 0; r < sim.ranks; ++r) {
    const std::string prefix = r == 0 ? "" : absl::StrCat("@rank.", r, "/");
    ExpectNear(Values(run.state, prefix + "w.velocity"), sim.u[r],
               absl::StrCat("velocity of rank ", r));
    ExpectNear(Values(run.state, prefix + "w.residual"), sim.v[r],
               absl::StrCat("residual of rank ", r));
  }
}

const char kSparse[] = "dist.dgc.sparsity=0.99";

class Dgc : public ::testing::TestWithParam<int> {};

TEST_P(Dgc, IsTheSimulation) {
  Sim sim;
  sim.ranks = GetParam();
  ExpectIs(Train({kSparse}, sim.ranks), sim.Run());
}

TEST_P(Dgc, WithNesterovDecayAndClip) {
  Sim sim;
  sim.ranks = GetParam();
  sim.nesterov = true;
  sim.decay = 0.01;
  sim.clip = 0.2;
  ExpectIs(Train({kSparse, "optimizer.momentum.use_nesterov=true",
                  "optimizer.momentum.weight_decay=0.01",
                  "dist.dgc.local_grad_clip_norm=0.2"},
                 sim.ranks),
           sim.Run());
}

// Whole gradients twice, then 0.985 twice, then 0.995. (Less would reach the
// columns of classes without a sample, which are all equal.)
TEST_P(Dgc, InStages) {
  Sim sim;
  sim.ranks = GetParam();
  sim.sparsity = {-1,     -1,     0.985f, 0.985f, 0.995f,
                  0.995f, 0.995f, 0.995f, 0.995f};
  ExpectIs(Train({"dist.dgc.rampup_begin_step=2", "dist.dgc.rampup_step=4",
                  "dist.dgc.sparsity=0.985", "dist.dgc.sparsity=0.995"},
                 sim.ranks),
           sim.Run());
}

TEST_P(Dgc, RejectsAStepOnAllRanks) {
  for (const int sample : {8, 15}) {  // of the second step
    const Outcome run = Train({kSparse}, GetParam(), Data(sample));
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.summary["steps_skipped"], kEpochs) << sample;
    for (const char* name : {"w", "w.velocity", "w.residual"}) {
      for (const float x : Values(run.state, name)) {
        ASSERT_TRUE(std::isfinite(x)) << name;
      }
    }
  }
}

// ---- A run that is stopped and goes on.

Outcome StopAndResume(const std::vector<std::string>& overrides, int ranks,
                      int ranks_then) {
  const auto model = CompileText(Linear(), kStrategy, overrides);
  if (!model.ok()) return {model.status()};
  TrainConfig config = Config(*model, Data());
  config.on_activity = [](int64_t step, const char* what) {
    if (step == 3 && std::string(what) == "train") ::kill(::getpid(), SIGTERM);
  };
  const Trained stopped = TrainOn(*model, config, ranks);
  EXPECT_TRUE(stopped.status.ok()) << stopped.status;
  EXPECT_LT(Newest(config.out).manifest.step, 9);
  config.on_activity = nullptr;
  config.resume = true;
  return LookAt(config, TrainOn(*model, config, ranks_then).status);
}

TEST_P(Dgc, GoesOnBitForBit) {
  const std::vector<std::string> stages = {"dist.dgc.rampup_begin_step=4",
                                           "dist.dgc.rampup_step=4",
                                           "dist.dgc.sparsity=0.9", kSparse};
  for (const std::vector<std::string>& set :
       {std::vector<std::string>{kSparse}, stages}) {
    const Outcome through = Train(set, GetParam());
    const Outcome resumed = StopAndResume(set, GetParam(), GetParam());
    ASSERT_TRUE(through.status.ok()) << through.status;
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    ASSERT_EQ(through.state.tensors.size(), resumed.state.tensors.size());
    for (size_t i = 0; i < through.state.tensors.size(); ++i) {
      EXPECT_TRUE(through.state.tensors[i].bytes ==
                  resumed.state.tensors[i].bytes)
          << through.state.tensors[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Dgc, ::testing::Values(2, 3));

TEST(DgcCheckpoint, GoesOnOnOtherRanks) {
  for (const auto& [ranks, then] :
       {std::pair(3, 2), std::pair(2, 3), std::pair(2, 1)}) {
    const Outcome run = StopAndResume({kSparse}, ranks, then);
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.state.manifest.step, 9);
  }
}

TEST(DgcAtLevels, TrainsAndStaysEqual) {
  for (const char* level : {"O1", "O2"}) {
    const Outcome run =
        Train({kSparse, absl::StrCat("amp.level=", level),
               "optimizer.ema.decay=0.9", "dist.fuse_all_reduce_ops=false"},
              3);
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_LT(run.steps.back()["loss"], run.steps[0]["loss"]);
  }
}

// At O3 parameters are low: as in Paddle their whole gradients are reduced.
TEST(DgcAtLevels, CompressesNothingAtO3) {
  const Outcome plain = Train({"amp.level=O3"}, 2);
  const Outcome run = Train({kSparse, "amp.level=O3"}, 2);
  ASSERT_TRUE(run.status.ok()) << run.status;
  ASSERT_EQ(plain.state.tensors.size(), run.state.tensors.size());
  for (size_t i = 0; i < plain.state.tensors.size(); ++i) {
    EXPECT_TRUE(plain.state.tensors[i].bytes == run.state.tensors[i].bytes);
  }
}

// ---- Real data, of a perceptron whose first layer has 200,704 weights.

TEST(Digits, AreLearntAsWell) {
  double accuracy[2];
  const std::vector<std::vector<std::string>> settings = {
      {},
      {"dist.dgc.rampup_step=46", "dist.dgc.sparsity=0.75",
       "dist.dgc.sparsity=0.9"}};
  for (int i = 0; i < 2; ++i) {
    std::vector<std::string> set = settings[i];
    for (const char* more :
         {"optimizer.momentum.momentum=0.9", "lr.base=0.05", "lr.constant=true",
          "train.batch_size=64", "train.epochs=6", "train.seed=1"}) {
      set.push_back(more);
    }
    const auto model = CompileFile("models/mlp.pbtxt", "", set);
    ASSERT_TRUE(model.ok()) << model.status();
    TrainConfig config = ConfigOf(*model, "idx:models/digits", NewDirectory());
    const Outcome run = LookAt(config, TrainOn(*model, config, 2).status);
    ASSERT_TRUE(run.status.ok()) << run.status;
    accuracy[i] = run.summary["metrics"]["top1"]["value"];
  }
  EXPECT_GT(accuracy[1], accuracy[0] - 0.04);
}

TEST(Refused, NamesBothFields) {
  for (const auto& [other, named] :
       std::vector<std::pair<std::string, std::string>>{
           {"optimizer.sgd.weight_decay=0", "optimizer.sgd"},
           {"optimizer.clip.global_norm=1", "optimizer.clip"},
           {"dist.localsgd.k_steps=2", "dist.localsgd"},
           {"dist.sharding.stage=1", "dist.sharding"},
           {"dist.gradient_merge.k_steps=2", "dist.gradient_merge"}}) {
    const auto model = CompileText(Linear(), kStrategy, {kSparse, other});
    EXPECT_FALSE(model.ok()) << other;
    EXPECT_THAT(std::string(model.status().message()),
                AllOf(HasSubstr("dist.dgc"), HasSubstr(named)));
  }
  EXPECT_FALSE(CompileText(Linear(), kStrategy, {"dist.dgc.sparsity=1"}).ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
