#include "runtime/train/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

std::string Fresh() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(::testing::TempDir(), "/", info->name());
}

Checkpoint MakeCheckpoint(int64_t step) {
  Checkpoint checkpoint;
  checkpoint.manifest.step = step;
  checkpoint.tensors = {{"w", DType::kF32, {1}, std::string(4, '\0')}};
  return checkpoint;
}

TEST(RunDirectoryTest, AnEmptyOneMayBeUsed) {
  const RunDirectory directory(Fresh());
  EXPECT_TRUE(directory.RefuseIfUsed().ok());
  // A launcher's logs are there before the ranks start.
  ASSERT_TRUE(MakeDirectories(directory.path() + "/logs/attempt-0").ok());
  EXPECT_TRUE(directory.RefuseIfUsed().ok());
}

TEST(RunDirectoryTest, AUsedOneIsRefusedWithItsStep) {
  const RunDirectory directory(Fresh());
  ASSERT_TRUE(
      WriteCheckpoint(directory.checkpoints(), MakeCheckpoint(46), 3).ok());
  ASSERT_TRUE(
      WriteCheckpoint(directory.checkpoints(), MakeCheckpoint(69), 3).ok());
  const absl::Status status = directory.RefuseIfUsed();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  EXPECT_EQ(status.message(),
            absl::StrCat(directory.path(),
                         " holds step 69; add --resume or another --out"));
}

TEST(RunDirectoryTest, SomebodyElsesFilesAreRefused) {
  const RunDirectory directory(Fresh());
  ASSERT_TRUE(MakeDirectories(directory.path()).ok());
  ASSERT_TRUE(WriteFileAtomically(directory.path() + "/thesis.tex", "x").ok());
  EXPECT_THAT(std::string(directory.RefuseIfUsed().message()),
              HasSubstr("holds thesis.tex"));
  const RunDirectory file(directory.path() + "/thesis.tex");
  EXPECT_THAT(std::string(file.RefuseIfUsed().message()),
              HasSubstr("is a file"));
}

TEST(RunDirectoryTest, CreateWritesWhatARunIsMadeOf) {
  const RunDirectory directory(Fresh());
  TrainConfig config;
  config.model_bytes = "model";
  config.strategy.mutable_train()->set_epochs(2);
  TuningTable tuning;
  tuning.Set("key", {"fast", 64, true});
  ASSERT_TRUE(directory.Create(config, tuning).ok());
  EXPECT_EQ(*ReadFile(directory.path() + "/model.htc"), "model");
  EXPECT_EQ(*ReadFile(directory.path() + "/strategy.pbtxt"),
            "train {\n  epochs: 2\n}\n");
  const auto back = directory.ReadTuning();
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->Hash(), tuning.Hash());
}

TEST(RunDirectoryTest, AReadOnlyPlaceIsAnErrorThatNamesIt) {
  const absl::Status status =
      RunDirectory("/proc/nowhere").Create(TrainConfig(), TuningTable());
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/nowhere"));
}

TEST(RunDirectoryTest, IsOneRunsAtATime) {
  const RunDirectory directory(Fresh());
  {
    const auto lock = directory.Take(/*resume=*/false);
    ASSERT_TRUE(lock.ok()) << lock.status();
    for (const absl::Status& status :
         {directory.Take(false).status(), directory.Take(true).status(),
          directory.RefuseIfUsed(), directory.RefuseIfInUse()}) {
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat(directory.path(), " is in use by pid ",
                                         getpid(), " on ")));
    }
    ASSERT_TRUE(directory.Create(TrainConfig(), TuningTable()).ok());
  }
  EXPECT_TRUE(directory.Take(true).ok());
  EXPECT_THAT(std::string(directory.Take(false).status().message()),
              HasSubstr("add --resume or another --out"));
}

TEST(RunDirectoryTest, LinksInItAreRefused) {
  for (const char* name : {"ckpt", "fetches", "metrics.jsonl"}) {
    const RunDirectory directory(absl::StrCat(Fresh(), "/", name));
    ASSERT_TRUE(MakeDirectories(directory.path()).ok());
    std::filesystem::create_symlink("/nowhere",
                                    absl::StrCat(directory.path(), "/", name));
    const auto lock = directory.Take(/*resume=*/true);
    EXPECT_EQ(ExitCodeOf(lock.status()), ExitCode::kUsage);
    EXPECT_THAT(std::string(lock.status().message()),
                HasSubstr(absl::StrCat("/", name, " is a link: a run writes")));
  }
}

TEST(ReadAnyStateTest, TakesEveryKindOfPlace) {
  const RunDirectory directory(Fresh());
  ASSERT_TRUE(
      WriteCheckpoint(directory.checkpoints(), MakeCheckpoint(5), 3).ok());
  const std::string file = directory.path() + "/w.safetensors";
  ASSERT_TRUE(
      WriteFileAtomically(file, SerializeSafetensors(MakeCheckpoint(1).tensors))
          .ok());
  for (const std::string& path :
       {directory.path(), directory.checkpoints() + "/step-5", file}) {
    std::vector<std::string> said;
    const auto state = ReadAnyState(path, &said);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->tensors[0].name, "w");
    EXPECT_TRUE(said.empty());
  }
}

TEST(ReadAnyStateTest, NamesADamagedNewerCheckpoint) {
  const RunDirectory directory(Fresh());
  for (const int64_t step : {5, 6}) {
    ASSERT_TRUE(
        WriteCheckpoint(directory.checkpoints(), MakeCheckpoint(step), 3).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(
                  directory.checkpoints() + "/step-6/state.safetensors", "x")
                  .ok());
  std::vector<std::string> said;
  const auto state = ReadAnyState(directory.path(), &said);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->manifest.step, 5);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("step-6/state.safetensors"));
}

TEST(ReadAnyStateTest, WhatIsNotThereIsACheckpointError) {
  std::vector<std::string> said;
  const auto state = ReadAnyState("/nonexistent/run", &said);
  EXPECT_EQ(ExitCodeOf(state.status()), ExitCode::kCheckpoint);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
