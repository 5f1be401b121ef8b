// Sums over ranks in an order of their own, of what the planner gathered.
#include "kernels/functors/collective.h"

#include <algorithm>
#include <vector>

#include "graph/base/dtype.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/gather.h"
#include "kernels/common/settings.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/tree_sum.h"
#include "kernels/functors/tree_sum.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// So many elements have all partial sums of a tree in the first-level cache.
constexpr int64_t kTreePiece = 128;
struct TreePiece {
  float values[kTreePiece];
};

// The ranks' elements [begin, begin + n), n <= kTreePiece.
struct RankTree {
  DType dtype;
  const char* x;
  int64_t stride_bytes, begin, n;
  float scale;

  TreePiece At(int rank) const {
    TreePiece piece;
    float buffer[kTreePiece];
    const float* term =
        LoadBlock(dtype, x + rank * stride_bytes, begin, n, buffer);
    for (int64_t i = 0; i < n; ++i) piece.values[i] = scale * term[i];
    return piece;
  }
  TreePiece Add(const TreePiece& a, const TreePiece& b) const {
    TreePiece sum;
    for (int64_t i = 0; i < n; ++i) sum.values[i] = a.values[i] + b.values[i];
    return sum;
  }
};

// Inputs are rank 0's, others' lie where GatherShape says.
struct SumRanks {
  std::vector<int64_t> elements;  // of each member
  DType dtype;
  GatherShape gathered;
  functors::RankSum sum;

  explicit SumRanks(const BoundOp& op)
      : dtype(op.inputs()[0].dtype),
        gathered(GatherShapeOf(op)),
        sum{SumScale(op), op.Str("order") == "tree"} {
    for (const TensorDesc& member : op.inputs()) {
      elements.push_back(member.elements());
    }
  }
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    for (size_t i = 0; i < elements.size(); ++i) {
      const char* x =
          static_cast<const char*>(gathered.First(buffers.inputs[i]));
      void* out = buffers.outputs[i];
      ParallelFor(stream.threads(), elements[i], kConvertBlock,
                  [&](int64_t begin, int64_t end) {
                    for (; begin < end; begin += kConvertBlock) {
                      Block(x, out, begin,
                            std::min(kConvertBlock, end - begin));
                    }
                  });
    }
  }

  void Block(const char* x, void* out, int64_t begin, int64_t n) const {
    if (sum.in_tree) return TreeBlock(x, out, begin, begin + n);
    float total[kConvertBlock], buffer[kConvertBlock];
    for (int r = 0; r < gathered.ranks; ++r) {
      const float* term =
          LoadBlock(dtype, x + r * gathered.stride_bytes, begin, n, buffer);
      for (int64_t i = 0; i < n; ++i) {
        total[i] = r == 0 ? sum.First(term[i]) : sum.Next(total[i], term[i]);
      }
    }
    FromFloat(dtype, total, static_cast<char*>(out) + begin * SizeOf(dtype), n);
  }

  void TreeBlock(const char* x, void* out, int64_t begin, int64_t end) const {
    for (; begin < end; begin += kTreePiece) {
      const int64_t n = std::min(kTreePiece, end - begin);
      const auto total = functors::SumInTree<TreePiece>(
          RankTree{dtype, x, gathered.stride_bytes, begin, n, sum.scale},
          gathered.ranks);
      FromFloat(dtype, total.values,
                static_cast<char*>(out) + begin * SizeOf(dtype), n);
    }
  }
};

}  // namespace

void RegisterCpuCollective(KernelRegistry& registry) {
  AddForSchema(registry, "all_reduce",
               MakeCandidate("gathered",
                             [](const BoundOp& op) { return SumRanks(op); }));
  RegisterCpuTreeSum(registry);
}

}  // namespace kernels
}  // namespace halftone
