#include "runtime/device/host_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "absl/memory/memory.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/device/host_info.h"

namespace halftone {
namespace runtime {
namespace {

// From here on pages come from the system, which zeroes them when touched.
constexpr int64_t kLarge = int64_t{1} << 20;
// The size of a huge page on x86-64 and most Arm systems.
constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t RoundUp(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

absl::Status TooLarge(int64_t bytes) {
  return OutOfMemoryError("cannot allocate ", HumanBytes(bytes),
                          " of host memory: ", HumanBytes(FreeHostBytes()),
                          " are free; use a smaller batch or fewer ranks");
}

class SmallMemory : public Memory {
 public:
  SmallMemory(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  ~SmallMemory() override { std::free(data_); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  int64_t bytes_;
};

// `data` lies within the mapping, at its first huge page boundary.
class MappedMemory : public Memory {
 public:
  MappedMemory(void* map, int64_t map_bytes, int64_t bytes)
      : map_(map), map_bytes_(map_bytes), bytes_(bytes) {}
  ~MappedMemory() override { munmap(map_, map_bytes_); }
  void* data() const override {
    const uintptr_t start = reinterpret_cast<uintptr_t>(map_);
    return reinterpret_cast<void*>(
        RoundUp(static_cast<int64_t>(start), kHugePage));
  }
  int64_t bytes() const override { return bytes_; }

 private:
  void* map_;
  int64_t map_bytes_;
  int64_t bytes_;
};

absl::StatusOr<std::unique_ptr<Memory>> Map(int64_t bytes) {
  // The system lends more than it has; ask first rather than be killed later.
  if (bytes > FreeHostBytes()) return TooLarge(bytes);
  const int64_t map_bytes = RoundUp(bytes, kHugePage) + kHugePage;
  void* map = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TooLarge(bytes);
  auto memory = absl::make_unique<MappedMemory>(map, map_bytes, bytes);
  // A last page that is not full stays small ones: a huge one is all there once
  // any of it is touched.
  madvise(memory->data(), bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return {std::move(memory)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> AllocateHostMemory(int64_t bytes) {
  if (bytes < 0) {
    return CompilerBug("allocation of ", bytes, " bytes");
  }
  if (bytes >= kLarge) return Map(bytes);
  const int64_t rounded = RoundUp(bytes > 0 ? bytes : 1, kAlignment);
  void* data = std::aligned_alloc(kAlignment, rounded);
  if (data == nullptr) return TooLarge(bytes);
  std::memset(data, 0, rounded);
  return {absl::make_unique<SmallMemory>(data, bytes)};
}

}  // namespace runtime
}  // namespace halftone
