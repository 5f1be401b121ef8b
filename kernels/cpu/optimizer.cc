// Multi-tensor parameter updates: one pass over memory, in place where the
// planner aliases outputs to inputs.
#include "kernels/cpu/optimizer.h"

#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/common/settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pieces.h"
#include "kernels/functors/optimizer.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using functors::GradientTransform;

float Scalar(const Buffers& buffers, int index, float absent) {
  return index < 0 ? absent : *static_cast<const float*>(buffers.inputs[index]);
}

// One block of one parameter: pointers of what is computed in f32.
struct BlockPointers {
  const float* g;
  const float *p_in, *s_in[2];
  float *p_out, *s_out[2];
  int64_t n;
};

template <typename Method, typename Transform>
void StepBlock(const BlockPointers& b, const Method& method,
               const Transform& transform) {
  ForIsa([=] {
    // Copies, so that stores are known not to change them.
    const Method step = method;
    const Transform change = transform;
    const BlockPointers at = b;
    // An output is its input or does not overlap it.
#pragma GCC ivdep
    for (int64_t i = 0; i < at.n; ++i) {
      float p = at.p_in[i];
      float s0 = Method::kStates > 0 ? at.s_in[0][i] : 0.0f;
      float s1 = Method::kStates > 1 ? at.s_in[1][i] : 0.0f;
      step.Step(p, change(at.g[i]), s0, s1);
      at.p_out[i] = p;
      if (Method::kStates > 0) at.s_out[0][i] = s0;
      if (Method::kStates > 1) at.s_out[1][i] = s1;
    }
  });
}

template <typename Rule>
class UpdateKernel {
 public:
  using Method = typename Rule::Method;
  static constexpr int kStates = Method::kStates;

  explicit UpdateKernel(const BoundOp& op)
      : layout_(op), pieces_(op.inputs().subspan(0, layout_.members)) {
    ReadRule(op, &rule_);
    transform_.limit = layout_.clip_value;
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const bool reject =
        *static_cast<const bool*>(buffers.inputs[layout_.found_inf]);
    GradientTransform transform = transform_;
    transform.inv_scale = Scalar(buffers, layout_.inv_scale, 1.0f);
    transform.clip_factor = Scalar(buffers, layout_.clip_factor, 1.0f);
    const int64_t applied =
        layout_.applied < 0
            ? 0
            : *static_cast<const int64_t*>(buffers.inputs[layout_.applied]);
    const Method method =
        rule_.At(Scalar(buffers, layout_.learning_rate, 0.0f), applied);
    pieces_.ForEach(stream.threads(), [&](int64_t, const Piece& piece) {
      ForBlocks(piece.begin, piece.begin + piece.n, [&](int64_t at, int64_t n) {
        if (reject) {
          Keep(buffers, piece.member, at, n);
        } else {
          Update(buffers, piece.member, at, n, method, transform);
        }
      });
    });
  }

 private:
  // Buffers of one parameter in slot `slot` of inputs or outputs.
  const void* In(const Buffers& buffers, int slot, int member) const {
    return buffers.inputs[slot * layout_.members + member];
  }
  void* Out(const Buffers& buffers, int slot, int member) const {
    return buffers.outputs[slot * layout_.members + member];
  }

  void Update(const Buffers& buffers, int member, int64_t at, int64_t n,
              const Method& method, const GradientTransform& transform) const {
    alignas(64) float p_buffer[kConvertBlock], g_buffer[kConvertBlock];
    BlockPointers b;
    b.n = n;
    b.g = LoadBlock(layout_.grad, In(buffers, 1, member), at, n, g_buffer);
    b.p_in = LoadBlock(layout_.param, In(buffers, 0, member), at, n, p_buffer);
    void* out = Out(buffers, 0, member);
    b.p_out = OutputBlock(layout_.param, out, at, p_buffer);
    for (int s = 0; s < kStates; ++s) {
      b.s_in[s] = static_cast<const float*>(In(buffers, 2 + s, member)) + at;
      b.s_out[s] = static_cast<float*>(Out(buffers, 1 + s, member)) + at;
    }
    if (transform.KeepsAll()) {
      StepBlock(b, method, [](float g) { return g; });
    } else {
      StepBlock(b, method, transform);
    }
    StoreBlock(layout_.param, b.p_out, out, at, n);
    StoreLow(buffers, member, at, n);
  }

  // outputs = inputs.
  void Keep(const Buffers& buffers, int member, int64_t at, int64_t n) const {
    KeepOne(In(buffers, 0, member), Out(buffers, 0, member),
            SizeOf(layout_.param), at, n);
    for (int s = 0; s < kStates; ++s) {
      KeepOne(In(buffers, 2 + s, member), Out(buffers, 1 + s, member),
              sizeof(float), at, n);
    }
    StoreLow(buffers, member, at, n);
  }

  static void KeepOne(const void* in, void* out, int64_t size, int64_t at,
                      int64_t n) {
    if (in == out) return;
    memcpy(static_cast<char*>(out) + at * size,
           static_cast<const char*>(in) + at * size, n * size);
  }

  // LowOut = ParamOut as it is stored, rounded.
  void StoreLow(const Buffers& buffers, int member, int64_t at,
                int64_t n) const {
    if (!layout_.has_low) return;
    alignas(64) float buffer[kConvertBlock];
    const float* p =
        LoadBlock(layout_.param, Out(buffers, 0, member), at, n, buffer);
    StoreBlock(layout_.low, p, Out(buffers, 1 + kStates, member), at, n);
  }

  UpdateSlots layout_;
  Rule rule_;
  GradientTransform transform_;
  Pieces pieces_;
};

template <typename Rule>
void AddUpdate(KernelRegistry& registry, absl::string_view op) {
  Candidate candidate = MakeCandidate("one_pass", [](const BoundOp& bound) {
    return UpdateKernel<Rule>(bound);
  });
  candidate.supports = MembersShareLayout;
  AddForSchema(registry, op, candidate, {"L"});
}

}  // namespace

void RegisterCpuOptimizer(KernelRegistry& registry) {
  AddUpdate<functors::SgdRule>(registry, "sgd");
  AddUpdate<functors::MomentumRule>(registry, "momentum");
  AddUpdate<functors::AdamRule>(registry, "adam");
  AddUpdate<functors::AdamRule>(registry, "adamw");
  RegisterCpuLearningRate(registry);
}

}  // namespace kernels
}  // namespace halftone
