// One operand of an element-wise op, read block by block as f32 in the memory
// order of the output, whatever its dtype and broadcasting.
#ifndef HALFTONE_KERNELS_CPU_OPERAND_H_
#define HALFTONE_KERNELS_CPU_OPERAND_H_

#include <algorithm>
#include <cstdint>

#include "graph/base/dtype_fwd.h"
#include "kernels/bound_op.h"
#include "kernels/common/strides.h"
#include "kernels/cpu/convert.h"

namespace halftone {
namespace kernels {

class Operand {
 public:
  // Broadcast to `out` from its dim `first` on (see strides.h).
  Operand(const TensorDesc& desc, const TensorDesc& out, int first = 0)
      : Operand(desc.dtype, out, BroadcastStrides(desc, out, first)) {}
  // `strides` per logical dim of `out`.
  Operand(DType dtype, const TensorDesc& out, const Extents& strides);

  // Shorter runs of one element are not worth a loop of their own.
  static constexpr int64_t kLeastRun = 64;

  // Whether element i is element i of the output, and of `dtype`.
  bool IsWhole(DType dtype) const {
    return kind_ == Kind::kFull && dtype_ == dtype;
  }
  // Whether it is a number for each of the output's rows, or one for all.
  bool IsOfRuns() const {
    return nest_.rank() > 0 && nest_.strides.back() == 0 &&
           nest_.dims.back() >= kLeastRun;
  }
  // Then: body(begin, n, number) for the runs that [begin, end) is cut into.
  template <typename Body>
  void ForRuns(const void* tensor, int64_t begin, int64_t end,
               const Body& body) const {
    NestWalk walk(nest_, begin);
    while (begin < end) {
      float buffer;
      const int64_t n = std::min(end - begin, walk.row_left());
      body(begin, n, *LoadBlock(dtype_, tensor, walk.offset(), 1, &buffer));
      walk.Advance(n);
      begin += n;
    }
  }

 private:
  friend class OperandReader;
  enum class Kind {
    kFull,      // element i is element i of the output
    kPeriodic,  // a short run repeated (a scalar, a row): a table serves it
    kStrided,
  };
  DType dtype_;
  Kind kind_ = Kind::kFull;
  int64_t period_ = 0;
  Nest nest_;
};

// Reads one chunk of an operand; lives on the stack of the thread that
// computes the chunk.
class OperandReader {
 public:
  // `elements` is an upper bound of what will be read.
  OperandReader(const Operand& operand, const void* tensor, int64_t elements);

  // Elements [begin, begin + n) of the output's order, n <= kConvertBlock;
  // valid until the next call.
  const float* Block(int64_t begin, int64_t n);

 private:
  void Gather(int64_t begin, int64_t n);

  const Operand& operand_;
  const void* tensor_;
  // kPeriodic: the run, repeated so far that a block can start anywhere in
  // it; otherwise one block.
  alignas(64) float buffer_[2 * kConvertBlock];
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_OPERAND_H_
