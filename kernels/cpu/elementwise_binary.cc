// Element-wise ops of two operands, with broadcasting or without.
#include <type_traits>
#include <utility>

#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/low_table.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {
namespace {

// ---- Runs of elements that a number goes with.

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

// The tensors of a call.
struct Tensors {
  const void *x, *y;
  void* out;
  DType dtype;  // of `out`
  int64_t elements;
  int threads;
};

// The number is f's first operand, or its second.
template <bool kFirst, typename F>
void MapRuns(const FunctorSettings& settings, const Operand& numbers,
             const void* numbers_data, const void* x, const Tensors& t) {
  const StreamedOutput output(t.out, t.dtype, t.elements, t.out == x);
  const auto map = [&](int64_t at, int64_t n, float number, void* made) {
    const WithNumber<F, kFirst> g{settings.As<F>(), number};
    alignas(64) float buffer[kConvertBlock];
    const int64_t done =
        IsLow(t.dtype) ? MapLow(t.dtype, g, at, n, made, x) : 0;
    ForBlocks(done, n, [&](int64_t i, int64_t rest) {
      const float* from = LoadBlock(t.dtype, x, at + i, rest, buffer);
      float* to = OutputBlock(t.dtype, made, i, buffer);
      ApplyUnary(g, from, to, rest);
      StoreBlock(t.dtype, to, made, i, rest);
    });
  };
  const auto size = static_cast<int64_t>(SizeOf(t.dtype));
  ParallelFor(
      t.threads, t.elements, kMapGrain, [&](int64_t begin, int64_t end) {
        output.Write(begin, end, [&](int64_t first, int64_t count, void* made) {
          numbers.ForRuns(numbers_data, first, first + count,
                          [&](int64_t at, int64_t n, float number) {
                            map(at, n, number,
                                static_cast<char*>(made) + (at - first) * size);
                          });
        });
      });
}

// They take long to compile: most networks have sums, products and prelu of
// numbers. Other functors take them block by block.
template <typename F, typename... Fs>
constexpr bool kIsOneOf = (std::is_same<F, Fs>::value || ...);
template <typename F>
constexpr bool kCommutes = kIsOneOf<F, functors::AddOp, functors::MulOp>;
template <typename F>
constexpr bool kHasRunsOfX =
    kCommutes<F> || kIsOneOf<F, functors::SubOp, functors::DivOp>;
template <typename F>
constexpr bool kHasRunsOfY =
    kHasRunsOfX<F> || kIsOneOf<F, functors::MaxOp, functors::MinOp,
                               functors::PreluOp, functors::PreluByXOp>;

// ---- Parts that are looked up.

// What of F hangs on one operand, and f given that (kernels/functors/math.h).
template <typename F>
struct PartOf {
  static constexpr bool kIsLong = true;
  F f;
  float operator()(float x) const { return f.Part(x); }
};
template <typename F, typename = void>
struct HasPartOfSecond : std::false_type {};
template <typename F>
struct HasPartOfSecond<F, std::void_t<decltype(&F::With)>> : std::true_type {};
template <typename F>
float WithPart(const F& f, float part, float x, float y) {
  if constexpr (HasPartOfSecond<F>::value) {
    return f.With(part, x, y);
  } else {
    return y * part;
  }
}

// ---- What is compiled of a functor.

struct BinaryFunctions {
  BlockFunction block;
  bool broadcasts = false;
  // In registers, of whole tensors of 16 bits: how many of n it made.
  int64_t (*low)(const FunctorSettings& settings, const Tensors& t, int64_t at,
                 int64_t n, void* to) = nullptr;
  // Of a number for runs of the other's elements. Null: by blocks.
  using Runs = void (*)(const FunctorSettings& settings, const Operand& numbers,
                        const void* numbers_data, const void* other,
                        const Tensors& t);
  Runs runs_of_x = nullptr, runs_of_y = nullptr;
  // Null: no part is looked up.
  LowParts (*make_parts)(const FunctorSettings& settings, const Operand& key,
                         DType dtype, int64_t elements) = nullptr;
  void (*with_parts)(const FunctorSettings& settings, const LowParts& parts,
                     const Tensors& t) = nullptr;
};

template <typename F>
BinaryFunctions FunctionsOf() {
  BinaryFunctions made;
  made.block.run = [](const FunctorSettings& settings, const float* x,
                      const float* y, float* out, int64_t n) {
    ApplyBinary(settings.As<F>(), x, y, out, n);
  };
  made.low = [](const FunctorSettings& settings, const Tensors& t, int64_t at,
                int64_t n, void* to) {
    return MapLow(t.dtype, settings.As<F>(), at, n, to, t.x, t.y);
  };
  if constexpr (kHasRunsOfY<F>) made.runs_of_y = MapRuns<false, F>;
  if constexpr (kHasRunsOfX<F>) made.runs_of_x = MapRuns<!kCommutes<F>, F>;
  if constexpr (IsLong<F>::value) {
    made.make_parts = [](const FunctorSettings& settings, const Operand& key,
                         DType dtype, int64_t elements) {
      return MakeLowTable<float>(key, dtype, elements,
                                 PartOf<F>{settings.As<F>()});
    };
    made.with_parts = [](const FunctorSettings& settings, const LowParts& parts,
                         const Tensors& t) {
      MapWithTable(
          t.dtype,
          [f = settings.As<F>()](float part, float x, float y) {
            return WithPart(f, part, x, y);
          },
          parts, HasPartOfSecond<F>::value ? t.y : t.x, t.out, t.elements,
          t.threads, t.x, t.y);
    };
  }
  return made;
}

// Of the op's functor; without a `run`, if it has none of two operands.
BinaryFunctions FunctionsFor(const BoundOp& op) {
  BinaryFunctions made;
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands != Operands::kOne) {
      if (!functor.Computes(op)) return;
      using F = typename std::decay_t<decltype(functor)>::Functor;
      made = IsLow(op.outputs()[0].dtype)
                 ? FunctionsOf<typename OfLow<F>::type>()
                 : FunctionsOf<F>();
      made.block.settings = FunctorSettings::Of(functor.Make(op));
      made.broadcasts = functor.operands == Operands::kTwo;
    }
  });
  return made;
}

struct BinaryKernel {
  Operand x, y;
  DType out;
  int64_t elements;
  BinaryFunctions functions;
  LowParts parts;  // null: they are computed

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const Tensors t = {buffers.inputs[0],  buffers.inputs[1],
                       buffers.outputs[0], out,
                       elements,           stream.threads()};
    const FunctorSettings& settings = functions.block.settings;
    if (parts != nullptr) return functions.with_parts(settings, parts, t);
    if (functions.runs_of_y != nullptr && x.IsWhole(out) && y.IsOfRuns()) {
      return functions.runs_of_y(settings, y, t.y, t.x, t);
    }
    if (functions.runs_of_x != nullptr && y.IsWhole(out) && x.IsOfRuns()) {
      return functions.runs_of_x(settings, x, t.x, t.y, t);
    }
    MapOperands(
        x, t.x, y, t.y, out, t.out, elements, t.threads,
        [&](int64_t at, int64_t n, void* to) {
          return functions.low(settings, t, at, n, to);
        },
        [&](const float* a, const float* b, float* to, int64_t n) {
          functions.block.run(settings, a, b, to, n);
        });
  }
};

BinaryKernel MakeBinary(const BoundOp& op) {
  const TensorDesc &x = op.inputs()[0], &y = op.inputs()[1];
  const TensorDesc& out = op.outputs()[0];
  const BinaryFunctions functions = FunctionsFor(op);
  const auto strides = functions.broadcasts
                           ? BinaryStrides(op)
                           : std::make_pair(BroadcastStrides(x, out, 0),
                                            BroadcastStrides(y, out, 0));
  BinaryKernel kernel{Operand(x.dtype, out, strides.first),
                      Operand(y.dtype, out, strides.second),
                      out.dtype,
                      out.elements(),
                      functions,
                      nullptr};
  if (functions.make_parts != nullptr && kernel.x.IsWhole(out.dtype) &&
      kernel.y.IsWhole(out.dtype)) {
    kernel.parts = functions.make_parts(functions.block.settings, kernel.x,
                                        out.dtype, kernel.elements);
  }
  return kernel;
}

}  // namespace

BlockFunction BinaryBlockFunction(const BoundOp& op) {
  return FunctionsFor(op).block;
}

void RegisterCpuBinary(KernelRegistry& registry) {
  AddElementwise<false>(registry, MakeBinary);
}

}  // namespace kernels
}  // namespace halftone
