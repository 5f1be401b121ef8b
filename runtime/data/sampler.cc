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

SampleRange PartOf(int64_t samples, int64_t parts, int64_t number) {
  const int64_t each = samples / parts, more = samples % parts;
  return {number * each + std::min(number, more),
          each + (number < more ? 1 : 0)};
}

SampleRange RankRange(const SamplerOptions& options, int64_t samples,
                      int rank) {
  if (options.unit > 0) {
    const int64_t begin = std::min(samples, rank * options.unit);
    return {begin, std::min(options.unit, samples - begin)};
  }
  if (options.shards == 0) return PartOf(samples, options.world_size, rank);
  const int64_t own = options.shards / options.world_size;
  const int64_t begin = PartOf(samples, options.shards, rank * own).begin;
  const SampleRange last =
      PartOf(samples, options.shards, rank * own + own - 1);
  return {begin, last.begin + last.count - begin};
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {}

int64_t Sampler::samples_per_epoch() const {
  const int64_t n = options_.size;
  const int64_t parts =
      options_.shards > 0 ? options_.shards : options_.world_size;
  switch (options_.tail) {
    case Tail::kExact:
      return n;
    case Tail::kPad:
      return (n + parts - 1) / parts * parts;
    case Tail::kDrop:
      return n / parts * parts;
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
  const SampleRange slice = RankRange(options_, n, options_.rank);
  const int64_t first = begin + slice.begin;
  Share share = std::move(reuse);
  share.global_count = n;
  share.largest_count = RankRange(options_, n, 0).count;
  share.first_sample = epoch * samples_per_epoch() + first;
  share.indices.clear();
  const int64_t largest = std::min(options_.batch, samples_per_epoch());
  share.indices.reserve(RankRange(options_, largest, 0).count);
  for (int64_t i = 0; i < slice.count; ++i) {
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
    counts.push_back(RankRange(options_, n, options_.rank).count);
  }
  std::sort(counts.rbegin(), counts.rend());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace runtime
}  // namespace halftone
