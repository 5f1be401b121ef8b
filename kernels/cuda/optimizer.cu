// Multi-tensor parameter updates: one launch for all members of an op, one
// pass over memory, in place where the planner aliases outputs to inputs.
// Reads the gradient as it was reduced; unscales, clips, decays; writes the
// parameter, its states and its 16-bit copy. A rejected step changes nothing.
#include <vector>

#include "kernels/common/settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/optimizer.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using functors::GradientTransform;

constexpr int32_t kPieceElements = 16384;
// A launch's members: of small models, of others (28 KiB of parameters).
constexpr int kFew = 32, kMany = 380;

// The pointers of a member.
enum { kParam, kGrad, kState, kParamOut = 4, kStateOut, kLow = 7, kPointers };

template <int kMembers>
using Table = PieceTable<kPointers, kMembers>;

// What is the same for all members.
struct Shared {
  DType param, grad, low;
  bool has_low, aligned;
  float clip_value;
  // Null: not there.
  const float *learning_rate, *inv_scale, *clip_factor;
  const int64_t* applied;
  const bool* found_inf;
};

template <int kStates>
struct LoadedMember {
  Raw p, g, s[kStates > 0 ? kStates : 1];
};

template <int V, int kStates>
HT_DEVICE LoadedMember<kStates> LoadMember(const Shared& shared,
                                           void* const* data, int64_t i) {
  LoadedMember<kStates> loaded;
  loaded.p = LoadRaw<V>(shared.param, data[kParam], i);
  loaded.g = LoadRaw<V>(shared.grad, data[kGrad], i);
#pragma unroll
  for (int s = 0; s < kStates; ++s) {
    loaded.s[s] = LoadRaw<V>(DType::kF32, data[kState + s], i);
  }
  return loaded;
}

// The new parameter in its own dtype and, of that, the 16-bit copy.
template <int V>
HT_DEVICE void StoreParam(const Shared& shared, void* const* data, int64_t i,
                          const float (&p)[V]) {
  const Raw stored = Pack(shared.param, p);
  StoreRaw<V>(shared.param, data[kParamOut], i, stored);
  if (!shared.has_low) return;
  float as_stored[V];
  Unpack(shared.param, stored, as_stored);
  StoreVector(shared.low, data[kLow], i, as_stored);
}

template <int V, typename Method>
HT_DEVICE void UpdateMember(const Shared& shared, void* const* data, int64_t i,
                            const Method& method,
                            const GradientTransform& transform,
                            const LoadedMember<Method::kStates>& loaded) {
  float p[V], g[V], s[2][V];
  Unpack(shared.param, loaded.p, p);
  Unpack(shared.grad, loaded.g, g);
#pragma unroll
  for (int k = 0; k < V; ++k) s[0][k] = s[1][k] = 0;
#pragma unroll
  for (int j = 0; j < Method::kStates; ++j) {
    Unpack(DType::kF32, loaded.s[j], s[j]);
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    method.Step(p[k], transform(g[k]), s[0][k], s[1][k]);
  }
#pragma unroll
  for (int j = 0; j < Method::kStates; ++j) {
    StoreVector(DType::kF32, data[kStateOut + j], i, s[j]);
  }
  StoreParam(shared, data, i, p);
}

// outputs = inputs.
template <int V, int kStates>
HT_DEVICE void KeepMember(const Shared& shared, void* const* data, int64_t i) {
#pragma unroll
  for (int s = 0; s < kStates; ++s) {
    if (data[kState + s] == data[kStateOut + s]) continue;
    StoreRaw<V>(DType::kF32, data[kStateOut + s], i,
                LoadRaw<V>(DType::kF32, data[kState + s], i));
  }
  if (data[kParam] == data[kParamOut] && !shared.has_low) return;
  float p[V];
  LoadVector(shared.param, data[kParam], i, p);
  StoreParam(shared, data, i, p);
}

// `vectors` vectors of V from `begin` on.
template <int V, typename Method>
HT_DEVICE void UpdatePiece(const Shared& shared, void* const* data,
                           int64_t begin, int64_t vectors, bool reject,
                           const Method& method,
                           const GradientTransform& transform) {
  constexpr int kLoads = 2, kStates = Method::kStates;
  for (int64_t first = threadIdx.x; first < vectors;
       first += kLoads * kThreads) {
    LoadedMember<kStates> loaded[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t v = first + u * kThreads;
      if (v >= vectors) continue;
      if (reject) {
        KeepMember<V, kStates>(shared, data, begin + v * V);
      } else {
        loaded[u] = LoadMember<V, kStates>(shared, data, begin + v * V);
      }
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t v = first + u * kThreads;
      if (reject || v >= vectors) continue;
      UpdateMember<V>(shared, data, begin + v * V, method, transform,
                      loaded[u]);
    }
  }
}

template <typename Rule, int kMembers>
__global__ void __launch_bounds__(kThreads)
    UpdateKernel(const __grid_constant__ Table<kMembers> table, Shared shared,
                 Rule rule) {
  using Method = typename Rule::Method;
  HT_SHARED(Method, method);
  if (threadIdx.x == 0) {
    method =
        rule.At(shared.learning_rate == nullptr ? 0.0f : *shared.learning_rate,
                shared.applied == nullptr ? 0 : *shared.applied);
  }
  __syncthreads();
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  void* const* data = table.data[piece.member];
  GradientTransform transform;
  transform.inv_scale = shared.inv_scale == nullptr ? 1.0f : *shared.inv_scale;
  transform.clip_factor =
      shared.clip_factor == nullptr ? 1.0f : *shared.clip_factor;
  transform.limit = shared.clip_value;
  const bool reject = *shared.found_inf;
  const Method own = method;
  const int64_t vectors = shared.aligned ? piece.n / 4 : 0;
  UpdatePiece<4>(shared, data, piece.begin, vectors, reject, own, transform);
  UpdatePiece<1>(shared, data, piece.begin + 4 * vectors, piece.n - 4 * vectors,
                 reject, own, transform);
}

template <typename Rule>
class Update {
 public:
  static constexpr int kStates = Rule::Method::kStates;

  explicit Update(const BoundOp& op) : slots_(op) {
    ReadRule(op, &rule_);
    params_.assign(op.inputs().begin(), op.inputs().begin() + slots_.members);
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    if (slots_.members <= kFew) {
      LaunchAll<kFew>(buffers, launch);
    } else {
      LaunchAll<kMany>(buffers, launch);
    }
  }

 private:
  template <int kMembers>
  void LaunchAll(const Buffers& buffers, Launcher& launch) const {
    for (int begin = 0; begin < slots_.members; begin += kMembers) {
      Table<kMembers> table;
      FillTable(absl::MakeConstSpan(params_), begin, kPieceElements, &table);
      Shared shared = SharedOf(buffers);
      for (int i = 0; i < table.count; ++i) {
        shared.aligned =
            FillPointers(buffers, begin + i, table.data[i]) && shared.aligned;
      }
      launch(UpdateKernel<Rule, kMembers>, table.pieces(), kThreads, table,
             shared, rule_);
    }
  }

  // Of one member; whether vectors can be moved to and from all of them.
  bool FillPointers(const Buffers& buffers, int member, void** data) const {
    const auto in = [&](int slot) {
      return const_cast<void*>(buffers.inputs[slot * slots_.members + member]);
    };
    const auto out = [&](int slot) {
      return buffers.outputs[slot * slots_.members + member];
    };
    for (int p = 0; p < kPointers; ++p) data[p] = nullptr;
    data[kParam] = in(0);
    data[kGrad] = in(1);
    data[kParamOut] = out(0);
    for (int s = 0; s < kStates; ++s) {
      data[kState + s] = in(2 + s);
      data[kStateOut + s] = out(1 + s);
    }
    if (slots_.has_low) data[kLow] = out(1 + kStates);
    bool aligned = true;
    for (int p = 0; p < kPointers; ++p) aligned = aligned && Aligned({data[p]});
    return aligned;
  }

  template <typename T>
  static const T* Scalar(const Buffers& buffers, int index) {
    return index < 0 ? nullptr : static_cast<const T*>(buffers.inputs[index]);
  }

  Shared SharedOf(const Buffers& buffers) const {
    Shared shared;
    shared.param = slots_.param;
    shared.grad = slots_.grad;
    shared.low = slots_.low;
    shared.has_low = slots_.has_low;
    shared.aligned = true;
    shared.clip_value = slots_.clip_value;
    shared.learning_rate = Scalar<float>(buffers, slots_.learning_rate);
    shared.inv_scale = Scalar<float>(buffers, slots_.inv_scale);
    shared.clip_factor = Scalar<float>(buffers, slots_.clip_factor);
    shared.applied = Scalar<int64_t>(buffers, slots_.applied);
    shared.found_inf = Scalar<bool>(buffers, slots_.found_inf);
    return shared;
  }

  UpdateSlots slots_;
  Rule rule_;
  std::vector<TensorDesc> params_;
};

template <typename Rule>
void AddUpdate(KernelRegistry& registry, absl::string_view op) {
  Candidate candidate = CudaCandidate(
      "pieces", [](const BoundOp& bound) { return Update<Rule>(bound); });
  candidate.supports = MembersShareLayout;
  AddForSchema(registry, op, candidate, {"L"});
}

}  // namespace

void RegisterCudaOptimizer(KernelRegistry& registry) {
  AddUpdate<functors::SgdRule>(registry, "sgd");
  AddUpdate<functors::MomentumRule>(registry, "momentum");
  AddUpdate<functors::AdamRule>(registry, "adam");
  AddUpdate<functors::AdamRule>(registry, "adamw");
  RegisterCudaLearningRate(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
