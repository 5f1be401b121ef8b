// What the fusions of norm_fusions_cudnn.h do on vectors before and after
// their graphs. All pointers are of the device; channels are [C].
#ifndef HALFTONE_KERNELS_CUDA_NORM_VECTORS_H_
#define HALFTONE_KERNELS_CUDA_NORM_VECTORS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "graph/base/half.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {
namespace cuda {

// functors::HalfFactorsOf.
struct HalfFactorsCall {
  const float *scale, *bias, *mean, *variance;
  float epsilon;
  int64_t channels;
  half *factor, *offset;
};
// functors::InverseDeviation.
struct DeviationsCall {
  const float* variance;
  float epsilon;
  int64_t channels;
  float* inverse;
};
// functors::StatsOfSums; `count` is written, too, unless count_out is null.
struct StatsOfSumsCall {
  const float *sum, *squared_sum;
  float count;
  int64_t channels;
  float *mean, *variance, *count_out;
};

// Each enqueues one launch; `op` is for errors.
absl::Status Enqueue(const HalfFactorsCall& call, runtime::Stream& stream,
                     const std::string& op);
absl::Status Enqueue(const DeviationsCall& call, runtime::Stream& stream,
                     const std::string& op);
absl::Status Enqueue(const StatsOfSumsCall& call, runtime::Stream& stream,
                     const std::string& op);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_NORM_VECTORS_H_
