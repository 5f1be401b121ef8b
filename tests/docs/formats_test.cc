// The excerpts of docs/formats.md are what the product reads and writes.
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "graph/base/file.h"
#include "graph/base/time/monotonic_time.h"
#include "nlohmann/json.hpp"
#include "proto/compiled_model.pb.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/data/dataset.h"
#include "runtime/data/idx_file.h"
#include "runtime/launch/failure_report.h"
#include "runtime/log/trace_file.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/rendezvous/token.h"
#include "runtime/report/metrics_log.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

constexpr char kPage[] = "docs/formats.md";

// The fenced blocks of the page, by the last word behind the fence.
std::map<std::string, std::string> Blocks() {
  std::map<std::string, std::string> blocks;
  std::string name;
  bool inside = false;
  const std::string page = ReadAll(kPage);
  for (const std::string& line : Lines(absl::StrSplit(page, '\n'))) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      const Lines words = absl::StrSplit(line.substr(3), ' ');
      if (inside) name = words.back();
    } else if (inside) {
      absl::StrAppend(&blocks[name], line, "\n");
    }
  }
  return blocks;
}

std::string Block(const std::string& name) {
  const auto blocks = Blocks();
  const auto it = blocks.find(name);
  EXPECT_NE(it, blocks.end()) << name;
  return it == blocks.end() ? "" : it->second;
}

std::set<std::string> Keys(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// Whether both have the same keys wherever both have an object. What stands
// under one of these has keys that are names.
void ExpectSameKeys(const Json& shown, const Json& real,
                    const std::string& path) {
  static const std::set<std::string>* const kNames = new std::set<std::string>{
      "metrics", "fetches", "numbers", "texts", "xxh64_tensors", "tensors"};
  if (shown.is_array() && real.is_array()) {
    ASSERT_FALSE(shown.empty() != real.empty()) << path;
    for (size_t i = 0; i < std::min(shown.size(), real.size()); ++i) {
      ExpectSameKeys(shown[i], real[i], absl::StrCat(path, "[", i, "]"));
    }
    return;
  }
  EXPECT_EQ(shown.is_object(), real.is_object()) << path;
  if (!shown.is_object() || !real.is_object()) return;
  if (kNames->count(path.substr(path.rfind('.') + 1)) > 0) {
    if (!shown.empty() && !real.empty()) {
      ExpectSameKeys(*shown.begin(), *real.begin(), path + ".*");
    }
    for (const auto& [name, value] : shown.items()) {
      if (real.contains(name)) {
        ExpectSameKeys(value, real[name], absl::StrCat(path, ".", name));
      }
    }
    return;
  }
  EXPECT_EQ(Keys(shown), Keys(real)) << path;
  for (const auto& [key, value] : shown.items()) {
    if (real.contains(key)) ExpectSameKeys(value, real[key], path + "." + key);
  }
}

void ExpectShown(const std::string& block, const std::string& real) {
  const Json shown = Json::parse(Block(block), nullptr, false);
  const Json written = Json::parse(real, nullptr, false);
  ASSERT_FALSE(shown.is_discarded()) << block;
  ASSERT_FALSE(written.is_discarded()) << real;
  ExpectSameKeys(shown, written, block);
}

// A model of the page, trained by the product.
class Formats : public testing::Test {
 public:
  static void SetUpTestSuite() {
    root_ = new std::string(testing::TempDir() + "/formats");
    std::filesystem::create_directories(*root_);
    Write("tiny.pbtxt", Block("model"));
    Write("strategy.pbtxt", Block("strategy"));
    Run({"compile", At("tiny.pbtxt"), "--strategy", At("strategy.pbtxt"), "-o",
         At("tiny.htc"), "--dump-dir", At("dump")});
    Write("lists.pbtxt", Block("op_lists"));
    Run({"compile", At("tiny.pbtxt"), "--level", "O1", "--set",
         "amp.op_lists=" + At("lists.pbtxt"), "-o", At("listed.htc")});
    Run({"run", At("tiny.htc"), "--data", "synthetic:64", "--out", At("run"),
         "--log-every", "2", "--fetch", "logits:npz", "--fetch",
         "w.grad:exponents"});
    Run({"predict", At("run"), "--data", "synthetic:64", "-o",
         At("predicted.jsonl")});
  }
  static std::string At(const std::string& name) { return *root_ + "/" + name; }

 private:
  static void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(At(name), text).ok());
  }
  static void Run(std::vector<std::string> command) {
    command.insert(command.begin(), "tools/halftone");
    const Result result = RunProgram(command);
    ASSERT_EQ(result.exit_code(), 0) << result.err;
  }

  static std::string* root_;
};
std::string* Formats::root_ = nullptr;

// The fields that the page shows, of the real file.
TEST_F(Formats, CompiledModel) {
  proto::CompiledModel shown, real;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(Block("htc"), &shown));
  ASSERT_TRUE(real.ParseFromString(ReadAll(At("tiny.htc"))));
  EXPECT_EQ(shown.magic(), real.magic());
  EXPECT_EQ(shown.format_version(), real.format_version());
  EXPECT_EQ(shown.producer(), real.producer());
  EXPECT_EQ(shown.target(), real.target());
}

TEST_F(Formats, ProgramIsTheModel) {
  EXPECT_EQ(Block("program"), ReadAll(At("dump/000.source.txt")));
}

TEST_F(Formats, RunDirectory) {
  std::vector<std::string> patterns;
  std::set<std::string> unseen;
  const std::string files = Block("files");
  for (const std::string& line :
       Lines(absl::StrSplit(files, '\n', absl::SkipEmpty()))) {
    patterns.push_back(line.substr(0, line.find(' ')));
    unseen.insert(patterns.back());
  }
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(At("run"))) {
    if (entry.is_directory()) continue;
    const std::string file =
        std::filesystem::relative(entry.path(), At("run")).string();
    bool known = false;
    for (const std::string& pattern : patterns) {
      if (fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME) != 0) continue;
      known = true;
      unseen.erase(pattern);
    }
    EXPECT_TRUE(known) << file << " is not in " << kPage;
  }
  EXPECT_THAT(unseen, testing::IsEmpty());
}

TEST_F(Formats, MetricsOfARun) {
  std::set<std::string> seen;
  const std::string metrics = ReadAll(At("run/metrics.jsonl"));
  for (const std::string& line :
       Lines(absl::StrSplit(metrics, '\n', absl::SkipEmpty()))) {
    const std::string event = Json::parse(line).at("event");
    ExpectShown("metrics-" + event, line);
    seen.insert(event);
  }
  EXPECT_THAT(seen,
              ElementsAre("checkpoint", "end", "eval", "run_start", "step"));
}

TEST_F(Formats, MetricsOfWhatGoesWrong) {
  const std::string path = At("metrics.jsonl");
  const auto log = runtime::MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->On(runtime::SkipEvent());
  (*log)->On(runtime::ScaleEvent());
  (*log)->On(runtime::NotFiniteEvent());
  (*log)->On(runtime::RestartEvent());
  ASSERT_TRUE((*log)->Flush().ok());
  const std::string metrics = ReadAll(path);
  const Lines lines = absl::StrSplit(metrics, '\n');
  ASSERT_EQ(lines.size(), 5u);
  ExpectShown("metrics-skip", lines[0]);
  ExpectShown("metrics-scale", lines[1]);
  ExpectShown("metrics-not_finite", lines[2]);
  ExpectShown("metrics-restart", lines[3]);
}

TEST_F(Formats, Manifest) {
  const std::string manifest = ReadAll(At("run/ckpt/step-4/manifest.json"));
  const Lines lines = absl::StrSplit(manifest, '\n');
  ASSERT_EQ(lines.size(), 3u);
  ExpectShown("manifest", lines[0]);
  EXPECT_THAT(lines[1], testing::MatchesRegex("[0-9a-f]{16}"));
  EXPECT_EQ(Json::parse(Block("manifest")).at("schema"),
            runtime::kManifestSchema);
  EXPECT_THAT(ReadAll(kPage),
              HasSubstr(absl::StrCat("Schema ", runtime::kManifestSchema)));
}

TEST_F(Formats, Safetensors) {
  const std::string bytes = ReadAll(At("run/ckpt/step-4/state.safetensors"));
  const auto header = runtime::SafetensorsHeaderBytes(
      bytes.substr(0, runtime::kSafetensorsPrefix), bytes.size(), "state");
  ASSERT_TRUE(header.ok()) << header.status();
  const Json real =
      Json::parse(bytes.substr(runtime::kSafetensorsPrefix, *header));
  ExpectSameKeys(Json::parse(Block("safetensors")).at("w"), real.at("w"), "w");
}

TEST_F(Formats, FetchedArrays) {
  const std::string npz = ReadAll(At("run/fetches/step-8.npz"));
  const std::string head = Block("npy");
  EXPECT_THAT(npz, HasSubstr(head.substr(0, head.find('\n'))));
  EXPECT_THAT(npz, HasSubstr("logits.npy"));
}

TEST_F(Formats, Predictions) {
  ExpectShown("predictions",
              Lines(absl::StrSplit(ReadAll(At("predicted.jsonl")), '\n'))[0]);
}

TEST_F(Formats, Idx) {
  const auto array = runtime::ReadIdx("models/digits/t10k-labels-idx1-ubyte",
                                      runtime::kMaxUnpack);
  ASSERT_TRUE(array.ok()) << array.status();
  std::string bytes;
  const std::string block = Block("idx");
  for (const std::string& byte : Lines(
           absl::StrSplit(block, absl::ByAnyChar(" \n"), absl::SkipEmpty()))) {
    bytes += static_cast<char>(std::stoi(byte, nullptr, 16));
  }
  // Magic, a rank of 1 and how many there are; then the labels themselves.
  const int64_t count = array->dims[0];
  EXPECT_EQ(bytes.substr(0, 8),
            std::string({0, 0, 8, 1, 0, 0, static_cast<char>(count >> 8),
                         static_cast<char>(count & 255)}));
  EXPECT_EQ(bytes.substr(8), array->bytes.substr(0, bytes.size() - 8));
}

TEST_F(Formats, Trace) {
  ExpectShown("trace",
              runtime::TraceJson({{"fc1", "conv", "compute", 1, 2}}, 0));
}

TEST_F(Formats, Token) {
  EXPECT_EQ(Block("token").size(), runtime::NewToken().size() + 1);
}

TEST_F(Formats, Summary) {
  ExpectShown("summary", ReadAll(At("run/summary.json")));
}

TEST_F(Formats, TuningTable) {
  runtime::TuningTable table;
  table.Set("conv2d", {"onednn", 1, true});
  table.rates.memory = 1;
  ExpectShown("tuning", table.Serialize());
  // What the page shows can be read, too.
  EXPECT_TRUE(runtime::TuningTable::Parse(Block("tuning"), kPage).ok());
}

TEST_F(Formats, Failure) {
  runtime::FailureReport report;
  report.waiting.emplace_back();
  ASSERT_TRUE(runtime::WriteFailureFile(At("failure.json"), report,
                                        MonotonicTime::Now())
                  .ok());
  ExpectShown("failure", ReadAll(At("failure.json")));
}

}  // namespace
}  // namespace halftone
