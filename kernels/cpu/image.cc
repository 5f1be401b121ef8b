// Preparation of images: (x - mean) / std per channel.
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/settings.h"
#include "kernels/cpu/map.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

struct NormalizeKernel {
  DType in, out;
  int64_t planes, plane;               // N * C planes of H * W pixels
  std::vector<float> mean, deviation;  // per channel

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, plane));
    ParallelFor(stream.threads(), planes, grain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) Plane(buffers, p);
                });
  }

 private:
  void Plane(const Buffers& buffers, int64_t p) const {
    alignas(64) float in_buffer[kConvertBlock], out_buffer[kConvertBlock];
    const size_t channel = p % static_cast<int64_t>(mean.size());
    const float m = mean[channel], d = deviation[channel];
    ForBlocks(p * plane, (p + 1) * plane, [&](int64_t at, int64_t n) {
      const float* x = LoadBlock(in, buffers.inputs[0], at, n, in_buffer);
      float* y = OutputBlock(out, buffers.outputs[0], at, out_buffer);
      ForIsa([=] {
        for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) / d;
      });
      StoreBlock(out, y, buffers.outputs[0], at, n);
    });
  }
};

NormalizeKernel MakeNormalize(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const int64_t channels = x.dims[1];
  return {x.dtype,
          op.Output("Out").dtype,
          x.dims[0] * channels,
          x.dims[2] * x.dims[3],
          PerChannel(op.Floats("mean"), channels),
          PerChannel(op.Floats("std"), channels)};
}

}  // namespace

void RegisterCpuImage(KernelRegistry& registry) {
  AddForSchema(registry, "image_normalize",
               MakeCandidate("planes", MakeNormalize));
}

}  // namespace kernels
}  // namespace halftone
