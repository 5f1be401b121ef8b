// check_finite: one pass over all gradients and statistics.
//
// The sum of squares that the norm needs is also the test: an element that is
// not finite makes it so. Only a sum that is not finite is looked at element
// by element, to tell an overflow of the sum from a bad element.
#include <cmath>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/gather.h"
#include "kernels/cpu/amp.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/amp.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace {

// Sum of (x * factor)^2 of one block.
float SquaredSum(const float* x, int64_t n, float factor) {
  float sum;
  float* result = &sum;
  ForIsa([=] {
    *result = SumOf(n, [=](int64_t i) {
      const float v = x[i] * factor;
      return v * v;
    });
  });
  return sum;
}

// The same of 16-bit numbers that make up whole rows of lanes, bit for bit:
// storing what they widen to would take as long as the sum.
template <typename T>
float SquaredSum(const T* x, int64_t n, float factor) {
  float sum;
  float* result = &sum;
  ForIsa([=](auto tag) {
    using Low = LowVector<decltype(tag)::value>;
    alignas(64) float sums[kLanes] = {};
    for (int64_t i = 0; i < n; i += kLanes) {
      alignas(64) float v[kLanes];
#pragma GCC unroll 4
      for (int k = 0; k < kLanes; k += Low::kSize) Low::Load(x + i + k, v + k);
      for (int j = 0; j < kLanes; ++j) {
        const float scaled = v[j] * factor;
        sums[j] += scaled * scaled;
      }
    }
    *result = SumOfLanes(reinterpret_cast<Vector*>(sums));
  });
  return sum;
}

// Of elements [at, at + n) of `data`, if they can be summed as they are stored.
bool SquaredSumAsStored(DType dtype, const void* data, int64_t at, int64_t n,
                        float factor, float* sum) {
  if (n % kLanes != 0) return false;
  if (dtype == DType::kBF16) {
    *sum = SquaredSum(static_cast<const bfloat16*>(data) + at, n, factor);
    return true;
  }
  if (dtype == DType::kF16) {
    *sum = SquaredSum(static_cast<const half*>(data) + at, n, factor);
    return true;
  }
  return false;
}

bool AllFinite(const float* x, int64_t n, float factor) {
  float zero;
  float* result = &zero;
  ForIsa([=] {
    // v - v is 0, or NaN where v is not finite.
    *result = SumOf(n, [=](int64_t i) {
      const float v = x[i] * factor;
      return v - v;
    });
  });
  return zero == 0.0f;
}

class CheckFiniteKernel {
 public:
  explicit CheckFiniteKernel(const BoundOp& op) {
    const int members =
        op.InputCount("Low") + op.InputCount("F32") + op.InputCount("Stats");
    gradients_ = members - op.InputCount("Stats");
    descs_.assign(op.inputs().begin(), op.inputs().begin() + members);
    inv_scale_ = op.InputIndex("InvScale");
    pieces_ = Pieces(descs_);
    sums_.resize(pieces_.size());
    bad_.resize(pieces_.size());
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) {
    const float factor = *static_cast<const float*>(buffers.inputs[inv_scale_]);
    pieces_.ForEach(stream.threads(), [&](int64_t index, const Piece& piece) {
      const bool gradient = piece.member < gradients_;
      Look(index, piece, buffers.inputs[piece.member],
           gradient ? factor : 1.0f);
    });
    Conclude(buffers);
  }

 private:
  // Fills sums_[index] and bad_[index].
  void Look(int64_t index, const Piece& piece, const void* data, float factor) {
    const bool gradient = piece.member < gradients_;
    double sum = 0;
    bool bad = false;
    ForBlocks(piece.begin, piece.begin + piece.n, [&](int64_t at, int64_t n) {
      const DType dtype = descs_[piece.member].dtype;
      float squares = 0;
      if (gradient &&
          SquaredSumAsStored(dtype, data, at, n, factor, &squares) &&
          functors::IsFinite(squares)) {
        sum += squares;
        return;
      }
      alignas(64) float buffer[kConvertBlock];
      const float* x = LoadBlock(dtype, data, at, n, buffer);
      squares = gradient ? SquaredSum(x, n, factor) : 0.0f;
      sum += squares;
      if (!gradient || !functors::IsFinite(squares)) {
        bad = bad || !AllFinite(x, n, factor);
      }
    });
    sums_[index] = sum;
    bad_[index] = bad;
  }

  void Conclude(const Buffers& buffers) const {
    float* norms = static_cast<float*>(buffers.outputs[2]);
    int32_t first_bad = -1;
    double total = 0;
    int64_t piece = 0;
    const int members = static_cast<int>(descs_.size());
    for (int member = 0; member < members; ++member) {
      double sum = 0;
      for (; piece < pieces_.size() && pieces_[piece].member == member;
           ++piece) {
        sum += sums_[piece];
        if (bad_[piece] && first_bad < 0) first_bad = member;
      }
      if (member < gradients_) norms[member] = static_cast<float>(sum);
      total += sum;
    }
    const bool norm_is_finite = functors::IsFinite(static_cast<float>(total));
    if (first_bad < 0 && !norm_is_finite) {
      first_bad = members + functors::LargestNorm(norms, gradients_);
    }
    *static_cast<bool*>(buffers.outputs[0]) = first_bad >= 0 || !norm_is_finite;
    *static_cast<int32_t*>(buffers.outputs[1]) = first_bad;
  }

  std::vector<TensorDesc> descs_;  // Low, F32, Stats
  int32_t gradients_ = 0;          // |Low| + |F32|
  int inv_scale_ = 0;
  Pieces pieces_;
  std::vector<double> sums_;
  std::vector<uint8_t> bad_;
};

// A place beyond `members` is of a norm that overflowed on one rank: that of
// all ranks does, too.
struct CombineChecks {
  GatherShape gathered;
  int64_t norms;
  int32_t members;

  void operator()(const Buffers& buffers, runtime::Stream&) const {
    const int64_t stride = gathered.stride_bytes / int64_t{sizeof(float)};
    float* const squares = static_cast<float*>(buffers.outputs[2]);
    double total = 0;
    for (int64_t i = 0; i < norms; ++i) {
      const double sum =
          functors::SquaresOfRanks(static_cast<const float*>(buffers.inputs[1]),
                                   stride, gathered.ranks, i);
      squares[i] = static_cast<float>(sum);
      total += sum;
    }
    int32_t first = functors::FirstBadOfRanks(
        static_cast<const int32_t*>(buffers.inputs[0]), stride, gathered.ranks,
        members);
    const bool finite = functors::IsFinite(static_cast<float>(total));
    if (first == members) {
      first = finite ? -1
                     : members + functors::LargestNorm(
                                     squares, static_cast<int32_t>(norms));
    }
    *static_cast<bool*>(buffers.outputs[0]) = first >= 0;
    *static_cast<int32_t*>(buffers.outputs[1]) = first;
  }
};

}  // namespace

void RegisterCpuCheckFinite(KernelRegistry& registry) {
  AddForSchema(registry, "combine_checks",
               MakeCandidate("loop", [](const BoundOp& op) {
                 return CombineChecks{GatherShapeOf(op),
                                      op.Input("SquaredNorm").elements(),
                                      static_cast<int32_t>(op.Int("members"))};
               }));
  AddForSchema(
      registry, "check_finite",
      MakeCandidate("one_pass",
                    [](const BoundOp& op) { return CheckFiniteKernel(op); }),
      {"TL"});
}

}  // namespace kernels
}  // namespace halftone
