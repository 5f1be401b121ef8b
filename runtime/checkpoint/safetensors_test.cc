#include "runtime/checkpoint/safetensors.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

Tensor MakeTensor(const std::string& name, const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return {name, DType::kF32, {static_cast<int64_t>(values.size())}, bytes};
}

std::vector<Tensor> SomeTensors() {
  return {MakeTensor("w", {1, -2, 3.5f}), MakeTensor("b", {})};
}

// A file with this header, of `data` bytes behind it.
std::string File(const std::string& header, size_t data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
         header + std::string(data, 'x');
}

void ExpectRefused(const std::string& header, size_t data,
                   const std::string& says) {
  const auto parsed = ParseSafetensors(File(header, data), "f");
  EXPECT_EQ(ExitCodeOf(parsed.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(says));
}

TEST(SafetensorsTest, RoundTrip) {
  const std::vector<Tensor> tensors = SomeTensors();
  const auto back = ParseSafetensors(SerializeSafetensors(tensors), "f");
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].name, "b");  // the header is sorted
  EXPECT_EQ((*back)[1].bytes, tensors[0].bytes);
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  const std::string whole = SerializeSafetensors(SomeTensors());
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(ParseSafetensors(whole.substr(0, n), "f").ok()) << n;
  }
}

TEST(SafetensorsTest, RefusesAClaimOfAGigabyte) {
  std::string claim(16, ' ');
  const uint64_t size = uint64_t{1} << 30;
  std::memcpy(&claim[0], &size, sizeof(size));
  const auto result = ParseSafetensors(claim, "x.safetensors");
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the header claims 1073741824 bytes of 16"));
}

// Fields in any order, and what other writers add.
TEST(SafetensorsTest, TakesWhatOthersWrite) {
  const auto parsed = ParseSafetensors(
      File("{\"__metadata__\":{\"format\":\"pt\",\"deep\":[[1]]},"
           "\"b\":{\"data_offsets\":[2,6],\"note\":{\"a\":[]},"
           "\"shape\":[],\"dtype\":\"F32\"},"
           "\"a\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[0,2]}}  ",
           6),
      "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].name, "a");
  EXPECT_EQ((*parsed)[0].dims, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ((*parsed)[1].bytes, "xxxx");
  EXPECT_TRUE(ParseSafetensors(File("{}", 0), "f")->empty());
}

// Two tensors of the same bytes: n of them would take n times the file.
TEST(SafetensorsTest, EveryByteIsOneTensors) {
  const auto entry = [](const char* name, int begin, int end) {
    return absl::StrCat("\"", name, "\":{\"dtype\":\"U8\",\"shape\":[",
                        end - begin, "],\"data_offsets\":[", begin, ",", end,
                        "]}");
  };
  const auto both = [](const std::string& a, const std::string& b) {
    return absl::StrCat("{", a, ",", b, "}");
  };
  EXPECT_TRUE(
      ParseSafetensors(File(both(entry("b", 4, 9), entry("a", 0, 4)), 9), "f")
          .ok());
  ExpectRefused(both(entry("a", 0, 4), entry("b", 0, 4)), 4,
                "f: tensor b: begins at 0 of the data, expected 4");
  ExpectRefused(both(entry("a", 0, 4), entry("b", 3, 8)), 8,
                "tensor b: begins at 3 of the data, expected 4");
  ExpectRefused(both(entry("a", 0, 4), entry("b", 5, 8)), 8,
                "tensor b: begins at 5 of the data, expected 4");
  ExpectRefused(both(entry("a", 0, 4), entry("b", 4, 8)), 9,
                "f: 1 bytes behind the last tensor");
  ExpectRefused(both(entry("a", 0, 4), entry("a", 4, 8)), 8,
                "tensor a: is there twice");
}

TEST(SafetensorsTest, NamesWhatIsWrong) {
  const auto header = [](const std::string& entry) {
    return absl::StrCat("{\"w\":", entry, "}");
  };
  ExpectRefused("[]", 0, "its header is not a JSON object");
  ExpectRefused("7", 0, "its header is not a JSON object");
  ExpectRefused("{", 0, "not a safetensors file: f: header: no JSON at byte");
  ExpectRefused(header("7"), 0, "tensor w: expected an object");
  ExpectRefused(header("[]"), 0, "tensor w: expected an object");
  ExpectRefused(header("{}"), 0, "tensor w: expected dtype, shape and two");
  const auto entry = [&](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return header(absl::StrCat("{\"dtype\":", dtype, ",\"shape\":", shape,
                               ",\"data_offsets\":", offsets, "}"));
  };
  ExpectRefused(entry("\"F8\"", "[1]", "[0,1]"), 1, "unknown dtype");
  ExpectRefused(entry("[1]", "[1]", "[0,1]"), 1, "expected a word for dtype");
  for (const char* shape : {"[-1]", "[1.5]", "[null]", "[[1]]", "{}", "7",
                            "[18446744073709551615]", "\"x\""}) {
    ExpectRefused(entry("\"U8\"", shape, "[0,1]"), 1, "tensor w: expected up");
  }
  ExpectRefused(entry("\"U8\"", "[1]", "[0,1,2]"), 1, "two data_offsets");
  ExpectRefused(entry("\"U8\"", "[1]", "[0,1e3]"), 1, "two whole data_offsets");
  ExpectRefused(entry("\"F32\"", "[4611686018427387904,4]", "[0,0]"), 0,
                "expects -1 bytes, found 0");
  ExpectRefused(absl::StrCat("{\"", std::string(5000, 'w'), "\":7}"), 0,
                "a tensor has a name of 5000 bytes, expected up to 4096");
  std::string dims = "[1";
  for (int i = 0; i < 32; ++i) dims += ",1";
  ExpectRefused(entry("\"U8\"", dims + "]", "[0,1]"), 1, "up to 32 whole");
  ExpectRefused(std::string(1 << 20, '['), 0, "its header is not a JSON");
  std::string deep = "{\"w\":{\"note\":";
  ExpectRefused(deep + std::string(1 << 20, '['), 0, "more than 32 arrays");
}

TEST(ConvertTest, WidensExactlyAndRoundsOnce) {
  const Tensor f32 = MakeTensor("w", {1.0f, 1.00048828125f, 65520.0f});
  const auto f16 = ConvertTensor(f32, DType::kF16);
  ASSERT_TRUE(f16.ok());
  const auto back = ConvertTensor(*f16, DType::kF32);
  ASSERT_TRUE(back.ok());
  float values[3];
  std::memcpy(values, back->bytes.data(), sizeof(values));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 1.0f);  // a tie: to even
  EXPECT_TRUE(std::isinf(values[2]));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
