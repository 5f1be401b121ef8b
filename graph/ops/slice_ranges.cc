#include "graph/ops/slice_ranges.h"

#include <algorithm>

namespace halftone {
namespace ops {
namespace {

int64_t Clamp(int64_t i, int64_t low, int64_t high) {
  return std::min(std::max(i, low), high);
}

}  // namespace

SliceRange RangeOf(int64_t start, int64_t end, int64_t stride, int64_t size) {
  if (start < 0) start += size;
  if (stride > 0) {
    if (end < 0) end += size;
    start = Clamp(start, 0, size);
    end = Clamp(end, start, size);
    return {start, (end - start + stride - 1) / stride, stride};
  }
  if (end < 0 && end != -1) end += size;
  start = Clamp(start, -1, size - 1);
  end = Clamp(end, -1, start);
  return {start, (start - end - stride - 1) / -stride, stride};
}

void SliceBounds::Complete() {
  const size_t count = std::max(std::max(axes.size(), starts.size()),
                                std::max(ends.size(), strides.size()));
  if (axes.empty()) {
    for (size_t k = 0; k < count; ++k) axes.push_back(static_cast<int64_t>(k));
  }
  if (strides.empty()) strides.assign(count, 1);
  if (starts.empty()) starts.assign(count, 0);
  if (ends.empty()) ends.assign(count, kToTheEnd);
}

bool IsWhole(int64_t start, int64_t end, int64_t stride) {
  if (stride == 1) return start == 0 && end >= kToTheEnd;
  return stride == -1 && (start == -1 || start >= kToTheEnd) &&
         (end == -1 || end <= -kToTheEnd);
}

}  // namespace ops
}  // namespace halftone
