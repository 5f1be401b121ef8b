// What layer_norm and its like and their gradients share: a tile at a time, one
// or more whole rows that fit a block, or a block of a longer row.
#ifndef HALFTONE_KERNELS_CPU_ROW_NORM_H_
#define HALFTONE_KERNELS_CPU_ROW_NORM_H_

#include <algorithm>
#include <cstdint>

#include "graph/base/dtype.h"
#include "kernels/common/row_norm.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/map.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

struct RowTiles {
  RowNormShape shape;

  // Rows that are worked on together.
  int64_t group() const {
    return std::max<int64_t>(
        1, kConvertBlock / std::max<int64_t>(1, shape.length()));
  }
  // A multiple of `group`, worth a thread.
  int64_t grain() const {
    const int64_t elements = std::max<int64_t>(1, group() * shape.length());
    return std::max<int64_t>(1, kMapGrain / elements) * group();
  }
  // visit(i, n) for each tile of a group: n elements of each of its rows, from
  // element i of the row on.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (int64_t i = 0; i < shape.length(); i += kConvertBlock) {
      visit(i, std::min(kConvertBlock, shape.length() - i));
    }
  }
};

// Elements as f32. A block that is asked for again is not converted again, nor
// is what is held.
class BlockReader {
 public:
  // A group's elements that are held at most.
  static constexpr int64_t kHeld = 8 * kConvertBlock;

  BlockReader(DType dtype, const void* data) : dtype_(dtype), data_(data) {}
  BlockReader(const BlockReader&) = delete;

  // Elements that will be asked for by blocks, more than once.
  void Hold(int64_t at, int64_t n) {
    if (n <= kHeld) Load(at, n);
  }
  // Elements that will be asked for soon: memory is read while others are
  // worked on. What is converted is read at one go, ahead by itself.
  void Expect(int64_t at, int64_t n) const {
    constexpr int64_t kLine = 64;
    if (dtype_ != DType::kF32) return;
    const auto size = static_cast<int64_t>(SizeOf(dtype_));
    const char* const from = static_cast<const char*>(data_) + at * size;
    for (int64_t i = 0; i < n * size; i += kLine) __builtin_prefetch(from + i);
  }
  // At most kConvertBlock of them.
  const float* Block(int64_t at, int64_t n) {
    if (at < at_ || at + n > at_ + n_) Load(at, n);
    return block_ + (at - at_);
  }

 private:
  void Load(int64_t at, int64_t n) {
    at_ = at;
    n_ = n;
    block_ = LoadBlock(dtype_, data_, at, n, buffer_);
  }

  DType dtype_;
  const void* data_;
  int64_t at_ = 0, n_ = 0;
  const float* block_ = nullptr;
  alignas(64) float buffer_[kHeld];
};

void RegisterCpuRowNormGrad(KernelRegistry& registry);  // row_norm_grad.cc
void RegisterCpuRowNormLast(KernelRegistry& registry);  // row_norm_last.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ROW_NORM_H_
