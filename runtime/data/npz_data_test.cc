// Arrays of NumPy's, good and bad, and the data set over them.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"
#include "runtime/data/dataset.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/npz_testing.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x = arange(6, dtype=float32).reshape(2, 3) / 4, y = array([7, -1]), by
// NumPy 2.4's savez and savez_compressed.
constexpr char kSaved[] =
    "UEsDBC0AAAAAAAAAIQAKnACk//////////8FABQAeC5ucHkBABAAmAAAAAAAAACYAAAAAAAA"
    "AJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmNCcsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdz"
    "aGFwZSc6ICgyLCAzKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgICAgICAgICAgICAKAAAAAAAAgD4AAAA/AABAPwAAgD8AAKA/UEsDBC0AAAAA"
    "AAAAIQDgks68//////////8FABQAeS5ucHkBABAAkAAAAAAAAACQAAAAAAAAAJNOVU1QWQEA"
    "dgB7J2Rlc2NyJzogJzxpOCcsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgy"
    "LCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgICAKBwAAAAAAAAD//////////1BLAQItAy0AAAAAAAAAIQAKnACkmAAAAJgA"
    "AAAFAAAAAAAAAAAAAACAAQAAAAB4Lm5weVBLAQItAy0AAAAAAAAAIQDgks68kAAAAJAAAAAF"
    "AAAAAAAAAAAAAACAAc8AAAB5Lm5weVBLBQYAAAAAAgACAGYAAACWAQAAAAA=";
constexpr char kCompressed[] =
    "UEsDBC0AAAAIAAAAIQAKnACk//////////8FABQAeC5ucHkBABAAmAAAAAAAAABWAAAAAAAA"
    "AJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZqKuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQW"
    "pAL5GkY6CsaaOgq1CmQDLgYwaLADEvYMDA5A3ADEC+wBUEsDBC0AAAAIAAAAIQDgks68////"
    "//////8FABQAeS5ucHkBABAAkAAAAAAAAABKAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6l"
    "oG6TaaGuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GkY6mjoKtQoUAC52Bgj4DwUA"
    "UEsBAi0DLQAAAAgAAAAhAAqcAKRWAAAAmAAAAAUAAAAAAAAAAAAAAIABAAAAAHgubnB5UEsB"
    "Ai0DLQAAAAgAAAAhAOCSzrxKAAAAkAAAAAUAAAAAAAAAAAAAAIABjQAAAHkubnB5UEsFBgAA"
    "AAACAAIAZgAAAA4BAAAAAA==";

std::string Decoded(const char* base64) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(base64, &bytes));
  return bytes;
}

FeedSpec Feed(const std::string& name, DType dtype, std::vector<int64_t> dims,
              bool whole = false) {
  FeedSpec feed;
  feed.name = name;
  feed.dtype = dtype;
  feed.dims = std::move(dims);
  feed.whole = whole;
  return feed;
}

class NpzDataTest : public ::testing::Test {
 protected:
  NpzDataTest()
      : path_(absl::StrCat(
            ::testing::TempDir(), "/", getpid(), "-",
            ::testing::UnitTest::GetInstance()->current_test_info()->name(),
            ".npz")) {}

  absl::StatusOr<OpenedData> Open(const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok());
    return OpenData("npz:" + path_, feeds_, {feed_map_, 1, max_unpack_});
  }
  absl::StatusOr<OpenedData> Open(std::vector<ZipFile::Member> members) {
    return Open(ZipFile{std::move(members)}.Serialize());
  }
  // Of an array x that is fed alone.
  absl::StatusOr<OpenedData> OpenOne(const NpyFile& array) {
    return Open({{"x.npy", array.Serialize()}});
  }
  void ExpectError(const absl::StatusOr<OpenedData>& data,
                   const std::vector<std::string>& parts,
                   ExitCode code = ExitCode::kModel) {
    ASSERT_FALSE(data.ok()) << parts[0];
    EXPECT_EQ(ExitCodeOf(data.status()), code);
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(data.status().message()), HasSubstr(part));
    }
  }
  template <typename T>
  std::vector<T> Values(const OpenedData& data, int64_t index, int feed = 0) {
    size_t n = 1;
    for (const int64_t dim : feeds_[feed].dims) n *= dim;
    std::vector<T> values(n);
    EXPECT_TRUE(
        data.train
            ->Read({index}, feed,
                   absl::MakeSpan(reinterpret_cast<uint8_t*>(values.data()),
                                  n * sizeof(T)))
            .ok());
    return values;
  }

  std::string path_;
  std::vector<FeedSpec> feeds_;
  std::vector<std::string> feed_map_;
  int64_t max_unpack_ = kMaxUnpack;
};

TEST_F(NpzDataTest, ReadsWhatNumpyWrites) {
  feeds_ = {Feed("y", DType::kI64, {}), Feed("x", DType::kF32, {3})};
  for (const char* file : {kSaved, kCompressed}) {
    const auto data = Open(Decoded(file));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->train->size(), 2);
    EXPECT_EQ(data->test, nullptr);
    EXPECT_THAT(data->notes, ElementsAre());
    EXPECT_THAT(Values<float>(*data, 1, 1), ElementsAre(0.75f, 1, 1.25f));
    EXPECT_THAT(Values<int64_t>(*data, 1, 0), ElementsAre(-1));
    EXPECT_THAT(Values<int64_t>(*data, 0, 0), ElementsAre(7));
  }
}

TEST_F(NpzDataTest, ReadsAllVersionsStoredDeflatedAndIn64Bits) {
  feeds_ = {Feed("x", DType::kF32, {})};
  for (const int version : {1, 2, 3}) {
    for (const bool deflate : {false, true}) {
      for (const bool wide : {false, true}) {
        const NpyFile x{"<f4", "3,", BytesOf<float>({1, 2, 3}), version};
        const auto data = Open({{"other", "text", false, false},
                                {"x.npy", x.Serialize(), deflate, wide}});
        ASSERT_TRUE(data.ok()) << data.status();
        EXPECT_EQ(data->train->size(), 3);
        EXPECT_THAT(Values<float>(*data, 2), ElementsAre(3));
      }
    }
  }
}

TEST_F(NpzDataTest, FortranOrderBecomesRowMajor) {
  feeds_ = {Feed("x", DType::kI64, {3, 2})};
  // Element [n,i,j] is 100 n + 10 i + j, n fastest in the file.
  std::vector<int64_t> values;
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 3; ++i) {
      for (int n = 0; n < 2; ++n) values.push_back(100 * n + 10 * i + j);
    }
  }
  const auto data =
      OpenOne({"<i8", "2, 3, 2", BytesOf(values), 1, /*fortran_order=*/true});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Values<int64_t>(*data, 1),
              ElementsAre(100, 101, 110, 111, 120, 121));
}

TEST_F(NpzDataTest, NamesAreMappedBothWays) {
  feeds_ = {Feed("image", DType::kF32, {3})};
  for (const char* map : {"x=image", "image=x"}) {
    feed_map_ = {map};
    const auto data = Open(Decoded(kSaved));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(Values<float>(*data, 0), ElementsAre(0, 0.25f, 0.5f));
  }
  feed_map_ = {};
  ExpectError(Open(Decoded(kSaved)), {"no array is called image; it holds x, y",
                                      "--feed ARRAY=image"});
  feed_map_ = {"x=imag"};
  ExpectError(Open(Decoded(kSaved)), {"feeds are image", "nearest: image"},
              ExitCode::kUsage);
  feed_map_ = {"x"};
  ExpectError(Open(Decoded(kSaved)), {"expected ARRAY=FEED"}, ExitCode::kUsage);
}

TEST_F(NpzDataTest, WhatHasNoSamplesIsWhole) {
  feeds_ = {Feed("x", DType::kF32, {3}),
            Feed("y", DType::kI64, {2}, /*whole=*/true)};
  const auto data = Open(Decoded(kSaved));
  ASSERT_TRUE(data.ok()) << data.status();
  for (const int64_t index : {0, 1}) {
    EXPECT_THAT(Values<int64_t>(*data, index, 1), ElementsAre(7, -1));
  }
  feeds_ = {Feed("x", DType::kF32, {2, 3}, /*whole=*/true), feeds_[1]};
  const auto once = Open(Decoded(kSaved));
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(once->train->size(), 1);
  EXPECT_THAT(Values<float>(*once, 0), ElementsAre(0, .25, .5, .75, 1, 1.25));
  feeds_ = {Feed("x", DType::kF32, {3}, /*whole=*/true)};
  ExpectError(Open(Decoded(kSaved)),
              {"x: float32[2,3], feed x takes float32[3]"});
  feeds_ = {Feed("x", DType::kF32, {4})};
  ExpectError(Open(Decoded(kSaved)),
              {"x: float32[2,3], feed x takes float32[samples,4]"});
  feeds_ = {Feed("y", DType::kI64, {1})};
  ExpectError(Open(Decoded(kSaved)), {"y: int64[2], feed y takes int64[samp"});
}

TEST_F(NpzDataTest, AllHaveEquallyManySamples) {
  feeds_ = {Feed("x", DType::kF32, {}), Feed("y", DType::kF32, {})};
  const NpyFile x{"<f4", "2,", BytesOf<float>({1, 2})};
  const NpyFile y{"<f4", "3,", BytesOf<float>({1, 2, 3})};
  ExpectError(Open({{"x.npy", x.Serialize()}, {"y.npy", y.Serialize()}}),
              {".npz: y: 3 samples, but ", ".npz: x has 2; all arrays"});
  feeds_ = {feeds_[0]};
  ExpectError(OpenOne({"<f4", "0,", ""}), {"expected samples, found none"});
  ExpectError(OpenOne({"<f4", "", BytesOf<float>({1})}), {"float32[], feed x"});
  ExpectError(Open({{"x.npy", x.Serialize()}, {"x", x.Serialize()}}),
              {"two arrays are called x"});
}

TEST_F(NpzDataTest, LabelsMustBeClasses) {
  feeds_ = {Feed("y", DType::kI64, {})};
  feeds_[0].classes = 8;
  feeds_[0].ignored = -1;
  EXPECT_TRUE(Open(Decoded(kSaved)).ok());
  feeds_[0].classes = 7;
  ExpectError(Open(Decoded(kSaved)),
              {"label 7, element 0: expected 0 to 6", "or -1 (ignored)"});
}

// The bytes of one element of `from` as `to`.
absl::StatusOr<std::string> Converted(const std::string& descr,
                                      const std::string& data, DType to,
                                      std::string* note) {
  const std::string npy = NpyFile{descr, "1,", data}.Serialize();
  const auto array = ParseNpy(npy, "a.npz: x");
  if (!array.ok()) return array.status();
  std::string made;
  const auto bytes = ElementsAs(*array, to, &made, note);
  if (!bytes.ok()) return bytes.status();
  return std::string(*bytes);
}

template <typename From, typename To>
void ExpectConverted(const std::string& descr, From from, DType dtype, To to,
                     const std::string& said = "") {
  std::string note;
  const auto bytes = Converted(descr, BytesOf<From>({from}), dtype, &note);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, BytesOf<To>({to})) << descr << " " << Name(dtype);
  EXPECT_EQ(note, said);
}

TEST(NpyElementsTest, WhatHoldsTheValuesTakesThem) {
  ExpectConverted<uint8_t, int64_t>("|u1", 200, DType::kI64, 200);
  ExpectConverted<int8_t, int32_t>("|i1", -2, DType::kI32, -2);
  ExpectConverted<uint16_t, uint8_t>("<u2", 255, DType::kU8, 255);
  ExpectConverted<int32_t, int64_t>("<i4", -7, DType::kI64, -7);
  ExpectConverted<int64_t, int32_t>("<i8", -7, DType::kI32, -7);
  ExpectConverted<uint64_t, int64_t>("<u8", 7, DType::kI64, 7);
  ExpectConverted<uint8_t, int64_t>("|b1", 1, DType::kI64, 1);
  ExpectConverted<int64_t, uint8_t>("<i8", 1, DType::kBool, 1);
  ExpectConverted<half, float>("<f2", half(0.5f), DType::kF32, 0.5f);
  ExpectConverted<float, double>("<f4", 0.5f, DType::kF64, 0.5);
  ExpectConverted<double, float>(
      "<f8", 0.1, DType::kF32, 0.1f,
      "a.npz: x: float64, rounded to the float32 that the model expects");
  ExpectConverted<float, bfloat16>(
      "<f4", 1.5f, DType::kBF16, bfloat16(1.5f),
      "a.npz: x: float32, rounded to the bfloat16 that the model expects");
  // As from f64 itself, not by way of f32.
  const std::string to_half =
      "a.npz: x: float64, rounded to the float16 that the model expects";
  const double least = std::ldexp(1, -40);
  for (const auto& [from, to] : std::vector<std::pair<double, double>>{
           {1 + std::ldexp(1, -11) + least, 1 + std::ldexp(1, -10)},
           {1 + std::ldexp(3, -11) - least, 1 + std::ldexp(1, -10)},
           {1 + std::ldexp(3, -11), 1 + std::ldexp(1, -9)},
           {-2049 - least, -2050},
           {65519.999999999, 65504},
           {std::ldexp(1, -25), 0},
           {std::ldexp(1, -25) + std::ldexp(1, -70), std::ldexp(1, -24)}}) {
    ExpectConverted<double, half>("<f8", from, DType::kF16,
                                  half(static_cast<float>(to)), to_half);
  }
  const float inf = 1.0f / 0.0f;
  ExpectConverted<float, half>(
      "<f4", inf, DType::kF16, half(inf),
      "a.npz: x: float32, rounded to the float16 that the model expects");
}

TEST(NpyElementsTest, WhatDoesNotFitIsNamed) {
  const auto expect = [](const std::string& descr, const std::string& data,
                         DType dtype, const std::string& part) {
    std::string note;
    const auto bytes = Converted(descr, data, dtype, &note);
    ASSERT_FALSE(bytes.ok()) << descr << " " << Name(dtype);
    EXPECT_THAT(std::string(bytes.status().message()), HasSubstr(part));
  };
  expect("<i8", BytesOf<int64_t>({1ll << 31}), DType::kI32,
         "2147483648 at [0] does not fit int32");
  expect("<i4", BytesOf<int32_t>({-1}), DType::kU8, "-1 at [0] does not fit");
  expect("|u1", "\2", DType::kBool, "2 at [0] does not fit bool");
  expect("<u8", std::string(8, '\xff'), DType::kI64,
         "18446744073709551615 at [0] does not fit int64");
  expect("<f8", BytesOf<double>({1e39}), DType::kF32, "1e+39 at [0] does not");
  expect("<f4", BytesOf<float>({1e5}), DType::kF16, "1e+05 at [0] does not");
  expect("<f4", BytesOf<float>({1}), DType::kI64,
         "float32, the model expects int64; convert it with "
         "x.astype(\"int64\")");
  expect("|u1", "\1", DType::kF32,
         "uint8, the model expects float32; convert it with "
         "x.astype(\"float32\"), scaled as the model wants it");
}

TEST(NpyFileTest, SaysWhatIsWrong) {
  const auto expect = [](const std::string& content,
                         const std::vector<std::string>& parts) {
    const auto array = ParseNpy(content, "a.npz: x");
    ASSERT_FALSE(array.ok()) << parts[0];
    EXPECT_EQ(ExitCodeOf(array.status()), ExitCode::kModel);
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(array.status().message()), HasSubstr(part));
    }
  };
  const std::string data = BytesOf<float>({1, 2});
  const auto of = [&](const std::string& descr, const std::string& shape) {
    return NpyFile{descr, shape, data}.Serialize();
  };
  EXPECT_TRUE(ParseNpy(of("<f4", "2,"), "x").ok());
  expect("", {"a.npz: x: not an .npy file"});
  expect("PK\3\4........", {"not an .npy file"});
  expect(of(">f4", "2,"), {"another order", "x.astype(\"<f4\")"});
  expect(of("|O", "1,"), {"Python objects (pickled)", "padded before"});
  expect(of("<U4", "1,"), {"dtype <U4", "expected bool, int8"});
  expect(of("<c8", "1,"), {"dtype <c8"});
  expect(of("<f16", "1,"), {"dtype <f16"});
  expect(of("", "1,"), {"dtype "});
  expect(of("<f4", "3,"), {"expected float32[3], found 8 bytes"});
  expect(of("<f4", "1,"), {"expected float32[1], found 8 bytes"});
  expect(of("<f4", "4611686018427387904, 4611686018427387904"), {"damaged"});
  expect(of("<f4", "-2,"), {"its header is no"});
  expect(of("<f4", "2 2"), {"its header is no"});
  expect(of("<f4", "99999999999999999999,"), {"its header is no"});
  expect(of("<f4", "2,").substr(0, 40), {"truncated", "its header claims"});
  std::string npy = of("<f4", "2,");
  npy[6] = 4;
  expect(npy, {".npy format 4: expected 1, 2 or 3"});
  const auto with = [&](const std::string& header) {
    npy = of("<f4", "2,").substr(0, 8);
    npy += static_cast<char>(header.size());
    npy += '\0';
    return npy + header + data;
  };
  expect(with("{'descr': [('a', '<f4')], 'fortran_order': False, }"),
         {"records of several fields"});
  expect(with("{'descr': '<f4', 'shape': (2,), }"), {"its header is no"});
  expect(with("{'descr': '<f4"), {"its header is no"});
  expect(with("import os"), {"its header is no"});
}

TEST_F(NpzDataTest, DamagedFilesAreNamed) {
  feeds_ = {Feed("x", DType::kF32, {3})};
  ExpectError(Open(std::string()), {path_, "not a zip file"});
  ExpectError(Open(std::string("\x93NUMPY")), {"not a zip file"});
  for (const char* file : {kSaved, kCompressed}) {
    const std::string good = Decoded(file);
    ExpectError(Open(good.substr(0, good.size() - 30)),
                {path_, "truncated or damaged"});
    std::string bad = good;
    bad[good.find("NUMPY") == std::string::npos ? 60 : 190] ^= 4;
    ExpectError(Open(bad), {path_, "truncated or damaged: member x.npy"});
    bad = good;
    bad[good.find("PK\1\2") + 8] |= 1;
    ExpectError(Open(bad), {"x.npy: encrypted"});
    bad = good;
    bad[good.find("PK\1\2") + 10] = 12;
    ExpectError(Open(bad), {"x.npy: packed by method 12", "savez_compressed"});
    bad = good;
    bad[good.find("PK\1\2") + 45] = 0x7f;
    ExpectError(Open(bad), {"truncated or damaged: member x.npy"});
  }
}

// 32 MiB of zeros pack to 32 KiB.
TEST_F(NpzDataTest, LittleDoesNotBecomeMuch) {
  feeds_ = {Feed("x", DType::kU8, {1 << 25})};
  const NpyFile x{"|u1", "1, 33554432", std::string(1 << 25, '\0')};
  const std::vector<ZipFile::Member> members = {
      {"x.npy", x.Serialize(), /*deflate=*/true}};
  ExpectError(Open(members), {"x.npy: 3", "claim to be 32.0 MiB unpacked",
                              "add --max-unpack 10"});
  max_unpack_ = 2000;
  EXPECT_TRUE(Open(members).ok()) << Open(members).status();
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
