// A flipped bit of a checkpoint, a compiled model or a tuning table: the reader
// notices, and names the file. HT_TRIALS=0 flips each bit of each file.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/compiled_model.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/plan/tuning_table.h"
#include "tests/support/trials.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using Read = std::function<absl::Status(const std::string& content)>;

constexpr char kFormats[] = "tests/formats/v0.1.0/";

std::string Content(const std::string& path) {
  return ReadFile(path).value_or("");
}

void FlipBits(const std::string& good, ExitCode code, const std::string& name,
              const Read& read) {
  ASSERT_TRUE(read(good).ok()) << read(good);
  const int64_t bits = static_cast<int64_t>(good.size()) * 8;
  const int64_t wanted = Trials(500);
  const int64_t trials = wanted == 0 ? bits : std::min(wanted, bits);
  for (int64_t trial = 0; trial < trials; ++trial) {
    const int64_t bit = trial * bits / trials;
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(good[bit / 8] ^ (1 << bit % 8));
    const absl::Status status = read(flipped);
    ASSERT_EQ(ExitCodeOf(status), code) << name << ", bit " << bit << status;
    ASSERT_THAT(status.message(), HasSubstr(name)) << bit;
  }
}

TEST(FlippedBit, OfACheckpoint) {
  const std::string step =
      absl::StrCat(::testing::TempDir(), "/flips-", getpid(), "/step-8");
  std::filesystem::create_directories(step);
  std::filesystem::copy(absl::StrCat(kFormats, "run/ckpt/step-8"), step);
  for (const char* name : {"manifest.json", "state.safetensors"}) {
    const std::string path = absl::StrCat(step, "/", name);
    const std::string good = Content(path);
    FlipBits(good, ExitCode::kCheckpoint, name,
             [&](const std::string& content) {
               std::ofstream(path, std::ios::binary) << content;
               return runtime::ReadCheckpoint(step).status();
             });
    std::ofstream(path, std::ios::binary) << good;
  }
}

TEST(FlippedBit, OfACompiledModel) {
  FlipBits(
      Content(absl::StrCat(kFormats, "model.htc")), ExitCode::kModel, "m.htc",
      [](const std::string& content) {
        return ParseCompiledModel(content, "m.htc", /*target=*/"").status();
      });
}

TEST(FlippedBit, OfATuningTable) {
  runtime::TuningTable table;
  table.device_description = "a CPU";
  table.rates = {1000, 2000, 3000};
  table.Set("conv2d f16", {"blocked", 4096, true});
  table.Set("matmul f32", {"plain", 0, false});
  FlipBits(table.Serialize(), ExitCode::kModel, "t.json",
           [](const std::string& content) {
             return runtime::TuningTable::Parse(content, "t.json").status();
           });
}

}  // namespace
}  // namespace halftone
