// IDX files, good and bad, and the data sets over them.
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/dataset.h"
#include "runtime/data/idx_file.h"
#include "runtime/data/resize.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Header(const std::vector<int64_t>& dims, int type = 8) {
  std::string bytes = {0, 0, static_cast<char>(type),
                       static_cast<char>(dims.size())};
  for (int64_t dim : dims) {
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(dim >> shift);
  }
  return bytes;
}

void ExpectBad(const std::string& content, const std::string& part) {
  const auto parsed = ParseIdx(content, "train.idx");
  ASSERT_FALSE(parsed.ok()) << part;
  EXPECT_EQ(ExitCodeOf(parsed.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("train.idx"));
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(part));
}

TEST(ParseIdx, TellsWhatIsWrong) {
  ExpectBad("", "empty");
  ExpectBad("\x1f\x8b", "not an IDX file");
  ExpectBad("PK\3\4....", "expected the bytes 0 0 8");
  ExpectBad(Header({2}, 0x0d) + "abcdefgh", "type 0xd");
  ExpectBad(Header({}), "0 dims");
  ExpectBad(Header({2, 3}).substr(0, 9), "truncated");
  ExpectBad(Header({4}) + "abc", "claims 4 bytes of data, found 3");
  ExpectBad(Header({4}) + "abcde", "too long");
  // A header that claims a gigabyte, and one that overflows, allocate nothing.
  ExpectBad(Header({1024, 1024, 1024}) + "abc", "found 3");
  ExpectBad(Header({1 << 30, 1 << 30, 1 << 30, 1 << 30}), "claims more");
}

TEST(ParseIdx, ReadsDimsAndBytes) {
  const auto array = ParseIdx(Header({2, 3}) + "abcdef", "x");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->dims, ElementsAre(2, 3));
  EXPECT_EQ(array->bytes, "abcdef");
}

// Rows of a 2x2 plane: between centres values are mixed, outside they are the
// edge's. 1/4 and 3/4 because an output pixel is half an input one.
TEST(Resize, HalfPixelCentres) {
  const uint8_t in[4] = {0, 100, 200, 40};
  uint8_t out[16];
  ResizeBilinear(in, 2, 2, out, 4, 4);
  EXPECT_THAT(std::vector<int>(out, out + 4), ElementsAre(0, 25, 75, 100));
  EXPECT_THAT(std::vector<int>(out + 12, out + 16),
              ElementsAre(200, 160, 80, 40));
  // Row 1 is 3/4 of the first and 1/4 of the second.
  EXPECT_EQ(out[4], 50);
  EXPECT_EQ(out[7], 85);
}

TEST(Resize, ToTheSameSizeAndDown) {
  const uint8_t in[4] = {1, 2, 3, 4};
  uint8_t same[4], one[1];
  ResizeBilinear(in, 2, 2, same, 2, 2);
  EXPECT_EQ(std::memcmp(in, same, 4), 0);
  ResizeBilinear(in, 2, 2, one, 1, 1);
  EXPECT_TRUE(one[0] == 2 || one[0] == 3);  // 2.5
}

class IdxDirectory : public ::testing::Test {
 protected:
  IdxDirectory() {
    path_ = absl::StrCat(
        ::testing::TempDir(), "/idx-", getpid(), "-",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(path_);
    for (const char* split : {"train", "t10k"}) {
      Write(absl::StrCat(split, "-images-idx3-ubyte"),
            Header({2, 1, 2}) + std::string("\1\2\3\4", 4));
      Write(absl::StrCat(split, "-labels-idx1-ubyte"),
            Header({2}) + std::string("\0\1", 2));
    }
  }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(path_ + "/" + name, content).ok());
  }
  absl::StatusOr<OpenedData> Open() {
    FeedSpec image{"image", DType::kU8, {1, 1, 2}, 0};
    FeedSpec label{"label", DType::kI64, {}, classes_};
    return OpenData("idx:" + path_, {image, label}, {feed_map_});
  }
  void ExpectError(const std::string& part, ExitCode code = ExitCode::kModel) {
    const auto data = Open();
    ASSERT_FALSE(data.ok()) << part;
    EXPECT_EQ(ExitCodeOf(data.status()), code);
    EXPECT_THAT(std::string(data.status().message()), HasSubstr(part));
  }

  std::string path_;
  int64_t classes_ = 2;
  std::vector<std::string> feed_map_;
};

TEST_F(IdxDirectory, ReadsImagesAndLabels) {
  const auto data = Open();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->size(), 2);
  uint8_t image[2];
  int64_t label = -1;
  ASSERT_TRUE(data->train->Read({1}, 0, absl::MakeSpan(image)).ok());
  ASSERT_TRUE(
      data->train
          ->Read({1}, 1, absl::MakeSpan(reinterpret_cast<uint8_t*>(&label), 8))
          .ok());
  EXPECT_THAT(image, ElementsAre(3, 4));
  EXPECT_EQ(label, 1);
}

TEST_F(IdxDirectory, TheHashIsOfImagesAndLabelsThatAreTrainedOn) {
  const auto hash = [&] {
    const auto data = Open();
    EXPECT_TRUE(data.ok()) << data.status();
    return *data->train->ContentHash();
  };
  const uint64_t first = hash();
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}) {
    const std::string content = *ReadFile(path_ + "/" + name);
    std::string other = content;
    other.back() ^= 1;
    Write(name, other);
    EXPECT_NE(hash(), first) << name;
    Write(name, content);
  }
  const std::string test = "t10k-labels-idx1-ubyte";
  std::string other = *ReadFile(path_ + "/" + test);
  other.back() ^= 1;
  Write(test, other);
  EXPECT_EQ(hash(), first);
}

TEST_F(IdxDirectory, TakesGzipFiles) {
  const std::string plain = path_ + "/train-images-idx3-ubyte";
  const std::string content = *ReadFile(plain);
  std::filesystem::remove(plain);
  gzFile file = gzopen((plain + ".gz").c_str(), "wb");
  gzwrite(file, content.data(), content.size());
  gzclose(file);
  EXPECT_TRUE(Open().ok()) << Open().status();
  // In two members, as from cat or bgzip.
  const std::string name = "train-images-idx3-ubyte.gz";
  std::string members;
  for (const auto& part : {content.substr(0, 9), content.substr(9)}) {
    file = gzopen((plain + ".part").c_str(), "wb");
    gzwrite(file, part.data(), part.size());
    gzclose(file);
    members += *ReadFile(plain + ".part");
  }
  std::string packed = *ReadFile(plain + ".gz");
  Write(name, members);
  EXPECT_TRUE(Open().ok()) << Open().status();
  Write(name, packed + packed);
  ExpectError(name);
  Write("train-images-idx3-ubyte.gz", packed.substr(0, packed.size() - 6));
  ExpectError("not a whole gzip file (truncated");
  packed[packed.size() / 2] ^= 0x55;
  Write("train-images-idx3-ubyte.gz", packed);
  ExpectError("train-images-idx3-ubyte.gz");
}

TEST_F(IdxDirectory, WhatIsMissingIsNamed) {
  std::filesystem::remove(path_ + "/t10k-labels-idx1-ubyte");
  ExpectError("t10k-labels-idx1-ubyte: no such file, nor ");
}

TEST_F(IdxDirectory, CountsMustAgree) {
  Write("train-labels-idx1-ubyte", Header({3}) + std::string(3, '\0'));
  ExpectError("2 images, but");
}

TEST_F(IdxDirectory, LabelsMustBeClasses) {
  classes_ = 1;
  ExpectError("label 1 of sample 1: expected 0 to 0");
}

TEST_F(IdxDirectory, FeedsAreMapped) {
  feed_map_ = {"image=pixels"};
  ExpectError("the model's feeds are image, label");
  feed_map_ = {"pixels"};
  ExpectError("expected image=NAME", ExitCode::kUsage);
}

TEST(OpenData, KnowsItsKinds) {
  const auto data = OpenData("indx:x", {}, {});
  EXPECT_EQ(ExitCodeOf(data.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(data.status().message()), HasSubstr("nearest: idx"));
  EXPECT_FALSE(OpenData("synthetic:0", {}, {}).ok());
}

TEST(OpenData, SyntheticIsAFunctionOfItsSeed) {
  const std::vector<FeedSpec> feeds = {{"x", DType::kF32, {3}, 0},
                                       {"y", DType::kI64, {}, 10}};
  const auto read = [&feeds](int64_t seed, int64_t index) {
    auto data = OpenData("synthetic:8", feeds, {{}, seed});
    std::vector<float> x(3);
    EXPECT_TRUE(
        data->train
            ->Read({index}, 0,
                   absl::MakeSpan(reinterpret_cast<uint8_t*>(x.data()), 12))
            .ok());
    int64_t y = -1;
    EXPECT_TRUE(data->train
                    ->Read({index}, 1,
                           absl::MakeSpan(reinterpret_cast<uint8_t*>(&y), 8))
                    .ok());
    EXPECT_TRUE(y >= 0 && y < 10) << y;
    return x;
  };
  EXPECT_EQ(read(1, 3), read(1, 3));
  EXPECT_NE(read(1, 3), read(1, 4));
  EXPECT_NE(read(1, 3), read(2, 3));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
