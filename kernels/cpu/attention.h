// What attention and its gradient share: tiles of the operands as f32 and what
// becomes of a tile of scores.
#ifndef HALFTONE_KERNELS_CPU_ATTENTION_H_
#define HALFTONE_KERNELS_CPU_ATTENTION_H_

#include <algorithm>
#include <cstdint>

#include "kernels/common/attention.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/small_product.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Rows of Q in a tile.
inline constexpr int64_t kAttentionRows = 64;

// One head of one sample of a tensor [batch, length, heads, width].
struct Head {
  DType dtype{};
  char* data = nullptr;
  int64_t stride = 0, width = 0;  // elements

  static Head Of(DType dtype, const void* tensor, int64_t sample,
                 int64_t length, int64_t head, int64_t heads, int64_t width);
  // Rows [first, first + n): where they are if they are f32, else in `buffer`,
  // which holds n * width floats.
  Matrix32 Rows(int64_t first, int64_t n, float* buffer) const;
  // Rows [first, first + n) = factor * from. `buffer`: `width` floats.
  void Store(int64_t first, int64_t n, float factor, const Matrix32& from,
             float* buffer) const;
};

// One head of one sample of Q as an op sees it.
struct AttentionHead {
  const AttentionOp& op;
  const Buffers& buffers;
  int64_t sample, head;

  // Of one row of scores [first, first + n), padded to `padded`: adds the mask;
  // what the row may not look at, and what is behind the row, becomes
  // -infinity. `buffer`: n floats.
  void Mask(int64_t row, int64_t first, int64_t n, int64_t padded,
            float* buffer, float* scores) const;
  // The factors of one row's weights [first, first + n) by dropout.
  void DropoutFactors(int64_t row, int64_t first, int64_t n, float* to) const;
};

// Where the parts of a thread's scratch lie, in floats.
class ScratchLayout {
 public:
  int64_t Add(int64_t floats) {
    const int64_t at = floats_;
    floats_ += Padded(floats) + kPanel;
    return at;
  }
  int64_t floats() const { return floats_; }

 private:
  int64_t floats_ = 0;
};

// Work on [0, items) by at most `threads` threads, each with scratch of its own
// of `floats`.
template <typename Body>
void ForItems(int threads, int64_t items, int64_t floats, void* workspace,
              const Body& body) {
  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(threads, items));
  const int64_t each = (items + parts - 1) / parts;
  ParallelFor(threads, items, each, [&](int64_t begin, int64_t end) {
    body(begin, end, static_cast<float*>(workspace) + begin / each * floats);
  });
}

void RegisterCpuAttentionGrad(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ATTENTION_H_
