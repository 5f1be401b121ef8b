#include "runtime/capsule/capsule.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/exec/executor_testing.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::string NewDirectory() {
  static int made = 0;
  return absl::StrCat(::testing::TempDir(), "/capsules-", getpid(), "-",
                      ++made);
}

// A step of the executor's test program that log(0) rejects.
Capsule Rejected(const std::string& text = kTestProgram) {
  const std::unique_ptr<Program> program = ParseProgram(text);
  TestRank rank(program.get());
  const auto binding = rank.executor->Prepare("train", Samples(2));
  EXPECT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 1, 0, 1};
  EXPECT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
  auto capsule = TakeCapsule(*rank.executor);
  EXPECT_TRUE(capsule.ok()) << capsule.status();
  capsule->facts.step = 5;
  capsule->facts.why = "rejected";
  capsule->facts.found = {"logs", ""};
  capsule->model = "a model";
  return *std::move(capsule);
}

TEST(Capsule, HoldsWhatTheStepHasRead) {
  const Capsule capsule = Rejected();
  std::vector<std::string> cells;
  for (const Tensor& tensor : capsule.cells) cells.push_back(tensor.name);
  EXPECT_EQ(capsule.facts.world_size, 1);
  EXPECT_THAT(cells, Contains("w"));
  ASSERT_EQ(capsule.ranks.size(), 1);
  EXPECT_EQ(SymbolsOf(capsule.ranks[0][0])[0], 2);
  const std::vector<FeedData> feeds =
      FeedsOf(*ParseProgram()->FindEntry("train"), capsule.ranks[0][0]);
  ASSERT_EQ(feeds.size(), 1);
  EXPECT_EQ(feeds[0].name, "x");
  EXPECT_EQ(feeds[0].bytes.size(), 16);
}

TEST(Capsule, HoldsWhatALowCopyIsMadeOf) {
  const Capsule capsule = Rejected(absl::StrReplaceAll(
      kTestProgram, {{"  y: elementwise_mul(X=x, Y=w)",
                      "  wide: cast(X=w.low) -> (Out=wide : f32[2]) {to=f32}   "
                      "forward\n  y: elementwise_mul(X=x, Y=wide)"}}));
  std::vector<std::string> cells;
  for (const Tensor& tensor : capsule.cells) cells.push_back(tensor.name);
  EXPECT_THAT(cells, Contains("w"));
  EXPECT_THAT(cells, Not(Contains("w.low")));
}

TEST(Capsule, ComesBackAsItWasWritten) {
  const Capsule capsule = Rejected();
  const std::string directory = NewDirectory();
  ASSERT_TRUE(WriteCapsule(directory, capsule).ok());
  const auto read = ReadCapsule(directory + "/step-5");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->facts.step, 5);
  EXPECT_EQ(read->facts.entry, "train");
  EXPECT_EQ(read->facts.found.op, "logs");
  EXPECT_EQ(read->model, "a model");
  ASSERT_EQ(read->cells.size(), capsule.cells.size());
  for (size_t i = 0; i < read->cells.size(); ++i) {
    EXPECT_EQ(read->cells[i].name, capsule.cells[i].name);
    EXPECT_EQ(read->cells[i].bytes, capsule.cells[i].bytes);
  }
  EXPECT_EQ(read->ranks[0][0][1].bytes, capsule.ranks[0][0][1].bytes);
}

TEST(Capsule, AnyDamagedFileIsNamed) {
  const std::string directory = NewDirectory();
  ASSERT_TRUE(WriteCapsule(directory, Rejected()).ok());
  for (const char* name :
       {"model.htc", "cells.safetensors", "batch.rank-0.npz", "capsule.json"}) {
    const std::string path = absl::StrCat(directory, "/step-5/", name);
    const std::string content = *ReadFile(path, 1 << 20);
    for (size_t at = 0; at < content.size(); at += 7) {
      std::string damaged = content;
      damaged[at] ^= 4;
      ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
      const auto read = ReadCapsule(directory + "/step-5");
      ASSERT_EQ(ExitCodeOf(read.status()), ExitCode::kCheckpoint) << name << at;
      EXPECT_THAT(read.status().message(), HasSubstr(name));
    }
    ::unlink(path.c_str());
    EXPECT_THAT(ReadCapsule(directory + "/step-5").status().message(),
                HasSubstr(name));
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  }
  EXPECT_TRUE(ReadCapsule(directory + "/step-5").ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
