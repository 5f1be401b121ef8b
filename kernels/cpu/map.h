// Element-wise kernels from functors: blocks of f32, one pass.
#ifndef HALFTONE_KERNELS_CPU_MAP_H_
#define HALFTONE_KERNELS_CPU_MAP_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/operand.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// Elements that one thread takes at least: below that the threads' start
// costs more than it saves.
inline constexpr int64_t kMapGrain = 32 * kConvertBlock;

// Calls body(begin, n) for each block of [begin, end).
template <typename Body>
inline void ForBlocks(int64_t begin, int64_t end, const Body& body) {
  for (int64_t i = begin; i < end; i += kConvertBlock) {
    body(i, std::min(kConvertBlock, end - i));
  }
}

// Whether F has a faster form for arguments of which F::IsNear says so
// (kernels/functors/trigonometry.h).
template <typename F, typename = void>
struct HasNear : std::false_type {};
template <typename F>
struct HasNear<F, std::void_t<typename F::Near>> : std::true_type {};

// Whether F has a form for the bits of f16 and bf16 alike.
template <typename F, typename = void>
struct HasOfBits : std::false_type {};
template <typename F>
struct HasOfBits<F, std::void_t<decltype(F::OfBits(uint16_t()))>>
    : std::true_type {};

// out[i] = f(x[i]) of a block. `out` may be x.
template <typename F>
void ApplyUnary(const F& f, const float* x, float* out, int64_t n) {
  ForIsa([=] {
    if constexpr (HasNear<F>::value) {
      int far = 0;
      for (int64_t i = 0; i < n; ++i) far |= F::IsNear(x[i]) ? 0 : 1;
      if (far == 0) {
        const typename F::Near near;
#pragma GCC ivdep
#pragma GCC unroll 4
        for (int64_t i = 0; i < n; ++i) out[i] = near(x[i]);
        return;
      }
    }
#pragma GCC ivdep
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
  });
}

// out = f(x). `out` may be x.
template <typename F>
void MapUnary(const Operand& x, const void* x_data, DType out, void* out_data,
              int64_t elements, int threads, const F& f) {
  if constexpr (HasOfBits<F>::value) {
    if (out != DType::kF32 && x.IsWhole(out)) {
      const auto* from = static_cast<const uint16_t*>(x_data);
      auto* to = static_cast<uint16_t*>(out_data);
      return ParallelFor(threads, elements, kMapGrain,
                         [=](int64_t begin, int64_t end) {
                           ForIsa([=] {
#pragma GCC ivdep
                             for (int64_t i = begin; i < end; ++i) {
                               to[i] = F::OfBits(from[i]);
                             }
                           });
                         });
    }
  }
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    OperandReader reader(x, x_data, end - begin);
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(begin, end, [&](int64_t at, int64_t n) {
      const float* from = reader.Block(at, n);
      float* to = OutputBlock(out, out_data, at, buffer);
      ApplyUnary(f, from, to, n);
      StoreBlock(out, to, out_data, at, n);
    });
  });
}

// out = f(x, y). `out` may be x or y.
template <typename F>
void MapBinary(const Operand& x, const void* x_data, const Operand& y,
               const void* y_data, DType out, void* out_data, int64_t elements,
               int threads, const F& f) {
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    OperandReader x_reader(x, x_data, end - begin);
    OperandReader y_reader(y, y_data, end - begin);
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(begin, end, [&](int64_t at, int64_t n) {
      const float* a = x_reader.Block(at, n);
      const float* b = y_reader.Block(at, n);
      float* to = OutputBlock(out, out_data, at, buffer);
      ForIsa([=] {
#pragma GCC ivdep
#pragma GCC unroll 4
        for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
      });
      StoreBlock(out, to, out_data, at, n);
    });
  });
}

// A kernel with one input of the output's dims: make_functor(op) is asked at
// Prepare.
template <typename MakeFunctor>
auto UnaryKernel(MakeFunctor make_functor) {
  return [make_functor](const BoundOp& op) {
    const TensorDesc& out = op.outputs()[0];
    return [f = make_functor(op), x = Operand(op.inputs()[0], out),
            dtype = out.dtype, n = out.elements()](const Buffers& buffers,
                                                   runtime::Stream& stream) {
      MapUnary(x, buffers.inputs[0], dtype, buffers.outputs[0], n,
               stream.threads(), f);
    };
  };
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_MAP_H_
