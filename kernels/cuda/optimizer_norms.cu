// Multi-tensor updates that need norms of whole parameters: a launch that adds
// up pieces, a block each, one that makes a ratio of each member's pieces in a
// fixed order, and one that updates. No atomics: the bits are the same each
// time.
#include <vector>

#include "kernels/common/shapes.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/optimizer_pieces.h"
#include "kernels/functors/optimizer_norms.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace update {
namespace {

// Members of an op at most.
constexpr int kAllMembers = 7000;

struct MemberPieces {
  int32_t members;
  int32_t first[kAllMembers + 1];
};

// Sums of squares of each piece: of the parameter, and of what First gave.
struct Squares {
  double p, other;
};

template <int V>
HT_DEVICE void LoadStates(void* const* data, int first_pointer, int states,
                          int64_t i, float (&s)[kMostStates][V]) {
#pragma unroll
  for (int j = 0; j < kMostStates; ++j) {
    if (j < states) LoadVector(DType::kF32, data[first_pointer + j], i, s[j]);
  }
}
template <int V>
HT_DEVICE void StoreStates(void* const* data, int states, int64_t i,
                           const float (&s)[kMostStates][V]) {
#pragma unroll
  for (int j = 0; j < kMostStates; ++j) {
    if (j < states) StoreVector(DType::kF32, data[kStateOut + j], i, s[j]);
  }
}

template <int V, typename Method>
HT_DEVICE void FirstPass(const Shared& shared, void* const* data, int64_t begin,
                         int64_t vectors, const Method& method,
                         const GradientTransform& transform, float& p_squares,
                         float& squares) {
  constexpr int kStates = Method::kStates;
  for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
    const int64_t i = begin + v * V;
    float p[V], g[V], s[kMostStates][V];
    LoadVector(shared.param, data[kParam], i, p);
    LoadVector(shared.grad, data[kGrad], i, g);
    LoadStates(data, kState, kStates, i, s);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      float own[kMostStates] = {};
#pragma unroll
      for (int j = 0; j < kStates; ++j) own[j] = s[j][k];
      const float value = method.First(p[k], transform(g[k]), own);
#pragma unroll
      for (int j = 0; j < kStates; ++j) s[j][k] = own[j];
      p_squares += p[k] * p[k];
      squares += value * value;
    }
    if (Method::kFirstStores) StoreStates(data, kStates, i, s);
  }
}

template <int V, typename Method>
HT_DEVICE void SecondPass(const Shared& shared, void* const* data,
                          int64_t begin, int64_t vectors, const Method& method,
                          const GradientTransform& transform, float ratio) {
  constexpr int kStates = Method::kStates;
  constexpr bool kMade = Method::kFirstStores;
  for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
    const int64_t i = begin + v * V;
    float p[V], g[V], s[kMostStates][V];
    LoadVector(shared.param, data[kParam], i, p);
    LoadVector(shared.grad, data[kGrad], i, g);
    LoadStates(data, kMade ? kStateOut : kState, kStates, i, s);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      float own[kMostStates] = {};
#pragma unroll
      for (int j = 0; j < kStates; ++j) own[j] = s[j][k];
      method.Step(p[k], transform(g[k]), own, ratio);
#pragma unroll
      for (int j = 0; j < kStates; ++j) s[j][k] = own[j];
    }
    if (!kMade) StoreStates(data, kStates, i, s);
    StoreParam(shared, data, i, p);
  }
}

// `first_piece`: of the table among all.
template <typename Rule, int kMembers>
__global__ void __launch_bounds__(kThreads)
    FirstKernel(const __grid_constant__ Table<kMembers> table, Shared shared,
                Rule rule, int32_t first_piece, Squares* squares) {
  if (*shared.found_inf) return;
  using Method = typename Rule::Method;
  HT_SHARED(Method, method);
  if (threadIdx.x == 0) method = MethodOf(rule, shared);
  __syncthreads();
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  void* const* data = table.data[piece.member];
  const GradientTransform transform = TransformOf(shared, data);
  const Method own = method;
  float p = 0, other = 0;
  const int64_t vectors = shared.aligned ? piece.n / 4 : 0;
  FirstPass<4>(shared, data, piece.begin, vectors, own, transform, p, other);
  FirstPass<1>(shared, data, piece.begin + 4 * vectors, piece.n - 4 * vectors,
               own, transform, p, other);
  Squares sums;
  sums.p = CombineBlock(static_cast<double>(p), 0.0, Plus());
  sums.other = CombineBlock(static_cast<double>(other), 0.0, Plus());
  if (threadIdx.x == 0) squares[first_piece + blockIdx.x] = sums;
}

// A warp for a member.
template <typename Rule>
__global__ void __launch_bounds__(kThreads)
    RatioKernel(const __grid_constant__ MemberPieces pieces, Shared shared,
                Rule rule, const Squares* squares, float* ratios) {
  if (*shared.found_inf) return;
  const int member =
      static_cast<int>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (member >= pieces.members) return;
  const int lane = threadIdx.x % kWarp;
  double p = 0, other = 0;
  for (int32_t at = pieces.first[member] + lane; at < pieces.first[member + 1];
       at += kWarp) {
    p += squares[at].p;
    other += squares[at].other;
  }
  p = CombineWarp(p, Plus());
  other = CombineWarp(other, Plus());
  if (lane != 0) return;
  ratios[member] = MethodOf(rule, shared)
                       .Ratio(functors::NormOf(p), functors::NormOf(other));
}

// `ratios`: of the table's members.
template <typename Rule, int kMembers>
__global__ void __launch_bounds__(kThreads)
    SecondKernel(const __grid_constant__ Table<kMembers> table, Shared shared,
                 Rule rule, const float* ratios) {
  using Method = typename Rule::Method;
  HT_SHARED(Method, method);
  if (threadIdx.x == 0) method = MethodOf(rule, shared);
  __syncthreads();
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  void* const* data = table.data[piece.member];
  const int64_t vectors = shared.aligned ? piece.n / 4 : 0;
  const int64_t rest = piece.begin + 4 * vectors;
  if (*shared.found_inf) {
    for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
      KeepMember<4, Method::kStates>(shared, data, piece.begin + v * 4);
    }
    for (int64_t i = threadIdx.x; i < piece.n - 4 * vectors; i += kThreads) {
      KeepMember<1, Method::kStates>(shared, data, rest + i);
    }
    return;
  }
  const GradientTransform transform = TransformOf(shared, data);
  const Method own = method;
  const float ratio = ratios[piece.member];
  SecondPass<4>(shared, data, piece.begin, vectors, own, transform, ratio);
  SecondPass<1>(shared, data, rest, piece.n - 4 * vectors, own, transform,
                ratio);
}

template <typename Rule>
class NormUpdate {
 public:
  static constexpr int kStates = Rule::Method::kStates;

  explicit NormUpdate(const BoundOp& op) : slots_(op) {
    ReadRule(op, &rule_);
    params_.assign(op.inputs().begin(), op.inputs().begin() + slots_.members);
    pieces_.members = slots_.members;
    pieces_.first[0] = 0;
    for (int m = 0; m < slots_.members; ++m) {
      pieces_.first[m + 1] =
          pieces_.first[m] +
          static_cast<int32_t>(PiecesOf(params_[m], kPieceElements));
    }
  }

  int64_t pieces() const { return pieces_.first[pieces_.members]; }
  int64_t workspace_bytes() const {
    return pieces() * int64_t{sizeof(Squares)} +
           slots_.members * int64_t{sizeof(float)};
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
    Squares* squares = static_cast<Squares*>(buffers.workspace);
    float* ratios = reinterpret_cast<float*>(squares + pieces());
    Table<kMembers> table;
    for (int begin = 0; begin < slots_.members; begin += kMembers) {
      const Shared shared =
          Fill<kStates>(slots_, params_, buffers, begin, &table);
      launch(FirstKernel<Rule, kMembers>, table.pieces(), kThreads, table,
             shared, rule_, pieces_.first[begin], squares);
    }
    launch(RatioKernel<Rule>, CeilDiv(slots_.members, kThreads / kWarp),
           kThreads, pieces_, SharedOf(slots_, buffers), rule_, squares,
           ratios);
    for (int begin = 0; begin < slots_.members; begin += kMembers) {
      const Shared shared =
          Fill<kStates>(slots_, params_, buffers, begin, &table);
      launch(SecondKernel<Rule, kMembers>, table.pieces(), kThreads, table,
             shared, rule_, ratios + begin);
    }
  }

  UpdateSlots slots_;
  Rule rule_;
  std::vector<TensorDesc> params_;
  MemberPieces pieces_;
};

template <typename Rule>
void AddNormUpdate(KernelRegistry& registry, absl::string_view op) {
  Candidate candidate = CudaCandidate(
      "pieces", [](const BoundOp& bound) { return NormUpdate<Rule>(bound); });
  candidate.supports = [](const BoundOp& bound) {
    return MembersShareLayout(bound) &&
           bound.InputCount("Param") <= kAllMembers;
  };
  candidate.workspace_bytes = [](const BoundOp& bound) {
    return NormUpdate<Rule>(bound).workspace_bytes();
  };
  AddForSchema(registry, op, candidate, {"L"});
}

}  // namespace
}  // namespace update

void RegisterCudaNormOptimizer(KernelRegistry& registry) {
  update::AddNormUpdate<functors::LarsRule>(registry, "lars");
  update::AddNormUpdate<functors::LambRule>(registry, "lamb");
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
