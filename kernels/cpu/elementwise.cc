// Element-wise ops of one operand. Of two: elementwise_binary.cc.
#include "kernels/cpu/elementwise.h"

#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/low_table.h"
#include "kernels/cpu/map.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// What is compiled of a functor.
struct UnaryFunctions {
  BlockFunction block;
  // In registers, of whole tensors of 16 bits: how many of n it made.
  int64_t (*low)(const FunctorSettings& settings, DType dtype, const void* x,
                 int64_t at, int64_t n, void* to) = nullptr;
  // Null: it is not looked up.
  LowTable (*make_table)(const FunctorSettings& settings, const Operand& x,
                         DType dtype, int64_t elements) = nullptr;
};

template <typename F>
UnaryFunctions FunctionsOf() {
  UnaryFunctions made;
  made.block.run = [](const FunctorSettings& settings, const float* x,
                      const float*, float* out,
                      int64_t n) { ApplyUnary(settings.As<F>(), x, out, n); };
  made.low = [](const FunctorSettings& settings, DType dtype, const void* x,
                int64_t at, int64_t n, void* to) {
    if constexpr (HasOfBits<F>::value) {
      MapBits<F>(x, at, n, to);
      return n;
    } else {
      return MapLow(dtype, settings.As<F>(), at, n, to, x);
    }
  };
  if constexpr (IsLong<F>::value) {
    made.make_table = [](const FunctorSettings& settings, const Operand& x,
                         DType dtype, int64_t elements) {
      return MakeLowTable<uint16_t>(x, dtype, elements, settings.As<F>());
    };
  }
  return made;
}

// Of the op's functor; without a `run`, if it has none of one operand.
UnaryFunctions FunctionsFor(const BoundOp& op) {
  UnaryFunctions made;
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands == Operands::kOne) {
      if (!functor.Computes(op)) return;
      using F = typename std::decay_t<decltype(functor)>::Functor;
      made = IsLow(op.outputs()[0].dtype)
                 ? FunctionsOf<typename OfLow<F>::type>()
                 : FunctionsOf<F>();
      made.block.settings = FunctorSettings::Of(functor.Make(op));
    }
  });
  return made;
}

struct UnaryKernel {
  Operand x;
  DType dtype;
  int64_t elements;
  UnaryFunctions functions;
  LowTable table;  // null: it is computed

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const void* from = buffers.inputs[0];
    void* to = buffers.outputs[0];
    const int threads = stream.threads();
    if (table != nullptr) return LookUp(table, from, to, elements, threads);
    const BlockFunction& block = functions.block;
    MapOperand(
        x, from, dtype, to, elements, threads,
        [&](int64_t at, int64_t n, void* made) {
          return functions.low(block.settings, dtype, from, at, n, made);
        },
        [&](const float* a, float* made, int64_t n) {
          block.run(block.settings, a, nullptr, made, n);
        });
  }
};

UnaryKernel MakeUnary(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  UnaryKernel kernel{Operand(op.inputs()[0], out), out.dtype, out.elements(),
                     FunctionsFor(op), nullptr};
  const UnaryFunctions& functions = kernel.functions;
  if (functions.make_table != nullptr) {
    kernel.table = functions.make_table(functions.block.settings, kernel.x,
                                        out.dtype, kernel.elements);
  }
  return kernel;
}

}  // namespace

BlockFunction UnaryBlockFunction(const BoundOp& op) {
  return FunctionsFor(op).block;
}

void RegisterCpuElementwise(KernelRegistry& registry) {
  AddElementwise<true>(registry, MakeUnary);
  RegisterCpuBinary(registry);
  RegisterCpuCast(registry);
  RegisterCpuSum(registry);
}

}  // namespace kernels
}  // namespace halftone
