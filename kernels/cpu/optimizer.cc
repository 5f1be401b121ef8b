// Multi-tensor parameter updates: one pass over memory, in place where the
// planner aliases outputs to inputs.
#include "kernels/cpu/optimizer.h"

#include <cmath>
#include <cstring>

#include "kernels/cpu/dispatch.h"
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

// Where everything stands among the buffers: slots are lists of one value
// per parameter.
struct UpdateLayout {
  explicit UpdateLayout(const BoundOp& op)
      : members(op.InputCount("Param")),
        has_low(op.OutputCount("LowOut") > 0),
        learning_rate(op.InputIndex("LearningRate")),
        found_inf(op.InputIndex("FoundInf")),
        inv_scale(op.InputIndex("InvScale")),
        clip_factor(op.InputIndex("ClipFactor")) {
    param = op.inputs()[0].dtype;
    grad = op.inputs()[members].dtype;
    if (has_low) low = op.Output("LowOut").dtype;
  }

  int members;
  bool has_low;
  int learning_rate, found_inf, inv_scale, clip_factor;
  DType param, grad, low = DType::kInvalid;
};

// One block of one parameter: pointers of what is computed in f32.
struct BlockPointers {
  const float* g;
  const float *p_in, *s_in[2];
  float *p_out, *s_out[2];
  int64_t n;
};

template <typename Method>
void StepBlock(const BlockPointers& b, const Method& method,
               const GradientTransform& transform) {
  ForIsa([=] {
  // An output is its input or does not overlap it.
#pragma GCC ivdep
    for (int64_t i = 0; i < b.n; ++i) {
      float p = b.p_in[i];
      float s0 = Method::kStates > 0 ? b.s_in[0][i] : 0.0f;
      float s1 = Method::kStates > 1 ? b.s_in[1][i] : 0.0f;
      method.Step(p, transform(b.g[i]), s0, s1);
      b.p_out[i] = p;
      if (Method::kStates > 0) b.s_out[0][i] = s0;
      if (Method::kStates > 1) b.s_out[1][i] = s1;
    }
  });
}

// `Settings` is the method's attributes; Settings::At(buffers, rate) gives the
// Method of this step.
template <typename Settings>
class UpdateKernel {
 public:
  using Method = typename Settings::Method;
  static constexpr int kStates = Method::kStates;

  explicit UpdateKernel(const BoundOp& op)
      : layout_(op),
        settings_(op),
        pieces_(op.inputs().subspan(0, layout_.members)) {
    const float clip = static_cast<float>(op.Float("clip_value"));
    transform_.limit = clip > 0 ? clip : functors::Infinity();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const bool reject =
        *static_cast<const bool*>(buffers.inputs[layout_.found_inf]);
    GradientTransform transform = transform_;
    transform.inv_scale = Scalar(buffers, layout_.inv_scale, 1.0f);
    transform.clip_factor = Scalar(buffers, layout_.clip_factor, 1.0f);
    const Method method =
        settings_.At(buffers, Scalar(buffers, layout_.learning_rate, 0.0f));
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
    StepBlock(b, method, transform);
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

  UpdateLayout layout_;
  Settings settings_;
  GradientTransform transform_;
  Pieces pieces_;
};

// ---- Methods.

struct SgdSettings {
  using Method = functors::SgdStep;
  float weight_decay;
  explicit SgdSettings(const BoundOp& op)
      : weight_decay(static_cast<float>(op.Float("weight_decay"))) {}
  Method At(const Buffers&, float rate) const { return {rate, weight_decay}; }
};

struct MomentumSettings {
  using Method = functors::MomentumStep;
  float weight_decay, mu;
  bool nesterov;
  explicit MomentumSettings(const BoundOp& op)
      : weight_decay(static_cast<float>(op.Float("weight_decay"))),
        mu(static_cast<float>(op.Float("mu"))),
        nesterov(op.Bool("use_nesterov")) {}
  Method At(const Buffers&, float rate) const {
    return {rate, weight_decay, mu, nesterov};
  }
};

struct AdamSettings {
  using Method = functors::AdamStep;
  double beta1, beta2, epsilon;
  float weight_decay;
  bool decoupled;  // adamw
  int applied;
  explicit AdamSettings(const BoundOp& op)
      : beta1(op.Float("beta1")),
        beta2(op.Float("beta2")),
        epsilon(op.Float("epsilon")),
        weight_decay(static_cast<float>(op.Float("weight_decay"))),
        decoupled(op.schema().name() == "adamw"),
        applied(op.InputIndex("Applied")) {}

  Method At(const Buffers& buffers, float rate) const {
    const int64_t steps = *static_cast<const int64_t*>(buffers.inputs[applied]);
    const double t = static_cast<double>(steps) + 1;
    Method method;
    method.learning_rate = rate;
    method.l2 = decoupled ? 0.0f : weight_decay;
    method.shrink = decoupled ? 1.0f - rate * weight_decay : 1.0f;
    method.beta1 = static_cast<float>(beta1);
    method.one_minus_beta1 = static_cast<float>(1 - beta1);
    method.beta2 = static_cast<float>(beta2);
    method.one_minus_beta2 = static_cast<float>(1 - beta2);
    method.epsilon = static_cast<float>(epsilon);
    method.correction1 = static_cast<float>(1 - std::pow(beta1, t));
    method.correction2 = static_cast<float>(1 - std::pow(beta2, t));
    return method;
  }
};

template <typename Settings>
void AddUpdate(KernelRegistry& registry, absl::string_view op) {
  Candidate candidate = MakeCandidate("one_pass", [](const BoundOp& bound) {
    return UpdateKernel<Settings>(bound);
  });
  candidate.supports = MembersShareLayout;
  AddForSchema(registry, op, candidate, {"L"});
}

}  // namespace

bool MembersShareLayout(const BoundOp& op) {
  const auto params = op.inputs().subspan(0, op.InputCount("Param"));
  const auto same = [&](absl::Span<const TensorDesc> values, int first,
                        int count) {
    for (int i = 0; i < count; ++i) {
      if (values[first + i].layout != params[i].layout) return false;
    }
    return true;
  };
  for (const Slot& slot : op.schema().inputs()) {
    if (slot.list() && !same(op.inputs(), op.InputIndex(slot.name),
                             op.InputCount(slot.name))) {
      return false;
    }
  }
  for (const Slot& slot : op.schema().outputs()) {
    if (!same(op.outputs(), op.OutputIndex(slot.name),
              op.OutputCount(slot.name))) {
      return false;
    }
  }
  return true;
}

void RegisterCpuOptimizer(KernelRegistry& registry) {
  AddUpdate<SgdSettings>(registry, "sgd");
  AddUpdate<MomentumSettings>(registry, "momentum");
  AddUpdate<AdamSettings>(registry, "adam");
  AddUpdate<AdamSettings>(registry, "adamw");
  RegisterCpuLearningRate(registry);
}

}  // namespace kernels
}  // namespace halftone
