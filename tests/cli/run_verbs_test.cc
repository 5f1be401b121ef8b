// What the verbs that run print, on which stream, and what they leave behind.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/verbs_testing.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(RunVerbs, TrainEvaluateExportAndTakeBack) {
  const std::string out = Temp("-run"), tensors = Temp(".safetensors");
  const Result run = Halftone({"run", Convnet(), "--data", "idx:models/digits",
                               "--epochs", "1", "--out", out, "--ranks", "2"});
  ASSERT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("ranks bitwise equal"));
  const json metrics = MustParse(
      Halftone({"eval", out, "--data", "idx:models/digits", "--json"}));
  EXPECT_EQ(metrics["metrics"]["top1"]["total"], 359);
  const Result exported = Halftone({"export", out, "-o", tensors});
  EXPECT_EQ(exported.out,
            "14 tensors F32 from the FP32 copies, 116,520 B of data\n");
  const json listed = MustParse(Halftone(
      {"export", out, "--dtype", "f16", "-o", Temp(".safetensors"), "--json"}));
  EXPECT_EQ(listed["tensors"].size(), 14u);
  EXPECT_EQ(listed["bytes"], 58260);
  EXPECT_EQ(listed["step"], 23);
  EXPECT_EQ(Halftone({"export", out + "/ckpt/step-23", "--dtype", "bf16", "-o",
                      Temp(".safetensors")})
                .out,
            "14 tensors BF16 from the FP32 copies, 58,260 B of data\n");
  const json again =
      MustParse(Halftone({"eval", Convnet(), "--init", tensors, "--data",
                          "idx:models/digits", "--json"}));
  EXPECT_EQ(again, metrics);
  const json other = MustParse(Halftone(
      {"eval", out, "--data", "idx:models/digits", "--level", "O0", "--json"}));
  EXPECT_NEAR(other["loss"], metrics["loss"], 0.01);
  EXPECT_EQ(Halftone({"ckpt", "verify", out}).exit_code(), 0);
  const json checkpoints = MustParse(Halftone({"ckpt", "ls", out, "--json"}));
  EXPECT_EQ(checkpoints["checkpoints"][0]["step"], 23);
  EXPECT_EQ(checkpoints["checkpoints"][0]["level"], "O1");
}

// What says only what a model was compiled by is no reason to compile it again;
// what changes it is named, and the advice can be typed.
TEST(RunVerbs, OfACompiledModelOnlyChangesOfItsGraphAreRefused) {
  const std::string out = Temp("-same");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", Convnet(), "--data", "idx:models/digits",
                               "--epochs", "1"});
    return Halftone(std::move(more));
  };
  const Result same = run({"--strategy", "models/mnist_o1.pbtxt", "--level",
                           "O1", "--lr", "0.02", "--out", out});
  ASSERT_EQ(same.exit_code(), 0) << same.err;
  EXPECT_THAT(*ReadFile(out + "/metrics.jsonl"), HasSubstr("\"lr\":0.02,"));
  // A list that names once more what it has is the same.
  const std::string black = Temp(".htc");
  ASSERT_EQ(Halftone({"compile", Convnet(), "--black", "matmul", "-o", black})
                .exit_code(),
            0);
  const Result again = Halftone({"run", black, "--black", "matmul", "--data",
                                 "idx:models/digits", "--epochs", "1"});
  EXPECT_EQ(again.exit_code(), 0) << again.err;
  const Result changed = run({"--level", "O1", "--freeze", "conv1*"});
  EXPECT_EQ(changed.exit_code(), 2);
  EXPECT_THAT(changed.err,
              HasSubstr(absl::StrCat(
                  "--freeze 'conv1*' changes the graph of ", Convnet(),
                  ": recompile: halftone compile ", Convnet(),
                  " --level O1 --freeze 'conv1*'", " --epochs 1 -o new.htc")));
  const Result other = run({"--strategy", "models/mnist_o2.pbtxt"});
  EXPECT_EQ(other.exit_code(), 2);
  EXPECT_THAT(other.err, HasSubstr("--strategy models/mnist_o2.pbtxt"));
}

constexpr char kTwoParts[] = R"(name: "two" format: 1
feed { name: "x" dims: [-1, 4] }
param { name: "u" dims: [4] init { uniform { bound: 1 } } }
param { name: "v" dims: [4] init { uniform { bound: 1 } } }
op { type: "elementwise_mul" in { slot: "X" var: "x" }
     in { slot: "Y" var: "u" } out { slot: "Out" var: "a" } }
op { type: "mean" in { slot: "X" var: "a" } out { slot: "Out" var: "main" } }
op { type: "elementwise_mul" in { slot: "X" var: "x" }
     in { slot: "Y" var: "v" } out { slot: "Out" var: "b" } }
op { type: "mean" in { slot: "X" var: "b" } out { slot: "Out" var: "aux" } }
loss { var: "loss" mean_over: "a" part { var: "main" } part { var: "aux" } }
)";

// Each part of a loss has its loss in an eval, as in a run; and its scale.
TEST(RunVerbs, PartsOfALoss) {
  const std::string model = Temp(".pbtxt"), out = Temp("-run");
  ASSERT_TRUE(WriteFileAtomically(model, kTwoParts).ok());
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "run",          model,
        "--out",        out,
        "--data",       "synthetic:16",
        "--set",        "optimizer.momentum.momentum=0.9",
        "--lr",         "0.1",
        "--set",        "lr.constant=true",
        "--level",      "O1",
        "--batch-size", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return Halftone(words);
  };
  const Result trained = run({"--epochs", "1"});
  ASSERT_EQ(trained.exit_code(), 0) << trained.err;
  const Result text = Halftone({"eval", out, "--data", "synthetic:16"});
  EXPECT_THAT(text.out, ContainsRegex("loss [-0-9.e]+ \\((main|aux) "));
  const json eval =
      MustParse(Halftone({"eval", out, "--data", "synthetic:16", "--json"}));
  EXPECT_NEAR(eval["losses"]["main"]["loss"].get<double>() +
                  eval["losses"]["aux"]["loss"].get<double>(),
              eval["loss"].get<double>(), 1e-5);
  const Result resumed = run(
      {"--epochs", "2", "--resume", "--set", "amp.loss_scaling.per_loss=true"});
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("loss scale of aux starts fresh"));
}

TEST(RunVerbs, FetchesAreShown) {
  const Result run = Halftone({"run", Convnet(), "--data", "idx:models/digits",
                               "--epochs", "1", "--log-every", "23", "--fetch",
                               "logits:norm", "--fetch", "fc.w.grad:hist"});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.err, ::testing::ContainsRegex(
                           "fetch    logits:norm [0-9.]+, fc.w.grad:hist "
                           "-[0-9.]+ .. [0-9.]+, 0 not finite\n"));
}

TEST(RunVerbs, JsonIsTheSummary) {
  const std::string out = Temp("-run");
  const Result run = Halftone({"run", Convnet(), "--data", "idx:models/digits",
                               "--epochs", "1", "--out", out, "--json"});
  const json report = MustParse(run);
  EXPECT_EQ(report["steps_attempted"], 23);
  EXPECT_EQ(report, json::parse(ReadAll(out + "/summary.json")));
  EXPECT_EQ(run.err.find("done "), std::string::npos);
}

TEST(RunVerbs, ProfileSumsToTheStep) {
  const std::string trace = Temp(".json");
  const Result run =
      Halftone({"run", Convnet(), "--data", "idx:models/digits", "--epochs",
                "2", "--json", "--profile=" + trace});
  const json profile = MustParse(run)["profile"];
  EXPECT_EQ(profile["steps"], 42);  // whole batches, but for the first two
  double sum = 0;
  std::map<std::string, double> ms;
  for (const json& row : profile["classes"]) {
    sum += double{row["ms"]};
    ms[row["class"]] = row["ms"];
  }
  EXPECT_NEAR(sum, profile["step_ms"], 0.01 * double{profile["step_ms"]});
  EXPECT_EQ(ms.size(), 10u);
  for (const char* busy :
       {"conv forward", "dgrad", "wgrad", "norm", "element-wise", "update"}) {
    EXPECT_GT(ms[busy], 0) << busy;
  }
  EXPECT_EQ(ms["cast"], 0);
  EXPECT_EQ(profile["dearest"].size(), 10u);
  EXPECT_GT(profile["dearest"][0]["ms"], 0);
  EXPECT_GT(ms["idle"], -0.01 * double{profile["step_ms"]});
  const json events = json::parse(ReadAll(trace))["traceEvents"];
  EXPECT_GT(events.size(), 100u);

  const Result shown =
      Halftone({"run", Convnet(), "--data", "idx:models/digits", "--epochs",
                "1", "--profile"});
  EXPECT_THAT(shown.out, HasSubstr("\nprofile  20 steps of "));
  EXPECT_THAT(shown.out, HasSubstr("\nexposed collective "));
}

TEST(LaunchVerb, ExplainsAsJson) {
  const Result explained =
      Halftone({"launch", "--ranks", "3", "--explain", "--json", "run", "x.htc",
                "--json", "--out", "runs/x"});
  const json object = MustParse(explained);
  EXPECT_EQ(explained.err, "");
  EXPECT_EQ(object["world_size"], 3);
  EXPECT_EQ(object["logs"], "runs/x/logs");
  EXPECT_EQ(object["command"].back(), "runs/x");
  const std::string lines =
      Halftone({"launch", "--ranks", "3", "--explain", "run", "x.htc", "--json",
                "--out", "runs/x"})
          .out;
  for (const std::string line : object["explanation"]) {
    EXPECT_THAT(lines, HasSubstr(line));
  }
}

TEST(LaunchVerb, SaysHowManyThreadsARankHas) {
  const auto launched = [](std::vector<std::string> command) {
    command.insert(command.begin(),
                   {"launch", "--ranks", "2", "--log-dir", Temp("-logs")});
    return Halftone(command).err;
  };
  const std::vector<std::string> run = {
      "run", Convnet(), "--data", "idx:models/digits", "--epochs", "1"};
  EXPECT_THAT(launched(run), HasSubstr(" + 1 reader each; logs "));
  std::vector<std::string> two = run;
  two.insert(two.end(), {"--workers", "2"});
  EXPECT_THAT(launched(two), HasSubstr(" + 2 readers each; logs "));
  EXPECT_EQ(launched({"true"}).find("reader"), std::string::npos);
}

}  // namespace
}  // namespace halftone
