// The memory of an executor: one arena per kind, two kinds per entry.
#ifndef HALFTONE_RUNTIME_EXEC_ARENAS_H_
#define HALFTONE_RUNTIME_EXEC_ARENAS_H_

#include <array>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"
#include "runtime/plan/arena_sizes.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

class Arenas {
 public:
  // What is reduced lies in the communicator's memory if it has some for it.
  Arenas(Device* device, Communicator* communicator)
      : device_(device), communicator_(communicator) {}

  // Notes a plan's sizes; memory is taken by Allocate.
  void Reserve(const Plan& plan) {
    reserved_.Add(plan.entry, plan.arena_bytes);
  }
  // Bytes that Allocate would bring the total to.
  int64_t reserved_bytes() const { return TotalOf(reserved_.Sums()); }
  int64_t allocated_bytes() const;
  // Makes every arena at least as large as reserved. Those that grow lose
  // their content (state never grows); communication and result arenas are
  // zeroed. Returns whether any pointer changed.
  absl::StatusOr<bool> Allocate(Stream& stream);

  // The address of a slice of `entry`; null for an empty slice.
  char* At(const std::string& entry, const Slice& slice) const;
  char* State(int64_t offset) const;

 private:
  using Arena = std::unique_ptr<Memory>;
  absl::StatusOr<Arena> Take(ArenaKind kind, int64_t bytes);

  Device* device_;
  Communicator* communicator_;
  ArenaSizes reserved_;
  std::array<Arena, kArenas> shared_;
  std::map<std::string, std::array<Arena, kArenas>> per_entry_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_ARENAS_H_
