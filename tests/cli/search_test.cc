// halftone search and bisect: find the op that cannot be low, go on where they
// were stopped, and what they print trains.
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

// The convnet with values that f16 does not hold before its last product.
const std::string& Overflowing() {
  static const std::string& path = *new std::string([] {
    constexpr char kProduct[] = "op { type: \"matmul\" in { slot: \"X\" var: ";
    const std::string text = absl::StrReplaceAll(
        ReadAll("models/mnist_convnet.pbtxt"),
        {{absl::StrCat(kProduct, "\"flat\" }"),
          absl::StrCat("op { type: \"scale\" in { slot: \"X\" var: \"flat\" } "
                       "out { slot: \"Out\" var: \"big\" } "
                       "attr { name: \"scale\" f: 1e6 } }\n"
                       "op { type: \"scale\" in { slot: \"X\" var: \"big\" } "
                       "out { slot: \"Out\" var: \"back\" } "
                       "attr { name: \"scale\" f: 1e-6 } }\n",
                       kProduct, "\"back\" }")}});
    const std::string model = NewPath("overflowing") + ".pbtxt";
    EXPECT_TRUE(WriteFileAtomically(model, text).ok());
    return model;
  }());
  return path;
}

Result Halftone(const Words& words) {
  Words all = {"tools/halftone"};
  all.insert(all.end(), words.begin(), words.end());
  return RunProgram(all);
}

Result Search(const std::string& model, const std::string& out,
              const Words& more = {}) {
  Words words = {"search",     model,
                 "--strategy", "models/mnist_o1.pbtxt",
                 "--data",     "idx:models/digits",
                 "--epochs",   "1",
                 "--out",      out};
  words.insert(words.end(), more.begin(), more.end());
  return Halftone(words);
}

json Found(const Result& result) {
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

TEST(SearchTest, NamesTheOpThatOverflows) {
  const std::string out = NewPath("search"), found = NewPath("found");
  const Words asked = {"--tolerance", "top1:3", "--json"};
  const json answer = Found(Search(Overflowing(), out, asked));
  ASSERT_EQ(answer["must_stay_f32"].size(), 1) << answer.dump(1);
  EXPECT_EQ(answer["must_stay_f32"][0]["name"], "big");
  EXPECT_EQ(answer["may_go_low"][0]["name"], "ce");
  EXPECT_GE(answer["value"].get<double>(),
            answer["reference"].get<double>() - 3);
  EXPECT_GT(answer["runs_made"], 3);
  EXPECT_LE(answer["programs"], 10);

  // Nothing is run again; a cut-off last line is that of a run that was lost.
  const std::string results = absl::StrCat(out, "/results.jsonl");
  const std::string kept = ReadAll(results);
  EXPECT_EQ(Found(Search(Overflowing(), out, asked))["runs_made"], 0);
  ASSERT_TRUE(
      WriteFileAtomically(results, kept.substr(0, kept.size() - 9)).ok());
  EXPECT_EQ(Found(Search(Overflowing(), out, asked))["runs_made"], 1);
  EXPECT_EQ(ReadAll(results), kept);

  // What it prints is a strategy that keeps the op, and trains.
  const Result text =
      Search(Overflowing(), out, {"--tolerance", "top1:3", "-o", found});
  EXPECT_THAT(text.out, HasSubstr("must stay big (scale, gray)"));
  EXPECT_EQ(text.out, ReadAll(found));
  const Result inspected =
      Halftone({"inspect", Overflowing(), "--strategy", found, "--json"});
  ASSERT_EQ(inspected.exit_code(), 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("USER_BLACK"));
}

TEST(SearchTest, BlackOpsStayUnasked) {
  const json answer =
      Found(Search("models/mnist_convnet.pbtxt", NewPath("search"),
                   {"--tolerance", "loss:5", "--within-lists", "--json"}));
  EXPECT_EQ(answer["must_stay_f32"].size(), 0);
  EXPECT_EQ(answer["may_go_low"].size(), 0);
  EXPECT_EQ(answer["programs"], 2);
}

TEST(SearchTest, RefusesWhatItCannotAnswer) {
  const struct {
    Words more;
    int code;
    const char* part;
  } kCases[] = {
      {{"--tolerance", "top1"}, 2, "expected METRIC:NUMBER"},
      {{"--tolerance", "top1:-1"}, 2, "expected METRIC:NUMBER"},
      {{"--tolerance", "topl:1"}, 2, "has no metric \"topl\"; nearest: top1"},
      {{"--tolerance", "top1:1", "--level", "O0"}, 2, "as --level O1"},
      {{"--tolerance", "top1:1", "--runs", "0"}, 2, "--runs"},
  };
  for (const auto& c : kCases) {
    const Result result =
        Search("models/mnist_convnet.pbtxt", NewPath("search"), c.more);
    EXPECT_EQ(result.exit_code(), c.code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.part));
    EXPECT_EQ(result.out, "");
  }
}

TEST(SearchTest, ResultsAreOfOneQuestion) {
  const std::string out = NewPath("search");
  const Words asked = {"--tolerance", "loss:5", "--within-lists"};
  EXPECT_EQ(Search("models/mnist_convnet.pbtxt", out, asked).exit_code(), 0);
  Words other = asked;
  other.insert(other.end(), {"--lr", "0.02"});
  const Result refused = Search("models/mnist_convnet.pbtxt", out, other);
  EXPECT_EQ(refused.exit_code(), 2);
  EXPECT_THAT(refused.err, HasSubstr("of a search with another strategy"));

  const std::string foreign = NewPath("foreign");
  ASSERT_EQ(mkdir(foreign.c_str(), 0755), 0);
  ASSERT_TRUE(WriteFileAtomically(foreign + "/notes.txt", "mine").ok());
  const Result full = Search("models/mnist_convnet.pbtxt", foreign, asked);
  EXPECT_EQ(full.exit_code(), 2);
  EXPECT_THAT(full.err, HasSubstr("notes.txt, which no search wrote"));
  EXPECT_EQ(ReadAll(foreign + "/notes.txt"), "mine");
}

// All ops in f32 are not enough where the scale itself spoils training, which
// f32 does without one.
TEST(SearchTest, SaysWhenNoOpIsToBlame) {
  const Result result =
      Search("models/mnist_convnet.pbtxt", NewPath("search"),
             {"--tolerance", "top1:1", "--set",
              "amp.loss_scaling.init_loss_scaling=1e38", "--set",
              "amp.loss_scaling.use_dynamic_loss_scaling=false"});
  EXPECT_EQ(result.exit_code(), 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ops in f32 top1 is still not within 1"));
  EXPECT_THAT(result.out, Not(HasSubstr("amp")));
}

// ---- bisect

Result Bisect(const std::string& model, const std::string& out,
              const Words& more) {
  Words words = {"bisect", model, "--data", "idx:models/digits", "--out", out};
  words.insert(words.end(), more.begin(), more.end());
  return Halftone(words);
}

const Words kO1 = {"--strategy", "models/mnist_o1.pbtxt", "--epochs", "1"};

Words With(const Words& first, const Words& more) {
  Words words = first;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = NewPath(name) + ".pbtxt";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

// The only op of the only set that is guilty.
json OnlyGuilty(const json& answer) {
  EXPECT_EQ(answer["guilty"].size(), 1) << answer.dump(1);
  EXPECT_EQ(answer["guilty"][0]["ops"].size(), 1) << answer.dump(1);
  return answer["guilty"][0]["ops"][0];
}

TEST(BisectTest, NamesTheOpThatOverflows) {
  const std::string out = NewPath("bisect"), cured = NewPath("cured");
  const Words asked = With(kO1, {"--tolerance", "top1:3"});
  const json answer =
      Found(Bisect(Overflowing(), out, With(asked, {"--json"})));
  const json guilty = OnlyGuilty(answer);
  EXPECT_EQ(guilty["name"], "big");
  EXPECT_EQ(guilty["type"], "scale");
  EXPECT_EQ(guilty["bad"], "f16");
  EXPECT_EQ(guilty["good"], "f32");
  EXPECT_GT(guilty["line"], 20);
  EXPECT_GE(answer["cured"]["value"].get<double>(),
            answer["good"].get<double>() - 3);
  EXPECT_EQ(answer["runs"], answer["runs_made"]);
  EXPECT_LE(answer["runs"], 4 + 5);  // ops of which five or more bits tell one

  // Nothing is run again.
  const Result text = Bisect(Overflowing(), out, With(asked, {"-o", cured}));
  EXPECT_EQ(text.exit_code(), 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("(0 made now)"));
  EXPECT_THAT(text.out, HasSubstr("# guilty  big (scale, gray) f16, good f32"));
  EXPECT_THAT(text.out, HasSubstr("--strategy " + cured));
  EXPECT_EQ(text.out, ReadAll(cured));
  const Result inspected =
      Halftone({"inspect", Overflowing(), "--strategy", cured, "--json"});
  ASSERT_EQ(inspected.exit_code(), 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("USER_BLACK"));
}

// By values, and between two strategies of which each has a list: what the
// cure takes from a glob leaves its other names there.
TEST(BisectTest, NamesItByValuesOfTwoStrategies) {
  const std::string good =
      Written("good",
              "amp { level: \"O1\" custom_black_opnames: \"big\" }\n"
              "train { batch_size: 16 }\n");
  const std::string bad =
      Written("bad",
              "amp { level: \"O1\" custom_white_opnames: \"b*\" }\n"
              "train { batch_size: 16 }\n");
  const json answer = Found(
      Bisect(Overflowing(), NewPath("values"),
             {"--strategy", bad, "--good", good, "--tolerance", "error:0.1",
              "--values", "logits", "--batches", "2", "--json"}));
  // What reads the large values in f16 is as guilty as what makes them.
  ASSERT_EQ(answer["guilty"].size(), 2) << answer.dump(1);
  EXPECT_EQ(answer["guilty"][0]["ops"][0]["name"], "big");
  EXPECT_EQ(answer["guilty"][1]["ops"][0]["name"], "back");
  EXPECT_TRUE(answer["bad"]["value"].is_null()) << answer.dump(1);
  EXPECT_LT(answer["cured"]["value"], 0.1);
  const std::string strategy = answer["strategy"];
  EXPECT_THAT(strategy, HasSubstr("custom_black_opnames: \"big\""));
  EXPECT_THAT(strategy, HasSubstr("custom_black_opnames: \"back\""));
  EXPECT_THAT(strategy, HasSubstr("custom_white_opnames: \"bn1\""));
  EXPECT_THAT(strategy, Not(HasSubstr("\"b*\"")));
}

TEST(BisectTest, SaysWhenThereIsNothingToFind) {
  const std::string model = "models/mnist_convnet.pbtxt";
  const std::string plain = Written(
      "plain",
      "amp { level: \"O0\" }\noptimizer { momentum { momentum: 0.9 } }\n"
      "lr { base: 0.01 constant: true }\ntrain { batch_size: 64 epochs: 1 }\n");
  const struct {
    Words more;
    int code;
    const char* part;
  } kCases[] = {
      {{"--tolerance", "loss:50"}, 3, "holds the tolerance: loss"},
      {{"--tolerance", "top1:1", "--level", "O0"},
       3,
       "no op of mnist_convnet O0 runs in another precision"},
      {{"--tolerance", "top1:1", "--good", plain, "--set",
        "amp.loss_scaling.init_loss_scaling=1e38", "--set",
        "amp.loss_scaling.use_dynamic_loss_scaling=false"},
       3,
       "no op's precision is to blame; what else differs: "},
      {{"--tolerance", "top1:1", "--good", Overflowing()},
       3,
       "not of one model"},
      {{"--tolerance", "topl:1"}, 2, "nearest: top1"},
      {{"--tolerance", "top1:1", "--batches", "2"},
       2,
       "--values and --batches"},
      {{"--tolerance", "error:0", "--values", "lossy"},
       2,
       "no value that both programs have matches; nearest: loss"},
      {{"--tolerance", "error:0", "--ranks", "2"}, 2, "on one rank"},
  };
  for (const auto& c : kCases) {
    const Result result = Bisect(model, NewPath("bisect"), With(kO1, c.more));
    EXPECT_EQ(result.exit_code(), c.code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.part));
    EXPECT_EQ(result.out, "");
  }
}

// A good program that a search of the same directory has not.
TEST(BisectTest, ResultsAreOfOneQuestion) {
  const std::string out = NewPath("bisect");
  const Words asked = {"--strategy",   "models/mnist_o1.pbtxt",
                       "--batch-size", "16",
                       "--tolerance",  "error:1",
                       "--values",     "loss"};
  EXPECT_EQ(Bisect("models/mnist_convnet.pbtxt", out, asked).exit_code(), 3);
  const Result refused = Bisect("models/mnist_convnet.pbtxt", out,
                                With(asked, {"--batches", "2"}));
  EXPECT_EQ(refused.exit_code(), 2);
  EXPECT_THAT(refused.err, HasSubstr("of a bisect with another batches"));
  const Result search =
      Search("models/mnist_convnet.pbtxt", out, {"--tolerance", "top1:1"});
  EXPECT_EQ(search.exit_code(), 2);
  EXPECT_THAT(search.err, HasSubstr("which no search wrote"));
}

}  // namespace
}  // namespace halftone
