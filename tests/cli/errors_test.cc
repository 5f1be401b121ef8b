// Wrong commands and files: the documented exit code, a message that names
// place and remedy, nothing on stdout, nothing written.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-e", names++, name);
}

std::string Write(const std::string& name, const std::string& content) {
  const std::string path = Temp(name);
  std::ofstream(path) << content;
  return path;
}

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

void ExpectError(std::vector<std::string> arguments, int code,
                 const std::vector<std::string>& parts) {
  const Result result = Halftone(arguments);
  EXPECT_EQ(result.exit_code(), code) << arguments[0] << ": " << result.err;
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const bool json = std::find(arguments.begin(), end, "--json") != end;
  EXPECT_EQ(result.out.substr(0, 1), json ? "{" : "") << result.out;
  EXPECT_THAT(result.err, StartsWith("error    "));
  for (const std::string& part : parts) {
    EXPECT_THAT(result.err, HasSubstr(part));
  }
}

constexpr char kConvnet[] = "models/mnist_convnet.pbtxt";
constexpr char kO1[] = "models/mnist_o1.pbtxt";

// What is read is not lost to what is written.
TEST(Usage, OutputsAreNoInputs) {
  const std::string model = Write("m.pbtxt", ReadAll(kConvnet));
  const std::string strategy = Write("s.pbtxt", ReadAll(kO1));
  const std::string array = Write("a.npz", "no archive");
  const std::string twice = "is named twice, and would be lost";
  ExpectError({"compile", model, "-o", model}, 2, {model, twice});
  ExpectError({"compile", model, "--strategy=" + strategy, "--out", strategy},
              2, {strategy, twice});
  ExpectError({"predict", model, "--data", "npz:" + array, "-o", array}, 2,
              {array, twice});
  ExpectError({"tune", model, "--out=" + model}, 2, {model, twice});
  ExpectError({"import", model, "-o", model}, 2, {model, twice});
  ExpectError({"export", model, "--init", array, "-o", array}, 2,
              {array, twice});
  ExpectError({"reduce", model, "--check", "true", "-o", model}, 2,
              {model, twice});
  ExpectError({"diff", model, strategy, "--html", model}, 2, {model, twice});
  ExpectError({"compare", array, model, "--html", array}, 2, {array, twice});
  ExpectError({"report", model, "-o", model}, 2, {model, twice});
  ExpectError({"plan", model, "--timeline", "--trace", model}, 2,
              {model, twice});
  ExpectError({"run", model, "--profile=" + model}, 2, {model, twice});
  EXPECT_EQ(ReadAll(model), ReadAll(kConvnet));
}

// Nor are those within a run that is read, whichever of its places is named;
// what a run does not keep there is made anew.
TEST(Usage, OutputsAreNoFilesOfARun) {
  const std::string run = Write("run", "");
  std::filesystem::remove(run);
  std::filesystem::create_directories(run + "/ckpt/step-4");
  const std::vector<std::string> kept = {
      run + "/model.htc", run + "/metrics.jsonl",
      run + "/ckpt/step-4/state.safetensors"};
  for (const std::string& file : kept) {
    std::ofstream(file) << "kept";
    const std::string why = "would be lost where it is written";
    ExpectError({"export", run, "-o", file}, 2, {file, "of the run", why});
    ExpectError({"export", run + "/ckpt", "-o", file}, 2, {file, why});
    ExpectError({"export", run + "/ckpt/step-4/", "-o", file}, 2, {file, why});
    ExpectError({"report", run, "-o", file}, 2, {file, why});
    EXPECT_EQ(ReadAll(file), "kept");
  }
  // A folder that is no run's keeps nothing.
  const std::string other = run + "/other";
  std::filesystem::create_directories(other + "/logs");
  std::ofstream(other + "/logs/a.npz") << "old";
  const Result written =
      Halftone({"predict", kConvnet, "--data", "imagefolder:" + other, "-o",
                other + "/logs/a.npz"});
  EXPECT_EQ(written.exit_code(), 1);
  EXPECT_THAT(written.err, AllOf(HasSubstr("expected pictures"),
                                 Not(HasSubstr("would be lost"))));
  std::ofstream(run + "/metrics.jsonl", std::ios::trunc)
      << "{\"event\":\"step\",\"step\":1,\"loss\":1}\n";
  for (int i = 0; i < 2; ++i) {
    const Result page =
        RunProgram({"tools/halftone", "report", run, "-o", run + "/r.html"});
    EXPECT_EQ(page.exit_code(), 0) << page.err;
  }
}

// What a script leaves where a variable is not set.
TEST(Usage, EmptyWordsAreNoValues) {
  for (const char* option : {"--out", "--data", "--strategy"}) {
    ExpectError({"run", kConvnet, option, ""}, 2,
                {option, "expected a value, found an empty word"});
  }
  ExpectError({"compile", ""}, 2, {"found an empty word"});
  ExpectError({"opt", kConvnet, "--passes", ""}, 2,
              {"--passes", "found an empty word"});
}

TEST(Usage, WaitsAreOfATimeThatEnds) {
  for (const char* option : {"--timeout", "--connect-timeout"}) {
    for (const char* bad : {"0", "-1", "inf", "nan", "1e12", "soon"}) {
      ExpectError({"run", kConvnet, option, bad}, 2, {option, bad});
    }
  }
}

TEST(Usage, MistypedWordsGetTheNearest) {
  ExpectError({"inspct"}, 2, {"\"inspct\"", "nearest: inspect"});
  ExpectError({"run", kConvnet, "--dat", "x"}, 2, {"--dat", "nearest: --data"});
  ExpectError({"run", kConvnet, "--capsule", "1", "--data", "synthetic"}, 2,
              {"--capsule", "--out"});
  ExpectError({"launch", "--rnks", "2", "run"}, 2, {"nearest: --ranks"});
  ExpectError({"zoo", "resnet5"}, 2, {"nearest: resnet50"});
  ExpectError({"ops", "cnv2d"}, 2, {"nearest: conv2d"});
  ExpectError({"ops", "--target", "sm90"}, 2, {"nearest: sm_90"});
  ExpectError({"inspect", kConvnet, "--entry", "evl"}, 2, {"nearest: eval"});
  ExpectError({"run", kConvnet, "--strategy", kO1, "--data",
               "idx:models/digits", "--feed", "imge=image"},
              2, {"--feed imge=image", "nearest: image"});
  ExpectError({"run", kConvnet, "--strategy", kO1, "--data",
               "idx:models/digits", "--feed", "image=imagee"},
              1, {"nearest: image"});
  ExpectError({"explain", "D7x"}, 2, {"D7x", "nearest: D8"});
  ExpectError({"compile", kConvnet, "--set", "amp.levl=O1"}, 2,
              {"amp.levl", "nearest: amp.level"});
  ExpectError({"compile", kConvnet, "--level", "O4"}, 2, {"--level", "O4"});
  ExpectError({"compile", kConvnet, "--dtype", "fp61"}, 2,
              {"--dtype: amp.dtype: expected fp16 or bf16, found \"fp61\"; "
               "nearest: fp16"});
  ExpectError({"compile", kConvnet, "--dtype", "fp32"}, 2,
              {"found \"fp32\"; all in FP32 is level O0"});
  ExpectError({"ckpt", "lss", "runs"}, 2, {"\"lss\"", "nearest: ls"});
  ExpectError({"inspect", kConvnet, "--scope", "bm1"}, 2, {"nearest: bn1"});
  ExpectError({}, 2, {"--help"});
}

TEST(Usage, WhatDoesNotGoTogether) {
  ExpectError({"eval", kConvnet, "--data", "idx:models/digits"}, 2, {"--init"});
  ExpectError({"launch", "--ranks", "2"}, 2, {"no command"});
  ExpectError({"launch", "--ranks", "2", "rnu", kConvnet}, 2,
              {"\"rnu\" is no verb that has ranks (run, eval, predict) and no "
               "command in PATH; nearest: run"});
  ExpectError({"launch", "--ranks", "2", "inspect", kConvnet}, 2,
              {"\"inspect\" is no verb that has ranks (run, eval, predict)"});
  ExpectError({"launch", "--json", "run", kConvnet}, 2, {"--explain"});
  ExpectError(
      {"run", kConvnet, "--strategy", kO1, "--data", "synthetic", "--resume"},
      2, {"--out"});
}

TEST(Usage, FlagsThatExcludeEachOther) {
  ExpectError({"plan", kConvnet, "--max-batch", "--steps"}, 2,
              {"--steps", "--max-batch"});
  ExpectError({"plan", kConvnet, "--max-batch", "--batch", "8"}, 2,
              {"--batch", "--max-batch"});
  ExpectError({"plan", kConvnet, "--roofline", "--steps"}, 2,
              {"--steps", "--roofline"});
  ExpectError({"plan", kConvnet, "--timeline", "--roofline"}, 2,
              {"--roofline", "--timeline"});
  ExpectError({"plan", kConvnet, "--link", "pcie5"}, 2,
              {"--link", "--timeline"});
  ExpectError({"plan", kConvnet, "--memory", "1GiB"}, 2,
              {"--memory", "--max-batch"});
  ExpectError({"inspect", kConvnet, "--json", "--html"}, 2,
              {"--json", "--html"});
}

TEST(Usage, LinksAndSharesThatAreNone) {
  ExpectError(
      {"plan", kConvnet, "--strategy", kO1, "--timeline", "--link", "pcie99"},
      2, {"--link pcie99", "nearest: pcie", "100gbe"});
  ExpectError({"plan", kConvnet, "--strategy", kO1, "--timeline", "--between",
               "no/such.json"},
              1, {"no/such.json"});
  ExpectError({"plan", kConvnet, "--strategy", kO1, "--timeline",
               "--cores-per-rank", "0"},
              2, {"--cores-per-rank 0", "from 1e-06"});
}

TEST(Usage, FlagsWhoseValuesTheModelDoesNotHave) {
  ExpectError({"compile", kConvnet, "--strategy", kO1, "--freeze", "nothing"},
              2, {"--freeze: optimizer.freeze: no parameter matches"});
  ExpectError({"compile", kConvnet, "--strategy", kO1, "--set",
               "lr.piecewise.boundary=0.5"},
              2, {"--set: lr.piecewise.boundary: expected one factor more"});
}

TEST(Usage, AModelWithoutWhatToExplain) {
  ExpectError({"explain", kConvnet}, 2, {kConvnet, "halftone inspect"});
}

TEST(Device, GpusThatAreNotThere) {
  // A model that is not compiled yet goes where the flags say, as in run; a
  // compiled one says what it was compiled for.
  ExpectError(
      {"eval", kConvnet, "--init", "x", "--data", "synthetic", "--gpus", "77"},
      9, {"--gpus 77"});
  const std::string compiled = Temp(".htc");
  ASSERT_EQ(Halftone({"compile", kConvnet, "--target", "cpu", "-o", compiled})
                .exit_code(),
            0);
  ExpectError(
      {"eval", compiled, "--init", "x", "--data", "synthetic", "--gpus", "77"},
      2, {"--gpus 77", "compiled for cpu"});
  ExpectError({"run", kConvnet, "--strategy", kO1, "--data", "synthetic",
               "--gpus", "77"},
              9, {"--gpus 77"});
  ExpectError({"tune", kConvnet, "--gpus", "77"}, 9, {"--gpus 77"});
  const std::vector<std::string> run = {
      "run", kConvnet, "--strategy", kO1, "--data", "synthetic", "--gpus"};
  const auto with = [&run](std::initializer_list<const char*> more) {
    std::vector<std::string> command = run;
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  ExpectError(with({"77,77"}), 9, {"--gpus 77,77"});  // two ranks on one
  ExpectError(with({"0", "--target", "cpu"}), 2, {"--gpus 0", "cpu"});
  ExpectError(with({"0,1", "--ranks", "3"}), 2, {"--ranks 3", "2 ids"});
}

TEST(Model, FilesThatAreNone) {
  ExpectError({"compile", "nowhere.pbtxt"}, 1, {"nowhere.pbtxt"});
  ExpectError({"compile", Write(".pbtxt", "")}, 1, {"empty"});
  ExpectError({"compile", Write(".pbtxt",
                                "\x7f"
                                "ELF\1\2\3")},
              1, {".pbtxt"});
  ExpectError({"compile", kO1}, 1, {"strategy"});
  ExpectError({"compile", kConvnet, "--strategy", kConvnet}, 1, {kConvnet});
}

TEST(Model, ACompiledModelWhoseGraphASettingWouldChange) {
  const std::string model = Temp(".htc");
  ASSERT_EQ(Halftone({"compile", kConvnet, "--strategy", kO1, "-o", model})
                .exit_code(),
            0);
  ExpectError({"run", model, "--data", "idx:models/digits", "--level", "O2"}, 2,
              {"--level O2 changes", "recompile", "--level O2 -o"});
  // What leaves the graph alone is checked as in a strategy.
  ExpectError({"run", model, "--data", "synthetic", "--set", "train.tail=pd"},
              2, {"--set: train.tail", "nearest: pad"});
  ExpectError({"run", model, "--data", "synthetic", "--epochs", "0"}, 2,
              {"--epochs: train.epochs"});
  ExpectError({"run", model, "--data", "synthetic", "--lr", "nan"}, 2,
              {"--lr: lr.base"});
  // A field that is none changes nothing.
  ExpectError({"run", model, "--data", "synthetic", "--set", "amp.levl=O2"}, 2,
              {"--set: a strategy has no field", "nearest: amp.level"});
}

// Also where a model reads no samples: each pass over the data is one step.
TEST(Data, ATailThatLeavesNothing) {
  const std::string model =
      Write("net.pbtxt",
            "name: \"net\" format: 1\n"
            "param { name: \"w\" dims: [4] init { constant: 1 } }\n"
            "op { type: \"square\" in { slot: \"X\" var: \"w\" } "
            "out { slot: \"Out\" var: \"s\" } }\n"
            "op { type: \"mean\" in { slot: \"X\" var: \"s\" } "
            "out { slot: \"Out\" var: \"loss\" } }\n"
            "loss { var: \"loss\" mean_over: \"s\" }\n");
  ExpectError({"run", model, "--data", "synthetic:4", "--ranks", "2", "--set",
               "train.tail=drop", "--set", "optimizer.sgd.weight_decay=0"},
              1, {"train.tail drop", "none for each of 2 ranks"});
}

TEST(Data, WhatCannotBeRead) {
  const std::vector<std::string> run = {
      "run", kConvnet, "--strategy", kO1, "--out", Temp("-run"), "--data"};
  const auto with = [&run](const std::string& data) {
    std::vector<std::string> command = run;
    command.push_back(data);
    return command;
  };
  ExpectError(with("idx:nowhere"), 1, {"nowhere"});
  ExpectError(with("parquet:x"), 2, {"parquet"});
  EXPECT_NE(access(run[5].c_str(), F_OK), 0) << "nothing was written";
  ExpectError({"run", kConvnet, "--strategy", kO1, "--data",
               "idx:models/digits", "--batch-size", "5000"},
              1, {"5,000", "1,438"});
}

TEST(Output, WhatCannotBeWritten) {
  ExpectError(
      {"compile", kConvnet, "--strategy", kO1, "-o", "/nowhere/mnist.htc"}, 1,
      {"/nowhere/mnist.htc"});
  ExpectError({"zoo", "mlp", "-o", "/nowhere/mlp.pbtxt"}, 1, {"/nowhere"});
}

// What is written at a run's end is looked at before its first step.
TEST(Output, ATraceThatCannotBeWritten) {
  const std::string run = Temp("-run");
  ExpectError({"run", kConvnet, "--strategy", kO1, "--data", "synthetic",
               "--out", run, "--profile=/nowhere/trace.json"},
              1, {"/nowhere/trace.json: cannot write: No such file"});
  EXPECT_NE(access((run + "/metrics.jsonl").c_str(), F_OK), 0);
  const Result inside =
      Halftone({"run", kConvnet, "--strategy", kO1, "--data", "synthetic:4",
                "--batch-size", "4", "--epochs", "1", "--out", run,
                absl::StrCat("--profile=", run, "/trace.json")});
  EXPECT_EQ(inside.exit_code(), 0) << inside.err;
  EXPECT_EQ(access((run + "/trace.json").c_str(), F_OK), 0);
}

// The value is wrong, whether or not the model is compiled already; to compile
// it again is no way out.
TEST(Usage, AValueThatNoCompileTakes) {
  const std::string model = Temp(".htc");
  ASSERT_EQ(Halftone({"compile", kConvnet, "--strategy", kO1, "-o", model})
                .exit_code(),
            0);
  for (const char* scale : {"nan", "0", "-1"}) {
    const std::vector<std::string> run = {"run",       model,          "--data",
                                          "synthetic", "--loss-scale", scale};
    ExpectError(run, 2, {"loss_scaling"});
    EXPECT_EQ(Halftone(run).err.find("recompile"), std::string::npos) << scale;
  }
}

TEST(Output, ARunThatIsNotThere) {
  ExpectError(
      {"export", "nowhere", "-o", Temp(".safetensors")}, 8,
      {"error    nowhere: is not there; expected a run directory (--out "
       "of a run) or a checkpoint in it (ckpt/step-N)\n"});
  ExpectError({"export", "models", "-o", Temp(".safetensors")}, 8,
              {"models: holds no model.htc; expected a run directory"});
}

// Neither a log nor a report of the refused launch is left.
TEST(Output, ADirectoryThatLaunchMayNotUse) {
  const std::string out = Temp("-run");
  mkdir(out.c_str(), 0700);
  std::ofstream(out + "/notes.txt") << "somebody's";
  const Result result =
      Halftone({"launch", "--ranks", "2", "run", kConvnet, "--strategy", kO1,
                "--data", "synthetic", "--out", out});
  EXPECT_EQ(result.exit_code(), 2);
  EXPECT_EQ(result.err,
            absl::StrCat("error    ", out,
                         " holds notes.txt; add --resume or another --out\n"));
  EXPECT_NE(access((out + "/logs").c_str(), F_OK), 0);
  EXPECT_NE(access((out + "/failure.json").c_str(), F_OK), 0);
}

TEST(Checkpoint, OneThatIsDamaged) {
  const std::string out = Temp("-run");
  ASSERT_EQ(Halftone({"run", kConvnet, "--strategy", kO1, "--data",
                      "idx:models/digits", "--epochs", "1", "--out", out})
                .exit_code(),
            0);
  const std::string tensors = out + "/ckpt/step-23/state.safetensors";
  std::string bytes = ReadAll(tensors);
  ASSERT_GT(bytes.size(), 1000u);
  bytes[bytes.size() - 100] ^= 1;
  std::ofstream(tensors) << bytes;
  const Result verify = Halftone({"ckpt", "verify", out});
  EXPECT_EQ(verify.exit_code(), 8);
  EXPECT_THAT(verify.err, HasSubstr("state.safetensors"));
  ExpectError({"eval", out, "--data", "idx:models/digits"}, 8, {"step-23"});
}

}  // namespace
}  // namespace halftone
