// Sums in a binary tree, made as a counter counts: partial sum l is one of 2^l
// terms, and there where bit l of the number of terms so far is 1. Of 2^k
// terms every aligned group of 2^j is a subtree, whoever adds it up.
#ifndef HALFTONE_KERNELS_FUNCTORS_TREE_SUM_H_
#define HALFTONE_KERNELS_FUNCTORS_TREE_SUM_H_

#include <cstdint>

#include "kernels/functors/norm.h"

namespace halftone {
namespace functors {

// Enough for the ranks of any run.
inline constexpr int kTreeLevels = 20;

// Of how many partial sums term number `term` completes the next one.
HT_HOST_DEVICE inline int CarriesOf(int64_t term) {
  int carries = 0;
  while (term >> carries & 1) ++carries;
  return carries;
}

// The sum of `terms` terms, 1 or more: tree.At(i) is a term, tree.Add(a, b)
// the sum of two, the earlier one first.
template <typename T, typename Tree>
HT_HOST_DEVICE T SumInTree(const Tree& tree, int terms) {
  T partials[kTreeLevels];
  for (int i = 0; i < terms; ++i) {
    T carry = tree.At(i);
    const int carries = CarriesOf(i);
    for (int l = 0; l < carries; ++l) carry = tree.Add(partials[l], carry);
    partials[carries] = carry;
  }
  int level = CarriesOf(~static_cast<int64_t>(terms));
  T total = partials[level];
  while (terms >> ++level != 0) {
    if (terms >> level & 1) total = tree.Add(partials[level], total);
  }
  return total;
}

// A channel's statistics.
struct Statistics {
  float mean, variance, count;
};

HT_HOST_DEVICE inline void Take(const Statistics& part, Moments* all) {
  const double count = static_cast<double>(part.count);
  all->Take(static_cast<double>(part.mean),
            static_cast<double>(part.variance) * count, count);
}

// As Moments combines, rounded: the same whether one rank has both or each its
// own. What has no rows changes no bit of the other; of nothing: 0.
HT_HOST_DEVICE inline Statistics CombineTwo(const Statistics& a,
                                            const Statistics& b) {
  Moments both;
  Take(a, &both);
  Take(b, &both);
  if (both.count == 0) return {0.0f, 0.0f, 0.0f};
  return {static_cast<float>(both.mean),
          static_cast<float>(both.m2 / both.count),
          static_cast<float>(both.count)};
}

// Those of all ranks in a tree.
struct RankStatsTree {
  RankStats stats;
  int64_t channel;

  HT_HOST_DEVICE Statistics At(int rank) const {
    const int64_t at = rank * stats.stride;
    return {stats.mean[at + channel], stats.variance[at + channel],
            stats.count[at]};
  }
  HT_HOST_DEVICE Statistics Add(const Statistics& a,
                                const Statistics& b) const {
    return CombineTwo(a, b);
  }
};

HT_HOST_DEVICE inline MeanVariance CombineRanks(const RankStats& stats,
                                                int64_t channel, bool in_tree) {
  if (!in_tree) return CombineRanks(stats, channel);
  const auto all =
      SumInTree<Statistics>(RankStatsTree{stats, channel}, stats.ranks);
  return {all.mean, all.variance};
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_TREE_SUM_H_
