// Filters from one layout to the other: cuDNN's engines for norms around
// convolutions want filters in the images' layout, channels_last, where a
// program has them in row-major order.
#ifndef HALFTONE_KERNELS_CUDA_FILTER_CUDNN_H_
#define HALFTONE_KERNELS_CUDA_FILTER_CUDNN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "graph/base/half.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {
namespace cuda {

// A filter [O, I, H, W] of elements of 16 bits.
struct FilterShape {
  int64_t filters = 0, channels = 0, area = 0;  // O, I, H * W

  int64_t elements() const { return filters * channels * area; }
  // Where element i of channels_last order lies in row-major order.
  HT_HOST_DEVICE int64_t RowMajor(int64_t i) const {
    const int64_t channel = i % channels;
    const int64_t rest = i / channels;
    return (rest / area * channels + channel) * area + rest % area;
  }
};

// Enqueues one launch; `from` and `to` are apart. `op` is for errors.
absl::Status MoveFilter(const FilterShape& shape, const void* from, void* to,
                        bool to_channels_last, runtime::Stream& stream,
                        const std::string& op);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_FILTER_CUDNN_H_
