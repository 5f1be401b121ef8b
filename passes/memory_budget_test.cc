#include "passes/memory_budget.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "passes/options/byte_text.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kUnlimited = 100'000'000;

// What a step needs at a memory.recompute.within.
using Peaks = std::function<int64_t(int64_t within)>;

struct Fitted {
  absl::StatusOr<Options> options;
  std::string note;
  int questions = 0;
};

Fitted Fit(int64_t budget, const Peaks& peaks) {
  const auto strategy = ParseStrategy(
      absl::StrCat(
          "optimizer { sgd {} } train { batch_size: 8 memory_budget: '", budget,
          "' }"),
      "test");
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  const auto options = ResolveOptions(*strategy, {});
  EXPECT_TRUE(options.ok()) << options.status();
  Fitted fitted;
  const auto peak = [&](const Options& asked, int64_t samples) {
    EXPECT_EQ(samples, 8);
    ++fitted.questions;
    const auto within =
        BytesFromText(asked.strategy.memory().recompute().within());
    return absl::StatusOr<int64_t>(within ? peaks(*within) : kUnlimited);
  };
  fitted.options = FitToBudget(*options, peak, "one rank", &fitted.note);
  EXPECT_LE(fitted.questions, 64);
  return fitted;
}

int64_t WithinOf(const Fitted& fitted) {
  EXPECT_TRUE(fitted.options.ok()) << fitted.options.status();
  if (!fitted.options.ok()) return -1;
  return *BytesFromText(fitted.options->strategy.memory().recompute().within());
}

// Steps of 1 % up to 40,000,000, where all is kept.
int64_t Growing(int64_t within) {
  return within >= 40'000'000 ? kUnlimited
                              : 60'000'000 + within / 1'000'000 * 1'000'000;
}

TEST(MemoryBudget, TakesTheLargestOfAPlanThatGrows) {
  const Fitted fitted = Fit(80'000'000, Growing);
  EXPECT_GE(WithinOf(fitted), 18'000'000);
  EXPECT_LE(Growing(WithinOf(fitted)), 80'000'000);
  EXPECT_LT(fitted.questions, 18);
}

// Copies that need room themselves: the least is in between.
Peaks DentFrom(int64_t begin) {
  return [begin](int64_t within) {
    if (within >= 40'000'000) return kUnlimited;
    if (within >= begin && within < begin + 2'000'000) {
      return int64_t{75'000'000};
    }
    return within < 20'000'000 ? 80'000'000 : 80'000'000 + within / 4;
  };
}

TEST(MemoryBudget, FindsWhatLiesInADent) {
  for (int64_t begin = 1'000'000; begin < 18'000'000; begin += 500'000) {
    for (const int64_t budget : {75'000'000, 79'999'999}) {
      const int64_t within = WithinOf(Fit(budget, DentFrom(begin)));
      EXPECT_TRUE(within >= begin && within < begin + 2'000'000) << begin;
    }
  }
}

TEST(MemoryBudget, SaysTheLeastThatWasFoundAndHow) {
  const Fitted refused = Fit(74'999'999, DentFrom(12'000'000));
  ASSERT_FALSE(refused.options.ok());
  const std::string message(refused.options.status().message());
  EXPECT_THAT(message, HasSubstr("train.memory_budget: 71.5 MiB cannot be met "
                                 "at 8 samples on one rank: it needs 95.4 MiB, "
                                 "and with recompute the least that was found "
                                 "is 71.5 MiB (75,000,000 B), by "
                                 "memory.recompute.within 1"));
}

// Compressed as asked for it takes 80,000,000, which no `within` meets.
Fitted FitCompressed(int64_t budget) {
  const auto strategy = ParseStrategy(
      absl::StrCat("optimizer { sgd {} } memory { compress { bits: 4 } } "
                   "train { batch_size: 8 memory_budget: '",
                   budget, "' }"),
      "test");
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  const auto options = ResolveOptions(*strategy, {});
  EXPECT_TRUE(options.ok()) << options.status();
  Fitted fitted;
  const auto peak = [](const Options& asked,
                       int64_t) -> absl::StatusOr<int64_t> {
    const proto::Memory& memory = asked.strategy.memory();
    if (!memory.recompute().within().empty()) {
      return Growing(*BytesFromText(memory.recompute().within())) + 30'000'000;
    }
    return memory.compress().bits() > 0 ? 80'000'000 : kUnlimited;
  };
  fitted.options = FitToBudget(*options, peak, "one rank", &fitted.note);
  return fitted;
}

TEST(MemoryBudget, TakesWhatFitsAsItWasAskedFor) {
  const Fitted fitted = FitCompressed(80'000'000);
  ASSERT_TRUE(fitted.options.ok()) << fitted.options.status();
  EXPECT_EQ(fitted.options->strategy.memory().compress().bits(), 4);
  EXPECT_EQ(fitted.options->strategy.memory().recompute().within(), "");
  EXPECT_EQ(fitted.note,
            "76.3 MiB of 76.3 MiB at 8 samples on one rank: compressed as "
            "asked for, nothing is made again");
  const Fitted roomy = FitCompressed(kUnlimited);
  ASSERT_TRUE(roomy.options.ok()) << roomy.options.status();
  EXPECT_EQ(roomy.options->strategy.memory().compress().bits(), 0);
  const Fitted refused = FitCompressed(79'999'999);
  ASSERT_FALSE(refused.options.ok());
  EXPECT_THAT(std::string(refused.options.status().message()),
              HasSubstr("it needs 76.3 MiB, and with recompute and 4 bits the "
                        "least that was found is 76.3 MiB (80,000,000 B); "
                        "raise it"));
}

// Parameters are most of it: little room is left for what is chosen.
TEST(MemoryBudget, LooksWhereSomethingIsMadeAgain) {
  const auto peaks = [](int64_t within) {
    if (within >= 1'000'000) return kUnlimited;
    return within >= 300'000 && within < 400'000 ? kUnlimited - 900'000
                                                 : kUnlimited - 500'000;
  };
  const int64_t within = WithinOf(Fit(kUnlimited - 900'000, peaks));
  EXPECT_EQ(peaks(within), kUnlimited - 900'000) << within;
}

TEST(MemoryBudget, SaysWhereRecomputeIsOfNoUse) {
  const Fitted refused = Fit(50, [](int64_t) { return kUnlimited; });
  ASSERT_FALSE(refused.options.ok());
  EXPECT_THAT(std::string(refused.options.status().message()),
              HasSubstr("found is 95.4 MiB (100,000,000 B); raise it or lower "
                        "train.batch_size"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
