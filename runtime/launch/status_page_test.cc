#include "runtime/launch/status_page.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

Environment EnvironmentFor(const StatusPage& page) {
  return {{kStatusVariable, absl::StrCat(page.fd())}};
}

TEST(StatusPage, ShowsWhatTheRankReports) {
  auto page = StatusPage::Create();
  ASSERT_TRUE(page.ok()) << page.status();
  RankStatus status = (*page)->Read();
  EXPECT_FALSE(status.attached);
  EXPECT_EQ(status.step, -1);
  EXPECT_EQ(status.activity, "");
  auto rank = StatusReporter::FromEnvironment(EnvironmentFor(**page));
  rank->SetStep(70);
  rank->SetActivity("all_reduce bucket 2");
  rank->SetDevice("cuda:1");
  rank->SetCheckpoint(64);
  rank.reset();
  status = (*page)->Read();
  EXPECT_TRUE(status.attached);
  EXPECT_EQ(status.step, 70);
  EXPECT_EQ(status.checkpoint, 64);
  EXPECT_EQ(status.activity, "all_reduce bucket 2");
  EXPECT_EQ(status.device, "cuda:1");
}

TEST(StatusPage, CutsLongTexts) {
  auto page = StatusPage::Create();
  auto rank = StatusReporter::FromEnvironment(EnvironmentFor(**page));
  rank->SetActivity(std::string(1000, 'x'));
  EXPECT_EQ((*page)->Read().activity, std::string(127, 'x'));
  rank->SetActivity("y");
  EXPECT_EQ((*page)->Read().activity, "y");
}

TEST(StatusPage, WithoutALauncherReportsGoNowhere) {
  const Environment nowhere[] = {{},
                                 {{kStatusVariable, "no number"}},
                                 {{kStatusVariable, "9999"}},
                                 {{kStatusVariable, "0"}}};
  for (const Environment& env : nowhere) {
    auto rank = StatusReporter::FromEnvironment(env);
    rank->SetStep(1);
    rank->SetActivity("x");
    rank->SetCheckpoint(1);
    rank->SetDevice("cpu");
  }
}

// Reading a page whose file was cut would end the launcher.
TEST(StatusPage, NobodyCanCutIt) {
  auto page = StatusPage::Create();
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_NE(ftruncate((*page)->fd(), 0), 0);
  EXPECT_EQ((*page)->Read().step, -1);
}

TEST(StatusPage, ReadersSeeWholeTexts) {
  auto page = StatusPage::Create();
  auto rank = StatusReporter::FromEnvironment(EnvironmentFor(**page));
  rank->SetActivity(std::string(100, 'a'));
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) {
      rank->SetActivity(std::string(100, i % 2 == 0 ? 'a' : 'b'));
    }
  });
  for (int i = 0; i < 20000; ++i) {
    const std::string text = (*page)->Read().activity;
    EXPECT_EQ(text, std::string(100, text[0]));
  }
  writer.join();
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
