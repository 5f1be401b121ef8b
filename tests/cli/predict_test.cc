// halftone predict: what it prints and writes, on any ranks and batch.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/data/idx_file.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/npz_testing.h"
#include "runtime/data/zip_archive.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", names++, name);
}

std::string Written(const std::string& name, const std::string& content) {
  const std::string path = Temp(name);
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return path;
}

// Nothing but how far it is, which is said after two seconds.
auto IsSilent() {
  return ::testing::MatchesRegex("(predict  [0-9]+ of [^\n]*\n)*");
}

Result Halftone(Words arguments, const Words& more = {}) {
  arguments.insert(arguments.begin(), "tools/halftone");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(arguments);
}

void ExpectError(const Result& result, int code, const std::string& part) {
  EXPECT_EQ(result.exit_code(), code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(part));
}

// The convnet at O1 after an epoch of the digits.
const std::string& TrainedRun() {
  static const std::string& path = *new std::string([] {
    const std::string out = Temp("-run");
    const Result run =
        Halftone({"run", "models/mnist_convnet.pbtxt", "--strategy",
                  "models/mnist_o1.pbtxt", "--data", "idx:models/digits",
                  "--epochs", "1", "--out", out});
    EXPECT_EQ(run.exit_code(), 0) << run.err;
    return out;
  }());
  return path;
}

// An array of an .npz as f32.
std::vector<float> Array(const std::string& path, const std::string& name,
                         std::vector<int64_t>* dims) {
  const std::string content = ReadAll(path);
  const auto archive = runtime::ZipArchive::Parse(content, path);
  EXPECT_TRUE(archive.ok()) << archive.status();
  std::vector<float> values;
  for (const auto& member : archive->members()) {
    if (member.name != name + ".npy") continue;
    std::string unpacked, made, note;
    const auto npy = archive->Read(member, 1, &unpacked);
    const auto array = runtime::ParseNpy(*npy, path);
    const auto bytes = runtime::ElementsAs(*array, DType::kF32, &made, &note);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    *dims = array->dims;
    values.resize(bytes->size() / sizeof(float));
    std::memcpy(values.data(), bytes->data(), bytes->size());
  }
  return values;
}

// Of all test digits, with more flags.
std::vector<float> Logits(const Words& more) {
  const std::string out = Temp(".npz");
  const Result result = Halftone(
      {"predict", TrainedRun(), "--data", "idx:models/digits", "-o", out},
      more);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_EQ(result.out,
            absl::StrCat("359 samples: logits f32[359,10] -> ", out, "\n"));
  std::vector<int64_t> dims;
  std::vector<float> values = Array(out, "logits", &dims);
  EXPECT_THAT(dims, ElementsAre(359, 10));
  return values;
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a[i]} - b[i]));
  }
  return most;
}

TEST(PredictVerb, BestClassesAreWhatEvalCounts) {
  const Words data = {"--data", "idx:models/digits"};
  const json eval =
      json::parse(Halftone({"eval", TrainedRun(), "--json"}, data).out);
  const json predicted = json::parse(
      Halftone({"predict", TrainedRun(), "--json", "--top", "3"}, data).out);
  EXPECT_EQ(predicted["schema"], 1);
  EXPECT_EQ(predicted["samples"], 359);
  EXPECT_EQ(eval["samples"].dump(), "359");
  const json& logits = predicted["outputs"][0];
  EXPECT_EQ(logits["name"], "logits");
  EXPECT_EQ(logits["shape"], json({359, 10}));
  const auto labels =
      runtime::ReadIdx("models/digits/t10k-labels-idx1-ubyte", 100);
  ASSERT_TRUE(labels.ok()) << labels.status();
  int correct = 0;
  for (int i = 0; i < 359; ++i) {
    const json& best = logits["best"][i];
    correct += best["classes"][0] == static_cast<int>(labels->bytes[i]);
    EXPECT_EQ(best["classes"].size(), 3u);
    EXPECT_GE(best["probabilities"][0], best["probabilities"][1]);
  }
  EXPECT_EQ(correct, eval["metrics"]["top1"]["correct"]);
}

TEST(PredictVerb, PrintsALineForEachSample) {
  const Result result = Halftone(
      {"predict", TrainedRun(), "--data", "idx:models/digits", "--top", "2"});
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_THAT(result.err, IsSilent());
  EXPECT_THAT(result.out, StartsWith("logits f32[359,10]: class and "
                                     "probability, the best 2\n  0  7 0."));
  const Words lines = absl::StrSplit(result.out, '\n');
  EXPECT_EQ(lines.size(), 1u + 359 + 1);
  EXPECT_THAT(lines[359], StartsWith("358  "));
}

// FP16 sums of other batches may be blocked otherwise: a few ulps of 8.
TEST(PredictVerb, AnyRanksAndBatchGiveTheSameInTheSameOrder) {
  const std::vector<float> all = Logits({});
  EXPECT_EQ(Logits({}), all);
  for (const Words& more : std::vector<Words>{
           {"--ranks", "2"},
           {"--batch-size", "7"},
           {"--batch-size", "1000"},
           {"--ranks", "3", "--batch-size", "7"}}) {  // the last two: 1 1 0
    EXPECT_LE(Distance(Logits(more), all), 0.01) << more[0] << more[1];
  }
  const double rounding = Distance(Logits({"--level", "O0"}), all);
  EXPECT_GT(rounding, 0);
  EXPECT_LE(rounding, 0.1);
}

TEST(PredictVerb, LaunchedRanksGiveTheSame) {
  const std::string out = Temp(".npz");
  const Result result =
      Halftone({"launch", "--ranks", "2", "predict", TrainedRun(), "--data",
                "idx:models/digits", "-o", out});
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("359 samples: logits"));
  std::vector<int64_t> dims;
  EXPECT_EQ(Array(out, "logits", &dims), Logits({"--ranks", "2"}));
}

TEST(PredictVerb, LinesHoldTheSameBits) {
  const std::string out = Temp(".jsonl");
  const Result result = Halftone({"predict", TrainedRun(), "--data",
                                  "idx:models/digits", "-o", out, "--json"});
  EXPECT_EQ(json::parse(result.out)["path"], out);
  const std::vector<float> values = Logits({});
  size_t at = 0;
  int sample = 0;
  for (absl::string_view line :
       absl::StrSplit(ReadAll(out), '\n', absl::SkipEmpty())) {
    const json one = json::parse(line.begin(), line.end());
    EXPECT_EQ(one["sample"], sample++);
    ASSERT_EQ(one["logits"].size(), 10u);
    for (const json& logit : one["logits"]) {
      EXPECT_EQ(logit.get<float>(), values[at++]);
    }
  }
  EXPECT_EQ(at, values.size());
}

// A model of two features and three classes: logits = 2 (x w), w all ones but
// for what "shift", a whole feed, adds.
std::string Model(const std::string& batch) {
  return Written(
      ".pbtxt",
      absl::StrCat("feed { name: \"x\" dims: [", batch, ", 2] }\n",
                   "feed { name: \"shift\" dims: [2, 3] }\n",
                   "feed { name: \"label\" dtype: I64 dims: [", batch, "] }\n",
                   R"(
param { name: "w" dims: [2, 3] init { constant: 1 } }
op { type: "elementwise_add" in { slot: "X" var: "w" } in { slot: "Y" var: "shift" } out { slot: "Out" var: "sum" } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "sum" } out { slot: "Out" var: "h" } }
op { type: "scale" in { slot: "X" var: "h" } out { slot: "Out" var: "logits" } attr { name: "scale" f: 2 } }
op { type: "relu" in { slot: "X" var: "x" } out { slot: "Out" var: "features" } }
op { type: "transpose" in { slot: "X" var: "logits" } out { slot: "Out" var: "turned" } attr { name: "axis" ints: [1, 0] } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" } output: "logits"
)"));
}

runtime::ZipFile::Member Member(const std::string& name,
                                const std::string& shape,
                                const std::vector<float>& values) {
  return {name + ".npy",
          runtime::NpyFile{"<f4", shape, runtime::BytesOf(values)}.Serialize(),
          /*deflate=*/true};
}

// Five samples, no labels.
std::string Data() {
  return "npz:" +
         Written(".npz",
                 runtime::ZipFile{
                     {Member("x", "5, 2", {1, 0, 0, 1, 1, 1, -1, 2, 0, 0}),
                      Member("shift", "2, 3", {0, 1, 2, 0, 0, 5})}}
                     .Serialize());
}

constexpr char kNote[] =
    "note     parameters are as initialised; --init takes others\n";

TEST(PredictVerb, LabelsAreNotAskedFor) {
  const std::string model = Model("-1"), data = Data();
  for (const Words& more :
       std::vector<Words>{{}, {"--ranks", "2"}, {"--batch-size", "2"}}) {
    const std::string out = Temp(".npz");
    const Result result =
        Halftone({"predict", model, "--data", data, "-o", out}, more);
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_EQ(result.err, kNote);
    std::vector<int64_t> dims;
    EXPECT_THAT(Array(out, "logits", &dims),
                ElementsAre(2, 4, 6, 2, 2, 12, 4, 6, 18, 2, 0, 18, 0, 0, 0));
    EXPECT_THAT(dims, ElementsAre(5, 3));
  }
  ExpectError(Halftone({"predict", model, "--data", data, "--fetch", "ce"}), 1,
              "no array is called label; it holds x, shift");
  // What maps a feed that is not needed says nothing.
  EXPECT_EQ(Halftone({"predict", model, "--data", data, "--feed", "y=label"})
                .exit_code(),
            0);
}

TEST(PredictVerb, FetchesAnyValue) {
  const std::string model = Model("-1"), data = Data(), out = Temp(".jsonl");
  const Words predict = {"predict", model, "--data", data};
  const Result result = Halftone(
      predict,
      {"--fetch", "features", "sum", "turned", "--ranks", "2", "-o", out});
  EXPECT_EQ(result.out,
            absl::StrCat("5 samples: features f32[5,2], sum f32[2,3], turned "
                         "f32[3,5] -> ",
                         out, "\n"));
  EXPECT_EQ(ReadAll(out),
            "{\"sum\":[[1,2,3],[1,1,6]]}\n"
            "{\"sample\":0,\"features\":[1,0],\"turned\":[2,4,6]}\n"
            "{\"sample\":1,\"features\":[0,1],\"turned\":[2,2,12]}\n"
            "{\"sample\":2,\"features\":[1,1],\"turned\":[4,6,18]}\n"
            "{\"sample\":3,\"features\":[0,2],\"turned\":[2,0,18]}\n"
            "{\"sample\":4,\"features\":[0,0],\"turned\":[0,0,0]}\n");
  EXPECT_THAT(Halftone(predict, {"--fetch", "turned"}).out,
              StartsWith("turned f32[3,5]\n0  [2,4,6]\n1  [2,2,12]\n"));
  EXPECT_EQ(Halftone(predict, {"--fetch", "sum", "sum"}).out,
            "sum f32[2,3]: class and score, the best 3\n"
            "0  2 3  1 2  0 1\n1  2 6  0 1  1 1\n");
  ExpectError(Halftone(predict, {"--fetch", "logit"}), 2,
              "no value of that name; nearest: logits");
}

// A mean over the batch is that of all samples in one step alone.
TEST(PredictVerb, WhatIsOfNoSampleTakesOneStep) {
  const std::string text = absl::StrCat(
      "feed { name: \"x\" dims: [-1, 2] }\n",
      "op { type: \"mean\" in { slot: \"X\" var: \"x\" } out { slot: \"Out\" "
      "var: \"m\" } }\noutput: \"m\"\n");
  const Words predict = {"predict", Written(".pbtxt", text), "--data", Data()};
  ExpectError(Halftone(predict, {"--batch-size", "2"}), 1,
              "m: f32[], made of all samples of a step");
  ExpectError(Halftone(predict, {"--ranks", "2"}), 1, "--ranks 1");
  EXPECT_EQ(Halftone(predict).out, "m f32[]\n0.5\n");
}

TEST(PredictVerb, WithoutSamplesItRunsOnce) {
  const std::string model = Model("5"), data = Data();
  for (const char* ranks : {"1", "2"}) {
    const Result result = Halftone({"predict", model, "--data", data, "--ranks",
                                    ranks, "--top", "1", "--batch-size", "4"});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_EQ(result.out,
              "logits f32[5,3]: class and probability, the best 1\n"
              "0  2 0.867\n1  2 1\n2  2 1\n3  2 1\n4  0 0.333\n");
  }
}

// A parameter alone takes nothing of the data, whatever its kind.
TEST(PredictVerb, AParameterNeedsNoData) {
  for (const char* data : {"idx:models/digits", "tokens:models/mlp.pbtxt",
                           "imagefolder:models", "synthetic"}) {
    const Result result = Halftone(
        {"predict", TrainedRun(), "--data", data, "--fetch", "fc.b", "--json"});
    ASSERT_EQ(result.exit_code(), 0) << result.err;
    const json said = json::parse(result.out);
    EXPECT_EQ(said["outputs"][0]["shape"], json({10})) << data;
  }
}

TEST(PredictVerb, SaysWhatIsWrong) {
  const std::string model = Model("-1"), data = Data();
  const auto with = [&](const std::string& name, const std::string& shape) {
    return "npz:" + Written(".npz",
                            runtime::ZipFile{
                                {Member(name, shape, {1, 2, 3, 4}),
                                 Member("shift", "2, 3", {0, 0, 0, 0, 0, 0})}}
                                .Serialize());
  };
  ExpectError(Halftone({"predict", model, "--data", with("y", "2, 2")}), 1,
              "no array is called x; it holds y, shift");
  ExpectError(Halftone({"predict", model, "--data", with("x", "1, 4")}), 1,
              "x: float32[1,4], feed x takes float32[samples,2]; reshape it");
  ExpectError(Halftone({"predict", model, "--data", data, "-o", Temp(".csv")}),
              2, "expected FILE.npz (arrays for NumPy) or FILE.jsonl");
  // A line's own number has that name.
  const std::string sample = Written(
      ".pbtxt",
      "feed { name: \"x\" dims: [-1, 2] }\nop { type: \"relu\" in { slot: "
      "\"X\" var: \"x\" } out { slot: \"Out\" var: \"sample\" } }\n"
      "output: \"sample\"\n");
  const std::string two = with("x", "2, 2");
  ExpectError(
      Halftone({"predict", sample, "--data", two, "-o", Temp(".jsonl")}), 2,
      ".jsonl: an output is called sample, as the number");
  EXPECT_EQ(Halftone({"predict", sample, "--data", two, "-o", Temp(".npz")})
                .exit_code(),
            0);
  ExpectError(Halftone({"predict", model, "--data", data, "--best"}), 2,
              "predict --best: ");
  ExpectError(Halftone({"predict",
                        Written(".pbtxt",
                                "feed { name: \"x\" dims: [-1] }\nop { type: "
                                "\"mean\" in { slot: \"X\" var: \"x\" } out "
                                "{ slot: \"Out\" var: \"m\" } }\nloss { var: "
                                "\"m\" mean_over: \"x\" }\n"),
                        "--data", data}),
              2, "the model names no output; name values with --fetch");
}

TEST(PredictVerb, TakesParameters) {
  const std::string tensors = Temp(".safetensors");
  ASSERT_EQ(Halftone({"export", TrainedRun(), "-o", tensors}).exit_code(), 0);
  const std::string out = Temp(".npz");
  const Result result =
      Halftone({"predict", TrainedRun() + "/model.htc", "--init", tensors,
                "--data", "idx:models/digits", "-o", out});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.err, IsSilent());
  std::vector<int64_t> dims;
  EXPECT_EQ(Array(out, "logits", &dims), Logits({}));
  EXPECT_EQ(Logits({"--best"}), Logits({}));
}

}  // namespace
}  // namespace halftone
