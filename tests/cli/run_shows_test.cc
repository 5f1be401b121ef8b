// What a run shows and writes while it trains: exponents of its gradients, what
// it does and when, on a terminal and for TensorBoard.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/run_files.h"
#include "tests/support/terminal.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRun[] =
    "tools/halftone run models/mnist_convnet.pbtxt --strategy "
    "models/mnist_o1.pbtxt --data idx:models/digits --epochs 1";

Result Train(const std::string& more) {
  return RunProgram({"/bin/sh", "-c", absl::StrCat(kRun, " ", more)});
}

// By kind, in the file's order.
std::map<std::string, std::vector<json>> Events(const std::string& out) {
  std::map<std::string, std::vector<json>> events;
  const std::string metrics = ReadAll(out + "/metrics.jsonl");
  for (const absl::string_view line :
       absl::StrSplit(metrics, '\n', absl::SkipEmpty())) {
    const json event = json::parse(line.begin(), line.end());
    events[event.at("event")].push_back(event);
  }
  return events;
}

std::string TensorBoardFile(const std::string& out) {
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string path = entry.path().string();
    if (absl::StrContains(path, "tfevents")) return ReadAll(path);
  }
  ADD_FAILURE() << "no event file in " << out;
  return "";
}

// Of all gradients, in the steps that show them alone.
TEST(Exponents, OfAllGradientsOfARun) {
  const std::string out = NewPath("exponents");
  const Result run = Train(absl::StrCat(
      "--fetch '*.grad:exponents' --fetch-every 10 --log-every 5 --out ", out));
  ASSERT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("\nfetch    exponents of 10 values 2^"));
  EXPECT_THAT(run.err,
              AllOf(HasSubstr(" at scale 32768; "), HasSubstr(" would do\n")));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("fetch    exponent histograms: "),
                    HasSubstr(" % of the run"), HasSubstr(" in 2 steps\n")));
  auto events = Events(out);
  std::vector<int64_t> with;
  for (const json& step : events["step"]) {
    if (!step.contains("fetches")) continue;
    with.push_back(step["step"]);
    int64_t elements = 0, lost = 0;
    for (const auto& [name, fetch] : step["fetches"].items()) {
      EXPECT_TRUE(absl::EndsWith(name, ".grad:exponents")) << name;
      EXPECT_EQ(fetch["loss_scaling"], 32768);
      EXPECT_EQ(fetch["dtype"], absl::StartsWith(name, "bn") ? "f32" : "f16");
      ASSERT_EQ(fetch["bins"].size(), 40u);
      for (const json& bin : fetch["bins"]) elements += bin.get<int64_t>();
      for (const char* rest : {"zero", "flushed", "overflowed", "nan"}) {
        elements += fetch[rest].get<int64_t>();
      }
      lost += fetch["overflowed"].get<int64_t>() + fetch["nan"].get<int64_t>();
      EXPECT_GE(fetch["most_scale"], 32768) << name;
    }
    EXPECT_EQ(step["fetches"].size(), 10u);
    EXPECT_EQ(elements, 29034);  // the model's parameters
    EXPECT_EQ(lost, 0);          // else the step would have been skipped
  }
  EXPECT_EQ(with, (std::vector<int64_t>{10, 20}));
  const std::string board = TensorBoardFile(out);
  for (const char* tag :
       {"conv1.w.grad:exponents", "exponents/flushed", "ms/step",
        "samples_per_second", "loss_scaling", "conv2d", "_output_shapes"}) {
    EXPECT_THAT(board, HasSubstr(tag));
  }
}

// The number of ranks is no matter: gradients are those that were reduced.
TEST(Exponents, AreTheSameOnTwoRanksButForRounding) {
  const auto first = [](const std::string& ranks) {
    const std::string out = NewPath("ranks");
    const Result run = Train(
        absl::StrCat("--fetch 'fc.?.grad:exponents' --log-every 1 --threads 1 ",
                     "--ranks ", ranks, " --out ", out));
    EXPECT_EQ(run.exit_code(), 0) << run.err;
    return Events(out)["step"].at(0)["fetches"];
  };
  const json one = first("1"), two = first("2");
  ASSERT_EQ(one.size(), 2u);
  for (const auto& [name, fetch] : one.items()) {
    int64_t moved = 0;
    for (int bin = 0; bin < 40; ++bin) {
      moved += std::abs(fetch["bins"][bin].get<int64_t>() -
                        two[name]["bins"][bin].get<int64_t>());
    }
    // Of 15,680: those that lie at a power of two.
    EXPECT_LT(moved, 200) << name;
  }
}

TEST(Fetch, GlobsOfEveryKind) {
  const std::string out = NewPath("globs");
  // relu1 is a fusion's result, bn1 hidden in it.
  const Result run = Train(absl::StrCat(
      "--fetch 'bn?:norm' --fetch 'conv?.w.grad:hist' --log-every 10 --out ",
      out));
  ASSERT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("note     --fetch bn1, bn2: hidden"));
  const json fetches = Events(out)["step"].at(0)["fetches"];
  std::vector<std::string> names;
  for (const auto& [name, value] : fetches.items()) names.push_back(name);
  EXPECT_THAT(
      names, ::testing::ElementsAre("bn1:norm", "bn2:norm", "conv1.w.grad:hist",
                                    "conv2.w.grad:hist"));
  const Result none = Train("--fetch 'nothing*:exponents'");
  EXPECT_EQ(none.exit_code(), 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("--fetch nothing*:exponents: no "),
                              HasSubstr("gradients are conv1.w.grad")));
}

TEST(Events, OfARunAndOfOneThatGoesOn) {
  const std::string out = NewPath("events");
  ASSERT_EQ(
      Train(absl::StrCat("--checkpoint-every 10 --out ", out)).exit_code(), 0);
  auto events = Events(out);
  ASSERT_EQ(events["run_start"].size(), 1u);
  EXPECT_EQ(events["run_start"][0]["steps_per_epoch"], 23);
  EXPECT_EQ(events["run_start"][0]["resumed"], false);
  std::vector<int64_t> checkpoints;
  for (const json& event : events["checkpoint"]) {
    checkpoints.push_back(event["step"]);
  }
  EXPECT_EQ(checkpoints, (std::vector<int64_t>{10, 20, 23}));
  ASSERT_EQ(events["end"].size(), 1u);
  EXPECT_EQ(events["end"][0]["exit"], 0);
  EXPECT_EQ(events["end"][0]["applied"], 23);
  EXPECT_GT(events["end"][0]["seconds"]["run"], 0);
  for (const auto& [kind, all] : events) {
    for (const json& event : all) {
      EXPECT_THAT(event["time"].get<std::string>(),
                  testing::MatchesRegex("20..-..-..T..:..:......Z"));
    }
  }
  std::filesystem::remove_all(out + "/ckpt/step-23");
  ASSERT_EQ(Train(absl::StrCat("--resume --out ", out)).exit_code(), 0);
  events = Events(out);
  ASSERT_EQ(events["run_start"].size(), 2u);
  EXPECT_EQ(events["run_start"][1]["step"], 20);
  EXPECT_EQ(events["run_start"][1]["resumed"], true);
  EXPECT_EQ(events["end"].size(), 1u);  // the first was cut off
  // What reads such files.
  const Result read = RunProgram(
      {"tools/halftone", "report", out, "-o", NewPath("page") + ".html"});
  EXPECT_EQ(read.exit_code(), 0) << read.err;
}

// Lines that are rewritten are no wider than the terminal, and have what
// matters most.
TEST(Terminal, TheLineOfARunFits) {
  const std::string shown =
      OnTerminal(absl::StrCat("NO_COLOR=1 ", kRun, " --log-every 1"), 80);
  int lines = 0;
  for (const absl::string_view part : absl::StrSplit(shown, "\r\033[K")) {
    const absl::string_view line = part.substr(0, part.find('\n'));
    if (!absl::StrContains(line, "loss ")) continue;
    if (absl::StartsWith(line, "eval") || absl::StartsWith(line, "done")) {
      continue;
    }
    ++lines;
    EXPECT_LT(line.size(), 80u) << line;
    EXPECT_THAT(
        std::string(line),
        AllOf(HasSubstr("loss "), HasSubstr(" img/s"), HasSubstr("eta ")));
  }
  EXPECT_EQ(lines, 23);
  EXPECT_THAT(shown, Not(HasSubstr("\033[3")));
}

}  // namespace
}  // namespace halftone
