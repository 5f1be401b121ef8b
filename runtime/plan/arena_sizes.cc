#include "runtime/plan/arena_sizes.h"

#include <algorithm>

namespace halftone {
namespace runtime {

void ArenaSizes::Add(const std::string& entry, const ArenaBytes& bytes) {
  ArenaBytes& own = per_entry_[entry];
  for (int k = 0; k < kArenas; ++k) {
    int64_t& size = PerEntry(static_cast<ArenaKind>(k)) ? own[k] : shared_[k];
    size = std::max(size, bytes[k]);
  }
}

ArenaBytes ArenaSizes::Sums() const {
  ArenaBytes sums = shared_;
  for (const auto& [entry, own] : per_entry_) {
    for (int k = 0; k < kArenas; ++k) sums[k] += own[k];
  }
  return sums;
}

}  // namespace runtime
}  // namespace halftone
