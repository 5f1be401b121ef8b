#include "graph/base/stable_hasher.h"

// For the size of a state.
#define XXH_STATIC_LINKING_ONLY
#include "xxhash.h"

namespace halftone {

struct StableHasher::State {
  XXH64_state_t xxh;
};

StableHasher::StableHasher() : state_(new State) {
  XXH64_reset(&state_->xxh, 0);
}

StableHasher::~StableHasher() = default;

void StableHasher::Append(absl::string_view part) {
  XXH64_update(&state_->xxh, part.data(), part.size());
}

uint64_t StableHasher::hash() const { return XXH64_digest(&state_->xxh); }

}  // namespace halftone
