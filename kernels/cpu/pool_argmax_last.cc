// Maximum pooling that also says where the maxima lie (pool_argmax.cc has more
// of it), and its gradient, of channels-last images: the channels of an element
// are neighbours.
#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_pixels.h"

namespace halftone {
namespace kernels {
namespace {

// Window by window, first the maxima of a vector of channels, then their
// places.
template <typename T>
class PixelsArgmax {
 public:
  PixelsArgmax(const PoolShape& shape, DType) : shape_(shape) {}

  static bool Supports(const PoolShape& shape) { return shape.channels > 1; }
  int64_t ScratchFloats() const { return 0; }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(stream.threads(), shape_.planes * shape_.h.out,
                       shape_.h.kernel * shape_.InRow(), nullptr, 0,
                       [&](int64_t line, float*) { RunLine(buffers, line); });
  }

 private:
  void RunLine(const Buffers& buffers, int64_t line) const {
    const int64_t oh = line % shape_.h.out;
    const T* x = static_cast<const T*>(buffers.inputs[0]) +
                 line / shape_.h.out * shape_.h.in * shape_.InRow();
    T* out = static_cast<T*>(buffers.outputs[0]) + line * shape_.OutRow();
    auto* argmax =
        static_cast<uint8_t*>(buffers.outputs[1]) + line * shape_.OutRow();
    ForPixelWindows(shape_, oh, /*also_by_column=*/true,
                    [&](const PixelTaps& taps, int64_t begin, int64_t window) {
                      ForIsa([&, at = x + begin](auto isa) {
                        RunWindow<decltype(isa)::value>(taps, at, out + window,
                                                        argmax + window);
                      });
                    });
  }

  // ---- For bodies of ForIsa.

  template <Isa kIsa>
  void RunWindow(const PixelTaps& taps, const T* x, T* out,
                 uint8_t* argmax) const {
    const int64_t channels = shape_.channels;
    int64_t c = 0;
    for (; taps.count > 0 && c + 4 * kVector <= channels; c += 4 * kVector) {
      RunVectors<kIsa, 4>(taps, x + c, out + c, argmax + c);
    }
    for (; taps.count > 0 && c + kVector <= channels; c += kVector) {
      RunVectors<kIsa, 1>(taps, x + c, out + c, argmax + c);
    }
    for (; c < channels; ++c) RunChannel(taps, x + c, out + c, argmax + c);
  }

  template <Isa kIsa, int kVectors>
  void RunVectors(const PixelTaps& taps, const T* x, T* out,
                  uint8_t* argmax) const {
    using Vectors = VectorsOf<T, kIsa>;
    Vector most[kVectors], sums[kVectors], v;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      Vectors::Load(x + taps.by_column[0] + k * kVector, &most[k]);
      sums[k] = most[k];
    }
    for (int i = 1; i < taps.count; ++i) {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Vectors::Load(x + taps.by_column[i] + k * kVector, &v);
        most[k] = v > most[k] ? v : most[k];
        sums[k] += v;  // NaN wherever an element is
      }
    }
    VectorMask places[kVectors] = {}, nans = {};
    for (int i = taps.count - 1; i >= 0; --i) {
      const VectorMask place = taps.places[i] - VectorMask{};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        Vectors::Load(x + taps.by_row[i] + k * kVector, &v);
        places[k] = v == most[k] ? place : places[k];
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      nans |= sums[k] != sums[k];
      Vectors::Store(most[k], out + k * kVector);
      Vectors::Places::Store(reinterpret_cast<const int32_t*>(&places[k]),
                             argmax + k * kVector);
    }
    int any = 0;
    for (int k = 0; k < kVector; ++k) any |= nans[k];
    for (int c = 0; any != 0 && c < kVectors * kVector; ++c) {
      RunChannel(taps, x + c, out + c, argmax + c);
    }
  }

  void RunChannel(const PixelTaps& taps, const T* x, T* out,
                  uint8_t* argmax) const {
    *argmax = kNoArgmax;
    float most = shape_.of_nothing;
    for (int i = 0; i < taps.count; ++i) {
      const float v = static_cast<float>(x[taps.by_column[i]]);
      most = i == 0 ? v : Larger()(most, v);
    }
    for (int i = taps.count - 1; i >= 0; --i) {
      const float v = static_cast<float>(x[taps.by_row[i]]);
      const bool same = v == most || (v != v && most != most);
      if (same) *argmax = static_cast<uint8_t>(taps.places[i]);
    }
    *out = static_cast<T>(most);
  }

  PoolShape shape_;
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
  PixelsGather<T> gather_;
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
