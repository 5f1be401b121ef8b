// --init with a part of the parameters, other shapes, and a zoo model's weights
// under the names of where it was published; --freeze.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/safetensors.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

// Bytes by name.
std::map<std::string, std::string> TensorsOf(const std::string& path) {
  const auto tensors = runtime::ParseSafetensors(ReadAll(path), path);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  std::map<std::string, std::string> bytes;
  for (const runtime::Tensor& tensor : *tensors) {
    bytes[tensor.name] = tensor.bytes;
  }
  return bytes;
}

// A file of zeros.
std::string Zeros(const std::vector<std::pair<std::string, int64_t>>& sizes,
                  DType dtype = DType::kF32) {
  std::vector<runtime::Tensor> tensors;
  for (const auto& [name, n] : sizes) {
    tensors.push_back({name, dtype, {n}, std::string(SizeOf(dtype) * n, '\0')});
  }
  const std::string path = NewPath(".safetensors");
  EXPECT_TRUE(
      WriteFileAtomically(path, runtime::SerializeSafetensors(tensors)).ok());
  return path;
}

// Files and runs of all tests, made once.
struct Made {
  std::string model, of_seven, run, tensors, torchvision;
};

std::string Compile(const std::string& classes,
                    const std::vector<std::string>& flags = {}) {
  const std::string model = NewPath(".pbtxt"), compiled = NewPath(".htc");
  EXPECT_EQ(Halftone({"zoo", "resnet18", "--image-size", "32", "--width", "4",
                      "--classes", classes, "-o", model})
                .exit_code(),
            0);
  std::vector<std::string> command = {
      "compile",      model,
      "--level",      "O1",
      "-o",           compiled,
      "--set",        "optimizer.momentum.momentum=0.9",
      "--set",        "amp.dtype=bf16",
      "--batch-size", "8"};
  command.insert(command.end(), flags.begin(), flags.end());
  const Result result = Halftone(command);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return compiled;
}

const Made& All() {
  static const Made made = [] {
    Made all;
    all.model = Compile("10");
    all.of_seven = Compile("7");
    all.run = NewPath("-run");
    all.tensors = NewPath(".safetensors");
    all.torchvision = NewPath(".safetensors");
    EXPECT_EQ(Halftone({"run", all.model, "--data", "synthetic:16", "--epochs",
                        "1", "--out", all.run})
                  .exit_code(),
              0);
    EXPECT_EQ(Halftone({"export", all.run, "-o", all.tensors}).exit_code(), 0);
    const Result exported = Halftone(
        {"export", all.run, "--names", "torchvision", "-o", all.torchvision});
    EXPECT_EQ(exported.exit_code(), 0) << exported.err;
    return all;
  }();
  return made;
}

Result Train(const std::string& model, const std::vector<std::string>& flags) {
  std::vector<std::string> command = {"run",         model,      "--data",
                                      "synthetic:8", "--epochs", "1"};
  command.insert(command.end(), flags.begin(), flags.end());
  return Halftone(command);
}

std::string EvalOf(const std::string& tensors) {
  const Result result = Halftone({"eval", All().model, "--init", tensors,
                                  "--data", "synthetic:16", "--json"});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return nlohmann::json::parse(result.out)["loss"].dump();
}

TEST(Init, TakesTheNamesOfTorchvision) {
  EXPECT_THAT(ReadAll(All().torchvision),
              AllOf(HasSubstr("layer2.0.downsample.1.running_mean"),
                    HasSubstr("\"fc.weight\""), Not(HasSubstr("fc.w\""))));
  EXPECT_EQ(EvalOf(All().torchvision), EvalOf(All().tensors));
  const Result run = Train(All().model, {"--init", All().torchvision});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.out + run.err,
              AllOf(HasSubstr("init     names are those of torchvision"),
                    Not(HasSubstr("left as initialised"))));
}

// As GPT2Model saves them: without the name of what it is within models with a
// head, and one that nothing here has.
TEST(Init, TakesTheNamesOfAModelWithoutItsHead) {
  const std::string model = NewPath(".pbtxt"), run = NewPath("-run"),
                    named = NewPath(".safetensors"),
                    bare = NewPath(".safetensors");
  const auto halftone = [](const std::vector<std::string>& words) {
    const Result result = Halftone(words);
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    return result.out + result.err;
  };
  halftone({"zoo", "gpt2", "--layers", "1", "--width", "64", "--sequence", "4",
            "-o", model});
  const std::vector<std::string> train = {
      "run", model,      "--data", "synthetic:8", "--batch-size",
      "4",   "--epochs", "1",      "--set",       "optimizer.sgd="};
  std::vector<std::string> words = train;
  words.insert(words.end(), {"--out", run});
  halftone(words);
  halftone({"export", run, "--names", "hf", "-o", named});
  auto tensors = runtime::ParseSafetensors(ReadAll(named), named);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (runtime::Tensor& tensor : *tensors) {
    tensor.name = absl::StrReplaceAll(tensor.name, {{"transformer.", ""}});
  }
  tensors->push_back({"h.0.attn.other", DType::kF32, {1}, std::string(4, 0)});
  ASSERT_TRUE(
      WriteFileAtomically(bare, runtime::SerializeSafetensors(*tensors)).ok());
  words = train;
  words.insert(words.end(), {"--init", bare});
  EXPECT_THAT(halftone(words),
              AllOf(HasSubstr("init     names are those of hf"),
                    HasSubstr("1 not of this model: h.0.attn.other"),
                    Not(HasSubstr("left as initialised"))));
  const auto loss = [&](const std::string& weights) {
    return nlohmann::json::parse(
        Halftone({"eval", model, "--init", weights, "--data", "synthetic:8",
                  "--batch-size", "4", "--json"})
            .out)["loss"];
  };
  EXPECT_EQ(loss(bare), loss(named));
}

TEST(Init, NamesThatAModelDoesNotHave) {
  const Result hf = Halftone(
      {"export", All().run, "--names", "hf", "-o", NewPath(".safetensors")});
  EXPECT_EQ(hf.exit_code(), 2);
  EXPECT_THAT(hf.err, HasSubstr("it has those of torchvision"));
}

TEST(Init, OtherShapesAreRefusedUnlessAskedFor) {
  const Result refused = Train(All().of_seven, {"--init", All().tensors});
  EXPECT_EQ(refused.exit_code(), 8);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("fc.w: expected [32,7], found "
                                           "[32,10]"),
                                 HasSubstr(All().tensors + ": the state does"),
                                 HasSubstr("--ignore-mismatched")));
  const Result taken = Train(
      All().of_seven, {"--init", All().torchvision, "--ignore-mismatched"});
  EXPECT_EQ(taken.exit_code(), 0) << taken.err;
  EXPECT_THAT(taken.out + taken.err,
              AllOf(HasSubstr("init     100 tensors taken"),
                    HasSubstr("2 left as initialised: fc.w (is [32,7], found "
                              "[32,10])")));
}

TEST(Init, APartAndWhatIsNotTheModels) {
  const std::string part = Zeros({{"bn1.bias", 4}, {"head.w", 1}});
  const Result run = Train(All().model, {"--init", part});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.out + run.err,
              AllOf(HasSubstr("init     1 tensor taken"),
                    HasSubstr("101 left as initialised: conv1.w "),
                    HasSubstr("1 not of this model: head.w")));
  // Outputs of initial parameters would say nothing.
  const Result eval =
      Halftone({"eval", All().model, "--init", part, "--data", "synthetic:16"});
  EXPECT_EQ(eval.exit_code(), 8);
  EXPECT_THAT(eval.err,
              AllOf(HasSubstr(part + ": the state does not fit this model: "),
                    HasSubstr("is missing"), HasSubstr("halftone run --init")));
}

TEST(Init, WholeNumbersAreNoParameters) {
  const std::string whole = Zeros({{"bn1.bias", 4}}, DType::kI64);
  const Result run = Train(All().model, {"--init", whole});
  EXPECT_EQ(run.exit_code(), 8);
  EXPECT_THAT(
      run.err,
      HasSubstr(whole + ": the state does not fit this model: bn1.bias:"
                        " expected floats, found i64 (write it as f32"));
}

TEST(Init, NothingOfTheModel) {
  const std::string none = Zeros({{"head.w", 1}});
  const Result run = Train(All().model, {"--init", none});
  EXPECT_EQ(run.exit_code(), 8);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr(none + ": the state does not fit this model: "),
                    HasSubstr("none of its 1 tensor is the model's")));
}

// Constants that an import took over, say.
TEST(Export, WhatAreNoFloatsStayAsTheyAre) {
  const std::string model = NewPath(".pbtxt"), run = NewPath("-run"),
                    out = NewPath(".safetensors");
  ASSERT_TRUE(
      WriteFileAtomically(
          model,
          "feed { name: 'x' dims: [-1, 3] }\n"
          "param { name: 'w' dims: [3, 3] init { constant: 0.5 } }\n"
          "param { name: 'kept' dims: [3] dtype: I64 trainable: false "
          "init { constant: 2 } }\n"
          "op { type: 'cast' in { slot: 'X' var: 'kept' } "
          "out { slot: 'Out' var: 'two' } attr { name: 'to' s: 'f32' } }\n"
          "op { type: 'elementwise_mul' in { slot: 'X' var: 'x' } "
          "in { slot: 'Y' var: 'two' } out { slot: 'Out' var: 'y' } }\n"
          "op { type: 'matmul' in { slot: 'X' var: 'y' } "
          "in { slot: 'Y' var: 'w' } out { slot: 'Out' var: 'z' } }\n"
          "op { type: 'mean' in { slot: 'X' var: 'z' } "
          "out { slot: 'Out' var: 'm' } }\n"
          "loss { var: 'm' mean_over: 'z' }\n")
          .ok());
  const Result trained = Train(
      model, {"--set", "optimizer.sgd=", "--batch-size", "8", "--out", run});
  ASSERT_EQ(trained.exit_code(), 0) << trained.err;
  const Result exported =
      Halftone({"export", run, "--dtype", "f16", "-o", out});
  ASSERT_EQ(exported.exit_code(), 0) << exported.err;
  const auto tensors = runtime::ParseSafetensors(ReadAll(out), out);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  std::map<std::string, DType> dtypes;
  for (const runtime::Tensor& tensor : *tensors) {
    dtypes[tensor.name] = tensor.dtype;
  }
  EXPECT_EQ(dtypes.at("w"), DType::kF16);
  EXPECT_EQ(dtypes.at("kept"), DType::kI64);
}

TEST(Freeze, FrozenParametersStay) {
  const std::string model =
      Compile("10", {"--freeze", "conv1.*", "--freeze", "layer?/*"});
  const std::string run = NewPath("-run"), after = NewPath(".safetensors");
  const Result trained = Train(model, {"--init", All().tensors, "--out", run});
  EXPECT_EQ(trained.exit_code(), 0) << trained.err;
  ASSERT_EQ(Halftone({"export", run, "-o", after}).exit_code(), 0);
  const auto before_of = TensorsOf(All().tensors), after_of = TensorsOf(after);
  EXPECT_EQ(before_of.at("conv1.w"), after_of.at("conv1.w"));
  EXPECT_EQ(before_of.at("layer3/block1/b_bn.scale"),
            after_of.at("layer3/block1/b_bn.scale"));
  EXPECT_NE(before_of.at("fc.w"), after_of.at("fc.w"));
  EXPECT_NE(before_of.at("bn1.scale"), after_of.at("bn1.scale"));
}

}  // namespace
}  // namespace halftone
