// halftone compare: values of two programs, runs and archives.
#include <sys/stat.h>

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
#include "tests/cli/verbs_testing.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Words = std::vector<std::string>;

constexpr char kModel[] = "models/mnist_convnet.pbtxt";
constexpr char kStrategy[] = "models/mnist_o1.pbtxt";
constexpr char kData[] = "idx:models/digits";

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
  const json answer = MustParse(Halftone(
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

// An epoch of 79 training samples is two batches of 32 and a rest.
TEST(CompareTest, TakesWholeBatchesFromEpochToEpoch) {
  const json answer = MustParse(Halftone(
      {"compare", kModel, kModel, "--level", "O0", "--batch", "32", "--data",
       "synthetic:79", "--json", "--tolerance", "0", "--batches", "5"}));
  EXPECT_EQ(answer["batches"], 5);
  EXPECT_EQ(answer["tolerance"]["exceeding"], 0);
}

// The bound: a unit in the last place of f16 is 2^-10 of a number. Where f16
// makes another element the largest of a window, its gradient would go
// elsewhere: the reference's places are handed on, too.
TEST(CompareTest, MeasuresForwardAndBackwardOfEachOp) {
  const json answer =
      MustParse(Halftone(Against("O0", {"--json", "--batches", "2"})));
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
      MustParse(Halftone({"compare", kModel, "--level", "O1", "--against", "O0",
                          "--batch", "16", "--data", kData, "--json"}));
  EXPECT_EQ(answer["entry"], "eval");
  const json& conv = Value(answer, "conv2");
  EXPECT_GT(conv["isolated"]["error"].get<double>(), 0);
  EXPECT_THAT(answer["worst"].dump(), HasSubstr("--black-op conv2"));
}

// Of an op that was not measured alone nothing is claimed.
TEST(CompareTest, TheChainAloneBlamesNoOp) {
  Words words = {"compare", kModel,    "--level", "O1",     "--against",
                 "O0",      "--batch", "16",      "--data", kData};
  EXPECT_THAT(Halftone(words).out,
              AllOf(HasSubstr("worst     10 by error of the op alone, fed"),
                    HasSubstr("--black-op")));
  words.insert(words.end(), {"--only", "chained"});
  const Result chained = Halftone(words);
  EXPECT_EQ(chained.exit_code(), 0) << chained.err;
  EXPECT_THAT(
      chained.out,
      AllOf(HasSubstr("worst     10 by error of the chain, each "
                      "program on its own; all: --all\n"),
            Not(HasSubstr("of the op alone")), Not(HasSubstr("--black-"))));
}

// No tap, no other fusion: what runs is what compile makes.
TEST(CompareTest, TheProgramIsThatOfAPlainCompile) {
  const std::string htc = NewPath("plain") + ".htc";
  const json compiled = MustParse(Halftone(
      {"compile", kModel, "--strategy", kStrategy, "-o", htc, "--json"}));
  const json answer = MustParse(Halftone(Against("O0", {"--json"})));
  const json& fingerprint = answer["fingerprints"]["compared"];
  EXPECT_EQ(fingerprint, compiled["fingerprint"]);
  const json same = MustParse(
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
  const json answer = MustParse(Halftone(words));
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

TEST(CompareTest, AScaleIsAdvisedWhereTheStrategyTakesIt) {
  for (const bool bound : {false, true}) {
    Words words = Against("O0", {"--json", "--loss-scale", "1e7"});
    if (bound) {
      words.insert(words.end(),
                   {"--set", "amp.loss_scaling.min_loss_scaling=1e7"});
    }
    const Result result = Halftone(words);
    EXPECT_EQ(MustParse(result)["loss_scaling"], 1e7);
    EXPECT_EQ(result.out.find("--loss-scale 32768") == std::string::npos,
              bound);
    EXPECT_THAT(result.out, HasSubstr("--black-op fc"));
  }
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
  const json answer = MustParse(Halftone({"compare", one, other, "--json"}));
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

std::string RunOf(const Words& more) {
  const std::string out = NewPath("run");
  Words words = {"run", kModel,     "--strategy", kStrategy, "--data",
                 kData, "--epochs", "1",          "--out",   out};
  words.insert(words.end(), more.begin(), more.end());
  const Result result = Halftone(words);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return out;
}

TEST(CompareTest, RunsAreComparedByParametersAndMetrics) {
  const std::string one = RunOf({}), other = RunOf({"--level", "O0"});
  const json answer = MustParse(Halftone({"compare", one, other, "--json"}));
  EXPECT_LT(Value(answer, "conv1.w")["chained"]["error"].get<double>(), 0.1);
  EXPECT_GT(Value(answer, "conv1.w")["chained"]["error"].get<double>(), 0);
  EXPECT_EQ(Value(answer, "metrics/loss")["chained"]["elements"], 3);
  EXPECT_LT(Value(answer, "metrics/eval/top1")["chained"]["error"], 0.1);
  // With data, what the two trained programs compute.
  const json programs = MustParse(
      Halftone({"compare", one, "--against", "O0", "--data", kData, "--json"}));
  EXPECT_EQ(programs["entry"], "train");
}

}  // namespace
}  // namespace halftone
