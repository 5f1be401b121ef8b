#include "graph/verify/limits.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

TEST(LimitsTest, Names) {
  EXPECT_EQ(BadName("layer4/0/conv.w"), "");
  EXPECT_EQ(BadName("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "");
  EXPECT_EQ(BadName(""), "is empty");
  EXPECT_EQ(BadName("a\x7f"), "has control characters");
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80",
                          "\xe0\x80\x80", "\xf4\x90\x80\x80", "\x80"}) {
    EXPECT_EQ(BadName(bad), "is not UTF-8");
  }
  EXPECT_THAT(BadName(std::string(5000, 'a')), HasSubstr("is longer than"));
}

TEST(LimitsTest, Dims) {
  TensorType type;
  EXPECT_EQ(BadDims(type), "");
  type.dims = {0, int64_t{1} << 49, 2};
  EXPECT_EQ(BadDims(type), "");
  type.dims = {0, int64_t{1} << 50, 2};
  EXPECT_EQ(BadDims(type), "it has more than 2^50 elements");
  type.dims.assign(17, Dim(1));
  EXPECT_EQ(BadDims(type), "it has more than 16 dims");
}

}  // namespace
}  // namespace halftone
