#include "graph/base/text.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "graph/base/half.h"
#include "graph/base/stable_hasher.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

const std::vector<std::string>& Words() {
  static const auto& words = *new std::vector<std::string>{
      "conv2d", "matmul", "softmax", "softmax_with_cross_entropy", "mul"};
  return words;
}

TEST(NearestTest, FindsTypingErrors) {
  EXPECT_EQ(Nearest("con2d", Words()), "conv2d");     // left out
  EXPECT_EQ(Nearest("convv2d", Words()), "conv2d");   // one too many
  EXPECT_EQ(Nearest("matnul", Words()), "matmul");    // another letter
  EXPECT_EQ(Nearest("sfotmax", Words()), "softmax");  // swapped
  EXPECT_EQ(Nearest("SoftMax", Words()), "softmax");  // case
  EXPECT_EQ(Nearest("mul", Words()), "mul");
}

TEST(NearestTest, AStartIsNear) {
  EXPECT_EQ(Nearest("softmax_with", Words()), "softmax_with_cross_entropy");
}

TEST(NearestTest, NothingIsBetterThanNonsense) {
  EXPECT_EQ(Nearest("relu6_grad_x", Words()), "");
  EXPECT_EQ(Nearest("", Words()), "");
  EXPECT_EQ(Nearest("lr", {"mu", "xx"}), "");
  EXPECT_EQ(Nearest("x", {}), "");
  EXPECT_EQ(Nearest(std::string(100000, 'q'), Words()), "");
}

TEST(NearestTest, Hint) {
  EXPECT_EQ(NearestHint("matmull", Words()), "; nearest: matmul");
  EXPECT_EQ(NearestHint("zzzzzz", Words()), "");
}

TEST(GlobTest, Matches) {
  EXPECT_TRUE(GlobMatch("*", ""));
  EXPECT_TRUE(GlobMatch("*", "a/b.c"));
  EXPECT_TRUE(GlobMatch("fc?", "fc1"));
  EXPECT_FALSE(GlobMatch("fc?", "fc"));
  EXPECT_FALSE(GlobMatch("fc?", "fc12"));
  EXPECT_TRUE(GlobMatch("*.w_0", "encoder.layer.1.w_0"));
  EXPECT_TRUE(GlobMatch("a*b*c", "a__b_b__c"));
  EXPECT_FALSE(GlobMatch("a*b*c", "a__c__b"));
  EXPECT_TRUE(GlobMatch("**x**", "x"));
  EXPECT_FALSE(GlobMatch("", "x"));
  EXPECT_TRUE(GlobMatch("", ""));
  EXPECT_TRUE(GlobMatch("a[b]", "a[b]"));  // brackets are themselves
  EXPECT_FALSE(GlobMatch("a[b]", "ab"));
}

// A pattern of many stars is not exponential.
TEST(GlobTest, IsFast) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(GlobMatch(pattern + "b", std::string(20000, 'a')));
}

TEST(NumbersTest, WithCommas) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
  EXPECT_EQ(WithCommas(-123), "-123");
  EXPECT_EQ(WithCommas(-1234), "-1,234");
  EXPECT_EQ(WithCommas(std::numeric_limits<int64_t>::min()),
            "-9,223,372,036,854,775,808");
}

TEST(NumbersTest, HumanBytes) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(312), "312 B");
  EXPECT_EQ(HumanBytes(1024), "1.0 KiB");
  EXPECT_EQ(HumanBytes(284 << 10), "284 KiB");
  EXPECT_EQ(HumanBytes(1048575), "1.0 MiB");
  EXPECT_EQ(HumanBytes(6186598), "5.9 MiB");
  EXPECT_EQ(HumanBytes(int64_t{5} << 40), "5.0 TiB");
}

TEST(NumbersTest, ExactFloat) {
  EXPECT_EQ(ExactFloat(0.1f), "0.1");
  EXPECT_EQ(ExactFloat(1.0f), "1");
  EXPECT_EQ(ExactFloat(-0.0f), "-0");
  EXPECT_EQ(ExactFloat(std::nanf("")), "nan");
  EXPECT_EQ(ExactFloat(-INFINITY), "-inf");
  EXPECT_EQ(ExactDouble(0.1), "0.1");
  EXPECT_EQ(ExactDouble(1e-5), "1e-05");
  EXPECT_EQ(ExactDouble(INFINITY), "inf");
}

TEST(NumbersTest, ExactFloatReadsBack) {
  for (uint64_t bits = 0; bits < 0x7f800000u; bits += 100003) {
    const float f = half_internal::FromBits(static_cast<uint32_t>(bits));
    float again = 0;
    ASSERT_TRUE(absl::SimpleAtof(ExactFloat(f), &again));
    ASSERT_EQ(half_internal::Bits(again), bits) << ExactFloat(f);
    double wide = 0;
    const double d = f / 3.0;
    ASSERT_TRUE(absl::SimpleAtod(ExactDouble(d), &wide));
    ASSERT_EQ(std::memcmp(&wide, &d, sizeof(d)), 0) << ExactDouble(d);
  }
}

// Known answers of XXH64 with seed 0.
TEST(HashTest, StableHash) {
  EXPECT_EQ(Hex64(StableHash("")), "ef46db3751d8e999");
  EXPECT_EQ(Hex64(StableHash("a")), "d24ec4f1a98c6e5b");
  EXPECT_EQ(Hex64(0xab), "00000000000000ab");
}

TEST(HashTest, OfParts) {
  const std::string text(1000, 'x');
  StableHasher hasher;
  EXPECT_EQ(hasher.hash(), StableHash(""));
  for (size_t at = 0, part = 0; at < text.size(); at += part, ++part) {
    hasher.Append(absl::string_view(text).substr(at, part));
    EXPECT_EQ(hasher.hash(), StableHash(text.substr(0, at + part)));
  }
}

}  // namespace
}  // namespace halftone
