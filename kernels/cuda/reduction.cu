// Reductions that are no sums, where extremes lie, and running sums: a block
// for each output, row or column, in one fixed order.
#include <functional>
#include <vector>

#include "kernels/common/reduced.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/reduction.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Numbers = TypeList<float, half, bfloat16, int32_t, int64_t>;
using Run = std::function<void(const Buffers&, Launcher&)>;

// What T is reduced as, in types that shuffles take.
template <typename T>
struct ReducedAs {
  using type = decltype(functors::Widen(T()));
};
template <>
struct ReducedAs<int64_t> {
  using type = long long;
};
template <typename T>
using As = typename ReducedAs<T>::type;

template <typename T>
HT_DEVICE As<T> LoadNumber(const T* x, int64_t i) {
  return static_cast<As<T>>(functors::Widen(x[i]));
}

int BlockThreads(int64_t length) { return length <= 64 ? kWarp : kThreads; }

// Output i is at kept(i), its k-th summand at reduced(k) from there.
struct Places {
  Loops kept, reduced;
  int64_t outputs = 1, length = 1;
};

// The nests of a reduction over `axes`.
std::pair<Nest, Nest> NestsOf(const BoundOp& op,
                              const std::vector<bool>& axes) {
  const TensorDesc& x = op.Input("X");
  const Extents strides = StridesOf(x);
  TensorDesc kept{x.dtype, Layout::kRowMajor, {}}, reduced = kept;
  Extents kept_strides, reduced_strides;
  for (int i = 0; i < x.rank(); ++i) {
    (axes[i] ? reduced : kept).dims.push_back(x.dims[i]);
    (axes[i] ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  return {MakeNest(kept, kept_strides), MakeNest(reduced, reduced_strides)};
}

Places PlacesOf(const BoundOp& op, const std::vector<bool>& axes) {
  const auto nests = NestsOf(op, axes);
  Places places{Loops(nests.first), Loops(nests.second)};
  for (int i = 0; i < op.Input("X").rank(); ++i) {
    (axes[i] ? places.length : places.outputs) *= op.Input("X").dims[i];
  }
  return places;
}

bool PlacesFit(const BoundOp& op, const std::vector<bool>& axes) {
  const auto nests = NestsOf(op, axes);
  return Loops::Fits(nests.first) && Loops::Fits(nests.second);
}

// ---- Folds.

template <typename T, typename F, typename Map, typename Finish>
__global__ void __launch_bounds__(kThreads)
    FoldKernel(const __grid_constant__ Places places, const T* x, T* out,
               F fold, Map map, Finish finish) {
  using A = As<T>;
  const int64_t base = places.kept.OffsetOf(blockIdx.x);
  A value = F::template None<A>();
  for (int64_t k = threadIdx.x; k < places.length; k += blockDim.x) {
    value = fold(value, map(LoadNumber(x, base + places.reduced.OffsetOf(k))));
  }
  value = CombineBlock(value, F::template None<A>(), fold);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = static_cast<T>(finish(value));
  }
}

struct AsItIs {
  template <typename A>
  HT_DEVICE A operator()(A x) const {
    return x;
  }
};

template <typename T, typename F, typename Map, typename Finish>
Run FoldOf(const Places& places, F fold, Map map, Finish finish) {
  return [=](const Buffers& b, Launcher& launch) {
    launch(FoldKernel<T, F, Map, Finish>, places.outputs,
           BlockThreads(places.length), places,
           static_cast<const T*>(b.inputs[0]), static_cast<T*>(b.outputs[0]),
           fold, map, finish);
  };
}

template <typename F>
Candidate MakeFold() {
  const auto axes = [](const BoundOp& op) {
    return ReducedAxes(op, op.Input("X").rank());
  };
  Candidate candidate = CudaCandidate("blocks", [axes](const BoundOp& op) {
    Run run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = FoldOf<T>(PlacesOf(op, axes(op)), F(), AsItIs(), AsItIs());
    });
    return run;
  });
  candidate.supports = [axes](const BoundOp& op) {
    return PlacesFit(op, axes(op));
  };
  return candidate;
}

// ---- p_norm.

struct SumOf {
  HT_DEVICE float operator()(float a, float b) const { return a + b; }
  template <typename A>
  static HT_DEVICE A None() {
    return 0;
  }
};
// Of sizes: 0 over nothing.
struct GreatestSize : functors::GreaterOf {
  template <typename A>
  static HT_DEVICE A None() {
    return 0;
  }
};

template <typename T>
Run NormOf(const Places& places, float order) {
  using functors::AbsOp;
  if (order == functors::Infinity()) {
    return FoldOf<T>(places, GreatestSize(), AbsOp(), AsItIs());
  }
  if (order == -functors::Infinity()) {
    return FoldOf<T>(places, functors::LesserOf(), AbsOp(), AsItIs());
  }
  if (order == 0.0f) {
    return FoldOf<T>(places, SumOf(), functors::NotZeroOp(), AsItIs());
  }
  if (order == 1.0f) return FoldOf<T>(places, SumOf(), AbsOp(), AsItIs());
  if (order == 2.0f) {
    return FoldOf<T>(places, SumOf(), functors::SquareOp(), functors::SqrtOp());
  }
  return FoldOf<T>(places, SumOf(), functors::AbsPowerOp{order},
                   functors::AbsPowerOp{1.0f / order});
}

Candidate MakeNorm() {
  Candidate candidate = CudaCandidate("blocks", [](const BoundOp& op) {
    Run run;
    DispatchType(FloatTypes(), op.Input("X").dtype, [&](auto tag) {
      run = NormOf<typename decltype(tag)::type>(
          PlacesOf(op, NormAxes(op)), static_cast<float>(op.Float("porder")));
    });
    return run;
  });
  candidate.supports = [](const BoundOp& op) {
    return PlacesFit(op, NormAxes(op));
  };
  return candidate;
}

// ---- arg_max, arg_min: the extreme, then the first place where it is.

template <typename A>
HT_DEVICE bool IsNan(A x) {
  return x != x;
}

template <typename T, typename F>
__global__ void __launch_bounds__(kThreads)
    ArgKernel(AlongAxis along, const T* x, int64_t* wide, int32_t* narrow) {
  using A = As<T>;
  const F fold;
  const int64_t base = blockIdx.x / along.inner * along.length * along.inner +
                       blockIdx.x % along.inner;
  A best = F::template None<A>();
  for (int64_t k = threadIdx.x; k < along.length; k += blockDim.x) {
    best = fold(best, LoadNumber(x, base + k * along.inner));
  }
  best = CombineBlock(best, F::template None<A>(), fold);
  long long place = along.length;
  for (int64_t k = threadIdx.x; k < along.length; k += blockDim.x) {
    const A value = LoadNumber(x, base + k * along.inner);
    if (value == best || (IsNan(best) && IsNan(value))) {
      place = k;
      break;
    }
  }
  place = CombineBlock(place, static_cast<long long>(along.length), Least());
  if (threadIdx.x != 0) return;
  if (place == along.length) place = 0;  // a batch of nothing
  if (wide != nullptr) {
    wide[blockIdx.x] = place;
  } else {
    narrow[blockIdx.x] = static_cast<int32_t>(place);
  }
}

template <typename F>
Candidate MakeArg() {
  return CudaCandidate("blocks", [](const BoundOp& op) {
    const AlongAxis along = AlongAxisOf(op);
    const bool wide = op.Output("Out").dtype == DType::kI64;
    Run run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = [along, wide](const Buffers& b, Launcher& launch) {
        launch(ArgKernel<T, F>, along.outer * along.inner,
               BlockThreads(along.length), along,
               static_cast<const T*>(b.inputs[0]),
               wide ? static_cast<int64_t*>(b.outputs[0]) : nullptr,
               wide ? nullptr : static_cast<int32_t*>(b.outputs[0]));
      };
    });
    return run;
  });
}

// ---- cumsum: a block takes so many elements of a row at a time.

template <typename A>
HT_DEVICE A Add(A a, A b) {
  if constexpr (std::is_integral<A>::value) {
    using Unsigned = std::make_unsigned_t<A>;  // wraps
    return static_cast<A>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ScanKernel(AlongAxis along, bool exclusive, bool reverse, const T* x,
               T* out) {
  using A = As<T>;
  HT_SHARED(A[2][kThreads], sums);
  const int t = threadIdx.x;
  const int64_t base = blockIdx.x / along.inner * along.length * along.inner +
                       blockIdx.x % along.inner;
  A before = 0;  // of what came before the block's elements
  for (int64_t first = 0; first < along.length; first += kThreads) {
    const int64_t k = first + t;
    const int64_t place = reverse ? along.length - 1 - k : k;
    const int64_t at = base + place * along.inner;
    sums[0][t] = k < along.length ? LoadNumber(x, at) : A(0);
    __syncthreads();
    int from = 0;
    for (int width = 1; width < kThreads; width *= 2) {
      sums[1 - from][t] = t >= width ? Add(sums[from][t - width], sums[from][t])
                                     : sums[from][t];
      from = 1 - from;
      __syncthreads();
    }
    if (k < along.length) {
      const A own =
          exclusive ? (t > 0 ? sums[from][t - 1] : A(0)) : sums[from][t];
      out[at] = static_cast<T>(Add(before, own));
    }
    before = Add(before, sums[from][kThreads - 1]);
    __syncthreads();  // before the next elements overwrite the sums
  }
}

Candidate MakeScan() {
  return CudaCandidate("blocks", [](const BoundOp& op) {
    const AlongAxis along = AlongAxisOf(op);
    const bool exclusive = op.Bool("exclusive"), reverse = op.Bool("reverse");
    Run run;
    DispatchType(Numbers(), op.Input("X").dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = [=](const Buffers& b, Launcher& launch) {
        launch(ScanKernel<T>, along.outer * along.inner, kThreads, along,
               exclusive, reverse, static_cast<const T*>(b.inputs[0]),
               static_cast<T*>(b.outputs[0]));
      };
    });
    return run;
  });
}

}  // namespace

void RegisterCudaReduction(KernelRegistry& registry) {
  AddForSchema(registry, "reduce_max", MakeFold<functors::GreaterOf>());
  AddForSchema(registry, "reduce_min", MakeFold<functors::LesserOf>());
  AddForSchema(registry, "reduce_prod", MakeFold<functors::ProductOf>());
  AddForSchema(registry, "p_norm", MakeNorm());
  AddForSchema(registry, "arg_max", MakeArg<functors::GreaterOf>());
  AddForSchema(registry, "arg_min", MakeArg<functors::LesserOf>());
  AddForSchema(registry, "cumsum", MakeScan());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
