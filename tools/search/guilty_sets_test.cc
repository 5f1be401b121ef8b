#include "tools/search/guilty_sets.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "tools/search/trials.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Sets = std::vector<std::vector<int>>;

bool Contains(const std::vector<int>& members, const std::vector<int>& set) {
  return std::includes(members.begin(), members.end(), set.begin(), set.end());
}

std::vector<int> AllBut(int n, const std::vector<int>& good) {
  std::vector<int> bad;
  for (int i = 0; i < n; ++i) {
    if (!std::binary_search(good.begin(), good.end(), i)) bad.push_back(i);
  }
  return bad;
}

Verdict Miss() { return {/*misses=*/true, 1.0, 1, 1}; }
Verdict Pass() { return {/*misses=*/false, 0.0, 1, 0}; }

// Answers by the sets that are guilty.
struct Asked {
  int n;
  Sets guilty;
  int questions = 0;
  std::set<std::vector<int>> seen;

  Verdict Of(const std::vector<int>& bad) {
    ++questions;
    const bool misses =
        std::any_of(guilty.begin(), guilty.end(),
                    [&](const auto& set) { return Contains(bad, set); });
    return misses ? Miss() : Pass();
  }
  absl::StatusOr<GuiltySets> Find() {
    return FindGuiltySets(
        n, Miss(),
        [this](const std::vector<int>& bad) {
          EXPECT_TRUE(seen.insert(bad).second);
          return Of(bad);
        },
        [this](const std::vector<int>& good) { return Of(AllBut(n, good)); });
  }
};

Sets MembersOf(const GuiltySets& found) {
  Sets sets;
  for (const GuiltySet& set : found.sets) sets.push_back(set.members);
  return sets;
}

TEST(GuiltySetsTest, OneOfAHundredTakesTenQuestions) {
  for (int guilty = 0; guilty < 100; ++guilty) {
    Asked asked = {100, {{guilty}}};
    const auto found = asked.Find();
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(MembersOf(*found), ElementsAre(std::vector<int>{guilty}));
    EXPECT_FALSE(found->cure.misses);
    EXPECT_FALSE(found->needs_all);
    EXPECT_LE(asked.questions, 10);
  }
}

TEST(GuiltySetsTest, PairsAndSeveralSets) {
  Asked asked = {50, {{3, 31}, {7}, {20, 40, 41}}};
  const auto found = asked.Find();
  ASSERT_TRUE(found.ok()) << found.status();
  Sets sets = MembersOf(*found);
  std::sort(sets.begin(), sets.end());
  EXPECT_EQ(sets, (Sets{{3, 31}, {7}, {20, 40, 41}}));
  for (const GuiltySet& set : found->sets) EXPECT_TRUE(set.verdict.misses);
  EXPECT_FALSE(found->cure.misses);
}

TEST(GuiltySetsTest, MissedWithNoneBad) {
  Asked asked = {10, {{}}};
  const auto found = asked.Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->sets, IsEmpty());
  EXPECT_TRUE(found->cure.misses);
  EXPECT_EQ(asked.questions, 1);
}

// Settings that, with the guilty member good, choose worse for the others than
// the bad program did.
TEST(GuiltySetsTest, CureThatNeedsTheOthersAsTheyWere) {
  const auto found = FindGuiltySets(
      8, Miss(),
      [](const std::vector<int>& bad) {
        return Contains(bad, {5}) ? Miss() : Pass();
      },
      [](const std::vector<int>&) { return Miss(); });
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(MembersOf(*found), ElementsAre(std::vector<int>{5}));
  EXPECT_TRUE(found->needs_all);
  EXPECT_FALSE(found->cure.misses);
}

TEST(GuiltySetsTest, AnErrorEndsIt) {
  const auto found = FindGuiltySets(
      8, Miss(),
      [](const std::vector<int>& bad) -> absl::StatusOr<Verdict> {
        if (bad.empty()) return Pass();
        return ModelError("a run was stopped");
      },
      [](const std::vector<int>&) { return Pass(); });
  EXPECT_EQ(found.status().message(), "a run was stopped");
}

// ---- With runs that differ: one of 60 members costs a metric 3 points, each
// run adds normal noise of 1 point, the tolerance is 1.5 points.

constexpr int kMembers = 60, kRuns = 12;

struct Noisy {
  int guilty, runs_made = 0, flaky = 0, programs = 0;

  double ValueOf(const std::string& program, int64_t seed, bool bad) {
    ++runs_made;
    std::mt19937_64 random(
        StableHash(absl::StrCat(program, " ", seed, " ", guilty)));
    return (bad ? 87.0 : 90.0) + std::normal_distribution<double>()(random);
  }

  std::vector<int> Find() {
    const std::string directory =
        absl::StrCat(::testing::TempDir(), "/", getpid(), "-noisy-", guilty);
    auto kept = KeptResults::Open(directory, "bisect", {});
    EXPECT_TRUE(kept.ok()) << kept.status();
    const Tolerance tolerance = {{"top1", Metric::Kind::kShare}, 1.5};
    Trials trials(
        {tolerance.metric, kRuns,
         [this](const CompiledModel& model, int64_t seed) {
           const std::vector<std::string> bad =
               absl::StrSplit(model.fingerprint, ',', absl::SkipEmpty());
           return TrialValue(ValueOf(
               model.fingerprint, seed,
               std::count(bad.begin(), bad.end(), absl::StrCat(guilty)) > 0));
         },
         [](const std::string&) {}},
        &*kept);
    std::optional<Judge> judge;
    const auto verdict =
        [&](const std::string& program) -> absl::StatusOr<Verdict> {
      CompiledModel model;
      model.fingerprint = program;
      const auto runs = trials.Measure(
          model, program, [&](absl::Span<const TrialValue> values) {
            return judge.has_value() && judge->IsDecided(values);
          });
      if (!runs.ok()) return runs.status();
      if (!judge.has_value()) judge = Judge::By(tolerance, *runs);
      const Verdict found = judge->Of(*runs);
      flaky += found.is_flaky();
      ++programs;
      return found;
    };
    EXPECT_TRUE(verdict("good").ok());
    const auto bad = verdict(absl::StrJoin(AllBut(kMembers, {}), ","));
    EXPECT_TRUE(bad.ok() && bad->misses);
    const auto found = FindGuiltySets(
        kMembers, *bad,
        [&](const std::vector<int>& members) {
          return verdict(absl::StrJoin(members, ","));
        },
        [&](const std::vector<int>& good) {
          return verdict(absl::StrJoin(AllBut(kMembers, good), ","));
        });
    EXPECT_TRUE(found.ok() && found->sets.size() == 1) << found.status();
    return found.ok() && !found->sets.empty() ? found->sets[0].members
                                              : std::vector<int>();
  }
};

// A single run would be on the wrong side of the bound in 7 of 100 programs,
// so of eleven programs one is in every second search.
TEST(GuiltySetsTest, FlakyRunsAreRepeatedWhereTheyDecide) {
  int right = 0, runs = 0, programs = 0, flaky = 0;
  for (int guilty = 0; guilty < kMembers; guilty += 3) {
    Noisy noisy = {guilty};
    right += noisy.Find() == std::vector<int>{guilty};
    runs += noisy.runs_made;
    programs += noisy.programs;
    flaky += noisy.flaky;
  }
  EXPECT_GE(right, 18);  // of 20: two standard errors are 1 of 20 wrong at most
  EXPECT_GT(flaky, 0);
  EXPECT_LT(runs, programs * kRuns / 2);
}

}  // namespace
}  // namespace tools
}  // namespace halftone
