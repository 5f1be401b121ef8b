#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/log/console.h"
#include "runtime/log/event_file.h"
#include "runtime/log/metrics_log.h"

namespace halftone {
namespace runtime {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

std::string NewPath() {
  static int paths = 0;
  return absl::StrCat(::testing::TempDir(), "/log-", getpid(), "-", paths++);
}

StepEvent Step(int64_t step) {
  StepEvent event;
  event.step = step;
  return event;
}

std::vector<json> Events(const std::string& path) {
  std::vector<json> events;
  for (const auto line :
       absl::StrSplit(*ReadFile(path), '\n', absl::SkipEmpty())) {
    events.push_back(json::parse(line));
  }
  return events;
}

// No file of this process may grow over `bytes` while it lives: a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  sighandler_t handler_;
};

TEST(MetricsLog, LinesWaitForRoom) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Write(Step(1)).ok());
  {
    // Half of the second line fits.
    const FileLimit limit(ReadFile(path)->size() * 3 / 2);
    const absl::Status full = (*log)->Write(Step(2));
    EXPECT_NE(full.message().find(path), absl::string_view::npos) << full;
    EXPECT_FALSE((*log)->Write(Step(3)).ok());
  }
  ASSERT_TRUE((*log)->Write(Step(4)).ok());
  const std::vector<json> events = Events(path);
  ASSERT_EQ(events.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(events[i]["step"], i + 1);
}

TEST(EventFile, RecordsWaitForRoom) {
  const std::string whole = NewPath(), cut = NewPath();
  auto one = EventFile::Create(whole), other = EventFile::Create(cut);
  ASSERT_TRUE(one.ok() && other.ok());
  for (int step = 1; step < 4; ++step) {
    (*one)->AddScalar("loss", step, 1);
    (*other)->AddScalar("loss", step, 1);
    const FileLimit limit(60);
    EXPECT_FALSE((*other)->Flush().ok());
  }
  ASSERT_TRUE((*one)->Flush().ok());
  ASSERT_TRUE((*other)->Flush().ok());
  const auto size = [](const std::string& directory) {
    return std::filesystem::file_size(
        std::filesystem::directory_iterator(directory)->path());
  };
  EXPECT_EQ(size(whole), size(cut));  // times differ
}

TEST(MetricsLog, NumbersReadBackToTheSameBits) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  StepEvent event = Step(69);
  event.loss = 0.1f + 0.013f;
  event.grad_norm = std::numeric_limits<float>::infinity();
  event.lr = std::nanf("");
  event.ms = {{"fwd/bwd", 4.5}};
  event.fetches = {{"w \"x\"", {1}},
                   {"b", {1, -std::numeric_limits<float>::infinity()}}};
  ASSERT_TRUE((*log)->Write(event).ok());
  const json read = Events(path)[0];
  EXPECT_EQ(read["event"], "step");
  EXPECT_EQ(read["loss"].get<float>(), event.loss);
  EXPECT_EQ(read["grad_norm"], "inf");
  EXPECT_EQ(read["lr"], "nan");
  EXPECT_EQ(read["ms"]["fwd/bwd"], 4.5);
  EXPECT_EQ(read["fetches"]["w \"x\""], 1);
  EXPECT_EQ(read["fetches"]["b"], (json{1, "-inf"}));
}

TEST(MetricsLog, SaysWhatTheMeanLossIsOf) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  StepEvent event = Step(69);
  event.n = 64;
  event.skipped = 2;
  event.not_finite = 1;
  ASSERT_TRUE((*log)->Write(event).ok());
  NotFiniteEvent loss;
  loss.step = 70;
  loss.loss = std::numeric_limits<float>::infinity();
  loss.in_a_row = 2;
  ASSERT_TRUE((*log)->Write(loss).ok());
  const std::vector<json> read = Events(path);
  EXPECT_EQ(read[0]["n"], 64);
  EXPECT_EQ(read[0]["skipped"], 2);
  EXPECT_EQ(read[0]["not_finite"], 1);
  EXPECT_EQ(read[1], (json{{"event", "not_finite"},
                           {"step", 70},
                           {"epoch", 0},
                           {"loss", "inf"},
                           {"applied", true},
                           {"in_a_row", 2}}));
}

TEST(MetricsLog, ResumeCutsBackToTheStep) {
  const std::string path = NewPath();
  {
    auto log = *MetricsLog::Open(path, -1);
    for (int64_t step : {10, 20, 30}) ASSERT_TRUE(log->Write(Step(step)).ok());
    SkipEvent skip;
    skip.step = 25;
    ASSERT_TRUE(log->Write(skip).ok());
    EvalEvent eval;
    eval.step = 20;
    eval.metrics = {{"top1", 0.975, 350, 359}};
    ASSERT_TRUE(log->Write(eval).ok());
  }
  ASSERT_TRUE(
      WriteFileAtomically(path, *ReadFile(path) + "{\"event\":\"st").ok());
  auto log = MetricsLog::Open(path, 20);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Write(Step(21)).ok());
  std::vector<int64_t> steps;
  for (const json& event : Events(path)) steps.push_back(event["step"]);
  EXPECT_THAT(steps, ElementsAre(10, 20, 20, 21));
  EXPECT_EQ(Events(path)[2]["metrics"]["top1"],
            (json{{"value", 0.975}, {"correct", 350}, {"total", 359}}));
}

// A prepared run directory: what the link leads to is neither read nor written.
TEST(MetricsLog, ALinkIsNotFollowed) {
  const std::string directory = NewPath();
  std::filesystem::create_directory(directory);
  const std::string other = directory + "/other", path = directory + "/m.jsonl";
  ASSERT_TRUE(WriteFileAtomically(other, "{\"step\":1}\n").ok());
  std::filesystem::create_symlink(other, path);
  EXPECT_FALSE(MetricsLog::Open(path, 20).ok());
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Write(Step(1)).ok());
  EXPECT_EQ(*ReadFile(other), "{\"step\":1}\n");
  EXPECT_EQ(Events(path).size(), 1u);
}

TEST(MetricsLog, ADirectoryThatIsNotThereIsAnError) {
  EXPECT_FALSE(MetricsLog::Open("/nowhere/metrics.jsonl", -1).ok());
}

// The records of an event file, as their readers take them apart.
std::vector<std::string> Records(const std::string& bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, &bytes[at], sizeof(length));
    records.push_back(bytes.substr(at + 12, length));
    at += 12 + length + 4;
    EXPECT_LE(at, bytes.size());
  }
  return records;
}

TEST(EventFile, HoldsScalars) {
  const std::string directory = NewPath();
  auto file = EventFile::Create(directory);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->AddScalar("loss", 300, 1.5f);
  ASSERT_TRUE((*file)->Flush().ok());
  const auto entry = *std::filesystem::directory_iterator(directory);
  EXPECT_EQ(entry.path().filename().string().rfind("events.out.tfevents.", 0),
            0u);
  const std::string bytes = *ReadFile(entry.path());
  const std::vector<std::string> records = Records(bytes);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  // step 300; summary { value { tag: "loss" simple_value: 1.5 } }
  EXPECT_EQ(records[1].substr(9),
            std::string("\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15"
                        "\x00\x00\xc0\x3f",
                        18));
  // The masked CRC-32C of the length 24 of the first record.
  EXPECT_EQ(bytes.substr(8, 4), std::string("\xa3\x7f\x4b\x22", 4));
}

TEST(EventFile, TwoOfOneSecondAreTwoFiles) {
  const std::string directory = NewPath();
  auto first = EventFile::Create(directory),
       second = EventFile::Create(directory);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}),
            2);
}

std::string Shown(int columns) {
  std::FILE* out = std::tmpfile();
  std::FILE* err = std::tmpfile();
  Console console(out, err, columns);
  console.Progress("step 1");
  console.Progress("step 22222222");
  console.Message("skipped");
  console.Report("done");
  std::string text(1000, '\0');
  std::rewind(err);
  text.resize(std::fread(&text[0], 1, text.size(), err));
  std::fclose(out);
  std::fclose(err);
  return text;
}

TEST(Console, RewritesTheProgressLineOnATerminalAlone) {
  EXPECT_EQ(Shown(0), "step 1\nstep 22222222\nskipped\n");
  EXPECT_EQ(Shown(10), "\r\033[Kstep 1\r\033[Kstep 2222\nskipped\n");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
