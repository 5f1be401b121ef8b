// Sums (and what folds likewise) over any axes of a tensor in one fixed order,
// whatever the number of threads: runs of fixed length are summed apart and
// then added in order, which also keeps the rounding error small.
#ifndef HALFTONE_KERNELS_CPU_REDUCE_H_
#define HALFTONE_KERNELS_CPU_REDUCE_H_

#include <cstdint>
#include <vector>

#include "kernels/bound_op.h"
#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {

// What is done to elements. In f32, a block at a time.
struct Folding {
  float none;                               // of no elements
  float (*run)(const float* x, int64_t n);  // neighbours
  // Rows `stride` elements apart, one after the other.
  void (*add)(const float* x, int64_t stride, int64_t rows, float* into,
              int64_t n);
  // Each of `rows` rows of n neighbours as `run` folds it; up to a vector
  // (lanes.h) behind the last may be read.
  void (*rows)(const float* x, int64_t rows, int64_t n, float* results);
  // `add` of rows of a 16-bit dtype, the first from `at` on; null: they are
  // converted first.
  void (*add_low)(DType dtype, const void* x, int64_t at, int64_t stride,
                  int64_t rows, float* into, int64_t n) = nullptr;
  // `run` of n neighbours of a 16-bit dtype, the first at `at`; null: likewise.
  float (*run_low)(DType dtype, const void* x, int64_t at, int64_t n) = nullptr;
  // What is folded of what is read, and what becomes of the result; null: as it
  // is. `parameter` is theirs.
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
  float SumRun(const void* x, int64_t offset, int64_t n) const;
  // Runs of a block at most that follow each other.
  bool HasShortRows() const;
  void RunRows(const void* x, void* out, int threads) const;
  void SumRows(const void* x, int64_t kept, int64_t chunk, int64_t column,
               int64_t columns, float* sums) const;
  void Combine(const float* partial, void* out, int threads) const;
  void Finish(float* sums, void* out, int64_t at, int64_t n) const;

  // Elements as they are folded, in place or in `buffer`.
  const float* Load(const void* x, int64_t at, int64_t n, float* buffer) const;

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
