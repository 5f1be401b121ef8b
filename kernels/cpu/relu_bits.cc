// What a relu's gradient needs, in one bit per element. The ops by themselves
// are for where no fusion takes them: plain loops, in any layout.
#include "kernels/cpu/relu_bits.h"

#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/common/relu_bits_shape.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/norm.h"
#include "kernels/functors/relu_bits.h"

namespace halftone {
namespace kernels {
namespace {

struct ReluBits {
  ReluBitsShape shape;
  DType dtype;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    uint8_t* const bits = static_cast<uint8_t*>(buffers.outputs[0]);
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const out = static_cast<const T*>(buffers.inputs[0]);
      ParallelFor(stream.threads(), shape.bytes, kMapGrain / 8,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t j = begin; j < end; ++j) {
                      bits[j] = MakeByte(out + shape.ElementOf(j));
                    }
                  });
    });
  }

 private:
  template <typename T>
  uint8_t MakeByte(const T* out) const {
    unsigned byte = 0;
    for (int k = 0; k < 8; ++k) {
      const float x = static_cast<float>(out[k * shape.inner]);
      byte |= unsigned{functors::PassesRelu(x)} << k;
    }
    return static_cast<uint8_t>(byte);
  }
};

struct ReluGradBits {
  ReluBitsShape shape;
  DType dtype;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const uint8_t* const bits = static_cast<const uint8_t*>(buffers.inputs[0]);
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const grad = static_cast<const T*>(buffers.inputs[1]);
      T* const x_grad = static_cast<T*>(buffers.outputs[0]);
      ParallelFor(stream.threads(), shape.bytes, kMapGrain / 8,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t j = begin; j < end; ++j) {
                      const int64_t at = shape.ElementOf(j);
                      ApplyByte(bits[j], grad + at, x_grad + at);
                    }
                  });
    });
  }

 private:
  template <typename T>
  void ApplyByte(uint8_t byte, const T* grad, T* x_grad) const {
    for (int k = 0; k < 8; ++k) {
      const int64_t i = k * shape.inner;
      x_grad[i] = static_cast<T>(functors::ReluGradOfBit(
          (byte >> k & 1) != 0, static_cast<float>(grad[i])));
    }
  }
};

template <typename Kernel>
Candidate MakeBits() {
  Candidate candidate = MakeCandidate("bytes", [](const BoundOp& op) {
    const TensorDesc& image = ReluImageOf(op);
    return Kernel{ReluBitsShape(image), image.dtype};
  });
  candidate.supports = HasOneLayout;
  return candidate;
}

}  // namespace

void PackReluBits(const float* out, int64_t n, uint8_t* bits) {
  ForIsa([=](auto isa) {
    using Lanes = ReluLanes<decltype(isa)::value>;
    constexpr int64_t kSize = 8 * sizeof(typename Lanes::Bits);
    int64_t i = 0;
    for (; i + kSize <= n; i += kSize) {
      const typename Lanes::Bits made = Lanes::Make(out + i);
      std::memcpy(bits + i / 8, &made, sizeof(made));
    }
    if (i < n) bits[i / 8] = ReluLanes<Isa::kBaseline>::Make(out + i);
  });
}

void ApplyReluBits(const uint8_t* bits, const float* grad, float* x_grad,
                   int64_t n) {
  ForIsa([=](auto isa) {
    using Lanes = ReluLanes<decltype(isa)::value>;
    constexpr int64_t kSize = 8 * sizeof(typename Lanes::Bits);
    int64_t i = 0;
    for (; i + kSize <= n; i += kSize) {
      typename Lanes::Bits passes;
      std::memcpy(&passes, bits + i / 8, sizeof(passes));
      float made[kSize];
      std::memcpy(made, grad + i, sizeof(made));
      Lanes::Apply(passes, made);
      std::memcpy(x_grad + i, made, sizeof(made));
    }
    if (i == n) return;
    float made[8];
    std::memcpy(made, grad + i, sizeof(made));
    ReluLanes<Isa::kBaseline>::Apply(bits[i / 8], made);
    std::memcpy(x_grad + i, made, sizeof(made));
  });
}

void RegisterCpuReluBits(KernelRegistry& registry) {
  AddForSchema(registry, "relu_bits", MakeBits<ReluBits>());
  AddForSchema(registry, "relu_grad_bits", MakeBits<ReluGradBits>());
}

}  // namespace kernels
}  // namespace halftone
