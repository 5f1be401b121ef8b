#include "graph/base/philox.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Words(const Philox4& p) {
  return {p.x[0], p.x[1], p.x[2], p.x[3]};
}

// Known answers from Random123's kat_vectors, philox4x32 10.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_THAT(Words(Philox(0, {{0, 0, 0, 0}})),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  const uint32_t ones = 0xffffffff;
  EXPECT_THAT(Words(Philox(~uint64_t{0}, {{ones, ones, ones, ones}})),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Words(Philox(0x299f31d0a4093822,
                           {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}})),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(PhiloxTest, KeysAndCountersOfNeighboursDiffer) {
  std::set<std::vector<uint32_t>> draws;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (uint32_t stream : {0u, 1u}) {
      for (uint64_t step : {uint64_t{0}, uint64_t{1}}) {
        for (uint64_t sample : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
          for (uint32_t block : {0u, 1u}) {
            draws.insert(Words(
                PhiloxDraw(PhiloxKey(seed, stream), step, sample, block)));
          }
        }
      }
    }
  }
  EXPECT_EQ(draws.size(), 3 * 2 * 2 * 3 * 2);
}

TEST(PhiloxTest, UniformIsBelowOne) {
  EXPECT_EQ(ToUniform(0), 0.0f);
  EXPECT_EQ(ToUniform(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(ToUniform(0x80000000), 0.5f);
}

}  // namespace
}  // namespace halftone
