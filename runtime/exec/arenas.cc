#include "runtime/exec/arenas.h"

#include "graph/base/error.h"

namespace halftone {
namespace runtime {

int64_t Arenas::allocated_bytes() const {
  int64_t bytes = 0;
  const auto add = [&bytes](const std::array<Arena, kArenas>& arenas) {
    for (const Arena& arena : arenas) {
      if (arena != nullptr) bytes += arena->bytes();
    }
  };
  add(shared_);
  for (const auto& [entry, arenas] : per_entry_) add(arenas);
  return bytes;
}

absl::StatusOr<Arenas::Arena> Arenas::Take(ArenaKind kind, int64_t bytes) {
  if (kind == ArenaKind::kCommunication && !device_->asynchronous()) {
    Arena memory = communicator_->Allocate(bytes);
    if (memory != nullptr) return memory;
  }
  return device_->Allocate(bytes);
}

absl::StatusOr<bool> Arenas::Allocate(Stream& stream) {
  bool changed = false;
  const auto grow = [&](Arena& arena, int kind, int64_t bytes) -> absl::Status {
    const int64_t now = arena ? arena->bytes() : 0;
    if (bytes <= now) return absl::OkStatus();
    arena.reset();  // before the new one: the peak stays the plan's
    HT_ASSIGN_OR_RETURN(arena, Take(static_cast<ArenaKind>(kind), bytes));
    changed = true;
    return stream.Fill(arena->data(), 0, bytes);
  };
  for (int k = 0; k < kArenas; ++k) {
    HT_RETURN_IF_ERROR(
        grow(shared_[k], k, reserved_.Shared(static_cast<ArenaKind>(k))));
    for (const auto& [entry, bytes] : reserved_.per_entry()) {
      HT_RETURN_IF_ERROR(grow(per_entry_[entry][k], k, bytes[k]));
    }
  }
  return changed;
}

char* Arenas::At(const std::string& entry, const Slice& slice) const {
  if (slice.bytes == 0) return nullptr;
  const int k = static_cast<int>(slice.arena);
  const Arena& arena =
      ArenaSizes::PerEntry(slice.arena) ? per_entry_.at(entry)[k] : shared_[k];
  return static_cast<char*>(arena->data()) + slice.offset;
}

char* Arenas::State(int64_t offset) const {
  const Arena& arena = shared_[static_cast<int>(ArenaKind::kState)];
  if (arena == nullptr) return nullptr;  // a program without cells
  return static_cast<char*>(arena->data()) + offset;
}

}  // namespace runtime
}  // namespace halftone
