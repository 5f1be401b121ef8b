// check_finite: one pass over all gradients and statistics, a block for each
// piece, and one block that adds the pieces up in a fixed order.
#include <memory>
#include <vector>

#include "kernels/common/gather.h"
#include "kernels/cuda/amp.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/amp.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int32_t kPieceElements = 32768;
// A launch's members: of small models, of others. The table of the second is
// a parameter of 28 KiB, so it is worth having the first.
constexpr int kFew = 64, kMany = 1400;
// Members of a call.
constexpr int kAll = 7000;

template <int kMembers>
using Table = PieceTable<1, kMembers>;

// What the members are: Low, then F32, then Stats.
struct Kinds {
  int32_t low, gradients;  // |Low|, |Low| + |F32|
  DType low_dtype;
};

// The results of the pieces.
struct Partial {
  double* squares;
  int32_t* bad;
};

struct Sums {
  float squares = 0;
  bool bad = false;
};

template <int V>
HT_DEVICE void Look(DType dtype, const Raw& raw, float factor, Sums& sums) {
  float x[V];
  Unpack(dtype, raw, x);
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const float v = x[k] * factor;
    sums.bad = sums.bad || !functors::IsFinite(v);
    sums.squares += v * v;
  }
}

// Elements [0, n) in vectors of V.
template <int V>
HT_DEVICE void LookAt(DType dtype, const void* x, int64_t begin, int64_t n,
                      float factor, Sums& sums) {
  constexpr int kLoads = 4;
  const int64_t vectors = n / V;
  for (int64_t first = threadIdx.x; first < vectors;
       first += kLoads * kThreads) {
    Raw raw[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t v = first + u * kThreads;
      if (v < vectors) raw[u] = LoadRaw<V>(dtype, x, begin + v * V);
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      if (first + u * kThreads < vectors) Look<V>(dtype, raw[u], factor, sums);
    }
  }
  const int64_t i = vectors * V + threadIdx.x;
  if (i < n) Look<1>(dtype, LoadRaw<1>(dtype, x, begin + i), factor, sums);
}

// `first_member`, `first_piece`: of the table among all.
template <int kMembers>
__global__ void __launch_bounds__(kThreads)
    PieceKernel(const __grid_constant__ Table<kMembers> table, Kinds kinds,
                int32_t first_member, int32_t first_piece,
                const float* inv_scale, Partial partial) {
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  const int32_t member = first_member + piece.member;
  const void* x = table.data[piece.member][0];
  const float factor = member < kinds.gradients ? *inv_scale : 1.0f;
  Sums sums;
  if (reinterpret_cast<uintptr_t>(x) % 16 != 0) {
    LookAt<1>(member < kinds.low ? kinds.low_dtype : DType::kF32, x,
              piece.begin, piece.n, factor, sums);
  } else if (member < kinds.low) {
    LookAt<8>(kinds.low_dtype, x, piece.begin, piece.n, factor, sums);
  } else {
    LookAt<4>(DType::kF32, x, piece.begin, piece.n, factor, sums);
  }
  const double squares =
      CombineBlock(static_cast<double>(sums.squares), 0.0, Plus());
  const int bad = CombineBlock(sums.bad ? 1 : 0, 0, Plus());
  if (threadIdx.x != 0) return;
  partial.squares[first_piece + blockIdx.x] = squares;
  partial.bad[first_piece + blockIdx.x] = bad;
}

struct FirstPieces {
  int32_t members;
  int32_t first[kAll + 1];
};

// One block, a warp for a member at a time.
constexpr int kConcludeThreads = 1024;

__global__ void __launch_bounds__(kConcludeThreads)
    ConcludeKernel(const __grid_constant__ FirstPieces pieces, Kinds kinds,
                   Partial partial, bool* found_inf, int32_t* first_bad,
                   float* norms) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  double total = 0;  // of this warp's members, in lane 0
  int32_t bad_member = pieces.members;
  for (int32_t m = warp; m < pieces.members; m += kConcludeThreads / kWarp) {
    double squares = 0;
    int bad = 0;
    for (int32_t p = pieces.first[m] + lane; p < pieces.first[m + 1];
         p += kWarp) {
      squares += partial.squares[p];
      bad |= partial.bad[p];
    }
    squares = CombineWarp(squares, Plus());
    bad = CombineWarp(bad, Plus());
    if (bad != 0 && m < bad_member) bad_member = m;
    if (m >= kinds.gradients) continue;
    if (lane == 0) {
      norms[m] = static_cast<float>(squares);
      total += squares;
    }
  }
  total = CombineBlock(total, 0.0, Plus());
  bad_member = CombineBlock(bad_member, pieces.members, Least());
  if (threadIdx.x != 0) return;
  const bool finite = functors::IsFinite(static_cast<float>(total));
  int32_t first = bad_member < pieces.members ? bad_member : -1;
  if (first < 0 && !finite) {
    first = pieces.members + functors::LargestNorm(norms, kinds.gradients);
  }
  *found_inf = first >= 0 || !finite;
  *first_bad = first;
}

class CheckFiniteKernel {
 public:
  explicit CheckFiniteKernel(const BoundOp& op)
      : inv_scale_(op.InputIndex("InvScale")) {
    const int low = op.InputCount("Low"), f32 = op.InputCount("F32");
    const int members = low + f32 + op.InputCount("Stats");
    kinds_ = {low, low + f32,
              low > 0 ? op.Input("Low").dtype : DType::kInvalid};
    descs_.assign(op.inputs().begin(), op.inputs().begin() + members);
    pieces_.members = members;
    pieces_.first[0] = 0;
    for (int m = 0; m < members; ++m) {
      pieces_.first[m + 1] = pieces_.first[m] + static_cast<int32_t>(PiecesOf(
                                                    descs_[m], kPieceElements));
    }
  }

  int64_t pieces() const { return pieces_.first[pieces_.members]; }
  int64_t workspace_bytes() const {
    return pieces() * int64_t{sizeof(double) + sizeof(int32_t)};
  }

  void operator()(const Buffers& buffers, Launcher& launch) const {
    Partial partial;
    partial.squares = static_cast<double*>(buffers.workspace);
    partial.bad = reinterpret_cast<int32_t*>(partial.squares + pieces());
    if (pieces_.members <= kFew) {
      LaunchPieces<kFew>(buffers, launch, partial);
    } else {
      LaunchPieces<kMany>(buffers, launch, partial);
    }
    launch(ConcludeKernel, 1, kConcludeThreads, pieces_, kinds_, partial,
           static_cast<bool*>(buffers.outputs[0]),
           static_cast<int32_t*>(buffers.outputs[1]),
           static_cast<float*>(buffers.outputs[2]));
  }

 private:
  template <int kMembers>
  void LaunchPieces(const Buffers& buffers, Launcher& launch,
                    Partial partial) const {
    const float* inv_scale =
        static_cast<const float*>(buffers.inputs[inv_scale_]);
    for (int begin = 0; begin < pieces_.members; begin += kMembers) {
      Table<kMembers> table;
      FillTable(absl::MakeConstSpan(descs_), begin, kPieceElements, &table);
      for (int i = 0; i < table.count; ++i) {
        table.data[i][0] = const_cast<void*>(buffers.inputs[begin + i]);
      }
      launch(PieceKernel<kMembers>, table.pieces(), kThreads, table, kinds_,
             begin, pieces_.first[begin], inv_scale, partial);
    }
  }

  Kinds kinds_;
  std::vector<TensorDesc> descs_;  // Low, F32, Stats
  int inv_scale_;
  FirstPieces pieces_;
};

// One block.
struct RankChecks {
  const int32_t* first_bad;
  const float* squares;
  int64_t stride;
  int ranks;
  int32_t norms, members;
};

__global__ void __launch_bounds__(kConcludeThreads)
    CombineChecksKernel(const RankChecks checks, bool* found_inf,
                        int32_t* first_bad, float* norms) {
  double total = 0;
  for (int32_t i = threadIdx.x; i < checks.norms; i += kConcludeThreads) {
    const double sum = functors::SquaresOfRanks(checks.squares, checks.stride,
                                                checks.ranks, i);
    norms[i] = static_cast<float>(sum);
    total += sum;
  }
  total = CombineBlock(total, 0.0, Plus());
  if (threadIdx.x != 0) return;
  int32_t first = functors::FirstBadOfRanks(checks.first_bad, checks.stride,
                                            checks.ranks, checks.members);
  const bool finite = functors::IsFinite(static_cast<float>(total));
  if (first == checks.members) {
    first = finite
                ? -1
                : checks.members + functors::LargestNorm(norms, checks.norms);
  }
  *found_inf = first >= 0;
  *first_bad = first;
}

struct CombineChecks {
  GatherShape gathered;
  int32_t norms, members;

  void operator()(const Buffers& buffers, Launcher& launch) const {
    const RankChecks checks = {
        static_cast<const int32_t*>(buffers.inputs[0]),
        static_cast<const float*>(buffers.inputs[1]),
        gathered.stride_bytes / static_cast<int64_t>(sizeof(float)),
        gathered.ranks,
        norms,
        members};
    launch(CombineChecksKernel, 1, kConcludeThreads, checks,
           static_cast<bool*>(buffers.outputs[0]),
           static_cast<int32_t*>(buffers.outputs[1]),
           static_cast<float*>(buffers.outputs[2]));
  }
};

}  // namespace

void RegisterCudaCheckFinite(KernelRegistry& registry) {
  AddForSchema(registry, "combine_checks",
               CudaCandidate("block", [](const BoundOp& op) {
                 return CombineChecks{
                     GatherShapeOf(op),
                     static_cast<int32_t>(op.Input("SquaredNorm").elements()),
                     static_cast<int32_t>(op.Int("members"))};
               }));
  Candidate candidate = CudaCandidate(
      "pieces", [](const BoundOp& op) { return CheckFiniteKernel(op); });
  candidate.supports = [](const BoundOp& op) {
    return op.InputCount("Low") + op.InputCount("F32") +
               op.InputCount("Stats") <=
           kAll;
  };
  candidate.workspace_bytes = [](const BoundOp& op) {
    return CheckFiniteKernel(op).workspace_bytes();
  };
  AddForSchema(registry, "check_finite", candidate, {"TL"});
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
