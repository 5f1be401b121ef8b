#include "runtime/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SamplerOptions Options(int64_t size, int64_t batch, int ranks, Tail tail) {
  SamplerOptions options;
  options.size = size;
  options.batch = batch;
  options.world_size = ranks;
  options.tail = tail;
  options.seed = 7;
  return options;
}

Sampler OfRank(SamplerOptions options, int rank) {
  options.rank = rank;
  return Sampler(options);
}

// The samples of an epoch's step by rank, side by side.
std::vector<int64_t> Global(const SamplerOptions& options, int64_t epoch,
                            int64_t step) {
  std::vector<int64_t> all;
  for (int rank = 0; rank < options.world_size; ++rank) {
    const Share share = OfRank(options, rank).At(epoch, step);
    all.insert(all.end(), share.indices.begin(), share.indices.end());
  }
  return all;
}

// How many samples each rank takes in the last step.
std::vector<int64_t> LastCounts(const SamplerOptions& options) {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < options.world_size; ++rank) {
    const Sampler sampler = OfRank(options, rank);
    counts.push_back(
        sampler.At(0, sampler.steps_per_epoch() - 1).indices.size());
  }
  return counts;
}

TEST(Sampler, ExactTailsGiveTheFirstRanksOneMore) {
  EXPECT_THAT(LastCounts(Options(30, 30, 2, Tail::kExact)),
              ElementsAre(15, 15));
  EXPECT_THAT(LastCounts(Options(31, 31, 2, Tail::kExact)),
              ElementsAre(16, 15));
  EXPECT_THAT(LastCounts(Options(1, 64, 2, Tail::kExact)), ElementsAre(1, 0));
  EXPECT_THAT(LastCounts(Options(1, 64, 8, Tail::kExact)),
              ElementsAre(1, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(LastCounts(Options(1438, 64, 2, Tail::kExact)),
              ElementsAre(15, 15));
}

// DistributedSampler's numbers for 10 samples on 4 ranks.
TEST(Sampler, PadRepeatsFromTheEpochsStartAndDropDrops) {
  const SamplerOptions pad = Options(10, 12, 4, Tail::kPad);
  EXPECT_EQ(Sampler(pad).samples_per_epoch(), 12);
  EXPECT_THAT(LastCounts(pad), ElementsAre(3, 3, 3, 3));
  const std::vector<int64_t> padded = Global(pad, 0, 0);
  EXPECT_EQ(padded[10], padded[0]);
  EXPECT_EQ(padded[11], padded[1]);
  const SamplerOptions drop = Options(10, 12, 4, Tail::kDrop);
  EXPECT_EQ(Sampler(drop).samples_per_epoch(), 8);
  EXPECT_THAT(LastCounts(drop), ElementsAre(2, 2, 2, 2));
}

TEST(Sampler, AnEpochIsAPermutation) {
  const SamplerOptions options = Options(1438, 64, 3, Tail::kExact);
  std::vector<int64_t> seen;
  for (int64_t step = 0; step < Sampler(options).steps_per_epoch(); ++step) {
    const std::vector<int64_t> part = Global(options, 2, step);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> expected(1438);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(Sampler, TheOrderIsAFunctionOfSeedAndEpoch) {
  SamplerOptions options = Options(100, 100, 1, Tail::kExact);
  const std::vector<int64_t> first = Global(options, 0, 0);
  EXPECT_EQ(Global(options, 0, 0), first);
  EXPECT_NE(Global(options, 1, 0), first);
  options.seed = 8;
  EXPECT_NE(Global(options, 0, 0), first);
  options.shuffle = false;
  const std::vector<int64_t> plain = Global(options, 3, 0);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
}

TEST(Sampler, TheGlobalOrderDoesNotKnowTheRanks) {
  for (int ranks : {2, 3, 8}) {
    for (int64_t step = 0; step < 23; ++step) {
      EXPECT_EQ(Global(Options(1438, 64, ranks, Tail::kExact), 1, step),
                Global(Options(1438, 64, 1, Tail::kExact), 1, step))
          << ranks << " ranks, step " << step;
    }
  }
}

TEST(Sampler, SharesCountTheWorld) {
  const Share share =
      OfRank(Options(31, 31, 2, Tail::kExact), 1).At(/*epoch=*/2, 0);
  EXPECT_EQ(share.global_count, 31);
  EXPECT_EQ(share.largest_count, 16);
  EXPECT_EQ(share.first_sample, 2 * 31 + 16);
  const Share empty = OfRank(Options(1, 64, 8, Tail::kExact), 5).At(0, 0);
  EXPECT_THAT(empty.indices, IsEmpty());
  EXPECT_EQ(empty.largest_count, 1);
}

TEST(Sampler, CountsAreWhatHasToBePlanned) {
  for (int rank : {0, 1}) {
    const SamplerOptions options = Options(95, 64, 2, Tail::kExact);
    const Sampler sampler = OfRank(options, rank);
    std::set<int64_t> found;
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      found.insert(sampler.At(0, step).indices.size());
    }
    const std::vector<int64_t> counts = sampler.Counts();
    EXPECT_EQ(std::set<int64_t>(counts.begin(), counts.end()), found);
    EXPECT_TRUE(std::is_sorted(counts.rbegin(), counts.rend()));
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
