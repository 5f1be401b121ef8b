// One thread for a channel.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm_vectors.h"
#include "kernels/functors/norm.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

HT_DEVICE void Compute(const HalfFactorsCall& call, int64_t c) {
  const functors::HalfFactors factors =
      functors::HalfFactorsOf(call.scale[c], call.bias[c], call.mean[c],
                              call.variance[c], call.epsilon);
  call.factor[c] = factors.factor;
  call.offset[c] = factors.offset;
}

HT_DEVICE void Compute(const DeviationsCall& call, int64_t c) {
  call.inverse[c] = functors::InverseDeviation(call.variance[c], call.epsilon);
}

HT_DEVICE void Compute(const StatsOfSumsCall& call, int64_t c) {
  const functors::MeanVariance stats =
      functors::StatsOfSums(call.sum[c], call.squared_sum[c], call.count);
  call.mean[c] = stats.mean;
  call.variance[c] = stats.variance;
  if (c == 0 && call.count_out != nullptr) *call.count_out = call.count;
}

template <typename Call>
__global__ void __launch_bounds__(kThreads)
    NormVectorKernel(const __grid_constant__ Call call) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c < call.channels) Compute(call, c);
}

template <typename Call>
absl::Status Run(const Call& call, runtime::Stream& stream,
                 const std::string& op) {
  Launcher launch(stream, op);
  launch(NormVectorKernel<Call>, CeilDiv(call.channels, kThreads), kThreads,
         call);
  return launch.status();
}

}  // namespace

absl::Status Enqueue(const HalfFactorsCall& call, runtime::Stream& stream,
                     const std::string& op) {
  return Run(call, stream, op);
}
absl::Status Enqueue(const DeviationsCall& call, runtime::Stream& stream,
                     const std::string& op) {
  return Run(call, stream, op);
}
absl::Status Enqueue(const StatsOfSumsCall& call, runtime::Stream& stream,
                     const std::string& op) {
  return Run(call, stream, op);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
