#include "runtime/checkpoint/checkpoint.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/disk/directory.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
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

std::vector<std::string> NamesIn(const std::string& directory) {
  return Directory::Open(directory)->Names();
}

void Damage(const std::string& dir, int64_t step) {
  const std::string file = absl::StrCat(dir, "/step-", step, "/", kStateFile);
  std::string content = *ReadFile(file);
  content.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(file, content).ok());
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
  for (int64_t step : {1, 2, 9, 10}) {
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

// A limit on the size of files makes it fail.
TEST(CheckpointTest, AFailedWriteLeavesTheOldOnes) {
  const std::string dir = FreshDirectory("fail");
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(1), 3).ok());
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {100, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteCheckpoint(dir, MakeCheckpoint(2), 1);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint);
  EXPECT_EQ(status.message(),
            absl::StrCat(dir,
                         "/step-2/state.safetensors: cannot write: File "
                         "too large"));
  EXPECT_THAT(NamesIn(dir), ElementsAre("step-1"));
  std::vector<std::string> skipped;
  EXPECT_EQ(ReadLatestCheckpoint(dir, &skipped)->manifest.step, 1);
}

// A flipped bit of a tensor is that tensor's.
TEST(CheckpointTest, TheDamagedTensorIsNamed) {
  const std::string dir = FreshDirectory("named");
  Checkpoint c = MakeCheckpoint(5);
  c.tensors = {MakeTensor("conv.w", {1, 2}), MakeTensor("fc.w", {3}),
               MakeTensor("fc.b", {4})};
  ASSERT_TRUE(WriteCheckpoint(dir, c, 3).ok());
  const std::string path = dir + "/step-5", file = path + "/state.safetensors";
  const std::string good = *ReadFile(file);
  const auto error = [&](std::vector<size_t> from_end) {
    std::string bad = good;
    for (const size_t at : from_end) bad[bad.size() - at] ^= 16;
    EXPECT_TRUE(WriteFileAtomically(file, bad).ok());
    const auto read = ReadCheckpoint(path);
    EXPECT_EQ(read.status().message(),
              VerifyCheckpoint(path).status().message());
    return absl::StrReplaceAll(read.status().message(), {{file, "F"}});
  };
  EXPECT_EQ(error({1}), "F: damaged: tensor fc.b: its checksum does not fit");
  EXPECT_EQ(error({5}), "F: damaged: tensor fc.w: its checksum does not fit");
  EXPECT_EQ(error({16}),
            "F: damaged: tensor conv.w: its checksum does not fit");
  EXPECT_EQ(error({9, 2}),
            "F: damaged: tensors conv.w, fc.b: their checksums do not fit");
  EXPECT_EQ(error({20}), "F: damaged: the checksum of its header does not fit");
  EXPECT_EQ(error({good.size() - 7}),
            "F: damaged: its header does not fit its size");
}

// As versions before had it: one checksum for all of the file.
TEST(CheckpointTest, ReadsTheSchemaBefore) {
  const std::string dir = FreshDirectory("schema1");
  const Checkpoint c = MakeCheckpoint(5);
  ASSERT_TRUE(WriteCheckpoint(dir, c, 3).ok());
  const std::string path = dir + "/step-5";
  const std::string state = *ReadFile(path + "/state.safetensors");
  const auto write = [&](absl::string_view schema, absl::string_view more) {
    const std::string body = absl::StrCat(
        "{\"epoch\":3,\"files\":[{\"bytes\":", state.size(),
        ",\"name\":\"state.safetensors\",\"xxh64\":\"",
        Hex64(StableHash(state)), "\"}],\"fingerprint\":\"\",\"level\":\"O1\",",
        "\"numbers\":{\"loss_sum\":\"0.30000000000000004\"},\"sample\":0,",
        "\"schema\":", schema,
        ",\"seed\":0,\"state_signature\":\"\",\"step\":5,",
        "\"texts\":{},\"tuning_hash\":\"\",\"world_size\":2", more, "}");
    ASSERT_TRUE(WriteFileAtomically(
                    path + "/manifest.json",
                    absl::StrCat(body, "\n", Hex64(StableHash(body)), "\n"))
                    .ok());
  };
  write("1", "");
  const auto back = ReadCheckpoint(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->manifest.world_size, 2);
  EXPECT_EQ(back->manifest.numbers, c.manifest.numbers);
  EXPECT_EQ(back->tensors[1].bytes, c.tensors[0].bytes);
  write("3", "");
  EXPECT_THAT(std::string(ReadCheckpoint(path).status().message()),
              HasSubstr("manifest.json: written by a newer version (schema 3, "
                        "expected 1 or 2); use that version"));
  write("1", ",\"deep\":" + std::string(50, '[') + std::string(50, ']'));
  EXPECT_THAT(std::string(ReadCheckpoint(path).status().message()),
              HasSubstr("manifest.json: more than 32 arrays and objects"));
  write("1", "");
  Damage(dir, 5);
  EXPECT_THAT(std::string(ReadCheckpoint(path).status().message()),
              HasSubstr("damaged: its checksum does not fit"));
}

// Damaged ones do not count, and newer ones, which a run leaves that went back
// behind them, neither count nor go.
TEST(RotationTest, CountsSoundAndOlderOnes) {
  const std::string dir = FreshDirectory("rotation");
  for (const int64_t step : {10, 20, 30, 40}) {
    ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 9).ok());
  }
  Damage(dir, 40);
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(25), 2).ok());
  EXPECT_THAT(NamesIn(dir),
              ElementsAre("step-20", "step-25", "step-30", "step-40"));
  Damage(dir, 25);
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(35), 3).ok());
  EXPECT_THAT(NamesIn(dir), ElementsAre("step-20", "step-25", "step-30",
                                        "step-35", "step-40"));
  // A damaged one goes with the sound ones that are as old.
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(50), 2).ok());
  EXPECT_THAT(NamesIn(dir), ElementsAre("step-35", "step-40", "step-50"));
}

TEST(RotationTest, ADamagedNewestIsNotTheOneThatIsKept) {
  const std::string dir = FreshDirectory("keep_one");
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(46), 1).ok());
  Damage(dir, 46);
  // The run went back to the start, and writes what comes first.
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(20), 1).ok());
  EXPECT_TRUE(VerifyCheckpoint(dir + "/step-20").ok());
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(40), 1).ok());
  EXPECT_THAT(NamesIn(dir), ElementsAre("step-40", "step-46"));
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(46), 1).ok());
  EXPECT_THAT(NamesIn(dir), ElementsAre("step-46"));
  EXPECT_TRUE(VerifyCheckpoint(dir + "/step-46").ok());
}

// What was seen to be sound is read again only if it changed.
TEST(RotationTest, NoticesWhatIsDamagedInBetween) {
  const std::string dir = FreshDirectory("known");
  SoundCheckpoints known;
  for (const int64_t step : {10, 20, 30}) {
    ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 3, -1, &known).ok());
  }
  EXPECT_EQ(known.size(), 3u);
  Damage(dir, 30);
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(40), 2, -1, &known).ok());
  EXPECT_THAT(NamesIn(dir), ElementsAre("step-20", "step-30", "step-40"));
}

// Another process reads while a run writes and rotates.
TEST(RotationTest, AReaderAlwaysFindsASoundOne) {
  const std::string dir = FreshDirectory("reader");
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(1), 1).ok());
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int64_t step = 2; step < 60; ++step) {
      EXPECT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 1).ok());
    }
    done = true;
  });
  while (!done) {
    std::vector<std::string> skipped;
    const auto latest = ReadLatestCheckpoint(dir, &skipped);
    EXPECT_TRUE(latest.ok()) << latest.status();
    EXPECT_TRUE(skipped.empty()) << skipped[0];
  }
  writer.join();
}

// A prepared directory: links where a run writes or tidies up.
TEST(PreparedDirectoryTest, LinksAreNotFollowed) {
  const std::string dir = FreshDirectory("prepared/ckpt");
  const std::string other = FreshDirectory("prepared_other");
  for (const char* name : {"thesis", kStateFile, kManifestFile}) {
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(other, "/", name), "mine").ok());
  }
  namespace fs = std::filesystem;
  for (const char* name : {"/.tmp-1", "/.tmp-7-6", "/step-1", "/step-5"}) {
    fs::create_directory_symlink(other, dir + name);
  }
  // A directory of that name with something else in it is somebody's.
  fs::create_directory(dir + "/.tmp-2");
  ASSERT_TRUE(WriteFileAtomically(dir + "/.tmp-2/notes", "mine").ok());
  ASSERT_TRUE(WriteFileAtomically(dir + "/.tmp-2/manifest.json.tmp", "").ok());
  ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(5), 1).ok());
  EXPECT_THAT(NamesIn(dir), ElementsAre(".tmp-2", "step-5"));
  EXPECT_THAT(NamesIn(dir + "/.tmp-2"), ElementsAre("notes"));
  EXPECT_TRUE(VerifyCheckpoint(dir + "/step-5").ok());
  EXPECT_THAT(NamesIn(other), ElementsAre(kManifestFile, kStateFile, "thesis"));

  fs::create_directory_symlink(other, dir + "/../linked");
  const absl::Status status =
      WriteCheckpoint(dir + "/../linked", MakeCheckpoint(5), 1);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("linked: expected a directory, found a link"));
  EXPECT_THAT(NamesIn(other), ElementsAre(kManifestFile, kStateFile, "thesis"));
}

TEST(CheckpointTest, OnlyOurNamesAreCheckpoints) {
  EXPECT_EQ(StepOfName("step-69"), 69);
  for (const char* name : {"step-", "step-05", "step- 5", "step-+5", "step--5",
                           "step-5.bak", "step-99999999999999999999", "5"}) {
    EXPECT_EQ(StepOfName(name), -1) << name;
  }
}

TEST(CheckpointTest, NothingThereIsAnError) {
  std::vector<std::string> skipped;
  const auto none = ReadLatestCheckpoint("/nonexistent", &skipped);
  EXPECT_EQ(ExitCodeOf(none.status()), ExitCode::kCheckpoint);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
