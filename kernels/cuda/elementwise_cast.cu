// Casts and copies. Between f32 and the 16-bit types casts are vectors;
// everything else is rare.
#include <type_traits>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"
#include "kernels/functors/cast.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct SameOp {
  HT_HOST_DEVICE float operator()(float x) const { return x; }
};

bool ComputesInF32(DType dtype) { return dtype == DType::kF32 || IsLow(dtype); }

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    CastKernel(const From* from, To* to, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) to[i] = functors::Cast<To>(from[i]);
}

using CastFunction = void (*)(Launcher&, const void*, void*, int64_t);

template <typename From, typename To>
void LaunchCast(Launcher& launch, const void* from, void* to, int64_t n) {
  launch(CastKernel<From, To>, CeilDiv(n, kThreads), kThreads,
         static_cast<const From*>(from), static_cast<To*>(to), n);
}

template <typename T>
constexpr bool kInF32 =
    std::is_same<T, float>::value || functors::IsStorageFloat<T>::value;

// Null where MakeCast copies, or has vectors.
CastFunction FindCast(DType from, DType to) {
  CastFunction found = nullptr;
  DispatchType(AnyTypes(), from, [&](auto from_tag) {
    DispatchType(AnyTypes(), to, [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      constexpr bool kOther =
          std::is_same<From, To>::value || (kInF32<From> && kInF32<To>);
      if constexpr (!kOther) found = LaunchCast<From, To>;
    });
  });
  return found;
}

auto MakeCast(const BoundOp& op) {
  const TensorDesc &in = op.inputs()[0], &out = op.outputs()[0];
  return [from = in.dtype, to = out.dtype, n = out.elements(),
          cast = FindCast(in.dtype, out.dtype)](const Buffers& buffers,
                                                Launcher& launch) {
    if (from == to) {
      launch.Copy(buffers.outputs[0], buffers.inputs[0], n * SizeOf(to));
    } else if (ComputesInF32(from) && ComputesInF32(to)) {
      MapUnary(launch, from, buffers.inputs[0], to, buffers.outputs[0], n,
               SameOp());
    } else {
      cast(launch, buffers.inputs[0], buffers.outputs[0], n);
    }
  };
}

auto MakeAssign(const BoundOp& op) {
  return [bytes = op.outputs()[0].bytes()](const Buffers& buffers,
                                           Launcher& launch) {
    launch.Copy(buffers.outputs[0], buffers.inputs[0], bytes);
  };
}

}  // namespace

void RegisterCudaCast(KernelRegistry& registry) {
  Candidate cast = CudaCandidate("vector", MakeCast);
  cast.supports = HasOneLayout;
  AddForSchema(registry, "cast", cast);
  for (const char* const op : {"assign", "share_data"}) {
    AddForSchema(registry, op, CudaCandidate("copy", MakeAssign));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
