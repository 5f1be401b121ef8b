// The pattern elementwise_chain: all ops of a body on one vector of elements
// in registers. Each op's result is rounded to the tensors' dtype, as if it
// had been stored: the bits are the body's.
#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/elementwise_functors.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int kArguments = 16, kSteps = 40;
// Results that a later step than the next one reads are kept apart.
constexpr int kKept = 4;

// What a step does: a functor, by its place in the list, or nothing.
constexpr uint8_t kSame = kElementwiseFunctorCount;
static_assert(kElementwiseFunctorCount < 255, "a step has a byte for it");

// The functor's place in the list.
template <typename F, size_t... I>
constexpr uint8_t PlaceOf(std::index_sequence<I...>) {
  constexpr bool kIs[] = {
      std::is_same<F, typename std::tuple_element_t<
                          I, ElementwiseFunctors>::Functor>::value...};
  static_assert((kIs[I] + ...) == 1, "listed once");
  return static_cast<uint8_t>(((kIs[I] ? I : 0) + ...));
}
using Places = std::make_index_sequence<kElementwiseFunctorCount>;

// Where a step reads: an argument from 0 up, the result of the step before it,
// or a kept one: kKeptFrom - slot.
constexpr int8_t kBefore = -1, kKeptFrom = -2, kNowhere = -128;

struct Step {
  uint8_t code;
  bool round;  // to the tensors' dtype
  int8_t a, b = kNowhere;
  int8_t keep = -1;  // the slot that takes the result; -1: none
  FunctorSettings settings = {};
};

template <int V, typename Listed>
HT_DEVICE void Apply(const Step& step, float (&a)[V], const float (&b)[V]) {
  const auto functor = step.settings.As<typename Listed::Functor>();
#pragma unroll
  for (int k = 0; k < V; ++k) {
    if constexpr (Listed::operands == Operands::kOne) {
      a[k] = functor(a[k]);
    } else {
      a[k] = functor(a[k], b[k]);
    }
  }
}

// a = step(a, b), whose functor is one of [kFirst, kEnd) in the list.
template <int V, size_t kFirst = 0, size_t kEnd = kElementwiseFunctorCount>
HT_DEVICE void Run(const Step& step, float (&a)[V], const float (&b)[V]) {
  if constexpr (kEnd - kFirst == 1) {
    Apply<V, std::tuple_element_t<kFirst, ElementwiseFunctors>>(step, a, b);
  } else {
    constexpr size_t kMiddle = (kFirst + kEnd) / 2;
    if (step.code < kMiddle) {
      Run<V, kFirst, kMiddle>(step, a, b);
    } else {
      Run<V, kMiddle, kEnd>(step, a, b);
    }
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
      if (step[s].code != kSame) Run(step[s], a, b);
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
  uint8_t code;
  bool round = true;
  int a, b = -1;
  FunctorSettings settings = {};
};

class ChainBuilder {
 public:
  explicit ChainBuilder(const BoundOp& fusion)
      : arguments_(static_cast<int>(fusion.inputs().size())) {
    std::vector<int> place;  // of what ops read, among the drafts' values
    for (int i = 0; i < arguments_; ++i) place.push_back(i);
    for (const BodyOp& op : BodyOps(fusion)) {
      std::vector<int> in;
      for (int value : op.reads) in.push_back(place[value]);
      Add(op.op, in);
      place.push_back(Last());
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
    if (in.empty()) {  // no such op is element-wise
      ok_ = false;
      return;
    }
    if (op.type() == "sum") {  // rounded once, after the last
      constexpr uint8_t kAdd = PlaceOf<functors::AddOp>(Places());
      drafts_.push_back({kSame, in.size() == 1, in[0]});
      for (size_t i = 1; i < in.size(); ++i) {
        drafts_.push_back({kAdd, i + 1 == in.size(), Last(), in[i]});
      }
      return;
    }
    uint8_t code = 0;
    bool found = false;
    ForEachElementwise([&](const auto& functor) {
      if (functor.Computes(op)) {
        drafts_.push_back({code, true, in[0], in.size() > 1 ? in[1] : -1,
                           FunctorSettings::Of(functor.Make(op))});
        found = true;
      }
      ++code;
    });
    ok_ = ok_ && found;
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
                drafts_[s].settings};
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
    // Each vector has the code of all functors: two keep it half as long.
    Map<2>(launch, bound, n, aligned ? VectorOf({bound.dtype}) : 1);
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
  registry.AddPattern("elementwise_chain",
                      {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
