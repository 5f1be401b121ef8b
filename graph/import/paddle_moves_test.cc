// (That they compute what Paddle does: tests/cli/paddle_oracle_test.)
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/paddle_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using paddle_testing::Op;
using paddle_testing::Text;
using paddle_testing::Var;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Moved(const std::string& type, const std::string& x,
                  const std::string& attrs, const std::string& y = "",
                  const std::string& dtype = "FP32") {
  const std::string feeds =
      absl::StrCat(Var("x", x, "", dtype),
                   y.empty() ? "" : Var("y", y, "", dtype), Var("out", ""));
  std::vector<std::string> in = {"X:x"};
  if (!y.empty()) in.push_back("Y:y");
  return Text(absl::StrCat(feeds, Op(type, in, {"Out:out"}, attrs)));
}
std::string Flag(const char* name) {
  return absl::StrCat("attrs { name: '", name, "' type: BOOLEAN b: true } ");
}

TEST(PaddleMovesTest, ProductsOfOtherRanks) {
  const std::string shared = R"(type: "transpose2")";
  EXPECT_THAT(Moved("matmul_v2", "-1, 4, 5", "", "-1, 5, 6"),
              Not(HasSubstr(shared)));
  // A matrix on the left goes to the right.
  EXPECT_THAT(
      Moved("matmul_v2", "3, 5", "", "-1, 5, 6"),
      AllOf(HasSubstr(shared), HasSubstr(R"(in { slot: "Y" var: "x" })"),
            HasSubstr(R"(name: "trans_y" b: true)")));
  EXPECT_THAT(Moved("matmul_v2", "-1, 5, 3", Flag("trans_x"), "5, 6"),
              AllOf(HasSubstr(shared), Not(HasSubstr("trans_x"))));
  EXPECT_THAT(Moved("matmul_v2", "-1, 1, 4, 5", "", "-1, 2, 5, 6"),
              HasSubstr("ints: [-1, 2, -1, -1]"));
  EXPECT_THAT(Moved("matmul_v2", "-1, 4, 5", "", "5"),
              HasSubstr(R"(type: "squeeze2")"));
  EXPECT_THAT(Moved("matmul_v2", "2, 4, 5", "", "-1, 2, 5, 6"),
              HasSubstr("repeated as the batch is, found [2, 4, 5]"));
}

TEST(PaddleMovesTest, WholeNumbersAreScaledAsFloats) {
  const std::string attrs = "attrs { name: 'bias' type: FLOAT f: 1.5 } ";
  EXPECT_THAT(Moved("scale", "-1", attrs), Not(HasSubstr("cast")));
  EXPECT_THAT(Moved("scale", "-1", attrs, "", "INT64"),
              AllOf(HasSubstr(R"(name: "to" s: "f32")"),
                    HasSubstr(R"(name: "bias" f: 1 )"),
                    HasSubstr(R"(name: "to" s: "i64")")));
  // By 1: as they are.
  EXPECT_THAT(Moved("scale", "-1", "", "", "INT64"),
              AllOf(HasSubstr("\"assign\""), Not(HasSubstr("\"cast\""))));
}

TEST(PaddleMovesTest, WholeNumbersAreSummedAsFloats) {
  const std::string dim = "attrs { name: 'dim' type: LONGS longs: 1 } ";
  EXPECT_THAT(Moved("reduce_sum", "-1, 3", dim), Not(HasSubstr("cast")));
  EXPECT_THAT(Moved("reduce_sum", "-1, 3", dim, "", "INT64"),
              AllOf(HasSubstr(R"(name: "to" s: "f32")"),
                    HasSubstr(R"(name: "dim" ints: [1])")));
}

// Paddle writes axes as LONGS, or as INTS, as it likes.
TEST(PaddleMovesTest, LogicalReductionsHaveAxes) {
  for (const char* const type : {"reduce_any", "reduce_all"}) {
    for (const char* const dim : {"LONGS longs", "INTS ints"}) {
      const std::string attrs =
          absl::StrCat("attrs { name: 'dim' type: ", dim, ": 1 } ");
      EXPECT_THAT(Moved(type, "-1, 3", attrs, "", "BOOL"),
                  HasSubstr(R"(name: "dim" ints: [1])"));
    }
  }
}

TEST(PaddleMovesTest, MovesThatAreSeveralOfOurs) {
  const std::string lower = Moved("tril_triu", "-1, 3, 4", Flag("lower"));
  EXPECT_THAT(lower, AllOf(HasSubstr(R"(type: "less_equal")"),
                           HasSubstr(R"(in { slot: "X" var: "x" })")));
  EXPECT_THAT(Moved("tril_triu", "3, 4",
                    "attrs { name: 'lower' type: BOOLEAN "
                    "b: false } "),
              HasSubstr(R"(in { slot: "Y" var: "x" })"));
  EXPECT_THAT(Moved("tril_triu", "-1, 4", ""),
              HasSubstr("a matrix of known dims, found [-1, 4]"));
  const std::string shifts =
      "attrs { name: 'shifts' type: LONGS longs: 1 } "
      "attrs { name: 'axis' type: LONGS longs: ";
  EXPECT_THAT(Moved("roll", "-1, 3", absl::StrCat(shifts, "-1 } ")),
              HasSubstr(R"(type: "concat")"));
  EXPECT_THAT(Moved("roll", "-1, 3", absl::StrCat(shifts, "0 } ")),
              HasSubstr("axes of known dims"));
  EXPECT_THAT(Moved("expand_as_v2", "-1, 1", "", "-1, 3"),
              HasSubstr("ints: [-1, 3]"));
  EXPECT_THAT(Moved("expand_as_v2", "1, 3", "", "-1, 3"),
              HasSubstr("repeated as the batch is"));
  EXPECT_THAT(Moved("fused_softmax_mask_upper_triangle", "-1, 2, 4, 4", ""),
              AllOf(HasSubstr("less_equal"), HasSubstr(R"(type: "softmax")")));
  EXPECT_THAT(Moved("logsumexp", "-1, 3", ""),
              AllOf(HasSubstr(R"(type: "reduce_max")"),
                    HasSubstr(R"(type: "squeeze2")")));
  const std::string groups = "attrs { name: 'groups' type: INT i: 2 } ";
  EXPECT_THAT(Moved("channel_shuffle", "-1, 6, 4, 4", groups),
              HasSubstr("ints: [-1, 2, 3, 4, 4]"));
  EXPECT_THAT(Moved("channel_shuffle", "-1, 5, 4, 4", groups),
              HasSubstr("C in whole groups, found [-1, 5, 4, 4]"));
  EXPECT_THAT(Moved("bmm", "-1, 2, 3", "", "-1, 3, 4"),
              HasSubstr(R"(type: "matmul_v2")"));
  EXPECT_THAT(Moved("masked_select", "-1, 3", "", "-1, 3"),
              HasSubstr("the data's to say"));
}

}  // namespace
}  // namespace halftone
