// Nets of [N, H, W, C]. (That they compute what Paddle does:
// tests/cli/paddle_oracle_test.)
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/paddle_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using paddle_testing::Op;
using paddle_testing::Param;
using paddle_testing::Text;
using paddle_testing::Var;
using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

std::string Strings(const char* name, const char* value) {
  return absl::StrCat("attrs { name: '", name, "' type: STRING s: '", value,
                      "' } ");
}
const char kLast[] = "NHWC";

std::string Conv(const std::string& x, const std::string& filter,
                 const std::string& out) {
  return Op("conv2d", {"Input:" + x, "Filter:" + filter}, {"Output:" + out},
            Strings("data_format", kLast) +
                "attrs { name: 'strides' type: INTS ints: [1, 1] } "
                "attrs { name: 'paddings' type: INTS ints: [1, 1] } "
                "attrs { name: 'dilations' type: INTS ints: [1, 1] } "
                "attrs { name: 'groups' type: INT i: 1 } ");
}
std::string Joined(const std::string& x, const std::string& y,
                   const std::string& out) {
  return Op("elementwise_add", {"X:" + x, "Y:" + y}, {"Out:" + out},
            "attrs { name: 'axis' type: INT i: -1 } ");
}
std::string Net(const std::string& more) {
  std::string vars = Var("x", "-1, 6, 6, 3");
  for (const char* const name : {"a", "b", "c", "d", "e", "f"}) {
    absl::StrAppend(&vars, Var(name, "-1, 6, 6, 4"));
  }
  return Text(absl::StrCat(vars, Param("w", "4, 3, 3, 3"),
                           Param("v", "4, 4, 3, 3"), Param("bias", "4"),
                           Conv("x", "w", "a"), more));
}

TEST(PaddleChannelsLast, NothingIsTransposedWithinANet) {
  const std::string net =
      Net(Joined("a", "bias", "b") + Op("relu", {"X:b"}, {"Out:c"}) +
          Conv("c", "v", "d") + Joined("d", "c", "e"));
  // Of the feed, and of the output.
  EXPECT_EQ(Count(net, "\"transpose2\""), 2) << net;
  // The bias goes with the channels, which are dim 1 there.
  EXPECT_THAT(net, HasSubstr("{ name: \"axis\" i: 1 }"));
  EXPECT_THAT(net, Not(HasSubstr(kLast)));
}

TEST(PaddleChannelsLast, JoinsAlongChannels) {
  const std::string net =
      Net(Conv("x", "w", "b") + Op("concat", {"X:a,b"}, {"Out:c"},
                                   "attrs { name: 'axis' type: INT i: 3 } "));
  EXPECT_EQ(Count(net, "\"transpose2\""), 2) << net;
  EXPECT_THAT(net, HasSubstr("{ name: \"axis\" i: 1 }"));
}

TEST(PaddleChannelsLast, OthersReadWhatPaddleHas) {
  // A sum over the width: of the transposed value.
  const std::string net =
      Net(Op("reduce_sum", {"X:a"}, {"Out:b"},
             "attrs { name: 'dim' type: INTS ints: [2] } "));
  EXPECT_EQ(Count(net, "\"transpose2\""), 2) << net;
  EXPECT_THAT(net, HasSubstr("{ name: \"dim\" ints: [2] }"));
}

TEST(PaddleChannelsLast, StatisticsStayAsTheyAre) {
  const std::string net = Text(absl::StrCat(
      Var("x", "-1, 6, 6, 3"), Var("y", "-1, 6, 6, 3"), Param("s", "3"),
      Param("o", "3"), Var("m", "3", "persistable: true"),
      Var("v", "3", "persistable: true"),
      Op("batch_norm", {"X:x", "Scale:s", "Bias:o", "Mean:m", "Variance:v"},
         {"Y:y", "MeanOut:m", "VarianceOut:v"},
         Strings("data_layout", kLast))));
  EXPECT_EQ(Count(net, "\"transpose2\""), 2) << net;
  EXPECT_THAT(net, HasSubstr("in { slot: \"Mean\" var: \"m\" }"));
}

}  // namespace
}  // namespace halftone
