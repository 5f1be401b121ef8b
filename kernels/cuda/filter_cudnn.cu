// A thread for each element, in the order of channels_last: filters are small.
#include "kernels/cuda/filter_cudnn.h"
#include "kernels/cuda/launch.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    FilterKernel(const __grid_constant__ FilterShape shape, int64_t n,
                 const uint16_t* from, uint16_t* to, bool to_channels_last) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t row_major = shape.RowMajor(i);
  if (to_channels_last) {
    to[i] = from[row_major];
  } else {
    to[row_major] = from[i];
  }
}

}  // namespace

absl::Status MoveFilter(const FilterShape& shape, const void* from, void* to,
                        bool to_channels_last, runtime::Stream& stream,
                        const std::string& op) {
  Launcher launch(stream, op);
  const int64_t n = shape.elements();
  launch(FilterKernel, CeilDiv(n, kThreads), kThreads, shape, n,
         static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to),
         to_channels_last);
  return launch.status();
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
