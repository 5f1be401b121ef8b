#include "tests/support/same_training.h"

#include <climits>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using Words = std::vector<std::string>;

// Starters differ in how many compute threads they leave to a rank.
const int kOneThread = setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);

}  // namespace

std::string Halftone() {
  char full[PATH_MAX];
  return realpath("tools/halftone", full) == nullptr ? "" : full;
}

const std::string& CompiledModel() {
  static const auto* model = [] {
    EXPECT_EQ(kOneThread, 0);
    auto* path = new std::string(NewPath("model") + ".htc");
    const Result compiled =
        RunProgram({Halftone(), "compile", "models/mnist_convnet.pbtxt",
                    "--strategy", "models/mnist_o1.pbtxt", "-o", *path});
    EXPECT_EQ(compiled.exit_code(), 0) << compiled.err;
    return path;
  }();
  return *model;
}

Words RunOf(const std::string& out, const Words& more) {
  Words words = {
      Halftone(), "run", CompiledModel(), "--data", "idx:models/digits",
      "--out",    out,   "--epochs",      "1",      "--log-every",
      "1"};
  return Join(words, more);
}

Words Join(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<nlohmann::json>& MetricsOfOurs(int ranks) {
  static auto* of_ours = new std::map<int, std::vector<nlohmann::json>>;
  const auto [it, is_new] = of_ours->try_emplace(ranks);
  if (is_new) {
    const std::string out = NewPath("ours");
    const Words run = RunOf(out);
    const Result result =
        RunProgram(Join({Halftone(), "launch", "--ranks", absl::StrCat(ranks)},
                        {run.begin() + 1, run.end()}));
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    it->second = Metrics(out);
  }
  return it->second;
}

}  // namespace halftone
