#include "kernels/cpu/operand.h"

#include <algorithm>

#include "kernels/common/dispatch.h"

namespace halftone {
namespace kernels {
namespace {

// n elements `stride` apart as f32.
void LoadStrided(DType dtype, const void* tensor, int64_t offset,
                 int64_t stride, int64_t n, float* to) {
  if (stride == 1) {
    const float* from = LoadBlock(dtype, tensor, offset, n, to);
    ToFloat(from, to, n);
    return;
  }
  DispatchType(FloatTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(tensor) + offset;
    if (stride == 0) {
      std::fill_n(to, n, static_cast<float>(*from));
    } else {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<float>(from[i * stride]);
      }
    }
  });
}

}  // namespace

Operand::Operand(DType dtype, const TensorDesc& out, const Extents& strides)
    : dtype_(dtype), nest_(MakeNest(out, strides)) {
  if (nest_.contiguous()) return;
  kind_ = Kind::kStrided;
  const bool repeats = nest_.rank() == 1 && nest_.strides[0] == 0;
  const bool repeats_row = nest_.rank() == 2 && nest_.strides[0] == 0 &&
                           nest_.strides[1] == 1 &&
                           nest_.dims[1] <= kConvertBlock;
  if (!repeats && !repeats_row) return;
  kind_ = Kind::kPeriodic;
  period_ = repeats ? 1 : nest_.dims[1];
}

OperandReader::OperandReader(const Operand& operand, const void* tensor,
                             int64_t elements)
    : operand_(operand), tensor_(tensor) {
  if (operand.kind_ != Operand::Kind::kPeriodic || elements == 0) return;
  const int64_t period = operand.period_;
  LoadStrided(operand.dtype_, tensor, 0, 1, period, buffer_);
  const int64_t length = period + std::min(elements, kConvertBlock);
  for (int64_t done = period; done < length;) {
    const int64_t n = std::min(done, length - done);
    std::copy_n(buffer_, n, buffer_ + done);
    done += n;
  }
}

const float* OperandReader::Block(int64_t begin, int64_t n) {
  switch (operand_.kind_) {
    case Operand::Kind::kFull:
      return LoadBlock(operand_.dtype_, tensor_, begin, n, buffer_);
    case Operand::Kind::kPeriodic:
      return buffer_ + begin % operand_.period_;
    case Operand::Kind::kStrided:
      Gather(begin, n);
      return buffer_;
  }
  return nullptr;
}

void OperandReader::Gather(int64_t begin, int64_t n) {
  NestWalk walk(operand_.nest_, begin);
  const int64_t stride = operand_.nest_.strides.back();
  for (int64_t done = 0; done < n;) {
    const int64_t run = std::min(n - done, walk.row_left());
    LoadStrided(operand_.dtype_, tensor_, walk.offset(), stride, run,
                buffer_ + done);
    walk.Advance(run);
    done += run;
  }
}

}  // namespace kernels
}  // namespace halftone
