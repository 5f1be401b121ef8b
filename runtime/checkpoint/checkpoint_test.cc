#include "runtime/checkpoint/checkpoint.h"

#include <unistd.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

std::string Bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return bytes;
}

Tensor MakeTensor(const std::string& name, std::vector<float> values) {
  return {
      name, DType::kF32, {static_cast<int64_t>(values.size())}, Bytes(values)};
}

Checkpoint MakeCheckpoint(int64_t step) {
  Checkpoint c;
  c.manifest.step = step;
  c.manifest.epoch = 3;
  c.manifest.world_size = 2;
  c.manifest.level = "O1";
  c.manifest.numbers["loss_sum"] = 0.1 + 0.2;
  c.manifest.texts["note"] = "a \"quoted\" text";
  c.tensors = {MakeTensor("w", {1, -2, 3.5f}), MakeTensor("b", {})};
  return c;
}

std::string FreshDirectory(const std::string& name) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
  EXPECT_TRUE(MakeDirectories(path).ok());
  return path;
}

TEST(SafetensorsTest, RoundTrip) {
  const std::vector<Tensor> tensors = MakeCheckpoint(1).tensors;
  const auto back = ParseSafetensors(SerializeSafetensors(tensors), "f");
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].name, "b");  // the header is sorted
  EXPECT_EQ((*back)[1].bytes, tensors[0].bytes);
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  const std::string whole = SerializeSafetensors(MakeCheckpoint(1).tensors);
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(ParseSafetensors(whole.substr(0, n), "f").ok()) << n;
  }
}

TEST(SafetensorsTest, RefusesAClaimOfAGigabyte) {
  std::string claim(16, ' ');
  const uint64_t size = uint64_t{1} << 30;
  std::memcpy(&claim[0], &size, sizeof(size));
  const auto result = ParseSafetensors(claim, "x.safetensors");
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the header claims 1073741824 bytes of 16"));
}

TEST(ConvertTest, WidensExactlyAndRoundsOnce) {
  const Tensor f32 = MakeTensor("w", {1.0f, 1.00048828125f, 65520.0f});
  const auto f16 = ConvertTensor(f32, DType::kF16);
  ASSERT_TRUE(f16.ok());
  const auto back = ConvertTensor(*f16, DType::kF32);
  ASSERT_TRUE(back.ok());
  float values[3];
  std::memcpy(values, back->bytes.data(), sizeof(values));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 1.0f);  // a tie: to even
  EXPECT_TRUE(std::isinf(values[2]));
}

TEST(CheckpointTest, RoundTripIsExact) {
  const std::string dir = FreshDirectory("round_trip");
  const Checkpoint c = MakeCheckpoint(69);
  ASSERT_TRUE(WriteCheckpoint(dir, c, 3).ok());
  const auto back = ReadCheckpoint(absl::StrCat(dir, "/step-69"));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->manifest.numbers, c.manifest.numbers);
  EXPECT_EQ(back->manifest.texts, c.manifest.texts);
  EXPECT_EQ(back->manifest.epoch, 3);
  EXPECT_EQ(back->tensors[1].bytes, c.tensors[0].bytes);
}

TEST(CheckpointTest, KeepsTheNewest) {
  const std::string dir = FreshDirectory("keep");
  for (int64_t step : {1, 2, 10, 9}) {
    ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 2).ok());
  }
  const auto all = ListCheckpoints(dir);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].step, 10);
  EXPECT_EQ(all[1].step, 9);
}

TEST(CheckpointTest, KeepsTheBestHoweverOld) {
  const std::string dir = FreshDirectory("best");
  for (int64_t step : {1, 2, 3, 4}) {
    ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 2, 1).ok());
  }
  const auto all = ListCheckpoints(dir);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].step, 3);
  EXPECT_EQ(all[2].step, 1);
}

// Every single flipped bit of either file is noticed, and the last sound
// checkpoint is taken instead.
TEST(CheckpointTest, EveryFlippedBitIsNoticed) {
  const std::string dir = FreshDirectory("flip");
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(5), 3).ok());
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(6), 3).ok());
  for (const char* name : {"state.safetensors", "manifest.json"}) {
    const std::string file = absl::StrCat(dir, "/step-6/", name);
    const std::string good = *ReadFile(file);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] ^= 1 << (i % 8);
      ASSERT_TRUE(WriteFileAtomically(file, bad).ok());
      const auto read = ReadCheckpoint(absl::StrCat(dir, "/step-6"));
      ASSERT_EQ(ExitCodeOf(read.status()), ExitCode::kCheckpoint) << i;
      ASSERT_THAT(std::string(read.status().message()), HasSubstr(name));
    }
    ASSERT_TRUE(WriteFileAtomically(file, good.substr(0, 10)).ok());
    std::vector<std::string> skipped;
    const auto latest = ReadLatestCheckpoint(dir, &skipped);
    ASSERT_TRUE(latest.ok());
    EXPECT_EQ(latest->manifest.step, 5);
    EXPECT_EQ(skipped.size(), 1u);
    ASSERT_TRUE(WriteFileAtomically(file, good).ok());
  }
}

TEST(CheckpointTest, AFailedWriteLeavesTheOldOnes) {
  const std::string dir = FreshDirectory("fail");
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(1), 3).ok());
  // A directory in the place of the state file's temporary makes it fail.
  const std::string blocked =
      absl::StrCat(dir, "/.tmp-", ::getpid(), "-2/state.safetensors");
  ASSERT_TRUE(MakeDirectories(blocked).ok());
  const absl::Status status = WriteCheckpoint(dir, MakeCheckpoint(2), 3);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint);
  std::vector<std::string> skipped;
  EXPECT_EQ(ReadLatestCheckpoint(dir, &skipped)->manifest.step, 1);
}

TEST(CheckpointTest, NothingThereIsAnError) {
  std::vector<std::string> skipped;
  const auto none = ReadLatestCheckpoint("/nonexistent", &skipped);
  EXPECT_EQ(ExitCodeOf(none.status()), ExitCode::kCheckpoint);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
