// Where the elements of broadcast, transposed and reduced tensors lie.
#ifndef HALFTONE_KERNELS_CUDA_INDEX_H_
#define HALFTONE_KERNELS_CUDA_INDEX_H_

#include <cstdint>

#include "graph/base/check.h"
#include "kernels/bound_op.h"
#include "kernels/common/strides.h"
#include "kernels/cuda/vector.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Division by a constant d >= 1. Numbers below 2^31 (and a d below that) by a
// multiplication: Granlund and Montgomery, "Division by invariant integers
// using multiplication" (1994).
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor) {
    if (divisor > INT32_MAX) return;
    const uint32_t d = static_cast<uint32_t>(divisor);
    while ((uint64_t{1} << shift_) < d) ++shift_;
    multiplier_ = static_cast<uint32_t>(
        (uint64_t{1} << 32) * ((uint64_t{1} << shift_) - d) / d + 1);
  }

  HT_HOST_DEVICE int64_t divisor() const { return divisor_; }
  HT_DEVICE int64_t Divide(int64_t n) const {
    if (n <= INT32_MAX && divisor_ <= INT32_MAX) {
      const uint32_t small = static_cast<uint32_t>(n);
      return (__umulhi(small, multiplier_) + small) >> shift_;
    }
    return n / divisor_;
  }
  HT_DEVICE int64_t Remainder(int64_t n) const {
    return n - Divide(n) * divisor_;
  }

 private:
  int64_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

// A Nest (kernels/common/strides.h) for kernels.
struct Loops {
  static constexpr int kMost = 8;
  int32_t rank = 0;
  Divider dims[kMost];  // outermost first
  int64_t strides[kMost] = {};

  static bool Fits(const Nest& nest) { return nest.rank() <= kMost; }
  Loops() = default;
  explicit Loops(const Nest& nest) : rank(nest.rank()) {
    HT_CHECK(Fits(nest), "a nest of too many loops");
    for (int k = 0; k < rank; ++k) {
      // A loop over nothing is never entered.
      dims[k] = Divider(nest.dims[k] > 0 ? nest.dims[k] : 1);
      strides[k] = nest.strides[k];
    }
  }

  // Offset in the other tensor of flat position i of the nest.
  HT_DEVICE int64_t OffsetOf(int64_t i) const {
    int64_t offset = 0;
#pragma unroll 1
    for (int k = rank - 1; k > 0; --k) {
      const int64_t rest = dims[k].Divide(i);
      offset += (i - rest * dims[k].divisor()) * strides[k];
      i = rest;
    }
    return rank > 0 ? offset + i * strides[0] : 0;
  }
};

// An operand that lies as the output does.
struct FullOperand {
  DType dtype = DType::kF32;

  // Elements [i, i + V); i is a multiple of V.
  template <int V>
  HT_DEVICE Raw Load(const void* data, int64_t i) const {
    return LoadRaw<V>(dtype, data, i);
  }
};

// One operand of an element-wise op, read in the memory order of the output,
// whatever its dtype and broadcasting; V is 1 or 4.
struct Operand {
  DType dtype = DType::kF32;
  bool full = true;   // element i is element i of the output
  bool rows = false;  // vectors stay within a row of the innermost loop
  int64_t inner_stride = 0;
  Loops loops;

  Operand() = default;
  // `strides` per logical dim of `out`.
  Operand(DType type, const TensorDesc& out, const Extents& strides)
      : dtype(type) {
    const Nest nest = MakeNest(out, strides);
    if (nest.contiguous()) return;
    full = false;
    loops = Loops(nest);
    inner_stride = nest.strides.back();
    rows = inner_stride <= 1 && nest.dims.back() % 4 == 0;
    for (int k = 0; k + 1 < nest.rank(); ++k) {
      rows = rows && (inner_stride == 0 || nest.strides[k] % 4 == 0);
    }
  }
  static bool Fits(const TensorDesc& out, const Extents& strides) {
    return Loops::Fits(MakeNest(out, strides));
  }

  // Elements [i, i + V) of the output's order; i is a multiple of V.
  template <int V>
  HT_DEVICE Raw Load(const void* data, int64_t i) const {
    static_assert(V == 1 || V == 4, "vectors of broadcast operands");
    if (full) return LoadRaw<V>(dtype, data, i);
    if (V == 1 || rows) {
      const int64_t offset = loops.OffsetOf(i);
      return inner_stride == 1 ? LoadRaw<V>(dtype, data, offset)
                               : Repeat(LoadRaw<1>(dtype, data, offset));
    }
    return Gather<V>(data, i);
  }

 private:
  HT_DEVICE Raw Repeat(const Raw& one) const {
    const uint32_t bits = one.words[0];
    const uint32_t word = dtype == DType::kF32 ? bits : bits | bits << 16;
    return {{word, word, word, word}};
  }

  template <int V>
  HT_DEVICE Raw Gather(const void* data, int64_t i) const {
    uint32_t bits[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      bits[k] = LoadRaw<1>(dtype, data, loops.OffsetOf(i + k)).words[0];
    }
    if constexpr (V == 1) {
      return {{bits[0], 0, 0, 0}};
    } else {
      if (dtype == DType::kF32) return {{bits[0], bits[1], bits[2], bits[3]}};
      return {{bits[0] | bits[1] << 16, bits[2] | bits[3] << 16, 0, 0}};
    }
  }
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_INDEX_H_
