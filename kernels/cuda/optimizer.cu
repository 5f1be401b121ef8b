// Multi-tensor parameter updates: one launch for all members of an op, one
// pass over memory, in place where the planner aliases outputs to inputs.
// Reads the gradient as it was reduced; unscales, clips, decays; writes the
// parameter, its states and its 16-bit copy. A rejected step changes nothing.
#include <vector>

#include "kernels/common/shapes.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/optimizer_pieces.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace update {
namespace {

template <int V, typename Method>
HT_DEVICE void UpdateMember(const Shared& shared, void* const* data, int64_t i,
                            const Method& method,
                            const GradientTransform& transform,
                            const LoadedMember<Method::kStates>& loaded) {
  constexpr int kStates = Method::kStates;
  float p[V], g[V], s[kMostStates][V];
  Unpack(shared.param, loaded.p, p);
  Unpack(shared.grad, loaded.g, g);
#pragma unroll
  for (int j = 0; j < kStates; ++j) {
    Unpack(DType::kF32, loaded.s[j], s[j]);
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    float own[kMostStates] = {};
#pragma unroll
    for (int j = 0; j < kStates; ++j) own[j] = s[j][k];
    method.Step(p[k], transform(g[k]), own);
#pragma unroll
    for (int j = 0; j < kStates; ++j) s[j][k] = own[j];
  }
#pragma unroll
  for (int j = 0; j < kStates; ++j) {
    StoreVector(DType::kF32, data[kStateOut + j], i, s[j]);
  }
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
  if (threadIdx.x == 0) method = MethodOf(rule, shared);
  __syncthreads();
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  void* const* data = table.data[piece.member];
  const GradientTransform transform = TransformOf(shared, data);
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
      const Shared shared =
          Fill<kStates>(slots_, params_, buffers, begin, &table);
      launch(UpdateKernel<Rule, kMembers>, table.pieces(), kThreads, table,
             shared, rule_);
    }
  }

  UpdateSlots slots_;
  Rule rule_;
  std::vector<TensorDesc> params_;
};

template <typename Rule>
Candidate UpdateCandidate() {
  Candidate candidate = CudaCandidate(
      "pieces", [](const BoundOp& bound) { return Update<Rule>(bound); });
  candidate.supports = MembersShareLayout;
  return candidate;
}

template <typename Rule>
void AddUpdate(KernelRegistry& registry, absl::string_view op) {
  AddForSchema(registry, op, UpdateCandidate<Rule>(), {"L"});
}

}  // namespace
}  // namespace update

void RegisterCudaOptimizer(KernelRegistry& registry) {
  using functors::RmspropRule;
  using update::AddUpdate;
  using update::UpdateCandidate;
  AddUpdate<functors::SgdRule>(registry, "sgd");
  AddUpdate<functors::MomentumRule>(registry, "momentum");
  AddUpdate<functors::AdamRule>(registry, "adam");
  AddUpdate<functors::AdamRule>(registry, "adamw");
  AddUpdate<functors::AdagradRule>(registry, "adagrad");
  AddUpdate<functors::AdadeltaRule>(registry, "adadelta");
  AddUpdate<functors::AdamaxRule>(registry, "adamax");
  AddUpdate<functors::LionRule>(registry, "lion");
  AddForSchema(registry, "rmsprop",
               ByRmspropForm({UpdateCandidate<RmspropRule<false, false>>(),
                              UpdateCandidate<RmspropRule<false, true>>(),
                              UpdateCandidate<RmspropRule<true, false>>(),
                              UpdateCandidate<RmspropRule<true, true>>()}),
               {"L"});
  RegisterCudaNormOptimizer(registry);
  RegisterCudaDgc(registry);
  RegisterCudaAverage(registry);
  RegisterCudaLearningRate(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
