// Softmax with cross entropy. The gradient recomputes the softmax, so that
// nothing of the size of the logits is kept from forward to backward.
#include "kernels/cuda/loss.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/loss.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using functors::LabelKind;

// What the op and its gradient are told, and the tensors of a call.
struct LossData {
  RowShape rows;
  DType in, label, out;
  int64_t ignore_index;
  bool soft, use_softmax;
  const void *logits = nullptr, *labels = nullptr;
  const float* loss_grads = nullptr;
  void* result = nullptr;
};

// A row's maximum and the sum of its exponentials; of probabilities nothing.
struct RowSums {
  float maximum = 0, sum = 1;
};
template <int V>
HT_DEVICE RowSums SumsOf(const LossData& d, const Row& row) {
  if (!d.use_softmax) return {};
  const float maximum = row.Maximum<V>();
  return {maximum, row.ExpSum<V>(maximum)};
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyKernel(const __grid_constant__ LossData d) {
  const Row row(d.in, d.logits, d.rows, blockIdx.x);
  const RowSums sums = SumsOf<V>(d, row);
  float loss = 0;
  if (d.soft) {
    const Row labels(d.label, d.labels, d.rows, blockIdx.x);
    const float log = functors::Log(sums.sum);
    row.ForEach<V>([&](int64_t i, const float(&x)[V]) {
      float y[V];
      labels.Load(i, y);
      for (int k = 0; k < V; ++k) {
        const float log_p =
            d.use_softmax ? x[k] - sums.maximum - log : functors::Log(x[k]);
        loss += functors::SoftCrossEntropy(log_p, y[k]);
      }
    });
    loss = CombineBlock(loss, 0.0f, Plus());
  }
  if (threadIdx.x != 0) return;
  if (!d.soft) {
    const int64_t label = static_cast<const int64_t*>(d.labels)[blockIdx.x];
    switch (functors::KindOfLabel(label, row.length, d.ignore_index)) {
      case LabelKind::kClass:
        loss = d.use_softmax ? functors::CrossEntropy(
                                   row.At(label) - sums.maximum, sums.sum)
                             : -functors::Log(row.At(label));
        break;
      case LabelKind::kIgnored:
        break;
      case LabelKind::kInvalid:
        loss = functors::QuietNaN();
        break;
    }
  }
  static_cast<float*>(d.result)[blockIdx.x] = loss;
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyGradKernel(const __grid_constant__ LossData d) {
  const Row row(d.in, d.logits, d.rows, blockIdx.x);
  const int64_t label =
      d.soft ? -1 : static_cast<const int64_t*>(d.labels)[blockIdx.x];
  const LabelKind kind =
      functors::KindOfLabel(label, row.length, d.ignore_index);
  const RowSums sums = SumsOf<V>(d, row);
  const float grad = d.loss_grads[blockIdx.x];
  const float other = kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN();
  row.ForEach<V>([&](int64_t i, float(&x)[V]) {
    for (int k = 0; k < V; ++k) {
      const float one_hot = i + k == label ? 1.0f : 0.0f;
      const float e = functors::Exp(x[k] - sums.maximum);
      const float made =
          d.use_softmax ? functors::CrossEntropyGrad(e, sums.sum, one_hot, grad)
                        : functors::ProbabilityGrad(x[k], one_hot, grad);
      x[k] = kind == LabelKind::kClass ? made : other;
    }
    row.Store(d.out, d.result, i, x);
  });
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    SoftGradKernel(const __grid_constant__ LossData d) {
  const Row row(d.in, d.logits, d.rows, blockIdx.x);
  const Row labels(d.label, d.labels, d.rows, blockIdx.x);
  const RowSums sums = SumsOf<V>(d, row);
  const float grad = d.loss_grads[blockIdx.x];
  float all = 0;
  labels.ForEach<V>([&](int64_t, const float(&y)[V]) {
    for (int k = 0; k < V; ++k) all += y[k];
  });
  all = CombineBlock(all, 0.0f, Plus());
  row.ForEach<V>([&](int64_t i, float(&x)[V]) {
    float y[V];
    labels.Load(i, y);
    for (int k = 0; k < V; ++k) {
      const float e = functors::Exp(x[k] - sums.maximum);
      x[k] = d.use_softmax
                 ? functors::SoftCrossEntropyGrad(e, sums.sum, all, y[k], grad)
                 : functors::ProbabilityGrad(x[k], y[k], grad);
    }
    row.Store(d.out, d.result, i, x);
  });
}

struct CrossEntropy {
  LossData told;
  bool backward;

  void operator()(const Buffers& b, Launcher& launch) const {
    LossData d = told;
    d.logits = b.inputs[0];
    d.labels = b.inputs[1];
    if (backward) d.loss_grads = static_cast<const float*>(b.inputs[2]);
    d.result = b.outputs[0];
    const DType label = d.soft ? d.label : d.in;
    const int vector =
        backward ? RowVector(d.rows, {d.in, label, d.out},
                             {d.logits, d.soft ? d.labels : nullptr, d.result})
                 : RowVector(d.rows, {d.in, label},
                             {d.logits, d.soft ? d.labels : nullptr});
    WithVector(vector, [&](auto v) {
      constexpr int kV = decltype(v)::value;
      const auto kernel = !backward ? CrossEntropyKernel<kV>
                          : d.soft  ? SoftGradKernel<kV>
                                    : CrossEntropyGradKernel<kV>;
      launch(kernel, d.rows.count, RowThreads(d.rows.length, v), d);
    });
  }
};

Candidate MakeCrossEntropy(bool backward) {
  return CudaCandidate("rows", [backward](const BoundOp& op) {
    return CrossEntropy{{RowShape::Along(op.Input("Logits"), op.Int("axis")),
                         op.Input("Logits").dtype, op.Input("Label").dtype,
                         op.outputs()[0].dtype, op.Int("ignore_index"),
                         op.Bool("soft_label"), op.Bool("use_softmax")},
                        backward};
  });
}

}  // namespace

void RegisterCudaLoss(KernelRegistry& registry) {
  AddForSchema(registry, "softmax_with_cross_entropy", MakeCrossEntropy(false));
  AddForSchema(registry, "softmax_with_cross_entropy_grad",
               MakeCrossEntropy(true));
  RegisterCudaReduce(registry);
  RegisterCudaTopK(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
