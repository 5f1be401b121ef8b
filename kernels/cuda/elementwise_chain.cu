// The pattern elementwise_chain: all ops of a body on one vector of elements
// in registers. Each op's result is rounded to the tensors' dtype, as if it
// had been stored: the bits are the body's.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/common/gelu_settings.h"
#include "kernels/common/settings.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

namespace f = functors;

constexpr int kArguments = 16, kSteps = 40;
// Results that a later step than the next one reads are kept apart.
constexpr int kKept = 4;

enum class Code : uint8_t {
  kSame,
  kScale,
  kRelu,
  kTanh,
  kSigmoid,
  kExp,
  kLog,
  kSquare,
  kSqrt,
  kAbs,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kReluGrad,
  kTanhGrad,
  kSigmoidGrad,
  kAbsGrad,
  kGelu,
  kGeluTanh,
  kGeluGrad,
  kGeluTanhGrad,
  kUnknown,
};

Code CodeOfType(absl::string_view type) {
  static constexpr struct {
    const char* type;
    Code code;
  } kCodes[] = {
      {"scale", Code::kScale},
      {"relu", Code::kRelu},
      {"tanh", Code::kTanh},
      {"sigmoid", Code::kSigmoid},
      {"exp", Code::kExp},
      {"log", Code::kLog},
      {"square", Code::kSquare},
      {"sqrt", Code::kSqrt},
      {"abs", Code::kAbs},
      {"elementwise_add", Code::kAdd},
      {"elementwise_sub", Code::kSub},
      {"elementwise_mul", Code::kMul},
      {"elementwise_div", Code::kDiv},
      {"relu_grad", Code::kReluGrad},
      {"tanh_grad", Code::kTanhGrad},
      {"sigmoid_grad", Code::kSigmoidGrad},
      {"abs_grad", Code::kAbsGrad},
      {"gelu", Code::kGelu},
      {"gelu_grad", Code::kGeluGrad},
  };
  for (const auto& entry : kCodes) {
    if (type == entry.type) return entry.code;
  }
  return Code::kUnknown;
}

Code CodeOf(const BoundOp& op) {
  const Code code = CodeOfType(op.schema().name());
  if (code == Code::kGelu && IsTanh(op)) return Code::kGeluTanh;
  if (code == Code::kGeluGrad && IsTanh(op)) return Code::kGeluTanhGrad;
  return code;
}

// Where a step reads: an argument from 0 up, the result of the step before it,
// or a kept one: kKeptFrom - slot.
constexpr int8_t kBefore = -1, kKeptFrom = -2, kNowhere = -128;

struct Step {
  Code code;
  bool round;  // to the tensors' dtype
  int8_t a, b = kNowhere;
  int8_t keep = -1;       // the slot that takes the result; -1: none
  f::ScaleOp scale = {};  // of kScale
};

template <int V, typename F>
HT_DEVICE void Apply1(const F& functor, float (&a)[V]) {
#pragma unroll
  for (int k = 0; k < V; ++k) a[k] = functor(a[k]);
}
template <int V, typename F>
HT_DEVICE void Apply2(const F& functor, float (&a)[V], const float (&b)[V]) {
#pragma unroll
  for (int k = 0; k < V; ++k) a[k] = functor(a[k], b[k]);
}

// a = step(a, b).
template <int V>
HT_DEVICE void Run(const Step& step, float (&a)[V], const float (&b)[V]) {
  switch (step.code) {
    case Code::kScale:
      return Apply1(step.scale, a);
    case Code::kRelu:
      return Apply1(f::ReluOp(), a);
    case Code::kTanh:
      return Apply1(f::TanhOp(), a);
    case Code::kSigmoid:
      return Apply1(f::SigmoidOp(), a);
    case Code::kExp:
      return Apply1(f::ExpOp(), a);
    case Code::kLog:
      return Apply1(f::LogOp(), a);
    case Code::kSquare:
      return Apply1(f::SquareOp(), a);
    case Code::kSqrt:
      return Apply1(f::SqrtOp(), a);
    case Code::kAbs:
      return Apply1(f::AbsOp(), a);
    case Code::kAdd:
      return Apply2(f::AddOp(), a, b);
    case Code::kSub:
      return Apply2(f::SubOp(), a, b);
    case Code::kMul:
      return Apply2(f::MulOp(), a, b);
    case Code::kDiv:
      return Apply2(f::DivOp(), a, b);
    case Code::kReluGrad:
      return Apply2(f::ReluGradOp(), a, b);
    case Code::kTanhGrad:
      return Apply2(f::TanhGradOp(), a, b);
    case Code::kSigmoidGrad:
      return Apply2(f::SigmoidGradOp(), a, b);
    case Code::kAbsGrad:
      return Apply2(f::AbsGradOp(), a, b);
    case Code::kGelu:
      return Apply1(f::GeluOp(), a);
    case Code::kGeluTanh:
      return Apply1(f::TanhGeluOp(), a);
    case Code::kGeluGrad:
      return Apply2(f::GeluGradOp(), a, b);
    case Code::kGeluTanhGrad:
      return Apply2(f::TanhGeluGradOp(), a, b);
    default:
      return;
  }
}

struct ChainBody {
  int32_t steps;
  DType dtype;
  void* out;
  const void* arguments[kArguments];
  Step step[kSteps];

  // The first two arguments, ahead of time.
  template <int V>
  struct Loaded {
    Raw first, second;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.first = LoadRaw<V>(dtype, arguments[0], i);
    if (arguments[1] != nullptr) {
      loaded.second = LoadRaw<V>(dtype, arguments[1], i);
    }
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    float before[V], kept[kKept][V];
#pragma unroll
    for (int k = 0; k < V; ++k) before[k] = 0;
    for (int s = 0; s < steps; ++s) {
      float a[V], b[V];
      Read(step[s].a, i, loaded, before, kept, a);
      Read(step[s].b, i, loaded, before, kept, b);
      Run(step[s], a, b);
      if (step[s].round) Unpack(dtype, Pack(dtype, a), a);
#pragma unroll
      for (int k = 0; k < V; ++k) before[k] = a[k];
      if (step[s].keep < 0) continue;
#pragma unroll
      for (int k = 0; k < V; ++k) kept[step[s].keep][k] = a[k];
    }
    StoreVector(dtype, out, i, before);
  }

 private:
  template <int V>
  HT_DEVICE void Read(int from, int64_t i, const Loaded<V>& loaded,
                      const float (&before)[V], const float (&kept)[kKept][V],
                      float (&to)[V]) const {
    if (from == 0) {
      Unpack(dtype, loaded.first, to);
    } else if (from == 1) {
      Unpack(dtype, loaded.second, to);
    } else if (from > 1) {
      LoadVector(dtype, arguments[from], i, to);
    } else if (from <= kKeptFrom && from > kKeptFrom - kKept) {
#pragma unroll
      for (int k = 0; k < V; ++k) to[k] = kept[kKeptFrom - from][k];
    } else {
      // What a step of one operand reads as its second has no meaning.
#pragma unroll
      for (int k = 0; k < V; ++k) to[k] = before[k];
    }
  }
};

// ---- From a body to steps.

// A step in terms of values: arguments first, then results.
struct Draft {
  Code code;
  bool round = true;
  int a, b = -1;
  f::ScaleOp scale = {};
};

class ChainBuilder {
 public:
  explicit ChainBuilder(const BoundOp& fusion)
      : arguments_(static_cast<int>(fusion.inputs().size())) {
    const Block& body = *fusion.op().body;
    std::vector<int> place(body.value_limit(), -1);
    const std::vector<ValueId> feeds = body.Feeds();
    for (size_t i = 0; i < feeds.size(); ++i) {
      place[feeds[i].index()] = static_cast<int>(i);
    }
    for (OpId id = body.first(); id.valid(); id = body.next(id)) {
      const Op& op = body.op(id);
      std::vector<int> in;
      for (ValueId v : op.inputs.all()) in.push_back(place[v.index()]);
      Add(BoundOp(body, op, fusion.symbols(), fusion.context()), in);
      place[op.outputs.all()[0].index()] = Last();
    }
    ok_ = ok_ && arguments_ >= 1 && arguments_ <= kArguments &&
          !drafts_.empty() && drafts_.size() <= kSteps && Place();
  }

  // Whether the kernel can run it; the rest is valid only then.
  bool ok() const { return ok_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  int Last() const { return arguments_ + static_cast<int>(drafts_.size()) - 1; }

  void Add(const BoundOp& op, const std::vector<int>& in) {
    const std::string& type = op.schema().name();
    if (in.empty()) {  // no such op is element-wise
      ok_ = false;
      return;
    }
    if (type == "sum") {  // rounded once, after the last
      drafts_.push_back({Code::kSame, in.size() == 1, in[0]});
      for (size_t i = 1; i < in.size(); ++i) {
        drafts_.push_back({Code::kAdd, i + 1 == in.size(), Last(), in[i]});
      }
      return;
    }
    const Code code = CodeOf(op);
    ok_ = ok_ && code != Code::kUnknown;
    drafts_.push_back({code, true, in[0], in.size() > 1 ? in[1] : -1,
                       type == "scale" ? MakeScale(op) : f::ScaleOp{}});
  }

  // Gives a slot to each result that is read later than by the next step.
  bool Place() {
    const int count = static_cast<int>(drafts_.size());
    std::vector<int> last_use(count, -1), slot(count, -1);
    for (int s = 0; s < count; ++s) {
      for (int value : {drafts_[s].a, drafts_[s].b}) {
        if (value >= arguments_) last_use[value - arguments_] = s;
      }
    }
    int free_from[kKept] = {};  // the step from which on a slot is free
    for (int s = 0; s < count; ++s) {
      Step step{drafts_[s].code,
                drafts_[s].round,
                Source(drafts_[s].a, s, slot),
                Source(drafts_[s].b, s, slot),
                -1,
                drafts_[s].scale};
      if (last_use[s] > s + 1) {
        const int* at = std::find_if(free_from, free_from + kKept,
                                     [s](int from) { return from <= s; });
        if (at == free_from + kKept) return false;
        slot[s] = static_cast<int>(at - free_from);
        free_from[slot[s]] = last_use[s];
        step.keep = static_cast<int8_t>(slot[s]);
      }
      steps_.push_back(step);
    }
    return true;
  }

  int8_t Source(int value, int step, const std::vector<int>& slot) const {
    if (value < 0) return kNowhere;
    if (value < arguments_) return static_cast<int8_t>(value);
    const int result = value - arguments_;
    if (result == step - 1) return kBefore;
    return static_cast<int8_t>(kKeptFrom - slot[result]);
  }

  int arguments_;
  bool ok_ = true;
  std::vector<Draft> drafts_;
  std::vector<Step> steps_;
};

auto MakeChain(const BoundOp& fusion) {
  const ChainBuilder builder(fusion);
  ChainBody body = {};
  body.steps = static_cast<int32_t>(builder.steps().size());
  body.dtype = fusion.outputs()[0].dtype;
  std::copy(builder.steps().begin(), builder.steps().end(), body.step);
  return [body, n = fusion.outputs()[0].elements()](const Buffers& buffers,
                                                    Launcher& launch) {
    ChainBody bound = body;
    bound.out = buffers.outputs[0];
    bool aligned = Aligned({bound.out});
    for (size_t i = 0; i < buffers.inputs.size(); ++i) {
      bound.arguments[i] = buffers.inputs[i];
      aligned = aligned && Aligned({buffers.inputs[i]});
    }
    Map(launch, bound, n, aligned ? VectorOf({bound.dtype}) : 1);
  };
}

// All tensors in one dtype, shape and order.
bool Supports(const BoundOp& fusion) {
  if (fusion.outputs().size() != 1) return false;
  for (const TensorDesc& x : fusion.inputs()) {
    if (!(x == fusion.outputs()[0])) return false;
  }
  return ChainBuilder(fusion).ok();
}

}  // namespace

void RegisterCudaChain(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate("registers", MakeChain);
  candidate.supports = Supports;
  registry.AddPattern("cuda", "elementwise_chain",
                      {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
