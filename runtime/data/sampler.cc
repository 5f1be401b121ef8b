#include "runtime/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/base/philox.h"

namespace halftone {
namespace runtime {
namespace {

// Fisher-Yates with Philox keyed by (seed, epoch): the same order on every
// rank and machine.
void Shuffle(int64_t seed, int64_t epoch, std::vector<int64_t>& order) {
  const uint64_t key = PhiloxKey(static_cast<uint64_t>(seed), 0x5a3b1e00u);
  for (int64_t i = static_cast<int64_t>(order.size()) - 1; i > 0; --i) {
    const Philox4 draw = PhiloxDraw(key, static_cast<uint64_t>(epoch),
                                    static_cast<uint64_t>(i), 0);
    const uint64_t wide = (static_cast<uint64_t>(draw.x[0]) << 32) | draw.x[1];
    // Multiply-shift maps 64 random bits to [0, i]: bias below 2^-32.
    const auto j = static_cast<int64_t>(
        (static_cast<unsigned __int128>(wide) * (i + 1)) >> 64);
    std::swap(order[i], order[j]);
  }
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options) {}

int64_t Sampler::samples_per_epoch() const {
  const int64_t n = options_.size, ranks = options_.world_size;
  switch (options_.tail) {
    case Tail::kExact:
      return n;
    case Tail::kPad:
      return (n + ranks - 1) / ranks * ranks;
    case Tail::kDrop:
      return n / ranks * ranks;
  }
  return n;
}

int64_t Sampler::steps_per_epoch() const {
  return (samples_per_epoch() + options_.batch - 1) / options_.batch;
}

const std::vector<int64_t>& Sampler::Order(int64_t epoch) const {
  if (epoch != order_epoch_) {
    order_.resize(options_.size);
    std::iota(order_.begin(), order_.end(), 0);
    if (options_.shuffle) Shuffle(options_.seed, epoch, order_);
    order_epoch_ = epoch;
  }
  return order_;
}

Share Sampler::At(int64_t epoch, int64_t step, Share reuse) const {
  const std::vector<int64_t>& order = Order(epoch);
  const int64_t begin = step * options_.batch;
  const int64_t n = std::min(options_.batch, samples_per_epoch() - begin);
  const int64_t ranks = options_.world_size, rank = options_.rank;
  // Consecutive slices; the first n mod N ranks take one sample more.
  const int64_t each = n / ranks, more = n % ranks;
  const int64_t first = begin + rank * each + std::min(rank, more);
  Share share = std::move(reuse);
  share.global_count = n;
  share.largest_count = each + (more > 0 ? 1 : 0);
  share.first_sample = epoch * samples_per_epoch() + first;
  const int64_t count = each + (rank < more ? 1 : 0);
  share.indices.clear();
  const int64_t largest = std::min(options_.batch, samples_per_epoch());
  share.indices.reserve((largest + ranks - 1) / ranks);
  for (int64_t i = 0; i < count; ++i) {
    share.indices.push_back(order[(first + i) % options_.size]);
  }
  return share;
}

std::vector<int64_t> Sampler::Counts() const {
  std::vector<int64_t> counts;
  const int64_t last = steps_per_epoch() - 1;
  for (int64_t step : {int64_t{0}, last}) {
    if (step < 0) continue;
    const int64_t n =
        std::min(options_.batch, samples_per_epoch() - step * options_.batch);
    const int64_t ranks = options_.world_size;
    counts.push_back(n / ranks + (options_.rank < n % ranks ? 1 : 0));
  }
  std::sort(counts.rbegin(), counts.rend());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace runtime
}  // namespace halftone
