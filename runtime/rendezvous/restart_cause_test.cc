#include "runtime/rendezvous/restart_cause.h"

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

TEST(RestartCause, IsReadBackAsItWasTold) {
  const RestartCause told = {2, 1, -1,
                             "signal 9 (SIGKILL): killed from outside"};
  const auto read = FindRestartCause({{kRestartVariable, ToText(told)}});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->attempt, 2);
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->step, -1);
  EXPECT_EQ(read->cause, told.cause);
}

TEST(RestartCause, NothingWhereNobodyTold) {
  EXPECT_FALSE(FindRestartCause({}).has_value());
  for (const char* text : {"", "1 2 3", "x 1 2 y", "1 1 x y"}) {
    EXPECT_FALSE(FindRestartCause({{kRestartVariable, text}}).has_value())
        << text;
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
