// Loss scaling, gradient clipping and clocks: mostly scalars.
#include "kernels/cpu/amp.h"

#include <algorithm>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/settings.h"
#include "kernels/cpu/map.h"
#include "kernels/functors/amp.h"
#include "kernels/functors/local_steps.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

template <typename T>
const T& In(const Buffers& buffers, int i) {
  return *static_cast<const T*>(buffers.inputs[i]);
}
template <typename T>
T& Out(const Buffers& buffers, int i) {
  return *static_cast<T*>(buffers.outputs[i]);
}

// ---- Seed and inverse scale.

auto MakeSeed(const BoundOp& op) {
  const int64_t n = op.Output("Out").elements();
  return [n](const Buffers& b, runtime::Stream&) {
    std::fill_n(&Out<float>(b, 0), n,
                functors::GradientSeed(In<float>(b, 0), In<float>(b, 1),
                                       In<float>(b, 2)));
  };
}

auto MakeInvScale(const BoundOp& op) {
  return [p = ReductionScale(op)](const Buffers& b, runtime::Stream&) {
    Out<float>(b, 0) = functors::GradientInvScale(
        In<float>(b, 0), p, In<float>(b, 1), In<float>(b, 2));
  };
}

auto MakeCountShare(const BoundOp& op) {
  return [n = op.Output("Out").elements()](const Buffers& b, runtime::Stream&) {
    for (int64_t i = 0; i < n; ++i) {
      (&Out<float>(b, 0))[i] = functors::CountShare(
          (&In<float>(b, 0))[i], In<float>(b, 1), In<float>(b, 2));
    }
  };
}

// ---- Tensors and a scalar, in input 1.

template <typename Functor>
struct ScalarKernel {
  Operand x;
  DType out;
  int64_t elements;

  void operator()(const Buffers& b, runtime::Stream& stream) const {
    MapUnary(x, b.inputs[0], out, b.outputs[0], elements, stream.threads(),
             Functor{In<float>(b, 1)});
  }
};

template <typename Functor>
ScalarKernel<Functor> MakeScalar(const BoundOp& op) {
  const TensorDesc& out = op.Output("Out");
  return {Operand(op.Input("X"), out), out.dtype, out.elements()};
}

auto MakeAccumulate(const BoundOp& op) {
  const TensorDesc& out = op.Output("Out");
  return [x = Operand(op.Input("X"), out), sum = Operand(op.Input("Sum"), out),
          dtype = out.dtype, n = out.elements(),
          f = functors::AccumulateOp{static_cast<float>(op.Float("scale"))}](
             const Buffers& b, runtime::Stream& stream) {
    MapBinary(x, b.inputs[0], sum, b.inputs[1], dtype, b.outputs[0], n,
              stream.threads(), f);
  };
}

// ---- Norm and clip factor.

auto MakeGlobalNorm(const BoundOp& op) {
  return [order = NormOrder(op)](const Buffers& b, runtime::Stream&) {
    const float* squares = &In<float>(b, 0);
    float sum = 0;
    for (int64_t i : order) sum += squares[i];
    Out<float>(b, 0) = functors::Sqrt(sum);
  };
}

auto MakeClipFactor(const BoundOp& op) {
  const float max_norm = static_cast<float>(op.Float("max_norm"));
  return [max_norm](const Buffers& b, runtime::Stream&) {
    Out<float>(b, 0) = functors::ClipFactor(In<float>(b, 0), max_norm);
  };
}

// ---- The scale's update and the clocks.

auto MakeUpdate(const BoundOp& op) {
  return [policy = LossScalePolicyOf(op)](const Buffers& b, runtime::Stream&) {
    const functors::LossScaleState state = functors::UpdateLossScale(
        {In<float>(b, 0), In<int32_t>(b, 1), In<int32_t>(b, 2)}, In<bool>(b, 3),
        policy);
    Out<float>(b, 0) = state.scale;
    Out<int32_t>(b, 1) = state.good;
    Out<int32_t>(b, 2) = state.bad;
  };
}

auto MakeLocalSteps(const BoundOp& op) {
  const functors::LocalStepsPolicy policy = {op.Int("init_k_steps"),
                                             op.Int("begin_step")};
  return [policy](const Buffers& b, runtime::Stream&) {
    const functors::LocalStepsState state = functors::AdaptLocalSteps(
        {In<int64_t>(b, 1), In<int64_t>(b, 2), In<float>(b, 3),
         In<float>(b, 4)},
        In<int64_t>(b, 0) + 1, In<float>(b, 5) / In<float>(b, 6),
        In<float>(b, 7), policy);
    Out<int64_t>(b, 0) = state.averaged_at;
    Out<int64_t>(b, 1) = state.local_steps;
    Out<float>(b, 2) = state.first_loss;
    Out<float>(b, 3) = state.first_rate;
  };
}

auto MakeTick(const BoundOp&) {
  return [](const Buffers& b, runtime::Stream&) {
    Out<int64_t>(b, 0) = In<int64_t>(b, 0) + 1;
  };
}

auto MakeTickApplied(const BoundOp&) {
  return [](const Buffers& b, runtime::Stream&) {
    Out<int64_t>(b, 0) = In<int64_t>(b, 0) + (In<bool>(b, 1) ? 0 : 1);
  };
}

}  // namespace

void RegisterCpuAmp(KernelRegistry& registry) {
  const auto add = [&](absl::string_view op, auto make) {
    AddForSchema(registry, op, MakeCandidate("scalar", make));
  };
  add("gradient_seed", MakeSeed);
  add("gradient_inv_scale", MakeInvScale);
  add("count_share", MakeCountShare);
  add("global_norm", MakeGlobalNorm);
  add("clip_factor", MakeClipFactor);
  add("update_loss_scaling", MakeUpdate);
  add("adapt_local_steps", MakeLocalSteps);
  add("tick", MakeTick);
  add("tick_applied", MakeTickApplied);
  for (const char* op : {"unscale", "clip_by_factor"}) {
    AddForSchema(registry, op,
                 MakeCandidate("blocks", MakeScalar<functors::TimesOp>));
  }
  AddForSchema(registry, "keep_counted",
               MakeCandidate("blocks", MakeScalar<functors::KeepCountedOp>));
  AddForSchema(registry, "accumulate", MakeCandidate("blocks", MakeAccumulate));
  RegisterCpuCheckFinite(registry);
}

}  // namespace kernels
}  // namespace halftone
