// What the plans of one program need together.
#ifndef HALFTONE_RUNTIME_PLAN_ARENA_SIZES_H_
#define HALFTONE_RUNTIME_PLAN_ARENA_SIZES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// Plans run one after another and share their arenas, each as large as the
// largest of them; but of kinds that are PerEntry each entry has its own.
class ArenaSizes {
 public:
  static bool PerEntry(ArenaKind kind) {
    return kind == ArenaKind::kCommunication || kind == ArenaKind::kResult;
  }
  // A plan of the entry.
  void Add(const std::string& entry, const ArenaBytes& bytes);
  int64_t Shared(ArenaKind kind) const {
    return shared_[static_cast<int>(kind)];
  }
  // Those of PerEntry kinds by entry; 0 of the others.
  const std::map<std::string, ArenaBytes>& per_entry() const {
    return per_entry_;
  }
  // By kind, of all entries.
  ArenaBytes Sums() const;

 private:
  ArenaBytes shared_{};
  std::map<std::string, ArenaBytes> per_entry_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_ARENA_SIZES_H_
