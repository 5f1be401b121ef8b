#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

std::string Create(std::string op, Attrs attrs) {
  return Infer({op, {}, attrs});
}

TEST(Creation, DimsAndDtypeAreAttributes) {
  EXPECT_EQ(Create("fill_constant", {{"shape", Ints{16, 1, 5, 5}}}),
            "Out=f32[16,1,5,5]");
  EXPECT_EQ(Create("fill_constant", {{"dtype", DType::kI64}}), "Out=i64[]");
  for (const char* op :
       {"init_uniform", "init_normal", "init_truncated_normal"}) {
    EXPECT_EQ(Create(op, {{"shape", Ints{4, 0}}, {"dtype", "f16"}}),
              "Out=f16[4,0]")
        << op;
  }
}

// What Paddle writes into its programs.
TEST(Creation, FillConstantTakesPaddlesAttributes) {
  EXPECT_EQ(Create("fill_constant", {{"shape", Ints{1}},
                                     {"dtype", int64_t{3}},
                                     {"value", 2.0},
                                     {"str_value", "2"},
                                     {"force_cpu", false},
                                     {"place_type", int64_t{-1}}}),
            "Out=i64[1]");
  EXPECT_EQ(Create("fill_constant", {{"dtype", int64_t{5}}}), "Out=f32[]");
  EXPECT_EQ(Create("init_constant", {{"dtype", int64_t{22}}}), "Out=bf16[]");
}

TEST(Creation, Errors) {
  EXPECT_EQ(Create("fill_constant", {{"shape", Ints{-1, 4}}}),
            "op (fill_constant): attribute shape: expected dims from 0 up, "
            "found [-1, 4]; where the batch is wanted use dims of 1, which "
            "element-wise ops repeat");
  EXPECT_THAT(Create("fill_constant", {{"str_value", "1.5x"}}),
              HasSubstr("attribute str_value: expected a number in digits"));
  EXPECT_THAT(Create("init_normal", {{"dtype", DType::kI64}}),
              HasSubstr("attribute dtype: expected f32, f16, bf16, found i64"));
}

TEST(ElementCount, TakesAnything) {
  EXPECT_EQ(Infer({"element_count", {{"X", "i64[B,S]"}}}), "Out=f32[]");
  EXPECT_EQ(Infer({"element_count", {{"X", "f16[]"}}}), "Out=f32[]");
}

TEST(Arange, CountsTheSteps) {
  const auto arange = [](double start, double end, double step) {
    return Infer(
        {"arange", {}, {{"start", start}, {"end", end}, {"step", step}}});
  };
  EXPECT_EQ(arange(0, 5, 1), "Out=i64[5]");
  EXPECT_EQ(arange(1, 0, -0.25), "Out=i64[4]");
  EXPECT_EQ(arange(1, 0, 1), "Out=i64[0]");
  EXPECT_THAT(arange(0, 1, 0), HasSubstr("attribute step"));
  EXPECT_THAT(arange(0, 1e300, 1), HasSubstr("attribute step"));
}

TEST(Shape, IsOneNumberPerDim) {
  EXPECT_EQ(Infer({"shape", {{"Input", "f16[B,S,4]"}}}), "Out=i32[3]");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
