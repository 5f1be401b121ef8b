// A tensor's elements in another order: what transpose and convert_layout do,
// also for kernels whose libraries want another layout.
#ifndef HALFTONE_KERNELS_CUDA_PERMUTATION_H_
#define HALFTONE_KERNELS_CUDA_PERMUTATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "graph/base/dtype.h"
#include "kernels/common/strides.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {
namespace cuda {

struct Permutation {
  Nest nest;     // in the output's order; strides of the input
  int size = 0;  // of an element, in bytes
  int64_t elements = 0;

  Permutation() = default;
  // `strides`: of the input, per dim of `out`.
  Permutation(const TensorDesc& out, const Extents& strides)
      : nest(MakeNest(out, strides)),
        size(SizeOf(out.dtype)),
        elements(out.elements()) {}
};

// Enqueues one launch or copy; `from` and `to` are apart unless nothing moves.
// `op` is for errors.
absl::Status Permute(const Permutation& permutation, const void* from, void* to,
                     runtime::Stream& stream, const std::string& op);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_PERMUTATION_H_
