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
  EXPECT_EQ(Create("init_constant", {{"shape", Ints{16, 1, 5, 5}}}),
            "Out=f32[16,1,5,5]");
  EXPECT_EQ(Create("init_constant", {{"dtype", DType::kI64}}), "Out=i64[]");
  for (const char* op :
       {"init_uniform", "init_normal", "init_truncated_normal"}) {
    EXPECT_EQ(Create(op, {{"shape", Ints{4, 0}}, {"dtype", "f16"}}),
              "Out=f16[4,0]")
        << op;
  }
}

TEST(Creation, Errors) {
  EXPECT_EQ(Create("init_constant", {{"shape", Ints{-1, 4}}}),
            "op (init_constant): attribute shape: expected dims from 0 up, "
            "found [-1, 4]; cells have constant dims");
  EXPECT_THAT(Create("init_normal", {{"dtype", DType::kI64}}),
              HasSubstr("attribute dtype: expected f32, f16, bf16, found i64"));
}

TEST(ElementCount, TakesAnything) {
  EXPECT_EQ(Infer({"element_count", {{"X", "i64[B,S]"}}}), "Out=f32[]");
  EXPECT_EQ(Infer({"element_count", {{"X", "f16[]"}}}), "Out=f32[]");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
