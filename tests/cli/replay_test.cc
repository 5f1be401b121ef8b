// halftone replay: a step that was rejected, again.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/data/npz.h"
#include "tests/cli/verbs_testing.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

std::string RunOf(const Words& more, int exit_code = 0) {
  const std::string out = NewPath("run");
  Words words = {"run",        "models/mnist_convnet.pbtxt",
                 "--strategy", "models/mnist_o1.pbtxt",
                 "--data",     "idx:models/digits",
                 "--epochs",   "1",
                 "--out",      out};
  words.insert(words.end(), more.begin(), more.end());
  const Result result = Halftone(words);
  EXPECT_EQ(result.exit_code(), exit_code) << result.err;
  return out;
}

// A scale that no gradient survives in f16.
const Words& Overflowing() {
  static const Words& words = *new Words{
      "--capsule", "2", "--set", "amp.loss_scaling.init_loss_scaling=1e30"};
  return words;
}

int64_t BytesOf(const std::string& path) {
  return static_cast<int64_t>(std::filesystem::file_size(path));
}

TEST(ReplayTest, NamesWhatTheRunNamed) {
  const std::string out = RunOf(Overflowing());
  EXPECT_FALSE(std::filesystem::exists(out + "/capsules/step-3"));
  const std::string capsule = out + "/capsules/step-1";
  const json manifest = json::parse(
      ReadAll(capsule + "/capsule.json")
          .substr(0, ReadAll(capsule + "/capsule.json").find('\n')));
  const json answer = MustParse(Halftone({"replay", capsule, "--json"}));
  EXPECT_EQ(answer["rejected"], true);
  EXPECT_NE(answer["op"], "");
  EXPECT_EQ(answer["op"], manifest["op"]);
  EXPECT_THAT(answer["inputs"], Not(IsEmpty()));
  for (const json& input : answer["inputs"]) EXPECT_EQ(input["non_finite"], 0);
  EXPECT_GT(answer["outputs"][0]["non_finite"], 0);
  // With a scale that the replay found, the run's first step is applied.
  const double scale = answer["clean_loss_scaling"];
  ASSERT_GT(scale, 1);
  const std::string clean =
      RunOf({"--capsule", "1", "--set",
             absl::StrCat("amp.loss_scaling.init_loss_scaling=", scale)});
  EXPECT_FALSE(std::filesystem::exists(clean + "/capsules/step-1"));

  // A batch of 64 pictures and labels, and the parameters.
  const int64_t batch = 64 * (28 * 28 + 8), cells = 4 * 29034 + 4 * 200;
  EXPECT_LE(BytesOf(capsule + "/batch.rank-0.npz") +
                BytesOf(capsule + "/cells.safetensors"),
            1.2 * (batch + cells));
}

constexpr char kLinear[] = R"(name: "linear"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 4] }
param { name: "w" dims: [4, 3] init { constant: 1 } }
op { type: "matmul" in { slot: "X" var: "x" }
     in { slot: "Y" var: "w" } out { slot: "Out" var: "a" } }
op { type: "square" in { slot: "X" var: "a" } out { slot: "Out" var: "a2" } }
op { type: "mean" in { slot: "X" var: "a2" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "a2" }
)";

// Of a model, by sgd at a constant rate, with all four features of sample i
// `samples`[i]. It may end as it likes.
std::string RunOn(const std::string& text, const std::vector<float>& samples,
                  const Words& more) {
  const std::string model = NewPath("model") + ".pbtxt";
  const std::string data = NewPath("x") + ".npz";
  std::vector<float> x;
  for (const float sample : samples) x.insert(x.end(), 4, sample);
  const int64_t count = static_cast<int64_t>(samples.size());
  EXPECT_TRUE(WriteFileAtomically(model, text).ok());
  EXPECT_TRUE(
      WriteFileAtomically(data, runtime::SerializeNpz(
                                    {runtime::FloatArray("x", {count, 4}, x)}))
          .ok());
  const std::string out = NewPath("run");
  Words words = {
      "run", model,   "--data",         "npz:" + data, "--out",
      out,   "--set", "optimizer.sgd=", "--set",       "lr.constant=true"};
  words.insert(words.end(), more.begin(), more.end());
  Halftone(words);
  return out;
}

// The capsules, by rising step.
std::vector<std::string> CapsulesOf(const std::string& out) {
  std::vector<std::string> paths;
  for (int step = 0; step < 1000; ++step) {
    const std::string path = absl::StrCat(out, "/capsules/step-", step);
    if (std::filesystem::exists(path)) paths.push_back(path);
  }
  return paths;
}

const json& Named(const json& ranges, const std::string& name) {
  static const json& none = *new json;
  for (const json& range : ranges) {
    if (range["name"] == name) return range;
  }
  ADD_FAILURE() << "no value " << name << " in " << ranges;
  return none;
}

// Steps that are applied take the parameters far from where they begin; a
// rejected one makes low copies of the parameters that it has found.
TEST(ReplayTest, ParametersAreThoseOfTheRun) {
  std::vector<float> samples;
  for (int i = 0; i < 64; ++i) samples.push_back(i % 4 >= 2 ? 8 : 0.01F);
  for (const char* level : {"O1", "O2"}) {
    SCOPED_TRACE(level);
    const std::string out = RunOn(kLinear, samples,
                                  {"--level", level, "--lr", "1e3",
                                   "--batch-size", "5", "--epochs", "60"});
    const std::vector<std::string> capsules = CapsulesOf(out);
    ASSERT_EQ(capsules.size(), 1);
    const json answer = MustParse(Halftone({"replay", capsules[0], "--json"}));
    EXPECT_EQ(answer["rejected"], true);
    EXPECT_EQ(answer["op"], "a");
    EXPECT_EQ(answer["run_named"], "a");
    const json& low = Named(answer["inputs"], "w.cast_fp16");
    EXPECT_GT(std::fabs(low["max"].get<double>()), 1000);
    EXPECT_GT(Named(answer["outputs"], "a")["non_finite"], 0);
  }
}

// Rank 1 alone has samples that take its parameters away.
TEST(ReplayTest, RanksHaveTheirOwnParameters) {
  std::vector<float> samples;
  for (int i = 0; i < 64; ++i) samples.push_back(i % 4 >= 2 ? 8 : 0.01F);
  const std::string out =
      RunOn(kLinear, samples,
            {"--level", "O1", "--lr", "0.05", "--batch-size", "4",
             "--no-shuffle", "--ranks", "2", "--loss-scale", "8", "--set",
             "dist.localsgd.k_steps=8", "--capsule", "1"});
  const std::vector<std::string> capsules = CapsulesOf(out);
  ASSERT_EQ(capsules.size(), 1);
  EXPECT_THAT(ReadAll(capsules[0] + "/cells.safetensors"),
              HasSubstr("@rank.1/w"));
  const json answer = MustParse(Halftone({"replay", capsules[0], "--json"}));
  EXPECT_EQ(answer["rejected"], true);
  EXPECT_EQ(answer["op"], "a.grad");
  EXPECT_EQ(answer["run_named"], "a.grad");
  EXPECT_EQ(answer["rank"], 1);
}

constexpr char kTwoParts[] = R"(name: "parts"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 4] }
param { name: "w" dims: [4, 3] init { constant: 1 } }
param { name: "u" dims: [4, 3] init { constant: 1 } }
op { type: "matmul" in { slot: "X" var: "x" }
     in { slot: "Y" var: "w" } out { slot: "Out" var: "a" } }
op { type: "square" in { slot: "X" var: "a" } out { slot: "Out" var: "a2" } }
op { type: "mean" in { slot: "X" var: "a2" } out { slot: "Out" var: "main" } }
op { type: "matmul" in { slot: "X" var: "x" }
     in { slot: "Y" var: "u" } out { slot: "Out" var: "b" } }
op { type: "square" in { slot: "X" var: "b" } out { slot: "Out" var: "b2" } }
op { type: "mean" in { slot: "X" var: "b2" } out { slot: "Out" var: "aux" } }
loss { var: "loss" mean_over: "a2" part { var: "main" }
       part { var: "aux" weight: 1e-6 } }
)";

// A gradient of main's overflows above 256, none of aux's at all. `bound` is
// one of the scale's.
std::string RunParts(const std::string& bound) {
  return RunOn(kTwoParts, std::vector<float>(60, 8),
               {"--level",      "O1",
                "--lr",         "0",
                "--batch-size", "2",
                "--epochs",     "1",
                "--loss-scale", "65536",
                "--set",        "amp.loss_scaling.per_loss=true",
                "--set",        "amp.loss_scaling.incr_every_n_steps=1",
                "--set",        "amp.loss_scaling.decr_every_n_nan_or_inf=1",
                "--set",        "amp.loss_scaling." + bound,
                "--capsule",    "3"});
}

int64_t StepsApplied(const std::string& out) {
  return json::parse(ReadAll(out + "/summary.json"))["steps_applied"];
}

// Each part has a scale of its own, and a strategy one for all: as the first
// one, if it is within the bounds, or as a bound.
TEST(ReplayTest, AdvisesAScaleForAllParts) {
  const std::string out = RunParts("min_loss_scaling=1024");
  EXPECT_EQ(StepsApplied(out), 0);
  const std::vector<std::string> capsules = CapsulesOf(out);
  ASSERT_GE(capsules.size(), 3);
  const json answer = MustParse(Halftone({"replay", capsules[2], "--json"}));
  EXPECT_EQ(answer["rejected"], true);
  EXPECT_EQ(answer["losses"],
            json::parse(R"({"main": {"loss_scaling": 16384, "not_finite": true},
                "aux": {"loss_scaling": 262144, "not_finite": false}})"));
  EXPECT_EQ(answer["clean_loss_scaling"], 256);
  EXPECT_THAT(answer["remedies"][0].get<std::string>(),
              StartsWith("--set amp.loss_scaling.min_loss_scaling=256 "));
  EXPECT_THAT(Halftone({"replay", capsules[2]}).out,
              HasSubstr("scale of main 16384 (not finite), of aux 262144;"));
  EXPECT_GT(StepsApplied(RunParts("min_loss_scaling=256")), 0);

  // Of a scale that has grown past the one that is clean.
  const std::string grown =
      RunOn(kLinear, std::vector<float>(60, 8),
            {"--level", "O1", "--lr", "0", "--batch-size", "2", "--epochs", "1",
             "--loss-scale", "64", "--set",
             "amp.loss_scaling.incr_every_n_steps=1", "--capsule", "1"});
  const json past =
      MustParse(Halftone({"replay", CapsulesOf(grown).at(0), "--json"}));
  EXPECT_EQ(past["loss_scaling"], 512);
  EXPECT_FALSE(past.contains("losses"));
  EXPECT_THAT(past["remedies"][0].get<std::string>(),
              StartsWith("--set amp.loss_scaling.max_loss_scaling=256 "));
}

// Of 16 samples the sixth overflows in a product; an archive spells the feed's
// name its own way.
constexpr char kSquares[] = R"(name: "squares"  format: 1
feed { name: "x%1" dtype: F32 dims: [-1, 4] }
param { name: "w" dims: [4, 2] init { constant: 0.5 } }
op { type: "elementwise_mul" in { slot: "X" var: "x%1" }
     in { slot: "Y" var: "x%1" } out { slot: "Out" var: "squares" } }
op { type: "matmul" in { slot: "X" var: "squares" }
     in { slot: "Y" var: "w" } out { slot: "Out" var: "y" } }
op { type: "mean" in { slot: "X" var: "y" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "y" }
)";

struct Split {
  const char* setting;
  int ranks;
  int micro_batch;  // that of the sample
  int rank = 0;     // its
};
class MicroBatchReplayTest : public ::testing::TestWithParam<Split> {};

TEST_P(MicroBatchReplayTest, NamesOneThatIsNotTheLast) {
  const std::string model = NewPath("squares") + ".pbtxt";
  const std::string data = NewPath("x") + ".npz";
  std::vector<float> x(64, 1);
  x[5 * 4 + 2] = 1e25F;
  ASSERT_TRUE(WriteFileAtomically(model, kSquares).ok());
  ASSERT_TRUE(
      WriteFileAtomically(
          data, runtime::SerializeNpz({runtime::FloatArray("a", {16, 4}, x)}))
          .ok());
  const std::string out = NewPath("run");
  Words words = {"run",    model,   "--data", "npz:" + data,
                 "--feed", "a=x%1", "--out",  out};
  for (const char* word :
       {"--epochs", "1", "--batch-size", "16", "--no-shuffle", "--level", "O1",
        "--dtype", "fp16", "--capsule", "1", "--set", "optimizer.sgd="}) {
    words.push_back(word);
  }
  words.insert(words.end(),
               {GetParam().setting, "--ranks", absl::StrCat(GetParam().ranks)});
  const Result run = Halftone(words);
  ASSERT_EQ(run.exit_code(), 5) << run.err;  // its only step
  const std::string capsule = out + "/capsules/step-1";
  const json answer = MustParse(Halftone({"replay", capsule, "--json"}));
  EXPECT_EQ(answer["rejected"], true);
  EXPECT_EQ(answer["run_named"], "squares");
  EXPECT_EQ(answer["op"], "squares");
  EXPECT_EQ(answer["rank"], GetParam().rank);
  EXPECT_EQ(answer["micro_batch"], GetParam().micro_batch);
  EXPECT_EQ(answer["outputs"][0]["non_finite"], 1);
  EXPECT_NEAR(answer["inputs"][0]["max"].get<double>(), 1e25, 1e19);
  EXPECT_THAT(Halftone({"replay", capsule}).out,
              HasSubstr(absl::StrCat("squares in micro-batch ",
                                     GetParam().micro_batch)));
}
INSTANTIATE_TEST_SUITE_P(
    Splits, MicroBatchReplayTest,
    ::testing::Values(Split{"dist.gradient_merge.k_steps=4", 1, 2},
                      Split{"dist.gradient_merge.k_steps=4", 2, 3},
                      // Of 6, 5 and 5 samples: rank 0 has 3 of each.
                      // Rank 0 has 2, 1 and 1 samples, the others 1 each.
                      Split{"dist.gradient_merge.k_steps=3", 5, 2, 1},
                      Split{"dist.virtual_shards=8", 1, 3},
                      Split{"dist.virtual_shards=8", 2, 3}));

TEST(ReplayTest, RanksAreThreadsOfOneProcess) {
  Words words = Overflowing();
  words.insert(words.end(), {"--ranks", "2"});
  const std::string capsule = RunOf(words) + "/capsules/step-1";
  const json answer = MustParse(Halftone({"replay", capsule, "--json"}));
  EXPECT_EQ(answer["ranks"], 2);
  EXPECT_EQ(answer["op"], answer["run_named"]);
  EXPECT_NE(answer["op"], "");
}

TEST(ReplayTest, ARunThatDivergesKeepsItsLastStep) {
  const std::string out =
      RunOf({"--set", "amp.loss_scaling.init_loss_scaling=1e30",
             "amp.loss_scaling.use_dynamic_loss_scaling=false",
             "train.stop_rule.skipped_in_a_row=4"},
            /*exit_code=*/5);
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(out + "/capsules")) {
    names.push_back(entry.path().filename());
  }
  ASSERT_EQ(names.size(), 1);
  const json answer =
      MustParse(Halftone({"replay", out + "/capsules/" + names[0], "--json"}));
  EXPECT_EQ(answer["op"], answer["run_named"]);
  EXPECT_THAT(answer["why"], HasSubstr("in a row"));
}

// Of parameters that the updates have ruined no precision is to blame, whether
// f32 still holds them or not.
TEST(ReplayTest, BlamesTheUpdateForTheParametersThatItRuined) {
  for (const char* lr : {"1e8", "1e30"}) {
    SCOPED_TRACE(lr);
    const std::string out = RunOf({"--capsule", "1", "--lr", lr});
    const std::string capsule = CapsulesOf(out).at(0);
    const json answer = MustParse(Halftone({"replay", capsule, "--json"}));
    EXPECT_EQ(answer["rejected"], true);
    EXPECT_GT(Named(answer["ruined"], "conv1.w")["above_f16"].get<int64_t>() +
                  Named(answer["ruined"], "conv1.w")["non_finite"].get<int>(),
              0);
    ASSERT_EQ(answer["remedies"].size(), 1);
    EXPECT_THAT(answer["remedies"][0].get<std::string>(),
                StartsWith("a lower learning rate (--lr "));
    const Result result = Halftone({"replay", capsule});
    EXPECT_THAT(result.out, HasSubstr("ruined    conv1."));
    EXPECT_THAT(result.out, Not(HasSubstr("--dtype")));
    EXPECT_THAT(result.out, Not(HasSubstr("--black-op")));
  }
}

TEST(ReplayTest, ADamagedFileIsNamed) {
  const std::string capsule = RunOf(Overflowing()) + "/capsules/step-1";
  for (const char* name :
       {"model.htc", "cells.safetensors", "batch.rank-0.npz", "capsule.json"}) {
    const std::string path = absl::StrCat(capsule, "/", name);
    const std::string content = ReadAll(path);
    std::string damaged = content;
    damaged[damaged.size() / 2] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
    const Result result = Halftone({"replay", capsule});
    EXPECT_EQ(result.exit_code(), 8) << name;
    EXPECT_THAT(result.err, HasSubstr(name));
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  }
  EXPECT_EQ(Halftone({"replay", capsule}).exit_code(), 0);
}

}  // namespace
}  // namespace halftone
