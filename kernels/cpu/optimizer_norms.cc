// Multi-tensor updates that need norms of whole parameters: a pass that adds
// up pieces of fixed length, so that the bits do not depend on the number of
// threads, and a pass that updates.
#include "kernels/functors/optimizer_norms.h"

#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/sums.h"

namespace halftone {
namespace kernels {
namespace {

using functors::GradientTransform;

double SquaredSum(const float* x, int64_t n) {
  float sum;
  float* result = &sum;
  ForIsa([=] { *result = SumOf(n, [=](int64_t i) { return x[i] * x[i]; }); });
  return sum;
}

// What the second norm is of goes to `values`.
template <typename Method>
void FirstPass(const UpdateBlock<Method::kStates>& b, const Method& method,
               const GradientTransform& transform, float* values) {
  constexpr int kStates = Method::kStates;
  const StatePointers states = StatesOf(b);
  const float *g = b.g, *p = b.p_in;
  const int64_t n = b.n;
  ForIsa([=] {
    const Method step = method;
    const GradientTransform change = transform;
    const StatePointers at = states;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      float s[functors::kMostStates] = {};
      if (kStates > 0) s[0] = at.in[0][i];
      if (kStates > 1) s[1] = at.in[1][i];
      values[i] = step.First(p[i], change(g[i]), s);
      if (!Method::kFirstStores) continue;
      if (kStates > 0) at.out[0][i] = s[0];
      if (kStates > 1) at.out[1][i] = s[1];
    }
  });
}

template <typename Method>
void SecondPass(const UpdateBlock<Method::kStates>& b, const Method& method,
                const GradientTransform& transform, float ratio) {
  constexpr int kStates = Method::kStates;
  constexpr bool kStores = !Method::kFirstStores;
  const StatePointers states = StatesOf(b);
  const float *g = b.g, *p_in = b.p_in;
  float* p_out = b.p_out;
  const int64_t n = b.n;
  ForIsa([=] {
    const Method step = method;
    const GradientTransform change = transform;
    const StatePointers at = states;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      float p = p_in[i];
      float s[functors::kMostStates] = {};
      if (kStates > 0) s[0] = kStores ? at.in[0][i] : at.out[0][i];
      if (kStates > 1) s[1] = kStores ? at.in[1][i] : at.out[1][i];
      step.Step(p, change(g[i]), s, ratio);
      p_out[i] = p;
      if (!kStores) continue;
      if (kStates > 0) at.out[0][i] = s[0];
      if (kStates > 1) at.out[1][i] = s[1];
    }
  });
}

template <typename Rule>
class NormUpdateKernel {
 public:
  using Method = typename Rule::Method;
  static constexpr int kStates = Method::kStates;

  explicit NormUpdateKernel(const BoundOp& op)
      : members_(UpdateSlots(op)),
        pieces_(op.inputs().subspan(0, members_.slots().members)),
        sums_(pieces_.size()),
        ratios_(members_.slots().members) {
    ReadRule(op, &rule_);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) {
    const UpdateSlots& slots = members_.slots();
    if (*static_cast<const bool*>(buffers.inputs[slots.found_inf])) {
      return ForAll(stream, [&](int64_t, int member, int64_t at, int64_t n) {
        members_.Keep(buffers, member, at, n);
      });
    }
    const GradientTransform transform = TransformOfStep(slots, buffers);
    const Method method = MethodOfStep(rule_, slots, buffers);
    sums_.assign(pieces_.size(), Squares());
    ForAll(stream, [&](int64_t piece, int member, int64_t at, int64_t n) {
      UpdateBlock<kStates> b;
      members_.Load(buffers, member, at, n, &b);
      alignas(64) float values[kConvertBlock];
      FirstPass(b, method, TransformOfMember(transform, slots, buffers, member),
                values);
      sums_[piece].p += SquaredSum(b.p_in, n);
      sums_[piece].other += SquaredSum(values, n);
    });
    Conclude(method);
    ForAll(stream, [&](int64_t, int member, int64_t at, int64_t n) {
      UpdateBlock<kStates> b;
      members_.Load(buffers, member, at, n, &b);
      SecondPass(b, method,
                 TransformOfMember(transform, slots, buffers, member),
                 ratios_[member]);
      members_.Store(buffers, member, at, b);
    });
  }

 private:
  // Sums of squares of a piece: of the parameter, and of what First gave.
  struct Squares {
    double p = 0, other = 0;
  };

  // body(piece, member, begin, n) for all blocks.
  template <typename Body>
  void ForAll(runtime::Stream& stream, const Body& body) const {
    pieces_.ForEach(stream.threads(), [&](int64_t index, const Piece& piece) {
      ForBlocks(piece.begin, piece.begin + piece.n, [&](int64_t at, int64_t n) {
        body(index, piece.member, at, n);
      });
    });
  }

  void Conclude(const Method& method) {
    int64_t piece = 0;
    for (size_t member = 0; member < ratios_.size(); ++member) {
      Squares sum;
      for (; piece < pieces_.size() &&
             pieces_[piece].member == static_cast<int32_t>(member);
           ++piece) {
        sum.p += sums_[piece].p;
        sum.other += sums_[piece].other;
      }
      ratios_[member] =
          method.Ratio(functors::NormOf(sum.p), functors::NormOf(sum.other));
    }
  }

  UpdateMembers<kStates> members_;
  Rule rule_;
  Pieces pieces_;
  std::vector<Squares> sums_;
  std::vector<float> ratios_;
};

template <typename Rule>
void AddNormUpdate(KernelRegistry& registry, absl::string_view op) {
  Candidate candidate = MakeCandidate("two_passes", [](const BoundOp& bound) {
    return NormUpdateKernel<Rule>(bound);
  });
  candidate.supports = MembersShareLayout;
  AddForSchema(registry, op, candidate, {"L"});
}

}  // namespace

void RegisterCpuNormOptimizer(KernelRegistry& registry) {
  AddNormUpdate<functors::LarsRule>(registry, "lars");
  AddNormUpdate<functors::LambRule>(registry, "lamb");
}

}  // namespace kernels
}  // namespace halftone
