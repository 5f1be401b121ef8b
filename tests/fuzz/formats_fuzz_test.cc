// Every format that a user can give us, damaged.
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"
#include "graph/io/packed_parts.h"
#include "graph/text/text.h"
#include "graph/verify/test_program.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "proto/compiled_model.pb.h"
#include "tests/fuzz/mutator.h"

namespace halftone {
namespace {

constexpr int kMutations = 3000;  // of each format
// Far above what any takes, sanitizers included: a reader that hangs fails.
constexpr std::chrono::seconds kMost(20);

std::vector<std::string> ModelTexts() {
  std::vector<std::string> texts;
  for (const char* name : {"mnist_convnet", "mlp", "small_resnet"}) {
    texts.push_back(ReadFile(absl::StrCat("models/", name, ".pbtxt")).value());
  }
  // Ops that those do not have, with attributes of every kind.
  texts.push_back(R"(name: "kinds" format: 1
feed { name: "x" dims: [-1, 4, 8, 8] } feed { name: "m" dims: [-1] } feed { name: "l" dtype: I64 dims: [-1] }
param { name: "d.w" dims: [4, 1, 3, 3] init { xavier_uniform { gain: 1 } } }
param { name: "t" dtype: I64 dims: [3] init { constant: 2 } trainable: false }
op { type: "depthwise_conv2d" in { slot: "Input" var: "x" } in { slot: "Filter" var: "d.w" } out { slot: "Output" var: "d" }
     attr { name: "groups" i: 4 } attr { name: "paddings" ints: [1, 0, 1, 0] } attr { name: "dilations" ints: [1, 1] } }
op { type: "pool2d" in { slot: "X" var: "d" } out { slot: "Out" var: "p" } attr { name: "pooling_type" s: "avg" }
     attr { name: "ksize" ints: [3, 3] } attr { name: "ceil_mode" b: true } attr { name: "exclusive" b: false } }
op { type: "reshape" in { slot: "X" var: "p" } out { slot: "Out" var: "r" } attr { name: "shape" ints: [0, 4, -1] } }
op { type: "transpose" in { slot: "X" var: "r" } out { slot: "Out" var: "tr" } attr { name: "axis" ints: [0, 2, 1] } }
op { type: "matmul" in { slot: "X" var: "r" } in { slot: "Y" var: "tr" } out { slot: "Out" var: "mm" } }
op { type: "slice" in { slot: "Input" var: "mm" } out { slot: "Out" var: "s" } attr { name: "axes" ints: [1] } attr { name: "starts" ints: [-2] } attr { name: "ends" ints: [4] } }
op { type: "concat" in { slot: "X" var: "s" var: "mm" } out { slot: "Out" var: "c" } attr { name: "axis" i: 1 } }
op { type: "dropout" in { slot: "X" var: "c" } out { slot: "Out" var: "dr" } attr { name: "p" f: 0.1 } }
op { type: "reduce_mean" in { slot: "X" var: "dr" } out { slot: "Out" var: "rm" } attr { name: "dim" ints: [1] } }
op { type: "cast" in { slot: "X" var: "rm" } out { slot: "Out" var: "low" } attr { name: "to" s: "f16" } }
op { type: "top_k" in { slot: "X" var: "low" } out { slot: "Out" var: "k" } attr { name: "k" i: 2 } }
op { type: "softmax" in { slot: "X" var: "rm" } out { slot: "Out" var: "sm" } attr { name: "axis" i: -1 } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "sm" } in { slot: "Label" var: "l" } out { slot: "Loss" var: "ce" } }
op { type: "elementwise_mul" in { slot: "X" var: "ce" } in { slot: "Y" var: "m" } out { slot: "Out" var: "masked" } attr { name: "axis" i: 0 } }
op { type: "reduce_sum" in { slot: "X" var: "masked" } out { slot: "Out" var: "total" } }
loss { var: "total" mean_over: "ce" mask: "m" } output: "k.Indices" output: "sm"
)");
  return texts;
}

// A Status of class kModel, or a program that prints and reads back.
void Check(const absl::StatusOr<std::unique_ptr<Program>>& program, int seed) {
  if (!program.ok()) {
    EXPECT_EQ(ExitCodeOf(program.status()), ExitCode::kModel)
        << seed << ": " << program.status();
    return;
  }
  const std::string text = Print(**program);
  const auto again = Parse(text, "again.ht");
  ASSERT_TRUE(again.ok()) << seed << ": " << again.status() << "\n" << text;
  EXPECT_EQ(Print(**again), text) << seed;
  EXPECT_EQ(Print(*Clone(**program)), text) << seed;
}

absl::StatusOr<std::unique_ptr<Program>> Build(absl::string_view content) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ParseModel(content, "fuzz"));
  return BuildProgram(file);
}

// Calls `read(mutation, seed)` for mutations of all of `sources`.
template <typename Read>
void Fuzz(const std::vector<std::string>& sources, bool text,
          const Read& read) {
  for (int seed = 0; seed < kMutations; ++seed) {
    const std::string mutation =
        Mutator(seed).Mutate(sources[seed % sources.size()], text);
    const auto start = std::chrono::steady_clock::now();
    read(mutation, seed);
    ASSERT_LT(std::chrono::steady_clock::now() - start, kMost) << seed;
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(FormatsFuzzTest, TheSourcesAreGood) {
  for (const std::string& text : ModelTexts()) {
    const auto program = Build(text);
    EXPECT_TRUE(program.ok()) << program.status();
    Check(program, -1);
  }
}

TEST(FormatsFuzzTest, TextModels) {
  Fuzz(ModelTexts(), /*text=*/true, [](const std::string& content, int seed) {
    Check(Build(content), seed);
  });
}

// Every number of every source, alone: sizes, attributes, initialisers.
TEST(FormatsFuzzTest, EveryNumberAtItsExtremes) {
  for (const std::string& text : ModelTexts()) {
    for (size_t begin = 1; begin < text.size(); ++begin) {
      if (!absl::ascii_isdigit(text[begin])) continue;
      size_t end = begin;
      while (end < text.size() && !absl::StrContains(" ,]}\n", text[end]))
        ++end;
      if (text[begin - 1] == ' ' || text[begin - 1] == '[') {
        for (const char* number : ExtremeNumbers()) {
          Check(Build(absl::StrCat(text.substr(0, begin), number,
                                   text.substr(end))),
                static_cast<int>(begin));
        }
      }
      begin = end;
    }
  }
}

TEST(FormatsFuzzTest, BinaryModels) {
  std::vector<std::string> sources;
  for (const std::string& text : ModelTexts()) {
    sources.push_back(ParseModel(text, "m")->model->SerializeAsString());
  }
  Fuzz(sources, /*text=*/false, [](const std::string& content, int seed) {
    Check(Build(content), seed);
  });
}

TEST(FormatsFuzzTest, TextForm) {
  std::vector<std::string> sources = {kGoodProgram, kGoodProgram};
  for (const std::string& text : ModelTexts()) {
    sources.push_back(Print(*Build(text).value()));
  }
  Fuzz(sources, /*text=*/true, [](const std::string& content, int seed) {
    const auto program = Parse(content, "fuzz.ht");
    Check(program, seed);
    if (!program.ok()) return;
    for (const Phase phase :
         {Phase::kSource, Phase::kParallel, Phase::kLowered}) {
      VerifyOptions options;
      options.phase = phase;
      (void)Verify(**program, options);
    }
  });
}

// With a true fingerprint and checksum, so that all of the reader is reached.
std::string Sealed(proto::CompiledModel message) {
  message.clear_checksum();
  message.set_fingerprint(Hex64(StableHash(message.program())));
  const std::string bytes = message.SerializeAsString();
  proto::CompiledModel tail;
  tail.set_checksum(StableHash(bytes));
  return bytes + tail.SerializeAsString();
}

void CheckCompiled(const std::string& content, int seed) {
  const auto model = ParseCompiledModel(content, "fuzz.htc", "cpu");
  if (model.ok()) {
    (void)SerializeCompiledModel(*model).ok();
  } else {
    EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel)
        << seed << ": " << model.status();
  }
}

TEST(FormatsFuzzTest, CompiledModels) {
  CompiledModel model;
  model.SetProgram(Parse(kGoodProgram, "good.ht").value());
  model.SetSource(ParseModel(ModelTexts()[0], "m.pbtxt").value());
  model.target = "cpu";
  const std::string good = SerializeCompiledModel(model).value();
  ASSERT_TRUE(ParseCompiledModel(good, "m.htc", "cpu").ok());
  Fuzz({good}, /*text=*/false, CheckCompiled);
  proto::CompiledModel message;
  ASSERT_TRUE(message.ParseFromString(good));
  ASSERT_TRUE(UnpackParts(&message).ok());
  Fuzz({kGoodProgram}, /*text=*/true,
       [&message](const std::string& program, int seed) {
         message.set_program(program);
         CheckCompiled(Sealed(message), seed);
       });
}

}  // namespace
}  // namespace halftone
