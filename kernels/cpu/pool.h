// Windows of pool2d and what both layouts look like to its loops.
#ifndef HALFTONE_KERNELS_CPU_POOL_H_
#define HALFTONE_KERNELS_CPU_POOL_H_

#include <algorithm>
#include <cstdint>

#include "kernels/bound_op.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// The half-open range of positions.
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// The windows along one dim.
struct PoolDim {
  int64_t in = 0, out = 0;
  int64_t kernel = 1, stride = 1, before = 0;

  // Positions of window o that lie inside the image.
  Range Window(int64_t o) const {
    const int64_t begin = o * stride - before;
    return {std::max<int64_t>(begin, 0), std::min(begin + kernel, in)};
  }
  // Windows o whose element j lies inside; it is at o * stride - before + j.
  Range WindowsWith(int64_t j) const {
    const int64_t shift = before - j;  // o * stride in [shift, shift + in)
    const int64_t begin = shift <= 0 ? 0 : (shift + stride - 1) / stride;
    const int64_t last = shift + in - 1;
    const int64_t end = last < 0 ? 0 : std::min(out, last / stride + 1);
    return {std::min(begin, end), end};
  }
};

// Images are planes [h.in][w.in][channels]: row_major has a plane per sample
// and channel, with one channel; channels_last a plane per sample.
struct PoolShape {
  PoolDim h, w;
  int64_t planes = 0, channels = 1;
  bool max = true, exclusive = true;

  explicit PoolShape(const BoundOp& op);

  int64_t InRow() const { return w.in * channels; }
  int64_t OutRow() const { return w.out * channels; }
  // What the mean of a window is divided by; 1 if it holds nothing.
  float Divisor(int64_t oh, int64_t ow) const {
    if (!exclusive) return static_cast<float>(h.kernel * w.kernel);
    const int64_t n = h.Window(oh).size() * w.Window(ow).size();
    return n > 0 ? static_cast<float>(n) : 1.0f;
  }
};

// ParallelFor over tasks that need scratch: body(begin, end, scratch), where
// each of at most `threads` ranges has `floats` floats of the workspace.
template <typename Body>
inline void ForTasksWithScratch(int threads, int64_t tasks, int64_t grain,
                                void* workspace, int64_t floats,
                                const Body& body) {
  const int64_t parts = std::max(1, threads);
  const int64_t each = std::max(grain, (tasks + parts - 1) / parts);
  ParallelFor(threads, tasks, each, [&](int64_t begin, int64_t end) {
    body(begin, end, static_cast<float*>(workspace) + begin / each * floats);
  });
}

void RegisterCpuPoolGrad(KernelRegistry& registry);  // pool_grad.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_POOL_H_
