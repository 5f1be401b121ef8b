#include "graph/base/system/heap.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "graph/base/system/in_child.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

// Whoever takes malloc's place has a heap of another form.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasHeap = false;
#else
constexpr bool kHasHeap = true;
#endif

constexpr int64_t kMiB = 1 << 20;

uintptr_t EndOfHeap() { return reinterpret_cast<uintptr_t>(sbrk(0)); }

// What a child says of its heap: empty if all is as expected.
std::string SaidOf(const std::function<std::string()>& look) {
  const auto end = RunInChild(30, [&](Say say) { say(look()); });
  return end.ok() ? end->said : end.status().ToString();
}

TEST(HeapTest, GrowsAtOnceAndKeepsWhatIsFreed) {
  if (!kHasHeap) GTEST_SKIP() << "malloc is the sanitizer's";
  EXPECT_EQ(SaidOf([]() -> std::string {
              const uintptr_t before = EndOfHeap();
              KeepHeap(64 * kMiB);
              const uintptr_t grown = EndOfHeap();
              if (grown - before < 64 * kMiB) return "has not grown";
              // Larger than what malloc would map apart.
              void* const large = malloc(24 * kMiB);
              std::memset(large, 1, 24 * kMiB);
              const uintptr_t at = reinterpret_cast<uintptr_t>(large);
              if (at < before - kMiB || at > grown) return "lies elsewhere";
              free(large);
              if (EndOfHeap() != grown) return "has grown or shrunk";
              void* const again = malloc(24 * kMiB);
              return again == large ? "" : "memory is not taken again";
            }),
            "");
}

TEST(HeapTest, MemoryThatIsNotThereIsNotNeeded) {
  if (!kHasHeap) GTEST_SKIP() << "malloc is the sanitizer's";
  EXPECT_EQ(SaidOf([]() -> std::string {
              rlimit limit;
              getrlimit(RLIMIT_DATA, &limit);
              limit.rlim_cur = 32 * kMiB;
              setrlimit(RLIMIT_DATA, &limit);
              const uintptr_t before = EndOfHeap();
              KeepHeap(1024 * kMiB);
              if (EndOfHeap() - before > 32 * kMiB) return "no limit";
              void* const some = malloc(8 * kMiB);
              return some != nullptr ? "" : "nothing is left";
            }),
            "");
}

}  // namespace
}  // namespace halftone
