// halftone compare and replay: values of two programs, and a step that was
// rejected, again.
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/data/npz.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Words = std::vector<std::string>;

constexpr char kModel[] = "models/mnist_convnet.pbtxt";
constexpr char kStrategy[] = "models/mnist_o1.pbtxt";
constexpr char kData[] = "idx:models/digits";

Result Halftone(Words words) {
  words.insert(words.begin(), "tools/halftone");
  return RunProgram(words);
}

json JsonOf(const Result& result) {
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

Words Against(const std::string& against, const Words& more = {}) {
  Words words = {"compare", kModel,    "--strategy", kStrategy,   "--data",
                 kData,     "--batch", "32",         "--against", against};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const json& Value(const json& answer, const std::string& name) {
  static const json& none = *new json;
  for (const json& value : answer["values"]) {
    if (value["name"] == name) return value;
  }
  ADD_FAILURE() << "no value " << name;
  return none;
}

TEST(CompareTest, OneProgramAgainstItselfIsExact) {
  const json answer = JsonOf(Halftone(
      {"compare", kModel, kModel, "--strategy", kStrategy, "--level", "O0",
       "--batch", "32", "--data", kData, "--json", "--tolerance", "0"}));
  EXPECT_EQ(answer["tolerance"]["exceeding"], 0);
  EXPECT_THAT(answer["unmatched"], IsEmpty());
  ASSERT_THAT(answer["values"].size(), Gt(20));
  for (const json& value : answer["values"]) {
    for (const char* how : {"isolated", "chained"}) {
      EXPECT_EQ(value[how]["max_abs"], 0) << value.dump();
    }
  }
}

// The bound: a unit in the last place of f16 is 2^-10 of a number. Where f16
// makes another element the largest of a window, its gradient would go
// elsewhere: the reference's places are handed on, too.
TEST(CompareTest, MeasuresForwardAndBackwardOfEachOp) {
  const json answer =
      JsonOf(Halftone(Against("O0", {"--json", "--batches", "2"})));
  EXPECT_EQ(answer["batches"], 2);
  EXPECT_EQ(answer["loss_scaling"], 32768);
  int backward = 0, hidden = 0;
  for (const json& value : answer["values"]) {
    if (!value.contains("isolated")) continue;
    EXPECT_LT(value["isolated"]["error"].get<double>(), 0.005) << value.dump();
    // Gradients of a bias before a norm are 0 but for rounding.
    if (absl::StrContains(std::string(value["name"]), ".b.cast")) continue;
    EXPECT_GT(value["isolated"]["cosine"].get<double>(), 0.99);
    EXPECT_EQ(value["isolated"]["non_finite"], 0);
    backward += value["role"] == "backward" ? 1 : 0;
    hidden += value.contains("fusion") ? 1 : 0;
  }
  EXPECT_GT(backward, 10);
  EXPECT_GT(hidden, 3);
  // A product of f16 operands: rounded, not more.
  const json& conv = Value(answer, "conv2");
  EXPECT_EQ(conv["dtype"], "f16");
  EXPECT_GT(conv["isolated"]["error"].get<double>(), 1e-5);
  // What a chain has added up is more than what its last op adds.
  EXPECT_GT(conv["chained"]["error"].get<double>(),
            conv["isolated"]["error"].get<double>());
  EXPECT_EQ(answer["worst"].size(), 10);
}

// A model that does not train is compared forward.
TEST(CompareTest, OfAModelWithoutAnOptimizer) {
  const json answer =
      JsonOf(Halftone({"compare", kModel, "--level", "O1", "--against", "O0",
                       "--batch", "16", "--data", kData, "--json"}));
  EXPECT_EQ(answer["entry"], "eval");
  const json& conv = Value(answer, "conv2");
  EXPECT_GT(conv["isolated"]["error"].get<double>(), 0);
  EXPECT_THAT(answer["worst"].dump(), HasSubstr("--black-op conv2"));
}

// No tap, no other fusion: what runs is what compile makes.
TEST(CompareTest, TheProgramIsThatOfAPlainCompile) {
  const std::string htc = NewPath("plain") + ".htc";
  const json compiled = JsonOf(Halftone(
      {"compile", kModel, "--strategy", kStrategy, "-o", htc, "--json"}));
  const json answer = JsonOf(Halftone(Against("O0", {"--json"})));
  const json& fingerprint = answer["fingerprints"]["compared"];
  EXPECT_EQ(fingerprint, compiled["fingerprint"]);
  const json same = JsonOf(
      Halftone({"compare", htc, "--against", "O0", "--data", kData, "--json"}));
  EXPECT_EQ(same["fingerprints"]["compared"], fingerprint);
}

TEST(CompareTest, ExitsWithThreeAboveTheTolerance) {
  const Result result = Halftone(Against("O0", {"--tolerance", "1e-6"}));
  EXPECT_EQ(result.exit_code(), 3) << result.err;
  EXPECT_THAT(result.out, HasSubstr("above error 1e-06"));
  EXPECT_EQ(Halftone(Against("O0", {"--tolerance", "0.5"})).exit_code(), 0);
  const Result unknown = Halftone(Against("O0", {"--tolerance", "ulp:3"}));
  EXPECT_EQ(unknown.exit_code(), 2);
  EXPECT_THAT(unknown.err, HasSubstr("nearest: ulps"));
}

// Values that f16 does not hold: the op is named with what mends it.
TEST(CompareTest, NamesWhatOverflowsAndWhatWouldMendIt) {
  const std::string model = NewPath("overflows") + ".pbtxt";
  constexpr char kProduct[] = "op { type: \"matmul\" in { slot: \"X\" var: ";
  ASSERT_TRUE(
      WriteFileAtomically(
          model,
          absl::StrReplaceAll(
              ReadAll(kModel),
              {{absl::StrCat(kProduct, "\"flat\" }"),
                absl::StrCat("op { type: \"scale\" in { slot: \"X\" var: "
                             "\"flat\" } out { slot: \"Out\" var: \"big\" } "
                             "attr { name: \"scale\" f: 1e6 } }\n"
                             "op { type: \"scale\" in { slot: \"X\" var: "
                             "\"big\" } out { slot: \"Out\" var: \"back\" } "
                             "attr { name: \"scale\" f: 1e-6 } }\n",
                             kProduct, "\"back\" }")}}))
          .ok());
  Words words = Against("O0", {"--json"});
  words[1] = model;
  const json answer = JsonOf(Halftone(words));
  const json& big = Value(answer, "big");
  EXPECT_GT(big["isolated"]["overflow"].get<double>(), 0.1);
  std::map<std::string, std::string> remedies;
  for (const json& worst : answer["worst"]) {
    remedies[worst["name"]] = worst.value("remedy", "");
  }
  EXPECT_THAT(remedies["big"],
              AllOf(HasSubstr("--black-op big"), HasSubstr("--dtype bf16")));
  // The op alone, fed with what f32 has: it is not to blame.
  EXPECT_EQ(Value(answer, "logits")["isolated"]["non_finite"], 0);
}

TEST(CompareTest, ThePageIsEscaped) {
  const std::string model = NewPath("named") + ".pbtxt";
  ASSERT_TRUE(WriteFileAtomically(
                  model, absl::StrReplaceAll(ReadAll(kModel),
                                             {{"\"conv1\"", "\"<i>&c\""}}))
                  .ok());
  const std::string page = NewPath("page") + ".html";
  Words words = Against("O0", {"--html", page});
  words[1] = model;
  const Result result = Halftone(words);
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  const std::string html = ReadAll(page);
  EXPECT_THAT(html, HasSubstr("&lt;i&gt;&amp;c"));
  EXPECT_THAT(html, Not(HasSubstr("<i>&c")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
}

TEST(CompareTest, OtherModelsAreRefused) {
  const Result result =
      Halftone({"compare", kModel, "models/mlp.pbtxt", "--data", kData});
  EXPECT_EQ(result.exit_code(), 3) << result.out;
  EXPECT_THAT(result.err, HasSubstr("not of one model"));
}

std::string Npz(const std::string& name, float second) {
  const std::string path = NewPath(name) + ".npz";
  EXPECT_TRUE(
      WriteFileAtomically(path, runtime::SerializeNpz(
                                    {runtime::FloatArray("a", {2}, {1, second}),
                                     runtime::FloatArray(name, {1}, {1})}))
          .ok());
  return path;
}

TEST(CompareTest, ArraysAreComparedByName) {
  const std::string one = Npz("one", 2), other = Npz("other", 4);
  const json answer = JsonOf(Halftone({"compare", one, other, "--json"}));
  ASSERT_EQ(answer["values"].size(), 1);
  EXPECT_EQ(Value(answer, "a")["chained"]["max_abs"], 2);
  EXPECT_EQ(answer["unmatched"], json({"one", "other"}));

  const std::string none = NewPath("none") + ".npz";
  ASSERT_TRUE(
      WriteFileAtomically(
          none, runtime::SerializeNpz({runtime::FloatArray("z", {1}, {1})}))
          .ok());
  const Result nothing = Halftone({"compare", one, none});
  EXPECT_EQ(nothing.exit_code(), 1);
  EXPECT_THAT(nothing.err,
              HasSubstr(absl::StrCat("compare ", one, " ", none,
                                     ": no name is in both: a one against z")));
  EXPECT_THAT(Halftone({"compare", one, kModel}).err,
              HasSubstr("an .npz file is compared with another one"));
}

std::string RunOf(const Words& more, int exit_code = 0) {
  const std::string out = NewPath("run");
  Words words = {"run", kModel,     "--strategy", kStrategy, "--data",
                 kData, "--epochs", "1",          "--out",   out};
  words.insert(words.end(), more.begin(), more.end());
  const Result result = Halftone(words);
  EXPECT_EQ(result.exit_code(), exit_code) << result.err;
  return out;
}

TEST(CompareTest, RunsAreComparedByParametersAndMetrics) {
  const std::string one = RunOf({}), other = RunOf({"--level", "O0"});
  const json answer = JsonOf(Halftone({"compare", one, other, "--json"}));
  EXPECT_LT(Value(answer, "conv1.w")["chained"]["error"].get<double>(), 0.1);
  EXPECT_GT(Value(answer, "conv1.w")["chained"]["error"].get<double>(), 0);
  EXPECT_EQ(Value(answer, "metrics/loss")["chained"]["elements"], 3);
  EXPECT_LT(Value(answer, "metrics/eval/top1")["chained"]["error"], 0.1);
  // With data, what the two trained programs compute.
  const json programs = JsonOf(
      Halftone({"compare", one, "--against", "O0", "--data", kData, "--json"}));
  EXPECT_EQ(programs["entry"], "train");
}

// ---- Capsules. A scale that no gradient survives in f16.

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
  const json answer = JsonOf(Halftone({"replay", capsule, "--json"}));
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

  // A batch of 64 pictures and labels, and the cells that are read.
  const int64_t batch = 64 * (28 * 28 + 8), cells = 2 * 29034 + 4 * 200;
  EXPECT_LE(BytesOf(capsule + "/batch.rank-0.npz") +
                BytesOf(capsule + "/cells.safetensors"),
            1.2 * (batch + cells));
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
  const json answer = JsonOf(Halftone({"replay", capsule, "--json"}));
  EXPECT_EQ(answer["rejected"], true);
  EXPECT_EQ(answer["run_named"], "squares");
  EXPECT_EQ(answer["op"], "squares");
  EXPECT_EQ(answer["rank"], 0);
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
                      Split{"dist.virtual_shards=8", 1, 3},
                      Split{"dist.virtual_shards=8", 2, 3}));

TEST(ReplayTest, RanksAreThreadsOfOneProcess) {
  Words words = Overflowing();
  words.insert(words.end(), {"--ranks", "2"});
  const std::string capsule = RunOf(words) + "/capsules/step-1";
  const json answer = JsonOf(Halftone({"replay", capsule, "--json"}));
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
      JsonOf(Halftone({"replay", out + "/capsules/" + names[0], "--json"}));
  EXPECT_EQ(answer["op"], answer["run_named"]);
  EXPECT_THAT(answer["why"], HasSubstr("in a row"));
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
