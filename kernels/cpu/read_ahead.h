// Memory that will be read soon, which a loop brings into the second-level
// cache while it computes.
#ifndef HALFTONE_KERNELS_CPU_READ_AHEAD_H_
#define HALFTONE_KERNELS_CPU_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace halftone {
namespace kernels {

class ReadAhead {
 public:
  static constexpr int64_t kLine = 64;  // bytes of a cache line

  bool empty() const { return ranges_.empty(); }
  void Add(const void* data, int64_t bytes) {
    ranges_.push_back({static_cast<const char*>(data), bytes});
  }
  // Where the next `lines` lie one after the other, for a loop that prefetches
  // one in each round. Null: there are no more, or fewer in a piece, which are
  // prefetched at once.
  const char* Take(int64_t lines) {
    if (next_ == ranges_.size()) return nullptr;
    Range& range = ranges_[next_];
    const char* const at = range.data;
    if (range.bytes >= lines * kLine) {
      range.data += lines * kLine;
      range.bytes -= lines * kLine;
      return at;
    }
    for (int64_t i = 0; i < range.bytes; i += kLine) {
      __builtin_prefetch(at + i, /*rw=*/0, kSecondLevel);
    }
    ++next_;
    return nullptr;
  }

  static constexpr int kSecondLevel = 2;  // for __builtin_prefetch

 private:
  struct Range {
    const char* data;
    int64_t bytes;
  };
  absl::InlinedVector<Range, 16> ranges_;
  size_t next_ = 0;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_READ_AHEAD_H_
