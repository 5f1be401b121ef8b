// Run directories that others wrote to: forged, prepared, used twice.
#include <signal.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/faults/faults.h"
#include "tests/faults/runs.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Text = std::string;

// A manifest with another value, under a true checksum.
void Forge(const std::string& file, const std::string& field,
           const std::string& value) {
  const std::string content = ReadAll(file);
  json manifest = json::parse(content.substr(0, content.find('\n')));
  manifest[field] = "@hostile@";
  const std::string body =
      absl::StrReplaceAll(manifest.dump(), {{"\"@hostile@\"", value}});
  WriteTo(file, absl::StrCat(body, "\n", Hex64(StableHash(body)), "\n"));
}

TEST(HostileManifest, IsRefusedByField) {
  const std::string run = TrainedRun(), newest = run + "/ckpt/step-46";
  const std::string file = newest + "/manifest.json", good = ReadAll(file);
  const std::string nest(200000, '['), end(200000, ']');
  for (const auto& [field, value] :
       std::vector<std::pair<Text, Text>>{{"epoch", "-1"},
                                          {"epoch", "null"},
                                          {"sample", "1e300"},
                                          {"sample", "\"7\""},
                                          {"step", "18446744073709551615"},
                                          {"world_size", "0"},
                                          {"numbers", "{\"step\":\"x\"}"},
                                          {"texts", "[]"},
                                          {"files", "[]"},
                                          {"level", "{}"},
                                          {"extra", nest + end}}) {
    SCOPED_TRACE(absl::StrCat(field, " ", value.substr(0, 30)));
    WriteTo(file, good);
    Forge(file, field, value);
    const Result verify = Halftone({"ckpt", "verify", newest});
    EXPECT_EQ(verify.exit_code(), 8) << verify.err;
    EXPECT_THAT(verify.err, HasSubstr(file));
    const Result eval = Halftone({"eval", run, "--data", kDigits});
    EXPECT_EQ(eval.exit_code(), 0) << eval.err;
    EXPECT_THAT(eval.err, HasSubstr("warning  passed over " + file));
  }
  // What only a run that resumes can see.
  for (const auto& [field, value] : std::vector<std::pair<Text, Text>>{
           {"sample", "9007199254740992"},
           {"epoch", "9007199254740992"},
           {"numbers", "{\"step\":\"1e300\"}"},
           {"numbers", "{\"step\":\"46\",\"epoch\":\"2\",\"sample\":\"nan\"}"},
           {"numbers", "{}"}}) {
    SCOPED_TRACE(absl::StrCat(field, " ", value));
    WriteTo(file, good);
    Forge(file, field, value);
    ExpectRefused(RunCommand(run, {"--epochs", "3", "--resume"}), 8, {file});
  }
  WriteTo(file, good);
  EXPECT_EQ(
      Halftone(RunCommand(run, {"--epochs", "3", "--resume"})).exit_code(), 0);
}

TEST(HostileMetrics, AreLeftOut) {
  const std::string run = TrainedRun(), file = run + "/metrics.jsonl";
  const std::vector<json> good = Metrics(run);
  WriteTo(file,
          absl::StrCat("{\"step\":null}\n", std::string(1000, '['), "\n\xff\n",
                       ReadAll(file), "{\"step\":1e300}\n{\"st"));
  const Result resumed =
      Halftone(RunCommand(run, {"--epochs", "2", "--resume"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_EQ(Metrics(run), good);
}

TEST(HostileTuningTable, IsRefused) {
  const std::string run = TrainedRun(), file = run + "/tuning.json";
  for (const std::string& entry :
       {std::string("{\"op\":\"a\",\"candidate\":\"b\",\"workspace_bytes\":-1,"
                    "\"deterministic\":true}"),
        std::string(200000, '[') + std::string(200000, ']')}) {
    WriteTo(file, absl::StrCat("{\"schema\":1,\"device\":\"\",\"entries\":[",
                               entry, "]}"));
    ExpectRefused(RunCommand(run, {"--resume"}), 1,
                  {file, "not a tuning table: expected"});
  }
}

// Two tensors of the same bytes, as often as 200 kB of header allow: the file
// of 1 MB would be 4 GB in memory.
TEST(HostileTensors, TakeNoMoreThanTheirFile) {
  std::string header = "{";
  constexpr int64_t kData = 800000;
  for (int i = 0; i < 4000; ++i) {
    absl::StrAppend(&header, i > 0 ? "," : "", "\"", i,
                    "\":{\"dtype\":\"U8\",\"shape\":[", kData,
                    "],\"data_offsets\":[0,", kData, "]}");
  }
  header += "}";
  const uint64_t size = header.size();
  const std::string file = WriteNew(
      "x.safetensors",
      absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&size), 8),
                   header, std::string(kData, 'x')));
  ExpectRefusedAndNothingWritten(
      {"run", Convnet(), "--init", file, "--data", kDigits}, "--out", 8,
      {file, "begins at 0 of the data, expected 800000"});
}

// ---- One directory, several runs.

TEST(TwoRuns, IntoOneDirectoryAreRefused) {
  const std::string out = Scratch() + "/run";
  const Child child = StartRun(out, "5");
  WaitUntil(child, [&] {
    return std::filesystem::exists(out + "/ckpt/step-10/manifest.json");
  });
  const std::string holder =
      absl::StrCat(" is in use by pid ", child.pid, " on ");
  for (const Parts& more : {Parts{}, Parts{"--resume"}}) {
    ExpectRefused(RunCommand(out, more), 2,
                  {out + holder, " since ", "choose another --out"});
    Parts launched = RunCommand(out, more);
    for (const char* word : {"1", "--ranks", "launch"}) {
      launched.insert(launched.begin(), word);
    }
    const Result launch = Halftone(launched);
    EXPECT_EQ(launch.exit_code(), 2) << launch.err;
    EXPECT_THAT(launch.err, HasSubstr(out + holder));
  }
  EXPECT_FALSE(std::filesystem::exists(out + "/logs"));
  // A reader is no second run.
  EXPECT_EQ(Halftone({"eval", out, "--data", kDigits}).exit_code(), 0);
  Signal(child.pid, SIGKILL);
  Wait(child);
  // Killed: its lock is gone, and every line is there once.
  const Result resumed =
      Halftone(RunCommand(out, {"--epochs", "1", "--resume"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  int64_t last = 0;
  for (const json& line : Metrics(out)) {
    if (line["event"] != "step") continue;
    EXPECT_EQ(line["step"], ++last);
  }
  EXPECT_FALSE(std::filesystem::exists(out + "/.lock"));
}

// Ends with exit code 1 and this error; all below `other` stays as it is.
void ExpectLost(const Child& child, const Parts& before,
                const std::string& other, const Parts& said) {
  const Result run = Wait(child);
  EXPECT_EQ(run.exit_code(), 1) << run.err;
  for (const std::string& part : said) EXPECT_THAT(run.err, HasSubstr(part));
  EXPECT_THAT(run.out, Not(HasSubstr("written: ")));
  EXPECT_EQ(FilesBelow(other), before);
}

// A run's folder is put away, and its name is another run's: by checkpoint,
// rotation and the last files of the first that would be damaged.
TEST(LostDirectory, ItsNameIsAnotherRuns) {
  namespace fs = std::filesystem;
  const std::string out = Scratch() + "/run", moved = Scratch() + "/moved";
  const std::string finished = TrainedRun();
  const Child child = StartRun(out, "20");
  WaitUntil(child, [&] { return fs::exists(out + "/ckpt/step-20"); });
  fs::rename(out, moved);
  fs::rename(finished, out);
  ExpectLost(child, FilesBelow(out), out,
             {out +
                  " names another folder: the one that was locked and "
                  "written to is " +
                  fs::canonical(moved).string(),
              "to go on: --resume --out "});
  EXPECT_EQ(Halftone({"ckpt", "verify", moved}).exit_code(), 0);
}

TEST(LostDirectory, ALinkLeadsElsewhere) {
  namespace fs = std::filesystem;
  const std::string base = Scratch(), link = base + "/latest";
  const std::string finished = TrainedRun();
  fs::create_directory(base + "/a");
  fs::create_directory_symlink(base + "/a", link);
  const Child child = StartRun(link, "20");
  WaitUntil(child, [&] { return fs::exists(link + "/ckpt/step-20"); });
  const Parts before = FilesBelow(finished);
  fs::create_directory_symlink(finished, base + "/next");
  fs::rename(base + "/next", link);
  ExpectLost(child, before, finished, {link + " names another folder"});
}

TEST(LostDirectory, WasRemoved) {
  namespace fs = std::filesystem;
  const std::string out = Scratch() + "/run";
  const Child child = StartRun(out, "20");
  WaitUntil(child, [&] { return fs::exists(out + "/ckpt/step-20"); });
  fs::rename(out, out + "-gone");  // at once
  fs::remove_all(out + "-gone");
  const std::string beside = out.substr(0, out.rfind('/'));
  ExpectLost(child, FilesBelow(beside), beside,
             {out + " is not there any more", "was removed"});
}

// All ranks end, and none is started again into the other folder.
TEST(LostDirectory, OfLaunchedRanksEndsAllOfThem) {
  namespace fs = std::filesystem;
  const std::string out = Scratch() + "/run", moved = Scratch() + "/moved";
  const std::string finished = TrainedRun();
  Parts command = RunCommand(out, {"--epochs", "1000"});
  const Parts launch = {"tools/halftone", "launch", "--ranks", "2",
                        "--max-restarts", "3"};
  command.insert(command.begin(), launch.begin(), launch.end());
  const Child child = Start("launched", command, OwnVariables());
  WaitUntil(child, [&] { return fs::exists(out + "/ckpt/step-20"); });
  fs::rename(out, moved);
  fs::rename(finished, out);
  ExpectLost(child, FilesBelow(out), out,
             {out + " names another folder",
              "no report: ", "the run's folder is another now: not restarted"});
}

// Somebody prepared the directory of a run that will resume as root.
TEST(PreparedDirectory, LeadsNowhereElse) {
  const std::string out = TrainedRun(), other = Scratch();
  WriteTo(other + "/thesis", "mine");
  WriteTo(other + "/state.safetensors", "mine");
  const Parts before = FilesBelow(other);
  namespace fs = std::filesystem;
  for (const char* name :
       {"/ckpt/.tmp-1", "/ckpt/.tmp-1-60", "/ckpt/step-60"}) {
    fs::create_directory_symlink(other, out + name);
  }
  for (const char* name :
       {"/summary.json", "/summary.json.tmp", "/model.htc",
        "/metrics.jsonl.tmp", "/strategy.pbtxt", "/tuning.json.tmp"}) {
    fs::remove(out + name);
    fs::create_symlink(other + "/thesis", out + name);
  }
  const Result resumed =
      Halftone(RunCommand(out, {"--epochs", "3", "--resume"}));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_EQ(FilesBelow(other), before);
  EXPECT_EQ(ReadAll(other + "/thesis"), "mine");
  EXPECT_EQ(Halftone({"ckpt", "verify", out}).exit_code(), 0);
  for (const char* name : {"/ckpt", "/fetches", "/metrics.jsonl"}) {
    fs::remove_all(out + name);
    fs::create_symlink(other, out + name);
    ExpectRefused(RunCommand(out, {"--epochs", "4", "--resume"}), 2,
                  {out + name, "is a link"});
    fs::remove(out + name);
  }
  EXPECT_EQ(FilesBelow(other), before);
}

// A limit on the checkpoints that are kept holds for sound ones.
TEST(Rotation, KeepsASoundOneBesideADamagedNewest) {
  const std::string out = TrainedRun(), newest = out + "/ckpt/step-46";
  WriteTo(newest + "/state.safetensors", "x");
  const Result resumed = Halftone(
      RunCommand(out, {"--epochs", "2", "--resume", "--keep", "1"}, "5"));
  EXPECT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_EQ(Halftone({"ckpt", "verify", out}).exit_code(), 0);
}

TEST(EvalEvery, NeverIsNever) {
  const std::string out = Scratch() + "/run";
  const Result run =
      Halftone(RunCommand(out, {"--epochs", "1", "--eval-every", "never"}));
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("eval ")));
  EXPECT_THAT(run.out, Not(HasSubstr("top1")));
  const json summary = json::parse(ReadAll(out + "/summary.json"));
  EXPECT_TRUE(summary["metrics"].empty());
}

}  // namespace
}  // namespace halftone
