#include "runtime/log/words.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;

TEST(Count, OneIsSingular) {
  EXPECT_EQ(Count(0, "step"), "0 steps");
  EXPECT_EQ(Count(1, "thread"), "1 thread");
  EXPECT_EQ(Count(2, "batch"), "2 batches");
  EXPECT_EQ(Count(2, "epoch"), "2 epochs");
  EXPECT_EQ(Count(1438, "sample"), "1,438 samples");
}

TEST(JoinFew, SaysHowManyMore) {
  EXPECT_EQ(JoinFew({}, 2), "");
  EXPECT_EQ(JoinFew({"a", "b"}, 2), "a b");
  EXPECT_EQ(JoinFew({"a", "b", "c", "d"}, 2), "a b and 2 more");
  EXPECT_EQ(JoinFew({"a", "b", "c"}, 1, "; "), "a; and 2 more");
}

TEST(ThreeDigits, HasNoPowerOfTenWhereDigitsDo) {
  EXPECT_EQ(ThreeDigits(0), "0");
  EXPECT_EQ(ThreeDigits(0.11314), "0.113");
  EXPECT_EQ(ThreeDigits(2.4), "2.4");
  EXPECT_EQ(ThreeDigits(999.6), "1000");
  EXPECT_EQ(ThreeDigits(-3340.4), "-3340");
  EXPECT_EQ(ThreeDigits(1234567), "1234567");
  EXPECT_EQ(ThreeDigits(3e7), "3e+07");
  EXPECT_EQ(ThreeDigits(1.25e-5), "1.25e-05");
  EXPECT_EQ(ThreeDigits(-NAN), "nan");
  EXPECT_EQ(ThreeDigits(INFINITY), "inf");
}

TEST(Duration, InUnitsThatPeopleRead) {
  EXPECT_EQ(Duration(0.04), "0.0 s");
  EXPECT_EQ(Duration(5.74), "5.7 s");
  EXPECT_EQ(Duration(9.97), "10 s");
  EXPECT_EQ(Duration(89.6), "90 s");
  EXPECT_EQ(Duration(200), "3 min");
  EXPECT_EQ(Duration(7800), "2 h 10 min");
}

TEST(Apportion, SharesSumToTheWhole) {
  EXPECT_THAT(Apportion(100, {1, 1, 1}), ElementsAre(34, 33, 33));
  EXPECT_THAT(Apportion(100, {0.4, 0, 99.6}), ElementsAre(0, 0, 100));
  EXPECT_THAT(Apportion(10, {2.6, -1, 7.4}), ElementsAre(3, 0, 7));
  EXPECT_THAT(Apportion(100, {0, 0}), ElementsAre(0, 0));
  EXPECT_THAT(Apportion(100, {}), ElementsAre());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
