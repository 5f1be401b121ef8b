// halftone export --format onnx: models, runs and 16 bits, and back by import.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

constexpr char kConvnet[] = "models/mnist_convnet.pbtxt";

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", names++, name);
}

Result Halftone(Words arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

// The best class and its probability for each test image, as text.
std::string Predicted(Words words) {
  words.insert(words.begin(), "predict");
  for (const char* word : {"--data", "idx:models/digits", "--top", "1"}) {
    words.push_back(word);
  }
  const Result result = Halftone(words);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("[359,10]"));
  return result.out;
}

// What import makes of an exported model, with its parameters.
Words Imported(const std::string& onnx) {
  const std::string model = Temp("-again.pbtxt");
  const Result read =
      Halftone({"import", onnx, "--loss", "cross_entropy:logits", "-o", model});
  EXPECT_EQ(read.exit_code(), 0) << read.err;
  const std::string stem = model.substr(0, model.rfind('.'));
  return {model, "--init", stem + ".safetensors"};
}

TEST(ExportOnnx, AModelThatNobodyTrainedPredictsTheSameWhenItComesBack) {
  const std::string onnx = Temp(".onnx");
  const Result made = Halftone({"export", kConvnet, "-o", onnx});
  ASSERT_EQ(made.exit_code(), 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("parameters are as initialised"));
  EXPECT_EQ(made.out,
            "19 nodes, 14 initialisers of 116,520 B, as an ONNX model, opset "
            "17\n");
  EXPECT_EQ(Predicted(Imported(onnx)), Predicted({kConvnet}));
}

TEST(ExportOnnx, ARunsParametersAndThoseOfInit) {
  const std::string run = Temp("-run"), onnx = Temp(".onnx");
  ASSERT_EQ(
      Halftone({"run", kConvnet, "--strategy", "models/mnist_o1.pbtxt",
                "--data", "idx:models/digits", "--epochs", "1", "--out", run})
          .exit_code(),
      0);
  const Result made =
      Halftone({"export", run, "--format", "onnx", "-o", onnx, "--json"});
  ASSERT_EQ(made.exit_code(), 0) << made.err;
  EXPECT_EQ(made.err, "");
  const json facts = json::parse(made.out);
  EXPECT_EQ(facts["opset"], 17);
  EXPECT_EQ(facts["dtype"], "f32");
  EXPECT_EQ(facts["casts"], 0);
  EXPECT_EQ(facts["inputs"], json::array({"image"}));
  EXPECT_EQ(facts["outputs"], json::array({"logits"}));
  const std::string trained = Predicted({run, "--level", "O0"});
  EXPECT_EQ(Predicted(Imported(onnx)), trained);
  const std::string other = Temp(".onnx");
  ASSERT_EQ(Halftone({"export", kConvnet, "--init", run, "--format", "onnx",
                      "-o", other})
                .exit_code(),
            0);
  EXPECT_EQ(Predicted(Imported(other)), trained);
  // With the casts that it was trained with.
  const json low =
      json::parse(Halftone({"export", run, "--format", "onnx", "--dtype", "f16",
                            "-o", Temp(".onnx"), "--json"})
                      .out);
  EXPECT_EQ(low["dtype"], "f16");
  EXPECT_GT(low["casts"], 5);
}

TEST(ExportOnnx, WhatItDoesNotTake) {
  const std::string onnx = Temp(".onnx");
  const auto fails = [&](Words words, int code, const std::string& part) {
    for (const char* word : {"--format", "onnx", "-o", onnx.c_str()}) {
      words.push_back(word);
    }
    words.insert(words.begin(), "export");
    const Result result = Halftone(words);
    EXPECT_EQ(result.exit_code(), code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  fails({kConvnet, "--dtype", "bf16"}, 2, "expected f32 or f16");
  fails({kConvnet, "--names", "torchvision"}, 2, "--names is of parameters");
  fails({kConvnet, "--init", "nowhere"}, 8, "nowhere");
  const std::string model = Temp(".pbtxt");
  const std::string net =
      "name: \"net\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 4] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n"
      "op { type: \"mean\" in { slot: \"X\" var: \"x\" } out { slot: \"Out\" "
      "var: \"loss\" } } loss { var: \"loss\" mean_over: \"x\" }\n"
      "op { type: \"correct_count\" in { slot: \"X\" var: \"x\" } in { slot: "
      "\"Label\" var: \"label\" } out { slot: \"Out\" var: \"n\" } }\n";
  ASSERT_TRUE(WriteFileAtomically(model, net).ok());
  fails({model}, 2, "names no output");
  ASSERT_TRUE(WriteFileAtomically(model, net + "output: \"n\"\n").ok());
  fails({model}, 1, "correct_count x1: ONNX has no op like it; first at n");
  EXPECT_EQ(access(onnx.c_str(), F_OK), -1);
  const Result parameters = Halftone(
      {"export", kConvnet, "--init", "x.safetensors", "-o", Temp(".st")});
  EXPECT_EQ(parameters.exit_code(), 2);
  EXPECT_THAT(parameters.err, HasSubstr("--init: of --format onnx"));
}

}  // namespace
}  // namespace halftone
