// Element-wise reduction of two buffers, the arithmetic of all communicators.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_REDUCE_H_
#define HALFTONE_RUNTIME_COLLECTIVE_REDUCE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype_fwd.h"
#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

// out[i] = a[i] op b[i] for i < count; `out` may be `a` or `b`, other overlaps
// are not allowed. Sums of f16 and bf16 are made in f32 and rounded to nearest
// even; integers wrap. max and min give NaN if either is NaN.
using ReduceFunction = void (*)(void* out, const void* a, const void* b,
                                int64_t count);

// The fastest one for this processor; all of them give the same bits, except
// that the payload of a NaN made of two NaNs may be either's. An error for a
// dtype that is not reduced (bool).
absl::StatusOr<ReduceFunction> FindReduceFunction(DType dtype, ReduceOp op);
// The one for any processor, for tests.
absl::StatusOr<ReduceFunction> FindPortableReduceFunction(DType dtype,
                                                          ReduceOp op);

// data[i] *= scale, in f32 and rounded to the dtype (f64 in f64); null for a
// dtype or operation to which pre_scale does not apply.
using ScaleFunction = void (*)(void* data, float scale, int64_t count);
ScaleFunction FindScaleFunction(DType dtype, ReduceOp op);

// How an all_reduce of a dtype computes.
struct ReduceArithmetic {
  ReduceFunction reduce = nullptr;
  ScaleFunction scale = nullptr;  // null: nothing to scale
  float pre_scale = 1;
  int64_t element_bytes = 0;
};
absl::StatusOr<ReduceArithmetic> FindReduceArithmetic(DType dtype, ReduceOp op,
                                                      float pre_scale);
// Elements that are reduced over all ranks before the next ones: they stay in
// the first-level cache.
inline constexpr int64_t kReduceBlock = 4096;

absl::string_view Name(ReduceOp op);  // "sum", "max", "min"

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_REDUCE_H_
