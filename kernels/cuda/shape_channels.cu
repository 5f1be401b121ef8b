// pad_channels: a thread writes up to 16 bytes of a pixel at once. Neighbours
// read neighbours of each plane of a row-major image.
#include "kernels/common/shapes.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/shape.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Units of a thread, all loaded before the first is stored.
constexpr int kUnits = 4;

struct PaddedPixels {
  ChannelPadding pad;
  Divider pixels;  // of an image
  Divider parts;   // units of a pixel
  int64_t total;   // units
};

template <typename T, int kElements>
struct alignas(sizeof(T) * kElements) Unit {
  T at[kElements];
};

template <typename T, int kElements>
__global__ void __launch_bounds__(kThreads)
    PadChannelsKernel(const __grid_constant__ PaddedPixels p, const T* from,
                      T* to) {
  Unit<T, kElements> value[kUnits];
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * (kThreads * kUnits) + threadIdx.x;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= p.total) continue;
    const int64_t pixel = p.parts.Divide(i);
    const int64_t image = p.pixels.Divide(pixel);
    const int64_t channel = (i - pixel * p.parts.divisor()) * kElements;
    const T* x = from + image * p.pad.image_stride +
                 (pixel - image * p.pixels.divisor()) * p.pad.pixel_stride;
#pragma unroll
    for (int k = 0; k < kElements; ++k) {
      const int64_t c = channel + k;
      value[u].at[k] = c < p.pad.channels ? x[c * p.pad.channel_stride] : T();
    }
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= p.total) continue;
    StoreAs(to, i * int64_t{sizeof(value[u])}, value[u]);
  }
}

template <typename T, int kElements>
void LaunchPad(Launcher& launch, const ChannelPadding& pad, const T* from,
               T* to) {
  const int64_t parts = pad.padded / kElements;
  const PaddedPixels pixels{pad, Divider(pad.pixels), Divider(parts),
                            pad.images * pad.pixels * parts};
  launch(PadChannelsKernel<T, kElements>,
         CeilDiv(pixels.total, kUnits * kThreads), kThreads, pixels, from, to);
}

auto MakePadChannels(const BoundOp& op) {
  return [pad = ChannelPaddingOf(op), n = op.Output("Out").elements(),
          size = SizeOf(op.Output("Out").dtype)](const Buffers& buffers,
                                                 Launcher& launch) {
    if (n == 0) return;
    WithElement(size, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kElements = 16 / sizeof(T);
      const T* from = static_cast<const T*>(buffers.inputs[0]);
      T* to = static_cast<T*>(buffers.outputs[0]);
      if (pad.padded % kElements == 0 && Address(to) % 16 == 0) {
        LaunchPad<T, kElements>(launch, pad, from, to);
      } else if (pad.padded % 4 == 0 && Address(to) % (4 * size) == 0) {
        LaunchPad<T, (kElements < 4 ? 1 : 4)>(launch, pad, from, to);
      } else {
        LaunchPad<T, 1>(launch, pad, from, to);
      }
    });
  };
}

}  // namespace

void RegisterCudaPadChannels(KernelRegistry& registry) {
  AddForSchema(registry, "pad_channels",
               CudaCandidate("pixels", MakePadChannels));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
