// What a relu's gradient needs, in one bit per element. The ops by themselves
// are for where no fusion takes them: plain loops, in any layout.
#include "kernels/cpu/relu_bits.h"

#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/common/relu_bits_shape.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/norm.h"
#include "kernels/functors/relu_bits.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {
namespace {

// The bits of eight elements. For bodies of ForIsa.
template <Isa kIsa>
struct ByteOf {
  static uint8_t From(const float* out) {
    unsigned byte = 0;
    for (int k = 0; k < 8; ++k) {
      byte |= unsigned{functors::PassesRelu(out[k])} << k;
    }
    return static_cast<uint8_t>(byte);
  }
};

#ifdef HT_ISA_X86
struct ByteOfVector {
  HT_TARGET_AVX2 static uint8_t From(const float* out) {
    // Not less than or equal, or unordered.
    const __m256 passes =
        _mm256_cmp_ps(_mm256_loadu_ps(out), _mm256_setzero_ps(), _CMP_NLE_UQ);
    return static_cast<uint8_t>(_mm256_movemask_ps(passes));
  }
};
template <>
struct ByteOf<Isa::kAvx2> : ByteOfVector {};
template <>
struct ByteOf<Isa::kAvx512> : ByteOfVector {};
#endif

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
    using Byte = ByteOf<decltype(isa)::value>;
    int64_t i = 0;
    // Four bytes at once, of which the lowest is the first: single ones take
    // 1.7 times as long.
    for (; i + 32 <= n; i += 32) {
      uint32_t word = 0;
      for (int k = 0; k < 4; ++k) {
        word |= uint32_t{Byte::From(out + i + 8 * k)} << (8 * k);
      }
      std::memcpy(bits + i / 8, &word, sizeof(word));
    }
    for (; i < n; i += 8) bits[i / 8] = Byte::From(out + i);
  });
}

void ApplyReluBits(const uint8_t* bits, const float* grad, float* x_grad,
                   int64_t n) {
  static_assert(kVector == 8, "a byte for a vector");
  ForIsa([=] {
    const VectorMask lanes = {1, 2, 4, 8, 16, 32, 64, 128};
    for (int64_t i = 0; i < n; i += kVector) {
      const VectorMask passes = (lanes & int32_t{bits[i / 8]}) != 0;
      VectorAt(x_grad + i) = passes ? VectorAt(grad + i) : Vector{};
    }
  });
}

void RegisterCpuReluBits(KernelRegistry& registry) {
  AddForSchema(registry, "relu_bits", MakeBits<ReluBits>());
  AddForSchema(registry, "relu_grad_bits", MakeBits<ReluGradBits>());
}

}  // namespace kernels
}  // namespace halftone
