// Copies of bytes and of strided tensors.
#ifndef HALFTONE_KERNELS_CPU_COPY_H_
#define HALFTONE_KERNELS_CPU_COPY_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/streamed_output.h"

namespace halftone {
namespace kernels {

// Bytes that one thread takes at least.
inline constexpr int64_t kCopyGrain = int64_t{1} << 17;

inline void CopyNear(const void* from, void* to, int64_t bytes) {
  memcpy(to, from, bytes);
}

// Nothing if `from` is `to`: an op whose output shares its input's storage.
inline void CopyBytes(const void* from, void* to, int64_t bytes, int threads) {
  if (from == to) return;
  const auto copy = bytes < LeastStreamedBytes() ? CopyNear : StreamBytes;
  ParallelFor(threads, bytes, kCopyGrain, [=](int64_t begin, int64_t end) {
    copy(static_cast<const char*>(from) + begin, static_cast<char*>(to) + begin,
         end - begin);
    FinishStores();
  });
}

// Moved as a whole, which memcpy is not always.
using CopyVector = char __attribute__((vector_size(32), aligned(1), may_alias));

// For bodies of ForIsa (isa.h): few bytes, without a call.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void CopyShort(const char* from, char* to,
                                                   int64_t bytes) {
  constexpr int64_t kMost = 1024, kVectorBytes = 32, kWordBytes = 8;
  const auto copy = [=](int64_t at) {
    *reinterpret_cast<CopyVector*>(to + at) =
        *reinterpret_cast<const CopyVector*>(from + at);
  };
  if (bytes > kMost) {
    memcpy(to, from, bytes);
    return;
  }
  int64_t i = 0;
  if (bytes >= kVectorBytes) {
    for (; i + kVectorBytes <= bytes; i += kVectorBytes) copy(i);
    if (i < bytes) copy(bytes - kVectorBytes);  // some once more
    return;
  }
  for (; i + kWordBytes <= bytes; i += kWordBytes) {
    memcpy(to + i, from + i, kWordBytes);
  }
  for (; i < bytes; ++i) to[i] = from[i];
}

// Row r of [0, rows) goes from `from` + r * from_stride to `to` + r *
// to_stride; all in bytes.
inline void CopyRows(const char* from, int64_t from_stride, char* to,
                     int64_t to_stride, int64_t rows, int64_t row_bytes,
                     int threads) {
  if (row_bytes == 0) return;
  const int64_t grain = std::max<int64_t>(1, kCopyGrain / row_bytes);
  constexpr int64_t kLeast = 512;  // of less, much is no whole lines
  const bool streams =
      row_bytes >= kLeast && rows * row_bytes >= LeastStreamedBytes();
  const auto copy = streams ? StreamBytes : CopyNear;
  ParallelFor(threads, rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      copy(from + r * from_stride, to + r * to_stride, row_bytes);
    }
    FinishStores();
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_COPY_H_
