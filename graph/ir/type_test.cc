#include "graph/ir/type.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "graph/base/dtype.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

const Dim kB = Dim::Symbol(0);
const Dim kT = Dim::Symbol(1);

std::string Text(const Dim& dim) {
  return ToString(dim, std::vector<std::string>{"B", "T"});
}

// The quotient's text, or "-".
std::string Quotient(const Dim& a, const Dim& b) {
  Dim quotient(77);
  if (a.DivideBy(b, &quotient)) return Text(quotient);
  EXPECT_EQ(quotient, Dim(77));
  return "-";
}

TEST(DimTest, Products) {
  EXPECT_EQ(Dim(), Dim(1));
  EXPECT_EQ(Dim(6) * Dim(7), Dim(42));
  EXPECT_EQ(kB * kT * 3, Dim(3) * kT * kB);
  EXPECT_NE(kB * kB, kB);
  EXPECT_TRUE(Dim(3).is_constant());
  EXPECT_FALSE((kB * 3).is_constant());
  EXPECT_EQ((kB * kB).power(0), 2);
  EXPECT_EQ(kB * 0, Dim(0));
  EXPECT_TRUE((kB * 0).is_constant());
}

TEST(DimTest, Quotients) {
  EXPECT_EQ(Quotient(42, 6), "7");
  EXPECT_EQ(Quotient(42, 5), "-");
  EXPECT_EQ(Quotient(kB * 128, 64), "B*2");
  EXPECT_EQ(Quotient(kB * kT * 128, kB * 128), "T");
  EXPECT_EQ(Quotient(kB, kB), "1");
  EXPECT_EQ(Quotient(Dim(4), kB), "-");
  EXPECT_EQ(Quotient(kB, kT), "-");
  EXPECT_EQ(Quotient(0, 4), "0");
  EXPECT_EQ(Quotient(4, 0), "-");
  EXPECT_EQ(Quotient(4, -1), "-4");
}

TEST(DimTest, Evaluates) {
  SymbolValues values{};
  values[0] = 31;
  values[1] = 5;
  EXPECT_EQ((kB * 128).Evaluate(values), 31 * 128);
  EXPECT_EQ((kB * kB * kT).Evaluate(values), 31 * 31 * 5);
  EXPECT_EQ(Dim(7).Evaluate(values), 7);
}

TEST(DimTest, SaturatesInsteadOfOverflowing) {
  EXPECT_EQ((Dim(kMax) * Dim(2)).coefficient(), kMax);
  EXPECT_EQ((Dim(kMax) * Dim(-2)).coefficient(), kMin);
  EXPECT_EQ((Dim(kMin) * Dim(kMin)).coefficient(), kMax);
  Dim power = kB;
  for (int i = 0; i < 10; ++i) power = power * power;
  EXPECT_EQ(power.power(0), 255);
  SymbolValues values{};
  values[0] = 1 << 20;
  EXPECT_EQ(power.Evaluate(values), kMax);
  Dim quotient;
  EXPECT_TRUE(Dim(kMin).DivideBy(-1, &quotient));
  EXPECT_EQ(quotient.coefficient(), kMax);
}

TEST(DimTest, Prints) {
  EXPECT_EQ(Text(0), "0");
  EXPECT_EQ(Text(768), "768");
  EXPECT_EQ(Text(kB), "B");
  EXPECT_EQ(Text(kB * 128), "B*128");
  EXPECT_EQ(Text(kT * kB * kB * 2), "B*B*T*2");
  EXPECT_EQ(Text(kB * -1), "B*-1");
  EXPECT_EQ(Text(Dim::Symbol(5)), "?5");
}

TensorType Type(DType dtype, Dims dims, Layout layout = Layout::kRowMajor) {
  TensorType type;
  type.dtype = dtype;
  type.layout = layout;
  type.dims = dims;
  return type;
}

TEST(TensorTypeTest, Elements) {
  EXPECT_EQ(Type(DType::kF32, {}).Elements(), Dim(1));
  EXPECT_EQ(Type(DType::kF32, {kB, 3, 4}).Elements(), kB * 12);
  EXPECT_EQ(Type(DType::kF32, {kB, 0}).Elements(), Dim(0));
}

TEST(TensorTypeTest, Prints) {
  const std::vector<std::string> symbols = {"B"};
  EXPECT_EQ(ToString(Type(DType::kF16, {kB * 128, 768}), symbols),
            "f16[B*128,768]");
  EXPECT_EQ(ToString(Type(DType::kI64, {}), symbols), "i64[]");
  EXPECT_EQ(ToString(Type(DType::kBF16, {kB, 3, 8, 8}, Layout::kChannelsLast),
                     symbols),
            "bf16[B,3,8,8] @channels_last");
}

TEST(TensorTypeTest, HashesAgreeWithEquality) {
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly({
      Type(DType::kF32, {}),
      Type(DType::kF16, {}),
      Type(DType::kF32, {1}),
      Type(DType::kF32, {1, 1}),
      Type(DType::kF32, {kB}),
      Type(DType::kF32, {kT}),
      Type(DType::kF32, {kB * kB, 2, 3, 4, 5}),
      Type(DType::kF32, {1, 1, 1, 1}, Layout::kChannelsLast),
  }));
}

}  // namespace
}  // namespace halftone
