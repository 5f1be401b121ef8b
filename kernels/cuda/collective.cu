// Sums over ranks in an order of their own, of what the planner gathered.
#include <vector>

#include "kernels/common/gather.h"
#include "kernels/common/settings.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/collective.h"
#include "kernels/functors/tree_sum.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Elements of a block; members of a launch.
constexpr int32_t kPieceElements = 4096;
using SumTable = PieceTable<2, 256>;

// An element of all ranks.
struct RankTree {
  DType dtype;
  const void* x;
  int64_t stride, at;
  float scale;

  HT_DEVICE float At(int rank) const {
    return scale * LoadOne(dtype, x, rank * stride + at);
  }
  HT_DEVICE float Add(float a, float b) const { return a + b; }
};

__global__ void __launch_bounds__(kThreads)
    SumRanksKernel(const __grid_constant__ SumTable table, DType dtype,
                   int64_t stride, int ranks, functors::RankSum sum) {
  const Piece piece = table.At(static_cast<int32_t>(blockIdx.x));
  const void* x = table.data[piece.member][0];
  void* out = table.data[piece.member][1];
  for (int64_t i = threadIdx.x; i < piece.n; i += kThreads) {
    const int64_t at = piece.begin + i;
    if (sum.in_tree) {
      const RankTree tree{dtype, x, stride, at, sum.scale};
      StoreOne(dtype, out, at, functors::SumInTree<float>(tree, ranks));
      continue;
    }
    float total = sum.First(LoadOne(dtype, x, at));
    for (int r = 1; r < ranks; ++r) {
      total = sum.Next(total, LoadOne(dtype, x, r * stride + at));
    }
    StoreOne(dtype, out, at, total);
  }
}

// Inputs are rank 0's, others' lie where GatherShape says.
struct SumRanks {
  std::vector<TensorDesc> members;
  GatherShape gathered;
  functors::RankSum sum;

  explicit SumRanks(const BoundOp& op)
      : members(op.inputs().begin(), op.inputs().end()),
        gathered(GatherShapeOf(op)),
        sum{SumScale(op), op.Str("order") == "tree"} {}
  void operator()(const Buffers& buffers, Launcher& launch) const {
    const DType dtype = members[0].dtype;
    const int64_t stride = gathered.stride_bytes / SizeOf(dtype);
    const int count = static_cast<int>(members.size());
    for (int begin = 0; begin < count; begin += SumTable::kMost) {
      SumTable table;
      FillTable(members, begin, kPieceElements, &table);
      for (int i = 0; i < table.count; ++i) {
        // What is read is not written: a table has one type of pointers.
        table.data[i][0] =
            const_cast<void*>(gathered.First(buffers.inputs[begin + i]));
        table.data[i][1] = buffers.outputs[begin + i];
      }
      launch(SumRanksKernel, table.pieces(), kThreads, table, dtype, stride,
             gathered.ranks, sum);
    }
  }
};

}  // namespace

void RegisterCudaCollective(KernelRegistry& registry) {
  AddForSchema(registry, "all_reduce",
               CudaCandidate("gathered",
                             [](const BoundOp& op) { return SumRanks(op); }));
  RegisterCudaTreeSum(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
