// The n-ary sum in which a value's gradients meet: added in f32 in the order
// of the list, rounded once.
#include <algorithm>
#include <vector>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Operands of one launch; longer lists go on from a sum in the workspace.
constexpr int kOperands = 8;

// X: FullOperand or Operand.
template <typename X>
struct SumBody {
  X x[kOperands];
  const void* x_data[kOperands];
  int32_t count;
  const float* before;  // the sum of the operands before these; null: none
  DType out;
  void* out_data;

  template <int V>
  struct Loaded {
    Raw first, second;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.first = x[0].template Load<V>(x_data[0], i);
    if (count > 1) loaded.second = x[1].template Load<V>(x_data[1], i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    float sum[V];
    Unpack(x[0].dtype, loaded.first, sum);
    if (before != nullptr) {
      float earlier[V];
      LoadFloats(before, i, earlier);
#pragma unroll
      for (int k = 0; k < V; ++k) sum[k] = earlier[k] + sum[k];
    }
    if (count > 1) AddTo(x[1].dtype, loaded.second, sum);
    for (int j = 2; j < count; ++j) {
      AddTo(x[j].dtype, x[j].template Load<V>(x_data[j], i), sum);
    }
    StoreVector(out, out_data, i, sum);
  }

 private:
  template <int V>
  static HT_DEVICE void AddTo(DType dtype, const Raw& raw, float (&sum)[V]) {
    float more[V];
    Unpack(dtype, raw, more);
#pragma unroll
    for (int k = 0; k < V; ++k) sum[k] += more[k];
  }
};

struct SumKernel {
  std::vector<Operand> operands;  // members may differ in layout
  DType out;
  int64_t elements;

  void operator()(const Buffers& buffers, Launcher& launch) const {
    const bool full = std::all_of(operands.begin(), operands.end(),
                                  [](const Operand& x) { return x.full; });
    const int count = static_cast<int>(operands.size());
    for (int first = 0; first < count; first += kOperands) {
      if (full) {
        const auto body = BodyFrom<FullOperand>(buffers, first);
        const int vector = VectorOf({operands[0].dtype, body.out});
        Map(launch, body, elements, AreAligned(body) ? vector : 1);
      } else {
        const auto body = BodyFrom<Operand>(buffers, first);
        MapNarrow(launch, body, elements, AreAligned(body));
      }
    }
  }

 private:
  static void Assign(const Operand& from, Operand* to) { *to = from; }
  static void Assign(const Operand& from, FullOperand* to) {
    to->dtype = from.dtype;
  }

  template <typename X>
  SumBody<X> BodyFrom(const Buffers& buffers, int first) const {
    const int count = static_cast<int>(operands.size());
    const bool last = first + kOperands >= count;
    SumBody<X> body = {};
    body.count = std::min(kOperands, count - first);
    body.before = first > 0 ? static_cast<float*>(buffers.workspace) : nullptr;
    body.out = last ? out : DType::kF32;
    body.out_data = last ? buffers.outputs[0] : buffers.workspace;
    for (int j = 0; j < body.count; ++j) {
      Assign(operands[first + j], &body.x[j]);
      body.x_data[j] = buffers.inputs[first + j];
    }
    return body;
  }

  template <typename X>
  static bool AreAligned(const SumBody<X>& body) {
    bool aligned = Aligned({body.out_data, body.before});
    for (int j = 0; j < body.count; ++j) {
      aligned = aligned && Aligned({body.x_data[j]});
    }
    return aligned;
  }
};

Candidate MakeSum() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    const TensorDesc& out = op.outputs()[0];
    SumKernel kernel{{}, out.dtype, out.elements()};
    for (const TensorDesc& x : op.inputs()) {
      kernel.operands.emplace_back(x.dtype, out, StridesOf(x));
    }
    return kernel;
  });
  candidate.workspace_bytes = [](const BoundOp& op) -> int64_t {
    const bool one = op.inputs().size() <= kOperands;
    return one ? 0 : op.outputs()[0].elements() * int64_t{sizeof(float)};
  };
  return candidate;
}

}  // namespace

void RegisterCudaSum(KernelRegistry& registry) {
  AddForSchema(registry, "sum", MakeSum());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
