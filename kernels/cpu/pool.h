// What pooling and its gradient share.
#ifndef HALFTONE_KERNELS_CPU_POOL_H_
#define HALFTONE_KERNELS_CPU_POOL_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/pool_shape.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// The larger of two; a NaN wins. Two selections: GCC vectorises these, but not
// one by `b > a || b != b`.
struct Larger {
  float operator()(float a, float b) const {
    const float larger = b > a ? b : a;
    return b != b ? b : larger;
  }
};

// What the means of a line of windows are divided by; `columns` are adaptive
// windows along it, or none.
class LineDivisors {
 public:
  LineDivisors(const PoolShape& shape, const std::vector<Range>& columns,
               int64_t od, int64_t oh)
      : shape_(shape),
        columns_(columns),
        od_(od),
        oh_(oh),
        rows_(shape.d.Window(od).size() * shape.h.Window(oh).size()) {}

  float At(int64_t ow) const {
    return columns_.empty() ? shape_.Divisor(od_, oh_, ow)
                            : static_cast<float>(rows_ * columns_[ow].size());
  }

 private:
  const PoolShape& shape_;
  const std::vector<Range>& columns_;
  int64_t od_, oh_, rows_;
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

// The same one by one: body(task, scratch); `elements`: of a task.
template <typename Body>
inline void ForEachWithScratch(int threads, int64_t tasks, int64_t elements,
                               void* workspace, int64_t floats,
                               const Body& body) {
  const int64_t grain =
      std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, elements));
  ForTasksWithScratch(threads, tasks, grain, workspace, floats,
                      [&](int64_t begin, int64_t end, float* scratch) {
                        for (int64_t t = begin; t < end; ++t) body(t, scratch);
                      });
}

// Of a Kernel(shape, dtype), with its ScratchFloats() for each
// thread, where it Supports(shape).
template <typename Kernel>
Candidate PoolCandidate(absl::string_view name) {
  const auto make = [](const BoundOp& op) {
    return Kernel(PoolShape::Of(op), op.inputs()[0].dtype);
  };
  Candidate candidate =
      OverImages(MakeCandidate(name, make), [make](const BoundOp& op) {
        return std::max(1, op.context().threads) * make(op).ScratchFloats();
      });
  candidate.supports = [one_layout = candidate.supports](const BoundOp& op) {
    return one_layout(op) && Kernel::Supports(PoolShape::Of(op));
  };
  return candidate;
}

// `candidate`, of kPools, where an op says where its maxima lie, or does not.
inline Candidate WithArgmax(Candidate candidate, bool argmax) {
  candidate.supports = [others = candidate.supports,
                        argmax](const BoundOp& op) {
    return others(op) && HasArgmax(op) == argmax;
  };
  return candidate;
}

// The order is that of preference.
void RegisterCpuPoolTiles(KernelRegistry& registry);    // pool_tiles.cc
void RegisterCpuPoolMaxGrad(KernelRegistry& registry);  // pool_max_grad.cc
// pool_max_grad_last.cc
void RegisterCpuPoolMaxGradLast(KernelRegistry& registry);
void RegisterCpuPoolGrad(KernelRegistry& registry);    // pool_grad.cc
void RegisterCpuPoolArgmax(KernelRegistry& registry);  // pool_argmax.cc
// pool_argmax_last.cc
void RegisterCpuPoolArgmaxLast(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_POOL_H_
