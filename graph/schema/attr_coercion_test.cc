#include "graph/schema/attr_coercion.h"

#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

TEST(CoerceAttrTest, TheSameKindStays) {
  EXPECT_EQ(CoerceAttr(1.5, AttrKind::kFloat), AttrValue(1.5));
  EXPECT_EQ(CoerceAttr(Ints{1, 2}, AttrKind::kInts), AttrValue(Ints{1, 2}));
}

TEST(CoerceAttrTest, Numbers) {
  EXPECT_EQ(CoerceAttr(int64_t{3}, AttrKind::kFloat), AttrValue(3.0));
  EXPECT_EQ(CoerceAttr(int64_t{3}, AttrKind::kInts), AttrValue(Ints{3}));
  EXPECT_EQ(CoerceAttr(int64_t{3}, AttrKind::kFloats), AttrValue(Floats{3}));
  EXPECT_EQ(CoerceAttr(0.5, AttrKind::kFloats), AttrValue(Floats{0.5}));
  EXPECT_EQ(CoerceAttr(Ints{1, 2}, AttrKind::kFloats), AttrValue(Floats{1, 2}));
  EXPECT_FALSE(CoerceAttr(2.0, AttrKind::kInt).has_value());
  EXPECT_FALSE(CoerceAttr(2.0, AttrKind::kInts).has_value());
  EXPECT_FALSE(CoerceAttr(Floats{1}, AttrKind::kInts).has_value());
  EXPECT_FALSE(CoerceAttr(Ints{1}, AttrKind::kInt).has_value());
}

TEST(CoerceAttrTest, Booleans) {
  EXPECT_EQ(CoerceAttr(true, AttrKind::kInt), AttrValue(int64_t{1}));
  EXPECT_EQ(CoerceAttr(int64_t{0}, AttrKind::kBool), AttrValue(false));
  EXPECT_EQ(CoerceAttr(int64_t{1}, AttrKind::kBool), AttrValue(true));
  EXPECT_FALSE(CoerceAttr(int64_t{2}, AttrKind::kBool).has_value());
  EXPECT_FALSE(CoerceAttr(true, AttrKind::kFloat).has_value());
}

TEST(CoerceAttrTest, Words) {
  EXPECT_EQ(CoerceAttr("float16", AttrKind::kDType), AttrValue(DType::kF16));
  EXPECT_EQ(CoerceAttr("x", AttrKind::kStrings), AttrValue(Strings{"x"}));
  EXPECT_FALSE(CoerceAttr("float17", AttrKind::kDType).has_value());
  // Paddle's numbers.
  EXPECT_EQ(CoerceAttr(int64_t{5}, AttrKind::kDType), AttrValue(DType::kF32));
  EXPECT_EQ(CoerceAttr(int64_t{22}, AttrKind::kDType), AttrValue(DType::kBF16));
  EXPECT_FALSE(CoerceAttr(int64_t{1}, AttrKind::kDType).has_value());
  EXPECT_FALSE(CoerceAttr("1", AttrKind::kInt).has_value());
  EXPECT_FALSE(CoerceAttr(DType::kF16, AttrKind::kString).has_value());
}

TEST(CoerceAttrTest, EmptyLists) {
  EXPECT_EQ(CoerceAttr(Ints{}, AttrKind::kFloats), AttrValue(Floats{}));
  EXPECT_EQ(CoerceAttr(Ints{}, AttrKind::kStrings), AttrValue(Strings{}));
  EXPECT_EQ(CoerceAttr(Floats{}, AttrKind::kInts), AttrValue(Ints{}));
  EXPECT_EQ(CoerceAttr(Strings{}, AttrKind::kInts), AttrValue(Ints{}));
  EXPECT_FALSE(CoerceAttr(Strings{}, AttrKind::kInt).has_value());
  EXPECT_FALSE(CoerceAttr(Strings{"1"}, AttrKind::kInts).has_value());
}

}  // namespace
}  // namespace halftone
