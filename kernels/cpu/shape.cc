// Ops that move elements: reshapes and channels. Others have files of their
// own: shape_transpose.cc, join.cc, move.cc.
#include "kernels/cpu/shape.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/copy.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

auto MakeReshape(const BoundOp& op) {
  const int64_t bytes = op.outputs()[0].bytes();
  return [bytes](const Buffers& buffers, runtime::Stream& stream) {
    CopyBytes(buffers.inputs[0], buffers.outputs[0], bytes, stream.threads());
  };
}

template <typename T>
void PadPixels(const ChannelPadding& pad, const T* from, T* to, int threads) {
  const int64_t grain = kCopyGrain / (pad.padded * int64_t{sizeof(T)} + 1) + 1;
  ParallelFor(threads, pad.images * pad.pixels, grain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* pixel = from + i / pad.pixels * pad.image_stride +
                                   i % pad.pixels * pad.pixel_stride;
                  T* out = to + i * pad.padded;
                  for (int64_t c = 0; c < pad.channels; ++c) {
                    out[c] = pixel[c * pad.channel_stride];
                  }
                  std::fill(out + pad.channels, out + pad.padded, T());
                }
              });
}

auto MakePadChannels(const BoundOp& op) {
  return [pad = ChannelPaddingOf(op), size = SizeOf(op.Input("X").dtype)](
             const Buffers& buffers, runtime::Stream& stream) {
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      PadPixels(pad, static_cast<const T*>(buffers.inputs[0]),
                static_cast<T*>(buffers.outputs[0]), stream.threads());
    };
    if (size == 1) return run(uint8_t());
    if (size == 2) return run(uint16_t());
    if (size == 4) return run(uint32_t());
    run(uint64_t());
  };
}

}  // namespace

void RegisterCpuShape(KernelRegistry& registry) {
  for (const char* op :
       {"reshape", "reshape_like", "flatten", "squeeze", "unsqueeze"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeReshape));
  }
  AddForSchema(registry, "pad_channels",
               MakeCandidate("pixels", MakePadChannels));
  RegisterCpuTranspose(registry);
}

}  // namespace kernels
}  // namespace halftone
