#include "graph/base/failed_check.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "graph/base/check.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

void Fail() { HT_CHECK(1 > 2, "numbers are in order"); }

std::function<void(const std::string&)> EndWith(int code) {
  return [code](const std::string& what) {
    std::fprintf(stderr, "<%s>", what.c_str());
    std::_Exit(code);
  };
}

TEST(OnFailedCheckTest, EndsTheProcessItsWay) {
  EXPECT_EXIT(
      {
        const OnFailedCheck outer(EndWith(5));
        const OnFailedCheck inner(EndWith(4));
        Fail();
      },
      ::testing::ExitedWithCode(4),
      "<.*failed_check_test.cc:[0-9]+: 1 > 2: numbers are in order>");
  EXPECT_EXIT(
      {
        const OnFailedCheck outer(EndWith(5));
        { const OnFailedCheck inner(EndWith(4)); }
        Fail();
      },
      ::testing::ExitedWithCode(5), "numbers");
}

// Where nobody ends it, and on threads that are not meant.
TEST(OnFailedCheckTest, TheProcessAborts) {
  EXPECT_EXIT(Fail(), ::testing::KilledBySignal(SIGABRT), "numbers");
  EXPECT_EXIT(
      {
        const OnFailedCheck returns([](const std::string&) {});
        Fail();
      },
      ::testing::KilledBySignal(SIGABRT), "numbers");
  EXPECT_EXIT(
      {
        const OnFailedCheck again([](const std::string&) { Fail(); });
        Fail();
      },
      ::testing::KilledBySignal(SIGABRT), "numbers");
  EXPECT_EXIT(
      {
        const OnFailedCheck mine(EndWith(4));
        std::thread(Fail).join();
      },
      ::testing::KilledBySignal(SIGABRT), "numbers");
}

}  // namespace
}  // namespace halftone
