#include "runtime/train/fetches.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseFetchesTest, TakesEachKind) {
  const auto fetches = ParseFetches({"a", "b:norm", "c.grad:hist", "d:npz"});
  ASSERT_TRUE(fetches.ok()) << fetches.status();
  EXPECT_EQ((*fetches)[0].kind, Fetch::Kind::kValue);
  EXPECT_EQ((*fetches)[1].kind, Fetch::Kind::kNorm);
  EXPECT_EQ((*fetches)[2].kind, Fetch::Kind::kHist);
  EXPECT_EQ((*fetches)[2].value, "c.grad");
  EXPECT_EQ((*fetches)[3].kind, Fetch::Kind::kNpz);
  EXPECT_EQ((*fetches)[3].text, "d:npz");
}

TEST(ParseFetchesTest, RefusesOthersWithTheNearest) {
  const auto fetches = ParseFetches({"w:nrom"});
  EXPECT_EQ(ExitCodeOf(fetches.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(fetches.status().message()),
              HasSubstr("nearest: norm"));
  EXPECT_FALSE(ParseFetches({":norm"}).ok());
}

TEST(SummarizeTest, NormHistogramAndValues) {
  const float inf = std::numeric_limits<float>::infinity();
  Fetch fetch;
  EXPECT_THAT(Summarize(fetch, {3, 4}), ElementsAre(3, 4));
  EXPECT_THAT(Summarize(fetch, std::vector<float>(25, 1)), ElementsAre(5));
  fetch.kind = Fetch::Kind::kNorm;
  EXPECT_THAT(Summarize(fetch, {3, 4}), ElementsAre(5));
  fetch.kind = Fetch::Kind::kHist;
  const std::vector<float> hist = Summarize(fetch, {-1, 0, 1, inf, 1});
  ASSERT_EQ(hist.size(), 3u + kBins);
  EXPECT_EQ(hist[0], -1);
  EXPECT_EQ(hist[1], 1);
  EXPECT_EQ(hist[2], 1);              // the infinity
  EXPECT_EQ(hist[3], 1);              // -1
  EXPECT_EQ(hist[3 + kBins / 2], 1);  // 0
  EXPECT_EQ(hist[3 + kBins - 1], 2);  // both ones
}

// A view of two values: f16[2,1,1,2] in channels_last and f32[].
class TakeFetchesTest : public ::testing::Test {
 protected:
  TakeFetchesTest() {
    image_.dtype = DType::kF32;
    image_.layout = Layout::kChannelsLast;
    image_.dims = {1, 2, 1, 2};
    scalar_.dtype = DType::kF32;
    items_ = {{"image", &image_, pixels_}, {"loss", &scalar_, &loss_}};
  }

  kernels::TensorDesc image_, scalar_;
  float pixels_[4] = {1, 3, 2, 4};  // by place, then channel
  float loss_ = 0.5f;
  std::vector<StepView::Item> items_;
};

TEST_F(TakeFetchesTest, ValuesAreInLogicalOrder) {
  const auto fetches = ParseFetches({"image", "loss", "gone"});
  absl::Status written;
  const auto taken = TakeFetches(*fetches, StepView(items_), 1, "", &written);
  ASSERT_TRUE(written.ok()) << written;
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_THAT(taken[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(taken[1].name, "loss");
  EXPECT_THAT(taken[1].values, ElementsAre(0.5f));
}

TEST_F(TakeFetchesTest, ArraysGoToAFile) {
  const std::string dir = absl::StrCat(::testing::TempDir(), "/fetches");
  const auto fetches = ParseFetches({"image:npz"});
  absl::Status written;
  TakeFetches(*fetches, StepView(items_), 10, dir, &written);
  ASSERT_TRUE(written.ok()) << written;
  const auto file = ReadFile(dir + "/step-10.npz");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(*file, HasSubstr("image.npy"));
  EXPECT_THAT(*file, HasSubstr("'shape': (1, 2, 1, 2), }"));
}

// What is shown does not depend on what can be written.
TEST_F(TakeFetchesTest, ArraysThatCannotBeWritten) {
  const auto fetches = ParseFetches({"image:npz"});
  absl::Status written;
  const auto taken =
      TakeFetches(*fetches, StepView(items_), 10, "/dev/null/x", &written);
  EXPECT_EQ(ExitCodeOf(written), ExitCode::kModel);
  EXPECT_THAT(std::string(written.message()),
              HasSubstr("/dev/null: expected a directory"));
  EXPECT_EQ(taken.size(), 1u);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
