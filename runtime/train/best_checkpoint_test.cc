#include "runtime/train/best_checkpoint.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/train/progress.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

// A run with checkpoints of these steps, which think `best` is the best.
std::string RunWith(const std::vector<int64_t>& steps, int64_t best) {
  static int runs = 0;
  const std::string run =
      absl::StrCat(::testing::TempDir(), "/", ::getpid(), "-best-", runs++);
  EXPECT_TRUE(MakeDirectories(run + "/ckpt").ok());
  for (const int64_t step : steps) {
    Progress progress;
    progress.step = step;
    progress.best_step = best;
    Checkpoint checkpoint;
    checkpoint.manifest.step = step;
    checkpoint.manifest.numbers = ToNumbers(progress);
    EXPECT_TRUE(WriteCheckpoint(run + "/ckpt", checkpoint, 9).ok());
  }
  return run;
}

TEST(BestCheckpoint, IsWhatTheNewestOneKnows) {
  const std::string run = RunWith({5, 10, 15}, 10);
  EXPECT_EQ(*BestCheckpoint(run), run + "/ckpt/step-10");
}

TEST(BestCheckpoint, OrWhyThereIsNone) {
  const auto message = [](const std::string& run) {
    const absl::Status status = BestCheckpoint(run).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint);
    return std::string(status.message());
  };
  EXPECT_THAT(message(RunWith({5, 10}, -1)), HasSubstr("no eval was made"));
  EXPECT_THAT(message(RunWith({5, 10}, 7)),
              HasSubstr("after step 7, of which there is no checkpoint (there "
                        "are: 10, 5)"));
  EXPECT_NE(message(RunWith({}, -1)), "");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
