// halftone import: small nets that Paddle 2.6.2 saved and PyTorch 2.11
// exported, through the verb to training and predictions.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/data/npy_file.h"
#include "runtime/data/zip_archive.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

constexpr char kNet[] = "tests/cli/paddle/small.pdmodel";
constexpr char kOnnx[] = "tests/cli/onnx/small.onnx";
constexpr char kTrain[] = "tests/cli/paddle/small.train.pdmodel";

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-i", names++, name);
}

Result Halftone(Words arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

// The one array of an .npz.
std::vector<float> Array(const std::string& path) {
  const std::string content = ReadAll(path);
  const auto archive = runtime::ZipArchive::Parse(content, path);
  EXPECT_TRUE(archive.ok()) << archive.status();
  EXPECT_EQ(archive->members().size(), 1u);
  std::string unpacked, made, note;
  const auto npy = archive->Read(archive->members()[0], 1, &unpacked);
  const auto array = runtime::ParseNpy(*npy, path);
  const auto bytes = runtime::ElementsAs(*array, DType::kF32, &made, &note);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

// With the weights beside the model: `data`.npz gives what lies in
// `data`_expected.npz.
void ExpectPredictions(const std::string& model, const std::string& data) {
  const std::string weights =
      absl::StrReplaceAll(model, {{".pbtxt", ".safetensors"}});
  const std::string out = Temp(".npz");
  const Result predicted =
      Halftone({"predict", model, "--init", weights, "--data",
                absl::StrCat("npz:", data, ".npz"), "-o", out});
  ASSERT_EQ(predicted.exit_code(), 0) << predicted.err;
  const std::vector<float> found = Array(out);
  const std::vector<float> expected =
      Array(absl::StrCat(data, "_expected.npz"));
  ASSERT_EQ(found.size(), expected.size());
  // Sums of 100 products in another order: a few units of f32's last place.
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
  }
}

// A program that AMP has rewritten reads low copies of what it trains.
TEST(ImportVerb, TrainsWhatARewrittenProgramTrains) {
  for (const std::string level : {"O1", "O2", "O3"}) {
    const std::string compiled = Temp(".htc"), program = Temp(".pdmodel"),
                      model = Temp(".pbtxt");
    Halftone({"compile", "models/mnist_convnet.pbtxt", "--strategy",
              "models/mnist_o1.pbtxt", "--level", level, "-o", compiled});
    Halftone({"export", compiled, "-o", program});
    const Result result = Halftone({"import", program, "-o", model});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_THAT(result.out,
                HasSubstr("\nparameters  10 tensors, 29,034 values"));
    EXPECT_THAT(result.out, Not(HasSubstr("\nfrozen ")));
    EXPECT_THAT(*ReadFile(model), Not(HasSubstr("cast_fp16"))) << level;
  }
}

TEST(ImportVerb, SaysWhatTheSourceDoesNotTrain) {
  const std::string source = Temp("-source.pbtxt"), program = Temp(".pdmodel");
  ASSERT_TRUE(
      WriteFileAtomically(
          source, absl::StrReplaceAll(*ReadFile("models/mnist_convnet.pbtxt"),
                                      {{"name: \"conv1.w\"",
                                        "name: \"conv1.w\" trainable: false"}}))
          .ok());
  Halftone({"export", source, "-o", program});
  const Result result = Halftone({"import", program, "-o", Temp(".pbtxt")});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nfrozen      1 of them, which the source "
                                    "does not train: conv1.w\n"));
}

TEST(ImportVerb, SaysWhatIsComputedInF32) {
  const std::string whole = "tests/cli/onnx/whole.onnx";
  const Result result = Halftone({"import", whole, "-o", Temp(".pbtxt")});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("\nnote        " + whole +
                        ": Mod x1: computes whole numbers in f32, exact up to "
                        "16,777,216; reduce larger ones before they are fed; "
                        "first at node 0 (rest)\n"));
  const Result shown =
      Halftone({"import", whole, "-o", Temp(".pbtxt"), "--json"});
  EXPECT_EQ(json::parse(shown.out)["notes"].size(), 1u) << shown.out;
}

TEST(ImportVerb, KeepsModelAndWeightsApart) {
  const std::string out = Temp(".safetensors");
  const Result result = Halftone({"import", kNet, "-o", out});
  EXPECT_EQ(result.exit_code(), 2);
  EXPECT_THAT(result.err, HasSubstr(out + ": so the weights are called"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(ImportVerb, PredictsWhatPaddlePredicts) {
  const std::string model = Temp(".pbtxt");
  const std::string weights =
      absl::StrReplaceAll(model, {{".pbtxt", ".safetensors"}});
  const Result imported = Halftone({"import", kNet, "-o", model});
  ASSERT_EQ(imported.exit_code(), 0) << imported.err;
  EXPECT_EQ(
      imported.out,
      absl::StrCat(
          "read        ", kNet,
          ": Paddle 2.6.2, 13 ops in block 0 of 1\n"
          "ops         12 forward; left out: feed and fetch 2\n"
          "feeds       x f32[B,1,8,8]\n"
          "parameters  6 tensors, 1,058 values; 2 running statistics, "
          "which training updates\n"
          "initial     Paddle's defaults (no --startup): 0 4, 1 2, Xavier "
          "uniform 1, normal 1\n"
          "loss        none: no op has role 256; compiles for evaluation "
          "alone\n"
          "outputs     save_infer_model/scale_0.tmp_0\n"
          "weights     ",
          weights, ": 8 tensors, 4,264 B of data  halftone run --init\n", model,
          ": 2.8 KiB  halftone compile ", model, "\n"));
  ExpectPredictions(model, "tests/cli/paddle/small");
}

// Dropout and batch norm come back in the form that trains, too, and the
// sub-graph that computes sizes is gone.
TEST(ImportVerb, PredictsWhatPyTorchPredicts) {
  const std::string model = Temp(".pbtxt");
  const std::string weights =
      absl::StrReplaceAll(model, {{".pbtxt", ".safetensors"}});
  const Result imported = Halftone({"import", kOnnx, "-o", model});
  ASSERT_EQ(imported.exit_code(), 0) << imported.err;
  EXPECT_EQ(imported.out,
            absl::StrCat(
                "read        ", kOnnx,
                ": ONNX opset 17 of pytorch 2.11.0, 30 nodes\n"
                "ops         8 forward; left out: computed at import 22\n"
                "feeds       x f32[B,1,8,8]\n"
                "parameters  6 tensors, 281 values; 2 running statistics, "
                "which training updates\n"
                "loss        none: no --loss (cross_entropy:VALUE, mse:VALUE, "
                "bce:VALUE); compiles for evaluation alone\n"
                "outputs     logits\n"
                "weights     ",
                weights, ": 8 tensors, 1,148 B of data  halftone run --init\n",
                model, ": 2.0 KiB  halftone compile ", model, "\n"));
  ExpectPredictions(model, "tests/cli/onnx/small");
}

// Gates and directions lie in another order in ONNX; Paddle's first states have
// a shape that is known at run time alone.
TEST(ImportVerb, PredictsWithRecurrentLayers) {
  for (const char* net : {"tests/cli/onnx/recurrent.onnx",
                          "tests/cli/paddle/recurrent.pdmodel"}) {
    const std::string model = Temp(".pbtxt");
    const Result imported = Halftone({"import", net, "-o", model});
    ASSERT_EQ(imported.exit_code(), 0) << imported.err;
    ExpectPredictions(model, std::string(net, std::strrchr(net, '.')));
  }
}

TEST(ImportVerb, OnnxModelTrainsOnTwoRanks) {
  const std::string model = Temp(".pbtxt");
  const Result imported = Halftone({"import", kOnnx, "-o", model, "--loss",
                                    "cross_entropy:logits", "--json"});
  ASSERT_EQ(imported.exit_code(), 0) << imported.err;
  const json facts = json::parse(imported.out);
  EXPECT_EQ(facts["from"], "onnx opset 17");
  EXPECT_EQ(facts["loss"], "loss");
  EXPECT_EQ(facts["mean_over"], "ce");
  EXPECT_EQ(facts["metrics"], json({"top1"}));
  EXPECT_EQ(facts["feeds"], json({"x", "label"}));
  const Result run =
      Halftone({"run", model, "--init", facts["weights"].get<std::string>(),
                "--ranks", "2", "--data", "npz:tests/cli/onnx/small.npz",
                "--set", "optimizer.momentum.momentum=0.9", "--level", "O1",
                "--dtype", "bf16", "--batch-size", "4", "--epochs", "1"});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.out + run.err, HasSubstr("2 steps applied, 0 skipped"));
  const Result other =
      Halftone({"import", kOnnx, "-o", model, "--loss", "cros_entropy:logits"});
  EXPECT_EQ(other.exit_code(), 2);
  EXPECT_THAT(other.err, HasSubstr("nearest: cross_entropy"));
  EXPECT_EQ(Halftone({"import", kOnnx, "-o", model, "--loss", "mse:logit"})
                .exit_code(),
            1);
}

TEST(ImportVerb, TrainingProgramTrainsOnTwoRanks) {
  const std::string model = Temp(".pbtxt");
  const Result imported = Halftone({"import", kTrain, "--startup",
                                    "tests/cli/paddle/small.startup.pdmodel",
                                    "-o", model, "--json"});
  ASSERT_EQ(imported.exit_code(), 0) << imported.err;
  const json facts = json::parse(imported.out);
  EXPECT_EQ(facts["left_out"], json({{"backward", 13}, {"optimizer", 6}}));
  EXPECT_EQ(facts["loss"], "mean_0.tmp_0");
  EXPECT_EQ(facts["mean_over"], "softmax_with_cross_entropy_0.tmp_1");
  EXPECT_EQ(facts["metrics"], json({"top1"}));
  EXPECT_EQ(facts["weights"], json());
  EXPECT_EQ(facts["inits"]["startup"],
            json({{"0", 4}, {"1", 2}, {"normal", 1}, {"uniform", 1}}));
  EXPECT_EQ(facts["inits"]["defaults"], json::object());
  const Result run = Halftone(
      {"run", model, "--ranks", "2", "--data", "npz:tests/cli/paddle/small.npz",
       "--set", "optimizer.momentum.momentum=0.9", "--level", "O1", "--dtype",
       "bf16", "--batch-size", "4", "--epochs", "1"});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.out + run.err, HasSubstr("2 steps applied, 0 skipped"));
}

TEST(ImportVerb, LossAndDimsAreTaken) {
  const std::string model = Temp(".pbtxt");
  const Result fixed =
      Halftone({"import", kNet, "-o", model, "--dims", "x=4,1,8,8"});
  ASSERT_EQ(fixed.exit_code(), 0) << fixed.err;
  EXPECT_THAT(fixed.out, HasSubstr("feeds       x f32[4,1,8,8]; --dims "
                                   "x=-1,1,8,8 opens the batch\n"));
  EXPECT_THAT(ReadAll(model), HasSubstr("dims: [4, 1, 8, 8]"));
  const Result nearest =
      Halftone({"import", kTrain, "-o", model, "--loss", "mean_0.tmp_1"});
  EXPECT_EQ(nearest.exit_code(), 1);
  EXPECT_THAT(nearest.err,
              HasSubstr("--loss mean_0.tmp_1: no forward op makes it; "
                        "nearest: mean_0.tmp_0"));
  EXPECT_EQ(Halftone({"import", kNet, "--dims", "x=a"}).exit_code(), 2);
  // Of no loss, or of one that the model has.
  for (const char* net : {kOnnx, kTrain}) {
    EXPECT_EQ(Halftone({"import", net, "-o", model, "--class-axis", "-1"})
                  .exit_code(),
              2);
  }
  EXPECT_EQ(Halftone({"import", kOnnx, "-o", model, "--class-axis", "-1",
                      "--loss", "cross_entropy:logits"})
                .exit_code(),
            0);
}

// A graph that makes y of nothing, as bytes of protobuf: no feed is told of.
TEST(ImportVerb, TakesAGraphWithoutInputs) {
  const std::string model = Temp(".pbtxt"), onnx = Temp(".onnx");
  const std::string number("\x15\0\0\x80\x3f", 5);
  const std::string attribute =
      "\x0a\x0b"
      "value_float" +
      number + "\xa0\x01\x01";
  const std::string node =
      "\x12\x01"
      "y"
      "\x22\x08"
      "Constant"
      "\x2a\x15" +
      attribute;
  ASSERT_TRUE(WriteFileAtomically(onnx,
                                  "\x08\x08\x42\x02\x10\x11\x3a\x2b"
                                  "\x0a\x24" +
                                      node +
                                      "\x62\x03\x0a\x01"
                                      "y")
                  .ok());
  const Result imported = Halftone({"import", onnx, "-o", model});
  EXPECT_EQ(imported.exit_code(), 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("outputs     y\n"));
}

// What an import leaves out in silence, a model written by hand may have, too.
TEST(CompileVerb, SaysWhatOfPaddlesChangesNothing) {
  const std::string model = Temp(".pbtxt"), compiled = Temp(".htc");
  const std::string net = absl::StrReplaceAll(
      ReadAll("models/mlp.pbtxt"),
      {{"\"relu1\" } }",
        "\"relu1\" } attr { name: \"use_cudnn\" b: true } }"}});
  ASSERT_TRUE(WriteFileAtomically(model, net).ok());
  const Result made = Halftone({"compile", model, "-o", compiled});
  EXPECT_EQ(made.exit_code(), 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("note P8"));
  EXPECT_THAT(made.out, HasSubstr("use_cudnn (1 op)"));
}

void ExpectModelError(const Words& words, const std::string& part) {
  const Result result = Halftone(words);
  EXPECT_EQ(result.exit_code(), 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(part));
}

TEST(ImportVerb, OtherFilesAreNamed) {
  const std::string model = Temp(".pbtxt");
  ExpectModelError({"import", "models/mlp.pbtxt", "-o", model},
                   "found text; a .pbtxt needs no import");
  ExpectModelError({"import", "tests/cli/paddle/small.npz", "-o", model},
                   "found a zip archive");
  ExpectModelError({"import", kNet, "-o", model, "--params", kNet},
                   "small.pdmodel: tensor 0 (batch_norm2d_0.b_0): ");
  ExpectModelError({"import", kNet, "-o", model, "--params", "not/there"},
                   "not/there");
  EXPECT_NE(access(model.c_str(), F_OK), 0);  // nothing was written
}

}  // namespace
}  // namespace halftone
