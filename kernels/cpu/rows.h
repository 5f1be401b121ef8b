// Rows along one axis of a row-major tensor, a group of rows at a time as f32.
#ifndef HALFTONE_KERNELS_CPU_ROWS_H_
#define HALFTONE_KERNELS_CPU_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/common/shapes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/streamed_output.h"

namespace halftone {
namespace kernels {

struct Rows : RowShape {
  static Rows Along(const TensorDesc& desc, int64_t axis) {
    return {RowShape::Along(desc, axis)};
  }

  StreamedOutput Output(const Buffers& buffers, int output, DType dtype) const {
    return StreamedOutput::Of(buffers, output, dtype, count * length);
  }

  // A row's length in whole vectors (lanes.h).
  int64_t padded() const { return (length + kVector - 1) / kVector * kVector; }

  // Rows [first, first + n) to or from `buffer`, one behind the other.
  void Load(DType dtype, const void* tensor, int64_t first, int64_t n,
            float* buffer) const;
  void Store(DType dtype, const float* buffer, void* tensor, int64_t first,
             int64_t n) const;

  // Rows [first, first + n) of a tensor, readable up to a vector of 16 elements
  // beyond the last one's end: where they are if they can be read there by the
  // vectors of this machine (low_vector.h), else as Load has them.
  StoredElements Read(DType dtype, const void* tensor, int64_t first, int64_t n,
                      float* buffer) const;
  // The same, of f32 in any case.
  const float* ReadFloats(DType dtype, const void* tensor, int64_t first,
                          int64_t n, float* buffer) const;
  // Where rows from `first` on are made, for Store to bring them where they
  // belong: there, where they are f32 and runs, else `buffer`.
  float* Place(DType dtype, void* tensor, int64_t first, float* buffer) const {
    return stride == 1 ? OutputBlock(dtype, tensor, first * length, buffer)
                       : buffer;
  }
  // Whether a row is a run of a tensor that vectors of this machine can write.
  bool StoresInPlace(DType dtype) const;
};

// body(LowVector, T()) of the instruction set of this machine and the type of
// rows that Read or StoresInPlace has it work on: f32, if that is the baseline.
template <typename Body>
inline void ForLowRows(DType dtype, const Body& body) {
  ForIsa([&](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    if constexpr (isa != Isa::kBaseline) {
      if (dtype == DType::kBF16) return body(Low(), bfloat16());
      if (dtype == DType::kF16) return body(Low(), half());
    }
    body(Low(), 0.0f);
  });
}

// Rows [first, first + n) of an output, of which `row`(low, r, to) stores one:
// as they lie in memory, if vectors can write them so, else by way of `buffer`.
// As StoreLow does (low_rows.h), it may write all of a vector of a row that is
// shorter: `buffer` has room for that, and what follows is written later.
template <typename StoreRow>
void StoreRows(const Rows& rows, const StreamedOutput& output, int64_t first,
               int64_t n, float* buffer, const StoreRow& row) {
  const auto store = [&](DType dtype, void* to) {
    ForLowRows(dtype, [&, length = rows.length](auto low, auto zero) {
      auto* made = static_cast<decltype(zero)*>(to);
      for (int64_t r = 0; r < n; ++r) row(low, r, made + r * length);
    });
  };
  const DType dtype = output.dtype();
  if (!rows.StoresInPlace(dtype) ||
      rows.length < LowVector<Isa::kAvx512>::kSize) {
    store(DType::kF32, buffer);
    rows.Store(dtype, buffer, output.data(), first, n);
  } else {
    output.WritePart(first * rows.length, n * rows.length,
                     [&](void* to) { store(dtype, to); });
  }
}

// Visits all rows in groups, in parallel, with buffers for a group: of padded
// rows, and a vector more.
class RowGroups {
 public:
  // `buffers`: how many buffers of a group's size the body needs, 1 or 2.
  RowGroups(const Rows& rows, int buffers, int threads)
      : rows_(rows), buffers_(buffers), threads_(std::max(1, threads)) {}

  // Rows longer than a block are kept in the workspace.
  int64_t workspace_bytes() const {
    if (!UsesWorkspace()) return 0;
    return threads_ * buffers_ * Padded() * int64_t{sizeof(float)};
  }

  // body(first_row, rows, buffer, second_buffer) for each group.
  template <typename Body>
  void Run(int threads, void* workspace, const Body& body) const {
    if (rows_.length == 0) return;
    const int64_t group = std::max<int64_t>(1, kConvertBlock / rows_.padded());
    const int64_t parts = std::max(1, std::min(threads, threads_));
    const int64_t fair = (rows_.count + parts - 1) / parts;
    // A multiple of a group, 8 blocks of elements at least.
    const int64_t least = std::max(fair, 8 * kConvertBlock / rows_.length);
    const int64_t grain = (least + group - 1) / group * group;
    ParallelFor(parts, rows_.count, grain, [&](int64_t begin, int64_t end) {
      alignas(64) float stack[2 * (kConvertBlock + kVector)];
      float* first = stack;
      float* second = stack + kConvertBlock + kVector;
      if (UsesWorkspace()) {
        first = static_cast<float*>(workspace) +
                begin / grain * buffers_ * Padded();
        second = first + (buffers_ - 1) * Padded();
      }
      for (int64_t row = begin; row < end; row += group) {
        body(row, std::min(group, end - row), first, second);
      }
      FinishStores();
    });
  }

 private:
  bool UsesWorkspace() const { return rows_.length > kConvertBlock; }
  int64_t Padded() const { return rows_.padded() + kVector; }

  Rows rows_;
  int buffers_;
  int threads_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ROWS_H_
