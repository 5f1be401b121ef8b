#include "runtime/train/fetches.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseFetchesTest, TakesEachKind) {
  const auto fetches =
      ParseFetches({"a", "b:norm", "c.grad:hist", "d:npz", "*.grad:exponents"});
  ASSERT_TRUE(fetches.ok()) << fetches.status();
  EXPECT_EQ((*fetches)[0].kind, Fetch::Kind::kValue);
  EXPECT_EQ((*fetches)[1].kind, Fetch::Kind::kNorm);
  EXPECT_EQ((*fetches)[2].kind, Fetch::Kind::kHist);
  EXPECT_EQ((*fetches)[2].value, "c.grad");
  EXPECT_EQ((*fetches)[3].kind, Fetch::Kind::kNpz);
  EXPECT_EQ((*fetches)[3].text, "d:npz");
  EXPECT_EQ((*fetches)[4].kind, Fetch::Kind::kExponents);
  EXPECT_EQ((*fetches)[4].value, "*.grad");
  // As PyTorch names what it exports.
  const auto named = ParseFetches({"onnx::MatMul_8", "onnx::w.grad:norm"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ((*named)[0].value, "onnx::MatMul_8");
  EXPECT_EQ((*named)[0].kind, Fetch::Kind::kValue);
  EXPECT_EQ((*named)[1].value, "onnx::w.grad");
  EXPECT_EQ((*named)[1].kind, Fetch::Kind::kNorm);
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

  std::vector<FetchedValue> Take(const std::vector<Fetch>& fetches,
                                 const std::string& directory) {
    event_ = StepEvent();
    event_.step = 10;
    const auto place = [&] { return absl::StatusOr<std::string>(directory); };
    written_ =
        TakeFetches(fetches, StepView(items_), /*scale=*/1024, place, &event_);
    return event_.fetches;
  }

  StepEvent event_;
  absl::Status written_;
  kernels::TensorDesc image_, scalar_;
  float pixels_[4] = {1, 3, 2, 4};  // by place, then channel
  float loss_ = 0.5f;
  std::vector<StepView::Item> items_;
};

TEST_F(TakeFetchesTest, ValuesAreInLogicalOrder) {
  const auto fetches = ParseFetches({"image", "loss", "gone"});
  const auto taken = Take(*fetches, "");
  ASSERT_TRUE(written_.ok()) << written_;
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_THAT(taken[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(taken[1].name, "loss");
  EXPECT_THAT(taken[1].values, ElementsAre(0.5f));
}

TEST_F(TakeFetchesTest, ArraysGoToAFile) {
  const std::string dir = absl::StrCat(::testing::TempDir(), "/fetches");
  const auto fetches = ParseFetches({"image:npz"});
  Take(*fetches, dir);
  ASSERT_TRUE(written_.ok()) << written_;
  const auto file = ReadFile(dir + "/step-10.npz");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(*file, HasSubstr("image.npy"));
  EXPECT_THAT(*file, HasSubstr("'shape': (1, 2, 1, 2), }"));
}

// Of each with the loss scale in it, and of these together.
TEST_F(TakeFetchesTest, Exponents) {
  auto fetches =
      *ParseFetches({"image:exponents", "loss:exponents", "loss:norm"});
  fetches[0].scaled = true;
  auto taken = Take(fetches, "");
  ASSERT_EQ(taken.size(), 3u);
  const ExponentFacts& image = *taken[0].exponents;
  EXPECT_EQ(image.held_in, "f32");
  EXPECT_EQ(image.histogram.bins[0 - kLeastExponent], 1);  // 1
  EXPECT_EQ(image.histogram.bins[1 - kLeastExponent], 2);  // 2, 3
  EXPECT_EQ(image.histogram.bins[2 - kLeastExponent], 1);  // 4
  EXPECT_EQ(image.loss_scaling, 1024);
  EXPECT_EQ(image.scales.most, 1024 * 8192.0f);
  EXPECT_FALSE(taken[1].exponents->loss_scaling.has_value());
  EXPECT_FALSE(taken[1].exponents->scales.most.has_value());
  EXPECT_FALSE(taken[2].exponents.has_value());
  EXPECT_FALSE(event_.exponents.has_value());  // only one has the scale

  fetches[1].scaled = true;
  Take(fetches, "");
  ASSERT_TRUE(event_.exponents.has_value());
  EXPECT_EQ(event_.exponents->histogram.elements(), 5);
  EXPECT_EQ(event_.exponents->scales.least, 1024 * 0x1p-23f);
}

// As a value is kept: an f16 gradient is not unscaled first.
TEST_F(TakeFetchesTest, ExponentsOfEachFloat) {
  const half low[3] = {half(0.5f), half(0x1p-24f), half(0.0f)};
  const bfloat16 wide[2] = {bfloat16(0x1p-30f), bfloat16(1e30f)};
  kernels::TensorDesc f16, bf16;
  f16.dtype = DType::kF16;
  f16.dims = {3};
  bf16.dtype = DType::kBF16;
  bf16.dims = {2};
  items_ = {{"low", &f16, low}, {"wide", &bf16, wide}};
  const auto taken =
      Take(*ParseFetches({"low:exponents", "wide:exponents"}), "");
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].exponents->held_in, "f16");
  EXPECT_EQ(taken[0].exponents->histogram.bins[0], 1);
  EXPECT_EQ(taken[0].exponents->histogram.zero, 1);
  EXPECT_EQ(taken[0].exponents->histogram.elements(), 3);
  EXPECT_EQ(taken[1].exponents->histogram.flushed, 1);
  EXPECT_EQ(taken[1].exponents->histogram.overflowed, 1);
}

// What is shown does not depend on what can be written.
TEST_F(TakeFetchesTest, ArraysThatCannotBeWritten) {
  const auto fetches = ParseFetches({"image:npz"});
  const auto taken = Take(*fetches, "/dev/null/x");
  EXPECT_EQ(ExitCodeOf(written_), ExitCode::kModel);
  EXPECT_THAT(std::string(written_.message()),
              HasSubstr("/dev/null: expected a directory"));
  EXPECT_EQ(taken.size(), 1u);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
