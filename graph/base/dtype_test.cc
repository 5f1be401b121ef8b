#include "graph/base/dtype.h"

#include "gtest/gtest.h"

namespace halftone {
namespace {

constexpr DType kAll[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64,
                          DType::kI32, DType::kI64, DType::kU8,   DType::kBool};

TEST(DTypeTest, NamesReadBack) {
  for (DType dtype : kAll) EXPECT_EQ(DTypeFromName(Name(dtype)), dtype);
  EXPECT_EQ(Name(DType::kInvalid), "invalid");
  EXPECT_FALSE(DTypeFromName("invalid").has_value());
}

TEST(DTypeTest, ReadsOtherSpellings) {
  EXPECT_EQ(DTypeFromName("F32"), DType::kF32);
  EXPECT_EQ(DTypeFromName("float32"), DType::kF32);
  EXPECT_EQ(DTypeFromName("FP16"), DType::kF16);
  EXPECT_EQ(DTypeFromName("bfloat16"), DType::kBF16);
  EXPECT_EQ(DTypeFromName("int64"), DType::kI64);
  EXPECT_EQ(DTypeFromName("uint8"), DType::kU8);
  EXPECT_FALSE(DTypeFromName("").has_value());
  EXPECT_FALSE(DTypeFromName("f8").has_value());
}

TEST(DTypeTest, Sizes) {
  EXPECT_EQ(SizeOf(DType::kInvalid), 0);
  EXPECT_EQ(SizeOf(DType::kBool), 1);
  EXPECT_EQ(SizeOf(DType::kU8), 1);
  EXPECT_EQ(SizeOf(DType::kF16), 2);
  EXPECT_EQ(SizeOf(DType::kBF16), 2);
  EXPECT_EQ(SizeOf(DType::kF32), 4);
  EXPECT_EQ(SizeOf(DType::kI32), 4);
  EXPECT_EQ(SizeOf(DType::kF64), 8);
  EXPECT_EQ(SizeOf(DType::kI64), 8);
}

TEST(DTypeTest, Classes) {
  for (DType dtype : kAll) {
    const bool low = dtype == DType::kF16 || dtype == DType::kBF16;
    EXPECT_EQ(IsLow(dtype), low);
    EXPECT_EQ(IsFloat(dtype),
              low || dtype == DType::kF32 || dtype == DType::kF64);
  }
  EXPECT_FALSE(IsFloat(DType::kInvalid));
}

}  // namespace
}  // namespace halftone
