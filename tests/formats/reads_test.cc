// What every release has written is read: docs/formats.md promises for how
// long. One folder per release, each read by all verbs that take its files.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/device/host_info.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kFolder[] = "tests/formats";

std::vector<std::string> Releases() {
  std::vector<std::string> releases;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.is_directory()) {
      releases.push_back(entry.path().filename().string());
    }
  }
  std::sort(releases.begin(), releases.end());
  return releases;
}

// Exit code 0; what it wrote on stdout.
std::string Ok(std::vector<std::string> words) {
  words.insert(words.begin(), "tools/halftone");
  const Result result = RunProgram(words);
  EXPECT_EQ(result.exit_code(), 0) << absl::StrCat(words[1], ": ", result.err);
  return result.out;
}

class FormatsTest : public ::testing::TestWithParam<std::string> {
 protected:
  // A copy, as runs are gone on with where they lie.
  FormatsTest() : at_(NewPath(GetParam()) + "/") {
    fs::copy(absl::StrCat(kFolder, "/", GetParam()), at_,
             fs::copy_options::recursive);
  }
  const std::string at_;
};

TEST(Formats, EachReleaseHasAFolder) {
  EXPECT_THAT(Releases(), Not(IsEmpty()));
}

TEST_P(FormatsTest, ModelsStrategiesAndPrograms) {
  for (const char* model : {"model.pbtxt", "model.pb"}) {
    const std::string text = Ok({"inspect", at_ + model, "--strategy",
                                 at_ + "strategy.pbtxt", "--json"});
    EXPECT_EQ(json::parse(text)["level"], "O1") << model;
  }
  EXPECT_THAT(Ok({"opt", at_ + "model.ht"}), HasSubstr("entry eval"));
}

// Compiled again, a model of before is one of now.
TEST_P(FormatsTest, CompiledModels) {
  const std::string again = at_ + "again.htc";
  Ok({"compile", at_ + "model.htc", "-o", again});
  EXPECT_EQ(json::parse(Ok({"inspect", at_ + "model.htc", "--json"}))["level"],
            "O1");
  Ok({"eval", again, "--init", at_ + "parameters.safetensors", "--data",
      "synthetic:64"});
}

TEST_P(FormatsTest, CheckpointsMetricsAndSummaries) {
  Ok({"ckpt", "verify", at_ + "run"});
  const json eval = json::parse(
      Ok({"eval", at_ + "run", "--data", "synthetic:64", "--json"}));
  const json summary = json::parse(ReadAll(at_ + "run/summary.json"));
  EXPECT_EQ(eval["metrics"]["top1"]["total"],
            summary["metrics"]["top1"]["total"]);
  Ok({"report", at_ + "run", "-o", at_ + "page.html"});
  const size_t events = Metrics(at_ + "run").size();
  Ok({"run", at_ + "run/model.htc", "--data", "synthetic:64", "--out",
      at_ + "run", "--resume", "--epochs", "3"});
  EXPECT_GT(Metrics(at_ + "run").size(), events);
}

// A table counts on the device alone that it was measured on: as if that had
// been this one.
TEST_P(FormatsTest, TuningTablesAndParameters) {
  const std::string table = at_ + "model.tuning.json";
  auto then = nlohmann::ordered_json::parse(ReadAll(table));
  then["device"] = json::parse(Ok({"version", "--json"}))["device"];
  then.erase("xxh64");
  std::ofstream(table) << then.dump() << "\n";
  Ok({"run", at_ + "model.htc", "--data", "synthetic:64", "--init",
      at_ + "parameters.safetensors", "--out", at_ + "tuned", "--threads",
      absl::StrCat(runtime::UsableCores())});
  // The table beside the model came along, whatever its schema was.
  const auto now =
      nlohmann::ordered_json::parse(ReadAll(at_ + "tuned/tuning.json"));
  for (const char* part : {"device", "rates", "entries"}) {
    ASSERT_TRUE(now.contains(part)) << part;
    EXPECT_EQ(now[part], then[part]) << part;
  }
}

TEST_P(FormatsTest, Capsules) {
  const json replayed = json::parse(Ok({"replay", at_ + "capsule", "--json"}));
  EXPECT_EQ(replayed["step"], 1);
  EXPECT_EQ(replayed["rejected"], true);
  EXPECT_NE(replayed["op"], "");
  EXPECT_EQ(replayed["op"], replayed["run_named"]);
}

INSTANTIATE_TEST_SUITE_P(Releases, FormatsTest, ::testing::ValuesIn(Releases()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace halftone
