// Multi-tensor parameter updates: one pass over memory, in place where the
// planner aliases outputs to inputs.
#include "kernels/cpu/optimizer.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pieces.h"
#include "kernels/functors/optimizer_adaptive.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using functors::GradientTransform;

template <typename Method, typename Transform>
void StepBlock(const UpdateBlock<Method::kStates>& b, const Method& method,
               const Transform& transform) {
  constexpr int kStates = Method::kStates;
  const float *g = b.g, *p_in = b.p_in;
  float* p_out = b.p_out;
  const int64_t n = b.n;
  const StatePointers states = StatesOf(b);
  ForIsa([=] {
    // Copies, so that stores are known not to change them.
    const Method step = method;
    const Transform change = transform;
    const StatePointers at = states;
    // An output is its input or does not overlap it.
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      float p = p_in[i];
      float s[functors::kMostStates] = {};
      if (kStates > 0) s[0] = at.in[0][i];
      if (kStates > 1) s[1] = at.in[1][i];
      if (kStates > 2) s[2] = at.in[2][i];
      step.Step(p, change(g[i]), s);
      p_out[i] = p;
      if (kStates > 0) at.out[0][i] = s[0];
      if (kStates > 1) at.out[1][i] = s[1];
      if (kStates > 2) at.out[2][i] = s[2];
    }
  });
}

template <typename Rule>
class UpdateKernel {
 public:
  using Method = typename Rule::Method;
  static constexpr int kStates = Method::kStates;

  explicit UpdateKernel(const BoundOp& op)
      : members_(UpdateSlots(op)),
        pieces_(op.inputs().subspan(0, members_.slots().members)) {
    ReadRule(op, &rule_);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const UpdateSlots& slots = members_.slots();
    const bool reject =
        *static_cast<const bool*>(buffers.inputs[slots.found_inf]);
    const GradientTransform transform = TransformOfStep(slots, buffers);
    const Method method = MethodOfStep(rule_, slots, buffers);
    pieces_.ForEach(stream.threads(), [&](int64_t, const Piece& piece) {
      ForBlocks(piece.begin, piece.begin + piece.n, [&](int64_t at, int64_t n) {
        if (reject) {
          members_.Keep(buffers, piece.member, at, n);
        } else {
          Update(buffers, piece.member, at, n, method, transform);
        }
      });
    });
  }

 private:
  void Update(const Buffers& buffers, int member, int64_t at, int64_t n,
              const Method& method, const GradientTransform& of_step) const {
    const GradientTransform transform =
        TransformOfMember(of_step, members_.slots(), buffers, member);
    UpdateBlock<kStates> b;
    members_.Load(buffers, member, at, n, &b);
    if (transform.KeepsAll()) {
      StepBlock(b, method, [](float g) { return g; });
    } else {
      StepBlock(b, method, transform);
    }
    members_.Store(buffers, member, at, b);
  }

  UpdateMembers<kStates> members_;
  Rule rule_;
  Pieces pieces_;
};

template <typename Rule>
Candidate UpdateCandidate() {
  Candidate candidate = MakeCandidate("one_pass", [](const BoundOp& bound) {
    return UpdateKernel<Rule>(bound);
  });
  candidate.supports = MembersShareLayout;
  return candidate;
}

template <typename Rule>
void AddUpdate(KernelRegistry& registry, absl::string_view op) {
  AddForSchema(registry, op, UpdateCandidate<Rule>(), {"L"});
}

}  // namespace

void RegisterCpuOptimizer(KernelRegistry& registry) {
  AddUpdate<functors::SgdRule>(registry, "sgd");
  AddUpdate<functors::MomentumRule>(registry, "momentum");
  AddUpdate<functors::AdamRule>(registry, "adam");
  AddUpdate<functors::AdamRule>(registry, "adamw");
  AddUpdate<functors::AdagradRule>(registry, "adagrad");
  AddUpdate<functors::AdadeltaRule>(registry, "adadelta");
  AddUpdate<functors::AdamaxRule>(registry, "adamax");
  AddUpdate<functors::LionRule>(registry, "lion");
  using functors::RmspropRule;
  AddForSchema(registry, "rmsprop",
               ByRmspropForm({UpdateCandidate<RmspropRule<false, false>>(),
                              UpdateCandidate<RmspropRule<false, true>>(),
                              UpdateCandidate<RmspropRule<true, false>>(),
                              UpdateCandidate<RmspropRule<true, true>>()}),
               {"L"});
  RegisterCpuNormOptimizer(registry);
  RegisterCpuDgc(registry);
  RegisterCpuAverage(registry);
  RegisterCpuLearningRate(registry);
}

}  // namespace kernels
}  // namespace halftone
