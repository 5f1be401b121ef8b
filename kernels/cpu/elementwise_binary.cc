// Element-wise ops of two operands, with broadcasting or without.
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/low_table.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {
namespace {

// f of elements and a number that goes with all of them.
template <typename F, bool kFirst>
struct WithNumber {
  static constexpr bool kInDouble = IsInDouble<F>::value;
  F f;
  float number;
  float operator()(float x) const {
    return kFirst ? f(number, x) : f(x, number);
  }
};

// The number is f's first operand, or its second. `out` may be x.
template <bool kFirst, typename F>
void MapRuns(const Operand& numbers, const void* numbers_data,
             const void* x_data, DType dtype, void* out_data, int64_t elements,
             int threads, const F& f) {
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    alignas(64) float buffer[kConvertBlock];
    numbers.ForRuns(
        numbers_data, begin, end, [&](int64_t at, int64_t n, float number) {
          const WithNumber<F, kFirst> g{f, number};
          const int64_t done =
              IsLow(dtype) ? MapLow(dtype, g, at, at + n, out_data, x_data)
                           : at;
          ForBlocks(done, at + n, [&](int64_t i, int64_t rest) {
            const float* x = LoadBlock(dtype, x_data, i, rest, buffer);
            float* to = OutputBlock(dtype, out_data, i, buffer);
            ApplyUnary(g, x, to, rest);
            StoreBlock(dtype, to, out_data, i, rest);
          });
        });
  });
}

// Loops over runs of a number take long to compile: most networks have sums,
// products and prelu of them. Other functors take them block by block.
template <typename F, typename... Fs>
constexpr bool kIsOneOf = (std::is_same<F, Fs>::value || ...);
template <typename F>
constexpr bool kCommutes = kIsOneOf<F, functors::AddOp, functors::MulOp>;
template <typename F>
constexpr bool kHasRunsOfX = kIsOneOf<F, functors::SubOp, functors::DivOp>;
template <typename F>
constexpr bool kHasRunsOfY = kHasRunsOfX<F> || kCommutes<F> ||
                             kIsOneOf<F, functors::MaxOp, functors::MinOp,
                                      functors::PreluOp, functors::PreluByXOp>;

template <typename F>
struct BinaryKernel {
  Operand x, y;
  DType out;
  int64_t elements;
  F functor;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const void *a = buffers.inputs[0], *b = buffers.inputs[1];
    void* to = buffers.outputs[0];
    const int threads = stream.threads();
    if constexpr (kHasRunsOfY<F>) {
      if (x.IsWhole(out) && y.IsOfRuns()) {
        return MapRuns<false>(y, b, a, out, to, elements, threads, functor);
      }
    }
    if constexpr (kHasRunsOfX<F> || kCommutes<F>) {
      if (y.IsWhole(out) && x.IsOfRuns()) {
        return MapRuns<!kCommutes<F>>(x, a, b, out, to, elements, threads,
                                      functor);
      }
    }
    MapBinary(x, a, y, b, out, to, elements, threads, functor);
  }
};

template <typename F>
BinaryKernel<F> MakeBroadcasting(const BoundOp& op, F functor) {
  const TensorDesc& out = op.Output("Out");
  const auto strides = BinaryStrides(op);
  return {Operand(op.inputs()[0].dtype, out, strides.first),
          Operand(op.inputs()[1].dtype, out, strides.second), out.dtype,
          out.elements(), functor};
}

// What of F hangs on one operand (kernels/functors/math.h).
template <typename F>
struct PartOf {
  static constexpr bool kIsLong = true;
  F f;
  float operator()(float x) const { return f.Part(x); }
};
template <typename F, typename = void>
struct IsPartOfSecond : std::false_type {};
template <typename F>
struct IsPartOfSecond<F, std::enable_if_t<F::kPartOfSecond>> : std::true_type {
};

template <typename F>
struct OfOneShape {
  Operand x, y;
  DType dtype;
  int64_t elements;
  F f;
  LowParts parts;  // null: f is computed

  // Without the loops over runs, which of 27 functors take a third of a minute
  // to compile.
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const void *a = buffers.inputs[0], *b = buffers.inputs[1];
    void* to = buffers.outputs[0];
    if constexpr (IsLong<F>::value) {
      if (parts != nullptr) {
        return MapWithTable(
            dtype,
            [f = f](float part, float x, float y) {
              return f.With(part, x, y);
            },
            parts, IsPartOfSecond<F>::value ? b : a, to, elements,
            stream.threads(), a, b);
      }
    }
    MapBinary(x, a, y, b, dtype, to, elements, stream.threads(), f);
  }
};

template <typename F>
OfOneShape<F> MakeOfOneShape(const BoundOp& op, F f) {
  const TensorDesc& out = op.outputs()[0];
  OfOneShape<F> kernel{Operand(op.inputs()[0], out),
                       Operand(op.inputs()[1], out), out.dtype, out.elements(),
                       f};
  if constexpr (IsLong<F>::value) {
    if (kernel.x.IsWhole(out.dtype) && kernel.y.IsWhole(out.dtype)) {
      kernel.parts = MakeLowTable<float>(kernel.x, out.dtype, kernel.elements,
                                         PartOf<F>{f});
    }
  }
  return kernel;
}

}  // namespace

void RegisterCpuBinary(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands != Operands::kOne) {
      Candidate candidate =
          MakeCandidate("blocks", [functor](const BoundOp& op) {
            if constexpr (functor.operands == Operands::kTwo) {
              return MakeBroadcasting(op, functor.Make(op));
            } else {
              return MakeOfOneShape(op, functor.Make(op));
            }
          });
      candidate.supports = functor.chosen;
      AddForSchema(registry, functor.op, candidate);
    }
  });
}

}  // namespace kernels
}  // namespace halftone
