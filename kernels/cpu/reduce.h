// Sums (and what folds likewise) over any axes of a tensor in one fixed order,
// whatever the number of threads: runs of fixed length are summed apart and
// then added in order, which also keeps the rounding error small.
#ifndef HALFTONE_KERNELS_CPU_REDUCE_H_
#define HALFTONE_KERNELS_CPU_REDUCE_H_

#include <cstdint>
#include <vector>

#include "kernels/bound_op.h"
#include "kernels/common/strides.h"
#include "kernels/cpu/convert.h"

namespace halftone {
namespace kernels {

// What is done to elements, in f32 (reduce_fold.cc): f(f(none, a), b) and so
// on. `parameter` is the Folding's.
struct Folding {
  float none;  // of no elements
  // Each of `rows` rows of n neighbours, from element `at` on.
  void (*rows)(const StoredElements& x, int64_t at, int64_t rows, int64_t n,
               float* results, float parameter);
  // Rows `stride` elements apart, one after the other.
  void (*add)(const StoredElements& x, int64_t at, int64_t stride, int64_t rows,
              float* into, int64_t n, float parameter);
  // `add` of what has been folded.
  void (*join)(const float* x, int64_t stride, int64_t rows, float* into,
               int64_t n);
  // What is done first to what is read, where the above do not, and what
  // becomes of the result; null: nothing.
  void (*map)(const float* x, float* to, int64_t n, float parameter) = nullptr;
  void (*finish)(float* x, int64_t n, float parameter) = nullptr;
  float parameter = 0;
  // Whether nothing is rounded: blocks need not be folded apart.
  bool exact = false;
};
Folding Sums();
Folding Greatest();  // a NaN if there is one
Folding Least();     // likewise
Folding Products();
Folding Norms(float order);  // (sum of |x| ^ order) ^ (1 / order)

class Reduction {
 public:
  // Out = sums of x over the axes with reduced[axis], each divided by the
  // number of its summands if `mean` (0 over none).
  Reduction(const TensorDesc& x, const TensorDesc& out,
            const std::vector<bool>& reduced, bool mean,
            const Folding& folding = Sums());

  int64_t workspace_bytes() const;
  void Run(const void* x, void* out, void* workspace, int threads) const;

 private:
  void AddDim(int64_t extent, int64_t stride, bool reduced);
  void RunInner(const void* x, void* out, float* partial, int threads) const;
  void RunOuter(const void* x, void* out, float* partial, int threads) const;
  float FoldRun(const void* x, int64_t offset, int64_t n) const;
  // Runs of a block at most that follow each other.
  bool HasShortRows() const;
  void RunRows(const void* x, void* out, int threads) const;
  void AddRows(const void* x, int64_t kept, int64_t chunk, int64_t column,
               int64_t columns, float* sums) const;
  void Combine(const float* partial, void* out, int threads) const;
  void Finish(float* sums, void* out, int64_t at, int64_t n) const;

  // Whether elements are folded as they are stored.
  bool IsInPlace() const;
  // Else: as they are folded, in `buffer`.
  StoredElements Load(const void* x, int64_t at, int64_t n,
                      float* buffer) const;

  Folding folding_;
  DType in_, out_;
  float divisor_ = 1.0f;
  // The innermost run of axes of one kind that lie side by side, and the loops
  // around it.
  bool inner_is_reduced_ = true;
  bool kept_inside_ = false;  // of the loops
  int64_t inner_ = 1;
  Nest kept_, reduced_;  // outer loops only
  int64_t kept_count_ = 1, reduced_count_ = 1;
  // Partial sums per output element or row.
  int64_t pieces_ = 1;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_REDUCE_H_
