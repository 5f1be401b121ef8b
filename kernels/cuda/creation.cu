// Initial values by logical row-major element, and counts of elements. They
// are made once: one thread for an element.
#include <cstring>
#include <functional>

#include "graph/base/philox.h"
#include "kernels/common/fill_value.h"
#include "kernels/common/settings.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/random.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct Uniform {
  float low, high;
  explicit Uniform(const BoundOp& op)
      : low(static_cast<float>(op.Float("low"))),
        high(static_cast<float>(op.Float("high"))) {}
  HT_DEVICE float operator()(uint64_t key, int64_t i) const {
    const Philox4 draw = PhiloxDraw(key, 0, 0, static_cast<uint32_t>(i / 4));
    const uint32_t words[4] = {draw.x[0], draw.x[1], draw.x[2], draw.x[3]};
    return low + (high - low) * ToUniform(words[i % 4]);
  }
};

template <bool kTruncated>
struct Normal {
  double mean, deviation;
  explicit Normal(const BoundOp& op)
      : mean(op.Float("mean")), deviation(op.Float("std")) {}
  HT_DEVICE float operator()(uint64_t key, int64_t i) const {
    const uint32_t index = static_cast<uint32_t>(i);
    const double z = kTruncated ? functors::TruncatedNormalElement(key, index)
                                : functors::NormalElement(key, index);
    return static_cast<float>(mean + deviation * z);
  }
};

template <typename Distribution>
__global__ void __launch_bounds__(kThreads)
    RandomKernel(Distribution distribution, const __grid_constant__ Loops loops,
                 uint32_t stream_id, const int64_t* seed, DType dtype,
                 void* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const uint64_t key = PhiloxKey(static_cast<uint64_t>(*seed), stream_id);
  StoreOne(dtype, out, loops.rank > 0 ? loops.OffsetOf(i) : i,
           distribution(key, i));
}

// Where logical elements lie.
Nest LogicalNest(const TensorDesc& out) {
  TensorDesc logical = out;
  logical.layout = Layout::kRowMajor;
  return MakeNest(logical, StridesOf(out));
}

template <typename Distribution>
void AddRandom(KernelRegistry& registry, absl::string_view op) {
  Candidate candidate = CudaCandidate("philox", [](const BoundOp& bound) {
    const TensorDesc& out = bound.outputs()[0];
    return
        [distribution = Distribution(bound), loops = Loops(LogicalNest(out)),
         dtype = out.dtype, stream = static_cast<uint32_t>(bound.Int("stream")),
         n = out.elements()](const Buffers& buffers, Launcher& launch) {
          launch(RandomKernel<Distribution>, CeilDiv(n, kThreads), kThreads,
                 distribution, loops, stream,
                 static_cast<const int64_t*>(buffers.inputs[0]), dtype,
                 buffers.outputs[0], n);
        };
  });
  candidate.supports = [](const BoundOp& bound) {
    return Loops::Fits(LogicalNest(bound.outputs()[0]));
  };
  AddForSchema(registry, op, candidate);
}

// ---- Constants.

template <typename T>
__global__ void __launch_bounds__(kThreads)
    FillKernel(T* out, T value, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) out[i] = value;
}

auto MakeConstant(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  std::function<void(void*, Launcher&)> fill;
  DispatchType(AnyTypes(), out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill = [n = out.elements(), value = FillValue<T>(op)](void* to,
                                                          Launcher& launch) {
      launch(FillKernel<T>, CeilDiv(n, kThreads), kThreads, static_cast<T*>(to),
             value, n);
    };
  });
  return [fill](const Buffers& buffers, Launcher& launch) {
    fill(buffers.outputs[0], launch);
  };
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ArangeKernel(T* out, double start, double step, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) {
    out[i] = functors::Cast<T>(start + static_cast<double>(i) * step);
  }
}

auto MakeArange(const BoundOp& op) {
  using NumberTypes = TypeList<int64_t, int32_t, float, half, bfloat16>;
  const TensorDesc& out = op.outputs()[0];
  std::function<void(void*, Launcher&)> fill;
  DispatchType(NumberTypes(), out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill = [n = out.elements(), start = op.Float("start"),
            step = op.Float("step")](void* to, Launcher& launch) {
      launch(ArangeKernel<T>, CeilDiv(n, kThreads), kThreads,
             static_cast<T*>(to), start, step, n);
    };
  });
  return [fill](const Buffers& buffers, Launcher& launch) {
    fill(buffers.outputs[0], launch);
  };
}

auto MakeShape(const BoundOp& op) {
  return [dims = op.Input("Input").dims](const Buffers& buffers,
                                         Launcher& launch) {
    int32_t* out = static_cast<int32_t*>(buffers.outputs[0]);
    for (size_t i = 0; i < dims.size(); ++i) {
      launch(FillKernel<int32_t>, 1, 1, out + i, static_cast<int32_t>(dims[i]),
             1);
    }
  };
}

auto MakeElementCount(const BoundOp& op) {
  const float count = static_cast<float>(ElementCount(op));
  return [count](const Buffers& buffers, Launcher& launch) {
    launch(FillKernel<float>, 1, 1, static_cast<float*>(buffers.outputs[0]),
           count, 1);
  };
}

}  // namespace

void RegisterCudaCreation(KernelRegistry& registry) {
  AddForSchema(registry, "fill_constant", CudaCandidate("fill", MakeConstant));
  AddRandom<Uniform>(registry, "init_uniform");
  AddRandom<Normal<false>>(registry, "init_normal");
  AddRandom<Normal<true>>(registry, "init_truncated_normal");
  AddForSchema(registry, "arange", CudaCandidate("fill", MakeArange));
  AddForSchema(registry, "shape", CudaCandidate("fill", MakeShape));
  AddForSchema(registry, "element_count",
               CudaCandidate("scalar", MakeElementCount));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
