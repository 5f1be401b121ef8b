#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/dataset.h"

namespace halftone {
namespace runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kBlock = 4;

template <typename Id>
std::string Counting(int64_t n) {
  std::vector<Id> ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  return std::string(reinterpret_cast<const char*>(ids.data()), n * sizeof(Id));
}

class TokenDataTest : public testing::Test {
 protected:
  TokenDataTest()
      : root_(absl::StrCat(testing::TempDir(), "/tokens.", getpid())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~TokenDataTest() override { std::filesystem::remove_all(root_); }

  absl::StatusOr<OpenedData> Open(const std::string& name,
                                  const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(root_ + "/" + name, bytes).ok());
    return OpenData(absl::StrCat("tokens:", root_, "/", name), feeds_,
                    {feed_map_, /*seed=*/3});
  }
  static std::vector<int64_t> Read(const Dataset& data, int64_t index, int feed,
                                   int64_t n = kBlock, int64_t epoch = 0) {
    std::vector<int64_t> out(n);
    const absl::Status status = data.Read(
        {index, epoch}, feed,
        absl::MakeSpan(reinterpret_cast<uint8_t*>(out.data()), 8 * n));
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }
  static void ExpectError(const absl::Status& status, const std::string& what,
                          ExitCode code = ExitCode::kModel) {
    EXPECT_EQ(ExitCodeOf(status), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  const std::string root_;
  std::vector<FeedSpec> feeds_ = {{"input_ids", DType::kI64, {kBlock}},
                                  {"label", DType::kI64, {kBlock}, 1000}};
  std::vector<std::string> feed_map_;
};

TEST_F(TokenDataTest, BlocksAndWhatFollows) {
  for (const char* name : {"t.bin", "t.u32"}) {
    const auto data =
        Open(name, absl::string_view(name) == "t.bin" ? Counting<uint16_t>(30)
                                                      : Counting<uint32_t>(30));
    ASSERT_TRUE(data.ok()) << data.status();
    // Seven blocks have a token after them: six, and one to test on.
    ASSERT_EQ(data->train->size(), 6);
    ASSERT_EQ(data->test->size(), 1);
    EXPECT_THAT(Read(*data->train, 0, 0), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(Read(*data->train, 0, 1), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(Read(*data->train, 5, 1), ElementsAre(21, 22, 23, 24));
    EXPECT_THAT(Read(*data->test, 0, 0), ElementsAre(24, 25, 26, 27));
    EXPECT_THAT(Read(*data->test, 0, 1), ElementsAre(25, 26, 27, 28));
  }
}

TEST_F(TokenDataTest, AllOfAFileToEvaluateOn) {
  DataOptions options;
  options.whole = true;
  ASSERT_TRUE(Open("t.bin", Counting<uint16_t>(30)).ok());
  const auto data = OpenData("tokens:" + root_ + "/t.bin", feeds_, options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->size(), 7);
  EXPECT_EQ(data->test, nullptr);
}

TEST_F(TokenDataTest, ValBesideTrain) {
  ASSERT_TRUE(
      WriteFileAtomically(root_ + "/val.bin", Counting<uint16_t>(9)).ok());
  const auto data = Open("train.bin", Counting<uint16_t>(13));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->size(), 3);
  EXPECT_EQ(data->test->size(), 2);
}

TEST_F(TokenDataTest, TheHashIsOfWhatIsTrainedOn) {
  const auto hash = [&](const std::string& bytes) {
    const auto data = Open("t.bin", bytes);
    EXPECT_TRUE(data.ok()) << data.status();
    const auto of_train = data->train->ContentHash();
    EXPECT_TRUE(of_train.ok()) << of_train.status();
    return *of_train;
  };
  // More than one piece of it.
  const std::string whole = Counting<uint16_t>(900) + Counting<uint16_t>(900) +
                            Counting<uint16_t>(900);
  for (const size_t at : {size_t{0}, size_t{4097}, size_t{5000}}) {
    std::string other = whole;
    other[at] ^= 1;
    EXPECT_NE(hash(other), hash(whole)) << at;
  }
  std::string other = whole;
  other[whole.size() - 2] ^= 1;  // of the test split
  EXPECT_EQ(hash(other), hash(whole));
}

TEST_F(TokenDataTest, HiddenTokensOfBert) {
  constexpr int64_t kLong = 512;
  feeds_.clear();
  for (const char* name :
       {"input_ids", "label", "attention_mask", "token_type_ids"}) {
    feeds_.push_back({name, DType::kI64, {kLong}});
  }
  feeds_[1].classes = 30000;
  const auto data = Open("t.bin", Counting<uint16_t>(8 * kLong + 1));
  ASSERT_TRUE(data.ok()) << data.status();
  int64_t hidden = 0, masked = 0, same = 0, all = 0;
  for (int64_t i = 0; i < data->train->size(); ++i) {
    const auto ids = Read(*data->train, i, 0, kLong);
    const auto labels = Read(*data->train, i, 1, kLong);
    EXPECT_EQ(Read(*data->train, i, 2, kLong), std::vector<int64_t>(kLong, 1));
    EXPECT_EQ(Read(*data->train, i, 3, kLong), std::vector<int64_t>(kLong, 0));
    for (int64_t t = 0; t < kLong; ++t, ++all) {
      const int64_t token = i * kLong + t;
      if (labels[t] == -100) {
        EXPECT_EQ(ids[t], token);
        continue;
      }
      EXPECT_EQ(labels[t], token);
      ++hidden;
      masked += ids[t] == 103;
      same += ids[t] == token;
    }
  }
  EXPECT_NEAR(static_cast<double>(hidden) / all, 0.15, 0.02);
  EXPECT_NEAR(static_cast<double>(masked) / hidden, 0.8, 0.06);
  EXPECT_NEAR(static_cast<double>(same) / hidden, 0.1, 0.05);
  // Others in each epoch.
  EXPECT_NE(Read(*data->train, 0, 0, kLong, 0),
            Read(*data->train, 0, 0, kLong, 1));
}

TEST_F(TokenDataTest, Errors) {
  ExpectError(Open("t.bin", "").status(), "the file is empty");
  ExpectError(Open("t.bin", "abc").status(), "expected a multiple of 2");
  ExpectError(Open("t.bin", Counting<uint16_t>(4)).status(),
              "4 tokens: expected 5 or more");
  ExpectError(OpenData("tokens:" + root_, feeds_, {}).status(),
              "expected a file, found a directory");
  ExpectError(Open("t.bin", Counting<uint16_t>(1100)).status(),
              "token 1099 is 1099: expected 0 to 999");
  feed_map_ = {"inputs=x"};
  ExpectError(Open("t.bin", Counting<uint16_t>(99)).status(),
              "expected NAME=FEED", ExitCode::kUsage);
  feed_map_.clear();
  feeds_[0].dims = {5};
  ExpectError(Open("t.bin", Counting<uint16_t>(99)).status(),
              "feed label: tokens are i64[B,5]");
  feeds_ = {};
  EXPECT_TRUE(Open("t.bin", Counting<uint16_t>(99)).ok());
  feeds_ = {{"image", DType::kU8, {3, 4, 4}}};
  ExpectError(Open("t.bin", Counting<uint16_t>(99)).status(),
              "the model's feed image is none of them");
}

TEST_F(TokenDataTest, FilesCutOffUnderWay) {
  feeds_ = {{"input_ids", DType::kI64, {kBlock}}};
  const auto data = Open("x.bin", Counting<uint16_t>(41));
  ASSERT_TRUE(data.ok()) << data.status();
  std::filesystem::resize_file(root_ + "/x.bin", 20);
  EXPECT_THAT(Read(*data->train, 0, 0), ElementsAre(0, 1, 2, 3));
  std::vector<uint8_t> out(8 * kBlock);
  ExpectError(data->train->Read({5}, 0, absl::MakeSpan(out)),
              "it had 82 bytes when it was opened");
}

// Of a large file the first part is looked through before the first step.
TEST_F(TokenDataTest, WordsThatTheModelLacks) {
  constexpr int64_t kSoon = int64_t{1} << 26;
  const std::string path = root_ + "/train.bin";
  ASSERT_TRUE(Open("val.bin", Counting<uint16_t>(9)).ok());
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  std::filesystem::resize_file(path, 2 * kSoon);
  std::ofstream(path, std::ios::app | std::ios::binary)
      << Counting<uint16_t>(1100);
  const auto data = OpenData("tokens:" + path, feeds_, {});
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<uint8_t> out(8 * kBlock);
  EXPECT_TRUE(data->train->Read({0}, 0, absl::MakeSpan(out)).ok());
  ExpectError(
      data->train->Read({kSoon / kBlock + 250}, 0, absl::MakeSpan(out)),
      absl::StrCat("token ", kSoon + 1003, " is 1003: expected 0 to 999"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
