#include "graph/strategy/interval.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace halftone {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(IntervalTest, SaysWhatItHolds) {
  struct Case {
    const char* text;
    bool whole;
    const char* said;
  };
  for (const Case& c : {
           Case{"(0, inf)", false, "a finite number above 0"},
           Case{"[0, inf)", false, "a finite number, 0 or above"},
           Case{"[0, inf]", false, "a number, 0 or above"},
           Case{"(0, 1]", false, "a number above 0 and at most 1"},
           Case{"(0, 1)", false, "a number above 0 and below 1"},
           Case{"[0, 1)", false, "a number from 0 to below 1"},
           Case{"[0, 1]", false, "a number from 0 to 1"},
           Case{"(0, inf)", true, "a whole number above 0"},
           Case{"[0, inf)", true, "a whole number, 0 or above"},
           Case{"[1, 8]", true, "a whole number from 1 to 8"},
       }) {
    const auto interval = ParseInterval(c.text);
    ASSERT_TRUE(interval.has_value()) << c.text;
    EXPECT_EQ(interval->Text(c.whole), c.said);
  }
}

TEST(IntervalTest, EndsBelongToItOrNot) {
  const Interval open = *ParseInterval("(0, 1)");
  EXPECT_FALSE(open.Has(0));
  EXPECT_TRUE(open.Has(0.5));
  EXPECT_FALSE(open.Has(1));
  const Interval closed = *ParseInterval("[0, 1]");
  EXPECT_TRUE(closed.Has(0) && closed.Has(1));
  EXPECT_FALSE(closed.Has(-1e-300));
  EXPECT_FALSE(ParseInterval("[0, inf)")->Has(kInf));
  EXPECT_TRUE(ParseInterval("[0, inf]")->Has(kInf));
  EXPECT_FALSE(ParseInterval("[0, inf]")->Has(std::nan("")));
}

TEST(IntervalTest, RefusesWhatIsNone) {
  for (const char* text : {"", "[", "[]", "0, 1", "[0; 1]", "[1, 0]", "[x, 1]",
                           "(0,1)", "[0, 1", "[nan, 1]"}) {
    EXPECT_FALSE(ParseInterval(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace halftone
