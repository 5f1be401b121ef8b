#include "graph/base/system/heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace halftone {
namespace {

constexpr uintptr_t kHugePage = 2 << 20;

uintptr_t EndOfHeap() { return reinterpret_cast<uintptr_t>(sbrk(0)); }

}  // namespace

void KeepHeap(int64_t bytes) {
  constexpr int64_t kMost = 1 << 30;
  constexpr int kStep = 16 << 20, kLargest = 32 << 20;
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_MMAP_THRESHOLD, kLargest);
  // More than is left of the heap, so that it grows by all of it.
  mallopt(M_TOP_PAD, static_cast<int>(std::clamp<int64_t>(bytes, 0, kMost)));
  const uintptr_t before = EndOfHeap();
  void* volatile first = malloc(kHugePage);  // else compilers leave out both
  free(first);
  const uintptr_t after = EndOfHeap();
  mallopt(M_TOP_PAD, kStep);
  const uintptr_t begin = (before + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = after / kHugePage * kHugePage;
  if (begin >= end) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace halftone
