#include "runtime/exec/arenas.h"

#include <algorithm>

#include "graph/base/error.h"

namespace halftone {
namespace runtime {

Arenas::Arena& Arenas::Of(const std::string& entry, ArenaKind kind) {
  const int k = static_cast<int>(kind);
  return PerEntry(kind) ? per_entry_[entry][k] : shared_[k];
}

template <typename Visit>
void Arenas::ForEach(Visit visit) const {
  for (const Arena& arena : shared_) visit(arena);
  for (const auto& [entry, arenas] : per_entry_) {
    for (const Arena& arena : arenas) visit(arena);
  }
}

void Arenas::Reserve(const Plan& plan) {
  for (int k = 0; k < kArenas; ++k) {
    Arena& arena = Of(plan.entry, static_cast<ArenaKind>(k));
    arena.reserved = std::max(arena.reserved, plan.arena_bytes[k]);
  }
}

int64_t Arenas::reserved_bytes() const {
  int64_t bytes = 0;
  ForEach([&bytes](const Arena& arena) { bytes += arena.reserved; });
  return bytes;
}

int64_t Arenas::allocated_bytes() const {
  int64_t bytes = 0;
  ForEach([&bytes](const Arena& arena) {
    if (arena.memory != nullptr) bytes += arena.memory->bytes();
  });
  return bytes;
}

absl::StatusOr<std::unique_ptr<Memory>> Arenas::Take(ArenaKind kind,
                                                     int64_t bytes) {
  if (kind == ArenaKind::kCommunication && !device_->asynchronous()) {
    std::unique_ptr<Memory> memory = communicator_->Allocate(bytes);
    if (memory != nullptr) return memory;
  }
  return device_->Allocate(bytes);
}

absl::StatusOr<bool> Arenas::Allocate(Stream& stream) {
  bool changed = false;
  auto grow = [&](Arena& arena, int kind) -> absl::Status {
    const int64_t now = arena.memory ? arena.memory->bytes() : 0;
    if (arena.reserved <= now) return absl::OkStatus();
    arena.memory.reset();  // before the new one: the peak stays the plan's
    HT_ASSIGN_OR_RETURN(arena.memory,
                        Take(static_cast<ArenaKind>(kind), arena.reserved));
    changed = true;
    return stream.Fill(arena.memory->data(), 0, arena.reserved);
  };
  for (int k = 0; k < kArenas; ++k) {
    HT_RETURN_IF_ERROR(grow(shared_[k], k));
    for (auto& [entry, arenas] : per_entry_) {
      HT_RETURN_IF_ERROR(grow(arenas[k], k));
    }
  }
  return changed;
}

char* Arenas::At(const std::string& entry, const Slice& slice) const {
  if (slice.bytes == 0) return nullptr;
  const int k = static_cast<int>(slice.arena);
  const Arena& arena =
      PerEntry(slice.arena) ? per_entry_.at(entry)[k] : shared_[k];
  return static_cast<char*>(arena.memory->data()) + slice.offset;
}

char* Arenas::State(int64_t offset) const {
  const Arena& arena = shared_[static_cast<int>(ArenaKind::kState)];
  if (arena.memory == nullptr) return nullptr;  // a program without cells
  return static_cast<char*>(arena.memory->data()) + offset;
}

}  // namespace runtime
}  // namespace halftone
