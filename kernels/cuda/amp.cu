// Loss scaling, gradient clipping and clocks: mostly scalars, which stay on
// the device.
#include <algorithm>
#include <vector>

#include "kernels/common/settings.h"
#include "kernels/cuda/amp.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"
#include "kernels/functors/amp.h"
#include "kernels/functors/local_steps.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

template <typename T>
const T* In(const Buffers& buffers, int i) {
  return static_cast<const T*>(buffers.inputs[i]);
}
template <typename T>
T* Out(const Buffers& buffers, int i) {
  return static_cast<T*>(buffers.outputs[i]);
}

// ---- Seed and inverse scale.

__global__ void SeedKernel(const float* loss_scaling, const float* count,
                           const float* largest, float* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = functors::GradientSeed(*loss_scaling, *count, *largest);
}

auto MakeSeed(const BoundOp& op) {
  return [n = op.Output("Out").elements()](const Buffers& b, Launcher& launch) {
    launch(SeedKernel, CeilDiv(n, kThreads), n == 1 ? 1 : kThreads,
           In<float>(b, 0), In<float>(b, 1), In<float>(b, 2), Out<float>(b, 0),
           n);
  };
}

__global__ void InvScaleKernel(const float* loss_scaling, const float* count,
                               const float* largest, float p, float* out) {
  *out = functors::GradientInvScale(*loss_scaling, p, *count, *largest);
}

auto MakeInvScale(const BoundOp& op) {
  return [p = ReductionScale(op)](const Buffers& b, Launcher& launch) {
    launch(InvScaleKernel, 1, 1, In<float>(b, 0), In<float>(b, 1),
           In<float>(b, 2), p, Out<float>(b, 0));
  };
}

__global__ void CountShareKernel(const float* total, const float* count,
                                 const float* all_counts, float* out,
                                 int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = functors::CountShare(total[i], *count, *all_counts);
}

auto MakeCountShare(const BoundOp& op) {
  return [n = op.Output("Out").elements()](const Buffers& b, Launcher& launch) {
    launch(CountShareKernel, CeilDiv(n, kThreads), n == 1 ? 1 : kThreads,
           In<float>(b, 0), In<float>(b, 1), In<float>(b, 2), Out<float>(b, 0),
           n);
  };
}

// ---- Tensors and a scalar, in input 1.

template <typename Functor>
struct ScalarBody {
  const float* scalar;
  DType in, out;
  const void* x;
  void* out_data;

  template <int V>
  struct Loaded {
    Raw x;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = LoadRaw<V>(in, x, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const Functor functor{*scalar};
    float a[V];
    Unpack(in, loaded.x, a);
#pragma unroll
    for (int k = 0; k < V; ++k) a[k] = functor(a[k]);
    StoreVector(out, out_data, i, a);
  }
};

template <typename Functor>
auto MakeScalar(const BoundOp& op) {
  return [in = op.Input("X").dtype, out = op.Output("Out").dtype,
          n = op.Output("Out").elements()](const Buffers& b, Launcher& launch) {
    const ScalarBody<Functor> body{In<float>(b, 1), in, out, b.inputs[0],
                                   b.outputs[0]};
    Map(launch, body, n,
        Aligned({b.inputs[0], b.outputs[0]}) ? VectorOf({in, out}) : 1);
  };
}

auto MakeAccumulate(const BoundOp& op) {
  return [x = op.Input("X").dtype, out = op.Output("Out").dtype,
          n = op.Output("Out").elements(),
          f = functors::AccumulateOp{static_cast<float>(op.Float("scale"))}](
             const Buffers& b, Launcher& launch) {
    MapBinary(launch, x, b.inputs[0], DType::kF32, b.inputs[1], out,
              b.outputs[0], n, f);
  };
}

// ---- Norm and clip factor.

constexpr int kOrdered = 4096;

struct Order {
  int32_t size;  // 0: as they stand
  int32_t at[kOrdered];
};

// One thread adds: a fixed order, few numbers; the others fetch them.
__global__ void __launch_bounds__(kThreads)
    GlobalNormKernel(const float* squares, int64_t n,
                     const __grid_constant__ Order order, float* norm) {
  HT_SHARED(float[kThreads], ready);
  float sum = 0;
  for (int64_t begin = 0; begin < n; begin += kThreads) {
    const int64_t i = begin + threadIdx.x;
    if (i < n) ready[threadIdx.x] = squares[order.size > 0 ? order.at[i] : i];
    __syncthreads();
    const int64_t rest = n - begin;
    const int count = static_cast<int>(rest < kThreads ? rest : kThreads);
    if (threadIdx.x == 0) {
      for (int k = 0; k < count; ++k) sum += ready[k];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *norm = functors::Sqrt(sum);
}

Candidate MakeGlobalNorm() {
  Candidate candidate = CudaCandidate("block", [](const BoundOp& op) {
    Order order = {};
    const std::vector<int64_t>& given = op.Ints("order");
    order.size = static_cast<int32_t>(given.size());
    std::copy(given.begin(), given.end(), order.at);
    return [order, n = op.inputs()[0].elements()](const Buffers& b,
                                                  Launcher& launch) {
      launch(GlobalNormKernel, 1, kThreads, In<float>(b, 0), n, order,
             Out<float>(b, 0));
    };
  });
  candidate.supports = [](const BoundOp& op) {
    return op.Ints("order").size() <= kOrdered;
  };
  return candidate;
}

__global__ void ClipFactorKernel(const float* norm, float max_norm,
                                 float* factor) {
  *factor = functors::ClipFactor(*norm, max_norm);
}

auto MakeClipFactor(const BoundOp& op) {
  return [most = static_cast<float>(op.Float("max_norm"))](const Buffers& b,
                                                           Launcher& launch) {
    launch(ClipFactorKernel, 1, 1, In<float>(b, 0), most, Out<float>(b, 0));
  };
}

// ---- The scale's update and the clocks.

__global__ void UpdateScaleKernel(const float* scale, const int32_t* good,
                                  const int32_t* bad, const bool* found_inf,
                                  functors::LossScalePolicy policy,
                                  float* scale_out, int32_t* good_out,
                                  int32_t* bad_out) {
  const functors::LossScaleState state =
      functors::UpdateLossScale({*scale, *good, *bad}, *found_inf, policy);
  *scale_out = state.scale;
  *good_out = state.good;
  *bad_out = state.bad;
}

auto MakeUpdate(const BoundOp& op) {
  return [policy = LossScalePolicyOf(op)](const Buffers& b, Launcher& launch) {
    launch(UpdateScaleKernel, 1, 1, In<float>(b, 0), In<int32_t>(b, 1),
           In<int32_t>(b, 2), In<bool>(b, 3), policy, Out<float>(b, 0),
           Out<int32_t>(b, 1), Out<int32_t>(b, 2));
  };
}

__global__ void LocalStepsKernel(
    const int64_t* attempted, const int64_t* averaged_at,
    const int64_t* local_steps, const float* first_loss,
    const float* first_rate, const float* loss_sum, const float* count,
    const float* rate, functors::LocalStepsPolicy policy,
    int64_t* averaged_at_out, int64_t* local_steps_out, float* first_loss_out,
    float* first_rate_out) {
  const functors::LocalStepsState state = functors::AdaptLocalSteps(
      {*averaged_at, *local_steps, *first_loss, *first_rate}, *attempted + 1,
      *loss_sum / *count, *rate, policy);
  *averaged_at_out = state.averaged_at;
  *local_steps_out = state.local_steps;
  *first_loss_out = state.first_loss;
  *first_rate_out = state.first_rate;
}

auto MakeLocalSteps(const BoundOp& op) {
  const functors::LocalStepsPolicy policy = {op.Int("init_k_steps"),
                                             op.Int("begin_step")};
  return [policy](const Buffers& b, Launcher& launch) {
    launch(LocalStepsKernel, 1, 1, In<int64_t>(b, 0), In<int64_t>(b, 1),
           In<int64_t>(b, 2), In<float>(b, 3), In<float>(b, 4), In<float>(b, 5),
           In<float>(b, 6), In<float>(b, 7), policy, Out<int64_t>(b, 0),
           Out<int64_t>(b, 1), Out<float>(b, 2), Out<float>(b, 3));
  };
}

// `stop`: null, or whether the clock stands still.
__global__ void TickKernel(const int64_t* clock, const bool* stop,
                           int64_t* out) {
  *out = *clock + (stop != nullptr && *stop ? 0 : 1);
}

auto MakeTick(const BoundOp&) {
  return [](const Buffers& b, Launcher& launch) {
    launch(TickKernel, 1, 1, In<int64_t>(b, 0), nullptr, Out<int64_t>(b, 0));
  };
}

auto MakeTickApplied(const BoundOp&) {
  return [](const Buffers& b, Launcher& launch) {
    launch(TickKernel, 1, 1, In<int64_t>(b, 0), In<bool>(b, 1),
           Out<int64_t>(b, 0));
  };
}

}  // namespace

void RegisterCudaAmp(KernelRegistry& registry) {
  const auto add = [&](absl::string_view op, auto make) {
    AddForSchema(registry, op, CudaCandidate("scalar", make));
  };
  add("gradient_seed", MakeSeed);
  add("gradient_inv_scale", MakeInvScale);
  add("count_share", MakeCountShare);
  add("clip_factor", MakeClipFactor);
  add("update_loss_scaling", MakeUpdate);
  add("adapt_local_steps", MakeLocalSteps);
  add("tick", MakeTick);
  add("tick_applied", MakeTickApplied);
  AddForSchema(registry, "global_norm", MakeGlobalNorm());
  const auto add_vector = [&](absl::string_view op, auto make) {
    Candidate candidate = CudaCandidate("vector", make);
    candidate.supports = HasOneLayout;
    AddForSchema(registry, op, candidate);
  };
  add_vector("unscale", MakeScalar<functors::TimesOp>);
  add_vector("clip_by_factor", MakeScalar<functors::TimesOp>);
  add_vector("keep_counted", MakeScalar<functors::KeepCountedOp>);
  add_vector("accumulate", MakeAccumulate);
  RegisterCudaCheckFinite(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
