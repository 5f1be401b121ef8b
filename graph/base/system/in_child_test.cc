#include "graph/base/system/in_child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(InChildTest, SaysWhatItHasFound) {
  int here = 1;
  const auto end = RunInChild(30, [&](Say say) {
    here = 2;
    std::printf("nobody sees this\n");
    say(std::string(1 << 20, 'a'));
    say("b");
  });
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->said, std::string(1 << 20, 'a') + "b");
  EXPECT_EQ(end->wait_status, 0);
  EXPECT_EQ(here, 1);
}

TEST(InChildTest, TheProcessLivesOn) {
  const auto aborted = RunInChild(30, [](Say say) {
    say("before");
    std::abort();
  });
  ASSERT_TRUE(aborted.ok()) << aborted.status();
  EXPECT_EQ(aborted->said, "before");
  EXPECT_TRUE(WIFSIGNALED(aborted->wait_status));
  EXPECT_EQ(WTERMSIG(aborted->wait_status), SIGABRT);

  const auto exited = RunInChild(30, [](Say) { _exit(3); });
  ASSERT_TRUE(exited.ok()) << exited.status();
  EXPECT_EQ(WEXITSTATUS(exited->wait_status), 3);

  const auto hung = RunInChild(1, [](Say) {
    while (true) pause();
  });
  ASSERT_TRUE(hung.ok()) << hung.status();
  EXPECT_EQ(WTERMSIG(hung->wait_status), SIGALRM);
}

}  // namespace
}  // namespace halftone
