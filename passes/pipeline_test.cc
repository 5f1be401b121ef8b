#include "passes/pipeline.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "passes/pipelines.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakePass : public Pass {
 public:
  using Body = std::function<absl::StatusOr<bool>(Program&)>;
  FakePass(std::string name, Body body)
      : name_(std::move(name)), body_(std::move(body)) {}
  absl::string_view name() const override { return name_; }
  absl::StatusOr<bool> Run(Program& program) override { return body_(program); }

 private:
  std::string name_;
  Body body_;
};

std::unique_ptr<Program> SmallProgram() {
  auto program = Parse(
      "program \"p\" dim B\nentry train {\n  feed x : f32[B,4]\n"
      "  y: relu(X=x) -> (Out=y : f32[B,4])\n}\n",
      "p.ht");
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

absl::StatusOr<bool> Rename(Program& program, const std::string& name) {
  program.name = name;
  return true;
}

absl::Status RunOne(FakePass::Body body, bool verify_each) {
  PassPipeline::Settings settings;
  settings.verify_each = verify_each;
  PassPipeline pipeline(settings);
  pipeline.Add(std::make_unique<FakePass>("fake", std::move(body)),
               Phase::kSource);
  pipeline.Add(
      std::make_unique<FakePass>(
          "next", [](Program&) -> absl::StatusOr<bool> { return false; }),
      Phase::kSource);
  return pipeline.Run(*SmallProgram());
}

// The reader of a value that is gone: what a broken pass leaves behind.
absl::StatusOr<bool> Break(Program& program) {
  Block& block = program.FindEntry("train")->block();
  block.SetType(block.op(block.first()).out(0), TensorType{DType::kF16});
  return true;
}

TEST(PassPipelineTest, ErrorsNameThePassAndKeepTheirClass) {
  const absl::Status status = RunOne(
      [](Program&) -> absl::StatusOr<bool> {
        return ModelError("s.pbtxt:2: it is wrong");
      },
      false);
  EXPECT_EQ(status.message(), "s.pbtxt:2: it is wrong (pass fake)");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel);
}

TEST(PassPipelineTest, WhatAPassSaysOfChangedIsChecked) {
  const absl::Status silent = RunOne(
      [](Program& p) -> absl::StatusOr<bool> {
        p.name = "other";
        return false;
      },
      true);
  EXPECT_THAT(std::string(silent.message()),
              HasSubstr("pass fake says that it did not change the program"));
  EXPECT_EQ(ExitCodeOf(silent), ExitCode::kCompilerBug);
  const absl::Status boast =
      RunOne([](Program&) -> absl::StatusOr<bool> { return true; }, true);
  EXPECT_THAT(std::string(boast.message()), HasSubstr("but it did not"));
}

TEST(PassPipelineTest, VerifiesAtPhaseEndsAndOnDemandAfterEachPass) {
  const absl::Status each = RunOne(Break, true);
  EXPECT_THAT(std::string(each.message()), HasSubstr("after pass fake: "));
  EXPECT_EQ(ExitCodeOf(each), ExitCode::kCompilerBug);
  const absl::Status end = RunOne(Break, false);
  EXPECT_THAT(std::string(end.message()), HasSubstr("after pass next: "));
}

TEST(PassPipelineTest, VerifiesItsInput) {
  std::unique_ptr<Program> program = SmallProgram();
  ASSERT_TRUE(Break(*program).ok());
  EXPECT_EQ(ExitCodeOf(PassPipeline({}).Run(*program)), ExitCode::kModel);
}

TEST(PassPipelineTest, ObserversAreCalledAtTheEndOfAPhase) {
  PassPipeline pipeline({});
  std::vector<std::string> seen;
  const auto named = [](const std::string& name) {
    return std::make_unique<FakePass>(
        name, [name](Program& p) { return Rename(p, name); });
  };
  pipeline.Add(named("a"), Phase::kSource);
  pipeline.Add(named("b"), Phase::kSource);
  pipeline.Add(named("c"), Phase::kPrecision);
  for (Phase phase : {Phase::kSource, Phase::kPrecision, Phase::kBackward}) {
    pipeline.AtEndOf(phase, [&seen](const Program& p) {
      seen.push_back(p.name);
      return absl::OkStatus();
    });
  }
  std::unique_ptr<Program> program = SmallProgram();
  // Its op is not decided, so the end of precision does not verify.
  EXPECT_FALSE(pipeline.Run(*program).ok());
  EXPECT_THAT(seen, ElementsAre("b"));
  ASSERT_EQ(pipeline.runs().size(), 3);
  EXPECT_EQ(pipeline.runs()[1].name, "b");
  EXPECT_TRUE(pipeline.runs()[1].changed);
  EXPECT_GE(pipeline.runs()[1].ms, 0);
}

absl::Status RunDumping(const std::string& dir, const std::string& pattern) {
  PassPipeline::Settings settings;
  settings.dump_dir = dir;
  settings.dump_after = pattern;
  PassPipeline pipeline(settings);
  for (const char* name : {"first-pass", "second-pass"}) {
    pipeline.Add(std::make_unique<FakePass>(
                     name, [name](Program& p) { return Rename(p, name); }),
                 Phase::kSource);
  }
  return pipeline.Run(*SmallProgram());
}

TEST(PassPipelineTest, DumpsEachPass) {
  const std::string dir = testing::TempDir() + "/dump_all";
  ASSERT_TRUE(RunDumping(dir, "").ok());
  EXPECT_THAT(*ReadFile(dir + "/000.source.txt"), HasSubstr("program \"p\""));
  EXPECT_THAT(*ReadFile(dir + "/001.first-pass.txt"),
              HasSubstr("program \"first-pass\""));
  EXPECT_THAT(*ReadFile(dir + "/002.second-pass.txt"),
              HasSubstr("program \"second-pass\""));
}

TEST(PassPipelineTest, DumpsWhatMatches) {
  const std::string dir = testing::TempDir() + "/dump_some";
  ASSERT_TRUE(RunDumping(dir, "second.*").ok());
  EXPECT_FALSE(ReadFile(dir + "/000.source.txt").ok());
  EXPECT_FALSE(ReadFile(dir + "/001.first-pass.txt").ok());
  EXPECT_TRUE(ReadFile(dir + "/002.second-pass.txt").ok());
  const absl::Status bad = RunDumping(dir, "(");
  EXPECT_EQ(ExitCodeOf(bad), ExitCode::kUsage);
  EXPECT_THAT(std::string(bad.message()), HasSubstr("--dump-after ("));
  const absl::Status none = RunDumping(dir, "secnd-pass");
  EXPECT_EQ(ExitCodeOf(none), ExitCode::kUsage);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("matches no pass; nearest: second-pass (all: source "
                        "first-pass second-pass)"));
}

// No pattern takes the stack or the day.
TEST(PassPipelineTest, HostilePatternsAreBounded) {
  const std::string dir = testing::TempDir() + "/dump_hostile";
  std::string stars, nested;
  while (stars.size() < 195) stars += "(.*)*";
  for (int i = 0; i < 90; ++i) nested = "(" + nested + ")*";
  nested.resize(200);
  for (const std::string& pattern :
       {std::string(50000, '('),
        std::string(25000, '(') + std::string(25000, ')'),
        std::string("(a?){60000}"), std::string("(a)\\1"), nested, stars + "x",
        std::string("[[:nothing:]]")}) {
    EXPECT_EQ(ExitCodeOf(RunDumping(dir, pattern)), ExitCode::kUsage)
        << pattern.substr(0, 40);
  }
  EXPECT_TRUE(RunDumping(dir, stars).ok());
}

TEST(PipelinesTest, StepsHaveTheNamesOfTheirPasses) {
  const Options options;
  const KernelSet kernels("cpu", {});
  Phase last = Phase::kSource;
  for (const PassStep& step : AllSteps()) {
    EXPECT_EQ(step.make(options, kernels)->name(), step.name);
    EXPECT_GE(step.phase, last);
    last = step.phase;
  }
  const auto unknown = MakePass("insert-cast", options, kernels);
  EXPECT_EQ(unknown.status().message(),
            "no pass is called \"insert-cast\"; nearest: insert-casts");
}

TEST(KernelSetTest, KnowsKeysPatternsAndPrecisions) {
  const KernelSet kernels(
      "sm_90",
      {"matmul(f16,f32)@row_major", "relu(f32)@channels_last",
       "element_count()@row_major", "pattern:matmul_bias_relu(f16)@row_major"});
  EXPECT_EQ(kernels.target(), "sm_90");
  EXPECT_TRUE(
      kernels.Has("matmul", {DType::kF16, DType::kF32}, Layout::kRowMajor));
  EXPECT_FALSE(
      kernels.Has("matmul", {DType::kF16, DType::kF16}, Layout::kRowMajor));
  EXPECT_FALSE(kernels.Has("relu", {DType::kF32}, Layout::kRowMajor));
  EXPECT_TRUE(kernels.Has("element_count", {}, Layout::kRowMajor));
  TensorType key;
  key.dtype = DType::kF16;
  EXPECT_TRUE(kernels.HasPattern("matmul_bias_relu", key));
  EXPECT_FALSE(kernels.HasPattern("matmul", key));
  key.dtype = DType::kBF16;
  EXPECT_FALSE(kernels.HasPattern("matmul_bias_relu", key));
  EXPECT_TRUE(kernels.HasPrecision("matmul", DType::kF16));
  EXPECT_FALSE(kernels.HasPrecision("matmul", DType::kF32));
  EXPECT_TRUE(kernels.HasPrecision("relu", DType::kF32));
  EXPECT_THAT(kernels.KeysOf("matmul"),
              ElementsAre("matmul(f16,f32)@row_major"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
