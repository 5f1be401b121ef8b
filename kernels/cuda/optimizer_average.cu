// Averages of parameters: one launch for all members, one pass over memory.
#include <vector>

#include "kernels/common/settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/vector.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int32_t kPieceElements = 16384;
// A launch's members: of small models, of others (28 KiB of parameters).
constexpr int kFew = 64, kMany = 780;

enum { kAverage, kParam, kAverageOut, kPointers };

struct Shared {
  DType param;
  bool aligned;
  const int64_t* applied;
  const bool* found_inf;
};

template <int V>
HT_DEVICE void AveragePiece(const Shared& shared, void* const* data,
                            int64_t begin, int64_t vectors, bool reject,
                            const functors::AverageStep& step) {
  for (int64_t v = threadIdx.x; v < vectors; v += kThreads) {
    const int64_t i = begin + v * V;
    float average[V], p[V];
    LoadVector(DType::kF32, data[kAverage], i, average);
    if (!reject) {
      LoadVector(shared.param, data[kParam], i, p);
#pragma unroll
      for (int k = 0; k < V; ++k) average[k] = step(average[k], p[k]);
    }
    StoreVector(DType::kF32, data[kAverageOut], i, average);
  }
}

template <int kMembers>
__global__ void __launch_bounds__(kThreads)
    AverageKernel(const __grid_constant__ PieceTable<kPointers, kMembers> table,
                  Shared shared, functors::AverageRule rule) {
  HT_SHARED(functors::AverageStep, step);
  if (threadIdx.x == 0) step = rule.At(*shared.applied);
  __syncthreads();
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  void* const* data = table.data[piece.member];
  const bool reject = *shared.found_inf;
  if (reject && data[kAverage] == data[kAverageOut]) return;
  const functors::AverageStep own = step;
  const int64_t vectors = shared.aligned ? piece.n / 4 : 0;
  AveragePiece<4>(shared, data, piece.begin, vectors, reject, own);
  AveragePiece<1>(shared, data, piece.begin + 4 * vectors,
                  piece.n - 4 * vectors, reject, own);
}

class Average {
 public:
  explicit Average(const BoundOp& op)
      : members_(op.InputCount("Average")),
        applied_(op.InputIndex("Applied")),
        found_inf_(op.InputIndex("FoundInf")),
        param_(op.Input("Param").dtype),
        rule_(AverageRuleOf(op)),
        descs_(op.inputs().begin(), op.inputs().begin() + members_) {}

  void operator()(const Buffers& buffers, Launcher& launch) const {
    if (members_ <= kFew) {
      LaunchAll<kFew>(buffers, launch);
    } else {
      LaunchAll<kMany>(buffers, launch);
    }
  }

 private:
  template <int kMembers>
  void LaunchAll(const Buffers& buffers, Launcher& launch) const {
    for (int begin = 0; begin < members_; begin += kMembers) {
      PieceTable<kPointers, kMembers> table;
      FillTable(absl::MakeConstSpan(descs_), begin, kPieceElements, &table);
      Shared shared = {param_, true,
                       static_cast<const int64_t*>(buffers.inputs[applied_]),
                       static_cast<const bool*>(buffers.inputs[found_inf_])};
      for (int i = 0; i < table.count; ++i) {
        void** data = table.data[i];
        data[kAverage] = const_cast<void*>(buffers.inputs[begin + i]);
        data[kParam] = const_cast<void*>(buffers.inputs[members_ + begin + i]);
        data[kAverageOut] = buffers.outputs[begin + i];
        shared.aligned =
            shared.aligned &&
            Aligned({data[kAverage], data[kParam], data[kAverageOut]});
      }
      launch(AverageKernel<kMembers>, table.pieces(), kThreads, table, shared,
             rule_);
    }
  }

  int members_, applied_, found_inf_;
  DType param_;
  functors::AverageRule rule_;
  std::vector<TensorDesc> descs_;
};

}  // namespace

void RegisterCudaAverage(KernelRegistry& registry) {
  Candidate candidate =
      CudaCandidate("pieces", [](const BoundOp& op) { return Average(op); });
  candidate.supports = MembersShareLayout;
  AddForSchema(registry, "ema", candidate);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
