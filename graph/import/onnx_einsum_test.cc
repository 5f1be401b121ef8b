// Sums of products by named dims.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Graph;
using onnx_testing::Import;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Of x, f32[N, 4, 6], once or more.
std::string Einsum(const std::string& equation,
                   const std::vector<std::string>& inputs) {
  return Import(Graph(
      Node("Einsum", inputs, "y",
           absl::StrCat("attribute { name: \"equation\" type: STRING s: \"",
                        equation, "\" }"))));
}

TEST(OnnxEinsum, ProductsAreMatricesThatAreReadAsTheyLie) {
  EXPECT_THAT(Einsum("bij,bkj->bik", {"x", "x"}),
              AllOf(HasSubstr("\"matmul\""), Not(HasSubstr("\"transpose\"")),
                    HasSubstr("attr { name: \"trans_y\" b: true }")));
  EXPECT_THAT(Einsum("...ji,...jk->...ik", {"x", "x"}),
              AllOf(HasSubstr("\"matmul\""), Not(HasSubstr("\"transpose\"")),
                    HasSubstr("attr { name: \"trans_x\" b: true }")));
  // Nothing is summed over: no product of matrices.
  EXPECT_THAT(Einsum("bij,bij->bji", {"x", "x"}),
              AllOf(HasSubstr("\"elementwise_mul\""),
                    HasSubstr("\"transpose\""), Not(HasSubstr("matmul"))));
  // What one operand alone has goes first.
  EXPECT_THAT(Einsum("bij,bkl->bk", {"x", "x"}),
              AllOf(HasSubstr("\"reduce_sum\""), Not(HasSubstr("matmul"))));
  // In the order of the alphabet.
  EXPECT_THAT(Einsum("bji", {"x"}), HasSubstr("\"transpose\""));
}

TEST(OnnxEinsum, WhatIsNoSumOfProductsIsRefused) {
  EXPECT_THAT(Einsum("bij", {"x", "x"}),
              HasSubstr("equation bij: expected a term for each input"));
  EXPECT_THAT(Einsum("bi->b", {"x"}), HasSubstr("input 0 has 3 dims"));
  EXPECT_THAT(Einsum("bii->b", {"x"}), HasSubstr("diagonals are not taken"));
  EXPECT_THAT(Einsum("bij,bjk->bik", {"x", "x"}), HasSubstr("dims j differ"));
  EXPECT_THAT(Einsum("bij->bk", {"x"}), HasSubstr("letters of the inputs"));
  EXPECT_THAT(Einsum("b.j->b", {"x"}), HasSubstr("expected letters"));
  EXPECT_THAT(Einsum("b->i->j", {"x"}), HasSubstr("a term for each input"));
  EXPECT_THAT(Einsum("", {"x"}), HasSubstr("input 0 has 3 dims"));
}

}  // namespace
}  // namespace halftone
