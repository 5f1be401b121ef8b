// Loops over the compute threads of a host kernel.
#ifndef HALFTONE_KERNELS_CPU_PARALLEL_FOR_H_
#define HALFTONE_KERNELS_CPU_PARALLEL_FOR_H_

#include <algorithm>
#include <cstdint>

namespace halftone {
namespace kernels {

// Calls body(begin, end) for disjoint ranges that make up [0, n), at most
// `threads` of them at a time; each begins at a multiple of `grain`. Up to
// `grain` elements, or with one thread, it is one call on this thread: an
// OpenMP region costs more than a small loop. Where the ranges are cut
// depends on `threads`: a body that adds up must add by fixed blocks, so that
// the bits do not.
template <typename Body>
inline void ParallelFor(int threads, int64_t n, int64_t grain,
                        const Body& body) {
  if (n <= 0) return;
#ifdef __SANITIZE_THREAD__  // it does not see GCC's OpenMP begin and end
  threads = 1;
#endif
  if (threads <= 1 || n <= grain) {
    body(int64_t{0}, n);
    return;
  }
  const int64_t grains = (n + grain - 1) / grain;
  const int64_t parts = std::min<int64_t>(threads, grains);
#pragma omp parallel for num_threads(static_cast <int>(parts)) \
    schedule(static, 1)
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = grains * part / parts * grain;
    const int64_t end = std::min(n, grains * (part + 1) / parts * grain);
    body(begin, end);
  }
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_PARALLEL_FOR_H_
