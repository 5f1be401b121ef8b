#include "passes/pipeline.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "passes/named_passes.h"
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

// Lowers the program's name, a number above 1 with that remainder by 2, by one:
// nothing for itself, but work for its sibling.
std::unique_ptr<Pass> CountDown(const std::string& name, int remainder) {
  return std::make_unique<FakePass>(
      name, [remainder](Program& p) -> absl::StatusOr<bool> {
        const int number = std::stoi(p.name);
        if (number <= 1 || number % 2 != remainder) return false;
        p.name = std::to_string(number - 1);
        return true;
      });
}

absl::StatusOr<std::vector<PassRun>> RunGroup(PassPipeline::Repeat repeat,
                                              const std::string& dump_dir) {
  PassPipeline::Settings settings;
  settings.verify_each = true;
  settings.dump_dir = dump_dir;
  PassPipeline pipeline(settings);
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(CountDown("group.a", 0));
  passes.push_back(CountDown("group.b", 1));
  pipeline.AddGroup("group", std::move(passes), repeat, Phase::kSource);
  std::unique_ptr<Program> program = SmallProgram();
  program->name = "4";
  HT_RETURN_IF_ERROR(pipeline.Run(*program));
  return pipeline.runs();
}

TEST(PassPipelineTest, AGroupRunsUntilNoneOfItsPassesChangesAnything) {
  const std::string dir = testing::TempDir() + "/dump_group";
  const auto runs = RunGroup(PassPipeline::Repeat::kUntilUnchanged, dir);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 1u);
  const PassRun& group = (*runs)[0];
  EXPECT_EQ(group.name, "group");
  EXPECT_TRUE(group.changed);
  ASSERT_EQ(group.passes.size(), 2u);
  // 4 a 3 b 2 a 1 b 1, and a has seen that.
  EXPECT_EQ(group.passes[0].name, "group.a");
  EXPECT_EQ(group.passes[0].times, 2);
  EXPECT_EQ(group.passes[1].times, 2);
  EXPECT_EQ(group.ms, group.passes[0].ms + group.passes[1].ms);
  for (const auto& [file, left] :
       {std::pair("001.group.a", "3"), std::pair("002.group.b", "2"),
        std::pair("003.group.a", "1"), std::pair("004.group.b", "1"),
        std::pair("005.group", "1")}) {
    const auto dump = ReadFile(absl::StrCat(dir, "/", file, ".txt"));
    ASSERT_TRUE(dump.ok()) << dump.status();
    EXPECT_THAT(*dump, HasSubstr(absl::StrCat("program \"", left, "\"")));
  }
}

TEST(PassPipelineTest, AGroupThatRunsOnceDoes) {
  const auto runs = RunGroup(PassPipeline::Repeat::kOnce, "");
  ASSERT_TRUE(runs.ok()) << runs.status();
  for (const PassRun& run : (*runs)[0].passes) EXPECT_EQ(run.times, 1);
}

// Of the passes of a group, too.
TEST(PassPipelineTest, APassInAGroupIsNamedInErrors) {
  PassPipeline::Settings settings;
  settings.verify_each = true;
  PassPipeline pipeline(settings);
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<FakePass>("group.bad", Break));
  pipeline.AddGroup("group", std::move(passes), PassPipeline::Repeat::kOnce,
                    Phase::kSource);
  EXPECT_THAT(std::string(pipeline.Run(*SmallProgram()).message()),
              HasSubstr("after pass group.bad: "));
}

class PipelinesTest : public testing::Test {
 protected:
  const Options options_;
  const KernelSet kernels_{"cpu", {}};
  const PassInputs inputs_{options_, kernels_};
};

TEST_F(PipelinesTest, StepsHaveTheNamesOfTheirPasses) {
  Phase last = Phase::kSource;
  for (const PassStep& step : AllSteps()) {
    EXPECT_EQ(step.make(inputs_)->name(), step.name);
    EXPECT_GE(step.phase, last);
    EXPECT_FALSE(step.doc.empty()) << step.name;
    last = step.phase;
  }
}

TEST_F(PipelinesTest, GroupsHavePassesThatStandTogether) {
  for (const PassGroup& group : AllGroups()) {
    int members = 0, starts = 0;
    bool inside = false;
    for (const PassStep& step : AllSteps()) {
      const bool member = step.group() == group.name;
      starts += member && !inside ? 1 : 0;
      members += member ? 1 : 0;
      inside = member;
    }
    EXPECT_GT(members, 1) << group.name;
    EXPECT_EQ(starts, 1) << group.name;
  }
  for (const PassStep& step : AllSteps()) {
    EXPECT_EQ(step.group().empty(),
              std::none_of(AllGroups().begin(), AllGroups().end(),
                           [&](const PassGroup& group) {
                             return group.name == step.group();
                           }));
  }
}

TEST_F(PipelinesTest, UnknownNamesGetTheNearest) {
  const std::pair<const char*, const char*> kCases[] = {
      {"insert-cast", "insert-casts"},
      {"fold-casts", "clean-up.fold-casts"},
      {"clean_up.fold_cast", "clean-up.fold-casts"},
      {"lowr", "lower"},
  };
  for (const auto& [name, nearest] : kCases) {
    const auto unknown = PhaseBefore(name);
    EXPECT_EQ(
        unknown.status().message(),
        absl::StrCat("no pass is called \"", name, "\"; nearest: ", nearest));
    EXPECT_EQ(ExitCodeOf(unknown.status()), ExitCode::kUsage);
  }
  EXPECT_TRUE(MakePass("clean_up.fold_casts", inputs_).ok());
  EXPECT_FALSE(MakePass("clean-up", inputs_).ok());
  EXPECT_FALSE(MakePass("", inputs_).ok());  // nor is what is in no group
}

std::string Dump(const std::string& decided) {
  return absl::StrCat(
      "program \"p\" dim B\nentry train {\n  feed x : f32[B,4]\n"
      "  y: relu(X=x) -> (Out=y : f32[B,4])   forward",
      decided, "\n}\n");
}

// Which phase RunNamed holds a program to shows in its errors: `later` ends as
// none may that was decided.
TEST_F(PipelinesTest, NamedPassesAreHeldToWhatTheProgramFulfils) {
  const auto members = std::count_if(
      AllSteps().begin(), AllSteps().end(),
      [](const PassStep& step) { return step.group() == "clean-up"; });
  for (const bool decided : {true, false}) {
    auto program = Parse(Dump(decided ? " f32 GRAY_F32_INPUT" : ""), "p.ht");
    ASSERT_TRUE(program.ok()) << program.status();
    const auto runs =
        RunNamed({"clean_up", "clean-up.drop-dead"}, inputs_, {}, **program);
    ASSERT_TRUE(runs.ok()) << runs.status();
    ASSERT_EQ(runs->size(), 2u);
    EXPECT_EQ(static_cast<long>((*runs)[0].passes.size()), members);
    EXPECT_TRUE((*runs)[0].changed) << "nothing reads y";
    EXPECT_FALSE((*runs)[1].changed);
  }
  auto program = Parse(Dump(""), "p.ht");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_TRUE(Break(**program).ok());
  EXPECT_EQ(ExitCodeOf(RunNamed({"fuse"}, inputs_, {}, **program).status()),
            ExitCode::kModel);
}

TEST(KernelSetTest, KnowsKeysPatternsAndPrecisions) {
  const KernelSet kernels(
      "sm_90",
      {"matmul(f16,f32)@row_major", "relu(f32)@channels_last",
       "element_count()@row_major", "pattern:matmul_bias_relu(f16)@row_major"});
  EXPECT_EQ(kernels.target().name, "sm_90");
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
  EXPECT_TRUE(kernels.HasAny("pattern:matmul_bias_relu"));
  EXPECT_FALSE(kernels.HasAny("matmul_bias_relu"));
  EXPECT_TRUE(kernels.HasPrecision("matmul", DType::kF16));
  EXPECT_FALSE(kernels.HasPrecision("matmul", DType::kF32));
  EXPECT_TRUE(kernels.HasPrecision("relu", DType::kF32));
  EXPECT_THAT(kernels.KeysOf("matmul"),
              ElementsAre("matmul(f16,f32)@row_major"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
