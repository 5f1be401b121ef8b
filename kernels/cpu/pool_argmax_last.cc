// Maximum pooling that also says where the maxima lie (pool_argmax.cc has more
// of it), and its gradient, of channels-last images: the channels of an element
// are neighbours.
#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_gather.h"
#include "kernels/cpu/pool_pixels.h"

namespace halftone {
namespace kernels {
namespace {

template <typename T>
class PixelsArgmax {
 public:
  PixelsArgmax(const PoolShape& shape, DType) : shape_(shape), most_(shape) {}

  static bool Supports(const PoolShape& shape) { return shape.channels > 1; }
  int64_t ScratchFloats() const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(stream.threads(), shape_.planes * shape_.h.out,
                       shape_.h.kernel * shape_.InRow(), nullptr, 0,
                       [&](int64_t line, float*) { RunLine(buffers, line); });
  }

 private:
  void RunLine(const Buffers& buffers, int64_t line) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]) +
                 line / shape_.h.out * shape_.h.in * shape_.InRow();
    T* out = static_cast<T*>(buffers.outputs[0]) + line * shape_.OutRow();
    auto* argmax =
        static_cast<uint8_t*>(buffers.outputs[1]) + line * shape_.OutRow();
    most_.Line(line % shape_.h.out, x, out, argmax, StoredPixels());
  }

  PoolShape shape_;
  PixelsMost<T> most_;
};

template <typename T>
class PixelsGrad {
 public:
  PixelsGrad(const PoolShape& shape, DType) : shape_(shape), gather_(shape) {}

  static bool Supports(const PoolShape& shape) { return shape.channels > 1; }
  int64_t ScratchFloats() const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(stream.threads(), shape_.planes * shape_.h.in,
                       shape_.InRow(), nullptr, 0,
                       [&](int64_t row, float*) { RunRow(buffers, row); });
  }

 private:
  void RunRow(const Buffers& buffers, int64_t row) const {
    enum { kOutGrad, kArgmax };
    const int64_t plane = row / shape_.h.in * shape_.h.out * shape_.OutRow();
    const T* grad = static_cast<const T*>(buffers.inputs[kOutGrad]) + plane;
    const auto* argmax =
        static_cast<const uint8_t*>(buffers.inputs[kArgmax]) + plane;
    T* x_grad = static_cast<T*>(buffers.outputs[0]) + row * shape_.InRow();
    ForIsa([=](auto isa) {
      gather_.template Row<decltype(isa)::value>(row % shape_.h.in, grad,
                                                 argmax, x_grad);
    });
  }

  PoolShape shape_;
  PixelsGather gather_;
};

template <typename T>
void Register(KernelRegistry& registry) {
  const Candidate argmax =
      WithArgmax(PoolCandidate<PixelsArgmax<T>>("pixels_argmax"), true);
  for (const char* op : {"pool2d", "max_pool2d_with_index"}) {
    registry.Add(op, {DTypeOf<T>()}, Layout::kChannelsLast, argmax);
  }
  registry.Add("max_pool2d_grad", {DTypeOf<T>()}, Layout::kChannelsLast,
               PoolCandidate<PixelsGrad<T>>("pixels"));
}

}  // namespace

void RegisterCpuPoolArgmaxLast(KernelRegistry& registry) {
  Register<float>(registry);
  Register<half>(registry);
  Register<bfloat16>(registry);
}

}  // namespace kernels
}  // namespace halftone
