// Checkpoints, tensors and run directories that are damaged or cannot be
// written; runs that are stopped. The last good state survives all of it.
#include <signal.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/faults/faults.h"
#include "tests/faults/runs.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

void Apply(const Damage& damage, const std::string& file) {
  if (damage.missing) {
    std::filesystem::remove(file);
  } else {
    WriteTo(file, damage.content);
  }
}

// A header of 1 GB in 16 bytes.
std::string GigabyteHeader() {
  const uint64_t claim = uint64_t{1} << 30;
  std::string bytes(16, ' ');
  std::memcpy(&bytes[0], &claim, sizeof(claim));
  return bytes;
}

std::vector<Damage> DamagesOf(const std::string& file) {
  std::vector<Damage> damages = AllDamages(ReadAll(file));
  damages.push_back({"claims_a_gigabyte", GigabyteHeader()});
  return damages;
}

class DamagedCheckpoint : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Files, DamagedCheckpoint,
                         ::testing::Values("state.safetensors",
                                           "manifest.json"),
                         [](const auto& info) {
                           return std::string(info.param).substr(0, 5);
                         });

// Asked for by name it is exit 8; of a run, the one before is taken and said.
TEST_P(DamagedCheckpoint, IsNamedAndPassedOver) {
  const std::string run = TrainedRun();
  const std::string newest = run + "/ckpt/step-46";
  const std::string file = absl::StrCat(newest, "/", GetParam());
  for (const Damage& damage : DamagesOf(file)) {
    SCOPED_TRACE(damage.name);
    Apply(damage, file);
    ExpectRefusedAndNothingWritten(
        {"run", Convnet(), "--init", newest, "--data", kDigits}, "--out", 8,
        {file, damage.missing ? "cannot open" : "damaged: ",
         "take another step, or the run directory"});
    const Result verify = Halftone({"ckpt", "verify", run});
    EXPECT_EQ(verify.exit_code(), 8) << verify.err;
    EXPECT_THAT(verify.err, HasSubstr(file));
    const Result eval = Halftone({"eval", run, "--data", kDigits});
    EXPECT_EQ(eval.exit_code(), 0) << eval.err;
    EXPECT_THAT(eval.err, HasSubstr("warning  passed over " + file));
  }
  const Result resumed =
      Halftone(RunCommand(run, {"--epochs", "2", "--resume"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("warning  passed over " + file));
  EXPECT_THAT(resumed.err, HasSubstr("resume   ckpt/step-40"));
  EXPECT_EQ(Halftone({"ckpt", "verify", run}).exit_code(), 0);
}

TEST(DamagedRun, WithoutASoundCheckpointIsLeftAlone) {
  const std::string run = TrainedRun();
  for (const char* step : {"20", "40", "46"}) {
    WriteTo(absl::StrCat(run, "/ckpt/step-", step, "/state.safetensors"), "x");
  }
  const Parts before = FilesBelow(run);
  const Parts says = {"holds no sound checkpoint: ", "step-46", "step-20",
                      "start anew with another --out"};
  ExpectRefused(RunCommand(run, {"--epochs", "2", "--resume"}), 8, says);
  ExpectRefused({"eval", run, "--data", kDigits}, 8, says);
  ExpectRefusedAndNothingWritten({"export", run}, "-o", 8, says);
  EXPECT_EQ(FilesBelow(run), before);
}

TEST(DamagedRun, WithDamagedFilesBesideTheCheckpoints) {
  for (const char* name : {"tuning.json", "model.htc"}) {
    const std::string run = TrainedRun();
    const std::string file = absl::StrCat(run, "/", name);
    for (const Damage& damage : DamagesOf(file)) {
      // The last byte of tuning.json is the end of its last line.
      if (damage.missing || damage.name == "all_but_the_last_byte") continue;
      SCOPED_TRACE(absl::StrCat(name, " ", damage.name));
      Apply(damage, file);
      if (std::string(name) == "tuning.json") {
        ExpectRefused(RunCommand(run, {"--resume"}), 1,
                      {file, "not a tuning table: expected",
                       "delete it: it is made again"});
      } else {
        ExpectRefused({"eval", run, "--data", kDigits}, 1, {file});
      }
    }
  }
}

TEST(DamagedTensors, OfInit) {
  const std::string tensors = Scratch() + "/x.safetensors";
  ASSERT_EQ(Halftone({"export", TrainedRun(), "-o", tensors}).exit_code(), 0);
  for (const Damage& damage : DamagesOf(tensors)) {
    // No checksum: a flipped bit is another weight.
    if (damage.name == "one_flipped_bit") continue;
    SCOPED_TRACE(damage.name);
    Apply(damage, tensors);
    ExpectRefusedAndNothingWritten(
        {"run", Convnet(), "--init", tensors, "--data", kDigits}, "--out", 8,
        {tensors, damage.missing ? "expected a run directory" : "again"});
  }
  ExpectRefusedAndNothingWritten(
      {"run", Convnet(), "--init", "models", "--data", kDigits}, "--out", 8,
      {"models/ckpt: holds no checkpoint", "name a run directory"});
}

TEST(DamagedTensors, OfAnotherModel) {
  const std::string model = Scratch() + "/mlp.htc";
  ASSERT_EQ(
      Halftone({"compile", "models/mlp.pbtxt", "--level", "O1", "-o", model})
          .exit_code(),
      0);
  ExpectRefused({"eval", model, "--init", TrainedRun(), "--data", kDigits}, 8,
                {"the state does not fit this model: ", " is missing"});
}

// ---- What cannot be written.

Result Shell(const std::string& script) {
  return RunProgram({"/bin/sh", "-c", script});
}

std::string Words(const Parts& command) {
  return absl::StrCat("tools/halftone ", absl::StrJoin(command, " "));
}

TEST(Output, ThatCannotBeMade) {
  const std::string file = WriteNew("file", "");
  ExpectRefused(RunCommand(file, {}), 2, {file, "is a file; name a directory"});
  ExpectRefused(RunCommand(file + "/run", {}), 1, {file, "Not a directory"});
  ExpectRefused({"compile", kConvnet, "-o", file + "/x.htc"}, 1,
                {file + "/x.htc: cannot write: Not a directory"});
  ExpectRefused({"export", TrainedRun(), "-o", file + "/x"}, 1, {file});
  EXPECT_EQ(ReadAll(file), "");
}

// Files may not grow.
class FileLimit : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "its own memory is a file";
#endif
  }
};

// No file may grow over 100 kB, a checkpoint is 230: each is a warning, the
// last one is exit 8, and the training is that of a run which has room.
TEST_F(FileLimit, IsAWarningAndExit8AtTheEnd) {
  const std::string out = Scratch() + "/run";
  const Result run = Shell(absl::StrCat(
      "ulimit -f 200; exec ", Words(RunCommand(out, {"--epochs", "2"}))));
  EXPECT_EQ(run.exit_code(), 8) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr(absl::StrCat("warning  step 20: no checkpoint: ", out,
                                     "/ckpt/step-20/state.safetensors: cannot "
                                     "write: File too large; training goes "
                                     "on")));
  EXPECT_THAT(run.err, HasSubstr("warning  step 40: no checkpoint: "));
  EXPECT_THAT(run.err, HasSubstr("error    no checkpoint at the end: "));
  EXPECT_THAT(run.err, HasSubstr("there is no earlier one"));
  EXPECT_TRUE(std::filesystem::is_empty(out + "/ckpt"));
  EXPECT_EQ(json::parse(ReadAll(out + "/summary.json"))["exit"], 8);
  EXPECT_EQ(Metrics(out), Metrics(TrainedRun()));
}

// What ranks share is no file that counts, and none of them dies of it.
TEST_F(FileLimit, OfLaunchedRanks) {
  const std::string out = Scratch() + "/run";
  std::vector<std::string> command = RunCommand(out, {"--epochs", "2"});
  const std::vector<std::string> launch = {"launch", "--ranks", "2"};
  command.insert(command.begin(), launch.begin(), launch.end());
  const Result run =
      Shell(absl::StrCat("ulimit -f 200; exec ", Words(command)));
  EXPECT_EQ(run.exit_code(), 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr("cannot write: File too large; training goes "
                                 "on"));
  const json summary = json::parse(ReadAll(out + "/summary.json"));
  EXPECT_EQ(summary["exit"], 8);
  // Of the rank that writes, at the last step that there was.
  const json failure = json::parse(ReadAll(out + "/failure.json"));
  EXPECT_EQ(failure["rank"], 0);
  EXPECT_EQ(failure["step"], summary["steps_attempted"]);
}

// Whoever reads the console has gone: the training has not.
TEST(Console, ThatIsGone) {
  const std::string out = Scratch() + "/run";
  const Result run = Shell(absl::StrCat(
      Words(RunCommand(out, {"--epochs", "2"})), " 2>&1 | head -n 1"));
  EXPECT_THAT(run.out, HasSubstr("data "));
  EXPECT_EQ(json::parse(ReadAll(out + "/summary.json"))["exit"], 0);
  EXPECT_EQ(Metrics(out), Metrics(TrainedRun()));
}

// The logs do not fit either: that is said once, and training goes on.
TEST_F(FileLimit, OfLogs) {
  const std::string out = Scratch() + "/run";
  const Result run = Shell(absl::StrCat(
      "ulimit -f 100; exec ", Words(RunCommand(out, {"--epochs", "9"}))));
  EXPECT_EQ(run.exit_code(), 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr(": cannot be written: File too large; "
                                 "training goes on"));
  EXPECT_THAT(run.err, HasSubstr("eval 9 "));
  EXPECT_EQ(run.err.find("lines wait for room"),
            run.err.rfind("lines wait for room"));
}

// Arrays to look at are not worth a run: its state fits, an array of 3 MB not.
TEST_F(FileLimit, OfFetchedArrays) {
  const std::string out = Scratch() + "/run";
  std::vector<std::string> command =
      RunCommand(out, {"--epochs", "1", "--fetch", "conv1:npz"});
  const Result run =
      Shell(absl::StrCat("ulimit -f 600; exec ", Words(command)));
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr(absl::StrCat("warning  ", out, "/fetches/step-")));
  EXPECT_THAT(run.err, HasSubstr("training goes on without fetched arrays\n"));
  EXPECT_EQ(run.err.find("without fetched"), run.err.rfind("without fetched"));
}

// A real full disk, of 900 kB: three checkpoints fit, the fourth does not.
TEST(DiskFull, OfASmallFileSystem) {
  const std::string disk = Scratch(), copy = Scratch() + "/run";
  if (Shell(absl::StrCat("unshare -Urm mount -t tmpfs none ", disk))
          .exit_code() != 0) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  const Result run = Shell(absl::StrCat(
      "unshare -Urm sh -c 'mount -t tmpfs -o size=900k none ", disk, "; ",
      Words(RunCommand(disk + "/run", {"--epochs", "3"}, "10")),
      "; code=$?; cp -r ", disk, "/run ", copy, "; exit $code'"));
  EXPECT_EQ(run.exit_code(), 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr("cannot write: No space left on device; "
                                 "training goes on"));
  EXPECT_THAT(run.err, HasSubstr("make room, and --resume goes on from "));
  EXPECT_EQ(Halftone({"ckpt", "verify", copy}).exit_code(), 0);
  for (const std::string& file : FilesBelow(copy)) {
    EXPECT_THAT(file, Not(HasSubstr("tmp-")));
  }
  const Result resumed =
      Halftone(RunCommand(copy, {"--epochs", "3", "--resume"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("bit for bit"));
}

// The directory of the checkpoints becomes read-only: for root, too, by a
// mount; where that cannot be had, a file stands in its place.
TEST(ReadOnly, KeepsTheLastGoodCheckpoint) {
  const std::string out = TrainedRun(), ckpt = out + "/ckpt";
  const std::string read_only = absl::StrCat(
      "mount --bind ", ckpt, " ", ckpt, " && mount -o remount,bind,ro ", ckpt);
  const bool mounts =
      Shell(absl::StrCat("unshare -Urm sh -c '", read_only, "'")).exit_code() ==
      0;
  const std::string command =
      Words(RunCommand(out, {"--epochs", "4", "--resume"}));
  if (!mounts) GTEST_SKIP() << "no mounts here: ReadOnly.ReplacedByAFile holds";
  const Result run = Shell(
      absl::StrCat("unshare -Urm sh -c '", read_only, " && ", command, "'"));
  EXPECT_EQ(run.exit_code(), 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr("Read-only file system; training goes on"));
  EXPECT_THAT(run.err, HasSubstr("--resume goes on from " + ckpt + "/step-46"));
  EXPECT_EQ(Halftone({"ckpt", "verify", out}).exit_code(), 0);
  const Result resumed = Shell(command);
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resume   ckpt/step-46"));
}

// ---- While a run goes on.

TEST(StoppedRun, SigtermWritesACheckpointAndEndsWith143) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string out = Scratch() + "/run";
    const Child child = StartRun(out, "never");
    WaitUntil(child, [&] {
      return ReadAll(out + "/metrics.jsonl").find("\"step\":12,") !=
             std::string::npos;
    });
    Signal(child.pid, signal);
    const Result stopped = Wait(child);
    EXPECT_EQ(stopped.exit_code(), 128 + signal) << stopped.err;
    const json summary = json::parse(ReadAll(out + "/summary.json"));
    EXPECT_EQ(summary["exit"], 128 + signal);
    const std::string checkpoint = absl::StrCat(
        out, "/ckpt/step-", summary["steps_attempted"].get<int64_t>());
    EXPECT_EQ(Halftone({"ckpt", "verify", checkpoint}).exit_code(), 0);
  }
}

// The checkpoints' directory goes away under a run, and comes back.
TEST(ReadOnly, ReplacedByAFile) {
  const std::string out = Scratch() + "/run", ckpt = out + "/ckpt";
  const Child child = StartRun(out, "5");
  WaitUntil(child, [&] {
    return std::filesystem::exists(ckpt + "/step-10/manifest.json");
  });
  std::filesystem::rename(ckpt, out + "/aside");
  WriteTo(ckpt, "");
  WaitUntil(child, [&] {
    return ReadAll(child.err).find("training goes on") != std::string::npos;
  });
  Signal(child.pid, SIGTERM);
  const Result stopped = Wait(child);
  EXPECT_EQ(stopped.exit_code(), 8) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("no checkpoint at the end: "));
  EXPECT_THAT(stopped.err, HasSubstr("expected a directory, found a file"));
  std::filesystem::remove(ckpt);
  std::filesystem::rename(out + "/aside", ckpt);
  EXPECT_EQ(Halftone({"ckpt", "verify", out}).exit_code(), 0);
}

// Killed in the midst of a checkpoint or anywhere else: what was half written
// is no checkpoint, and is gone after the next one.
TEST(KilledRun, LeavesNoHalfCheckpoint) {
  const std::string out = TrainedRun();
  const std::string half = out + "/ckpt/.tmp-123-60";
  std::filesystem::create_directory(half);
  WriteTo(half + "/state.safetensors.tmp.123", "half");
  const Result resumed =
      Halftone(RunCommand(out, {"--epochs", "3", "--resume"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resume   ckpt/step-46"));
  EXPECT_FALSE(std::filesystem::exists(half));
}

}  // namespace
}  // namespace halftone
