// Ops of Paddle's that write by places. (That they compute what Paddle does:
// tests/cli/paddle_ops_oracle.py.)
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/paddle_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using paddle_testing::Longs;
using paddle_testing::Op;
using paddle_testing::Text;
using paddle_testing::Var;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// x[range] = value, which has these dims, or 1.5.
std::string Set(const std::string& x, const std::string& axes,
                const std::string& starts, const std::string& ends,
                const std::string& steps, const std::string& value = "",
                const std::string& more = "") {
  const std::string range = Longs("axes", axes) + Longs("starts", starts) +
                            Longs("ends", ends) + Longs("steps", steps) + more;
  const std::string one =
      "attrs { name: 'fp32_values' type: FLOATS floats: [1.5] } ";
  const std::string vars = Var("x", x) + Var("v", value) + Var("out", "");
  return Text(vars +
              (value.empty()
                   ? Op("set_value", {"Input:x"}, {"Out:out"}, range + one)
                   : Op("set_value", {"Input:x", "ValueTensor:v"}, {"Out:out"},
                        range)));
}

TEST(PaddleScatters, RangesAreJoinedAgain) {
  // In the middle, at an end, of everything.
  EXPECT_THAT(Set("-1, 4", "1", "1", "3", "1"),
              AllOf(HasSubstr("\"concat\""), HasSubstr("f: 1.5"),
                    Not(HasSubstr("\"scatter\""))));
  EXPECT_THAT(Set("-1, 4", "1", "-2", "2147483647", "1"),
              HasSubstr("ints: [2]"));
  EXPECT_THAT(Set("-1, 4", "1", "0", "2147483647", "1"),
              Not(HasSubstr("\"concat\"")));
  EXPECT_THAT(Set("-1, 4", "0", "0", "2147483647", "1"),
              Not(HasSubstr("\"concat\"")));
  EXPECT_THAT(Set("3, 4", "", "", "", "", "3, 4"), Not(HasSubstr("concat")));
}

TEST(PaddleScatters, StepsAreSlicesByNumber) {
  EXPECT_THAT(Set("-1, 5", "1", "0", "2147483647", "2"),
              AllOf(HasSubstr("\"scatter\""), HasSubstr("\"arange\"")));
  EXPECT_THAT(Set("-1, 5", "1", "-1", "0", "-2", "-1, 2"),
              AllOf(HasSubstr("f: -2"), HasSubstr("f: 4")));
}

TEST(PaddleScatters, ValuesStandBesideWhatIsSet) {
  const std::string row =
      Set("-1, 3, 4", "1", "1", "2", "1", "-1, 4", Longs("decrease_axes", "1"));
  EXPECT_THAT(row, HasSubstr("ints: [-1, 1, 4]"));
  EXPECT_THAT(
      Set("3, 4", "1", "1", "2", "1", "3, 1, 4", Longs("decrease_axes", "1")),
      HasSubstr("a value of the dims that are set, found [3, 1, 4]"));
}

TEST(PaddleScatters, RangesThatHoldNothing) {
  const char* const empty = "elements of known dims within starts and ends";
  EXPECT_THAT(Set("-1, 4", "1", "3", "1", "1"), HasSubstr(empty));
  EXPECT_THAT(Set("-1, 4", "1", "0", "4", "0"), HasSubstr(empty));
  EXPECT_THAT(Set("-1, 4", "0", "0", "4", "2"), HasSubstr(empty));
  EXPECT_THAT(Set("-1, 4", "0", "1", "2147483647", "1"), HasSubstr(empty));
  EXPECT_THAT(Set("-1, 4", "1", "9223372036854775807", "-9223372036854775808",
                  "-9223372036854775808"),
              HasSubstr("\"scatter\""));
  EXPECT_THAT(Set("-1, 4", "2", "0", "4", "1"),
              HasSubstr("an axis that is there"));
  EXPECT_THAT(Set("-1, 4", "1", "0", "4, 5", "1"),
              HasSubstr("in numbers, one of each axis"));
  EXPECT_THAT(Set("-1, 4", "1", "0", "4", "1", "", Longs("none_axes", "0")),
              HasSubstr("in numbers, one of each axis"));
}

std::string Put(const std::string& value, const std::string& index,
                const std::string& dtype, const std::string& indices = "i") {
  return Text(absl::StrCat(
      Var("x", "5, 3"), Var("v", value), Var("i", index, "", dtype),
      Var("out", ""),
      Op("index_put", {"x:x", "value:v", "indices:" + indices}, {"out:out"})));
}

TEST(PaddleScatters, MasksAreChoices) {
  EXPECT_THAT(Put("1", "5, 3", "BOOL"),
              AllOf(HasSubstr("\"where\""), Not(HasSubstr("unsqueeze"))));
  EXPECT_THAT(Put("1", "5", "BOOL"), HasSubstr("\"unsqueeze"));
  EXPECT_THAT(Put("2", "5, 3", "BOOL"), HasSubstr("one value, where a mask"));
  EXPECT_THAT(Put("1", "5, 3, 1", "BOOL"), HasSubstr("where a mask is true"));
}

TEST(PaddleScatters, SlicesByNumber) {
  EXPECT_THAT(Put("2, 3", "2", "INT64"), HasSubstr("\"scatter\""));
  EXPECT_THAT(Put("2", "2", "INT64", "i,i"), HasSubstr("one list of numbers"));
  const auto added = [](const char* x, const char* dtype) {
    return Text(absl::StrCat(
        Var("x", x, "", dtype), Var("i", "2, 2", "", "INT64"),
        Var("u", "2", "", dtype), Var("out", "", "", dtype),
        Op("scatter_nd_add", {"X:x", "Index:i", "Updates:u"}, {"Out:out"})));
  };
  EXPECT_THAT(added("5, 3", "FP32"),
              AllOf(HasSubstr("\"scatter\""), HasSubstr("\"overwrite\"")));
  EXPECT_THAT(added("5, 3", "INT64"), HasSubstr("expected floats to add to"));
  EXPECT_THAT(added("5", "FP32"), HasSubstr("an Index of [..., first dims"));
}

}  // namespace
}  // namespace halftone
