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

template <int V>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyKernel(RowShape rows, DType in, const void* logits,
                       const int64_t* labels, int64_t ignore_index,
                       float* losses) {
  const Row row(in, logits, rows, blockIdx.x);
  const float maximum = row.Maximum<V>();
  const float sum = row.ExpSum<V>(maximum);
  if (threadIdx.x != 0) return;
  const int64_t label = labels[blockIdx.x];
  float loss = functors::QuietNaN();
  switch (functors::KindOfLabel(label, rows.length, ignore_index)) {
    case LabelKind::kClass:
      loss = functors::CrossEntropy(row.At(label) - maximum, sum);
      break;
    case LabelKind::kIgnored:
      loss = 0.0f;
      break;
    case LabelKind::kInvalid:
      break;
  }
  losses[blockIdx.x] = loss;
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyGradKernel(RowShape rows, DType in, const void* logits,
                           const int64_t* labels, const float* loss_grads,
                           int64_t ignore_index, DType out, void* out_data) {
  const Row row(in, logits, rows, blockIdx.x);
  const int64_t label = labels[blockIdx.x];
  const LabelKind kind =
      functors::KindOfLabel(label, rows.length, ignore_index);
  const float maximum = row.Maximum<V>();
  const float sum = row.ExpSum<V>(maximum);
  const float grad = loss_grads[blockIdx.x];
  const float other = kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN();
  row.ForEach<V>([&](int64_t i, float(&x)[V]) {
    for (int k = 0; k < V; ++k) {
      const float one_hot = i + k == label ? 1.0f : 0.0f;
      const float e = functors::Exp(x[k] - maximum);
      x[k] = kind == LabelKind::kClass
                 ? functors::CrossEntropyGrad(e, sum, one_hot, grad)
                 : other;
    }
    row.Store(out, out_data, i, x);
  });
}

struct CrossEntropy {
  RowShape rows;
  DType in, out;
  int64_t ignore_index;

  void operator()(const Buffers& b, Launcher& launch) const {
    WithVector(RowVector(rows, {in}, {b.inputs[0]}), [&](auto v) {
      launch(CrossEntropyKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length), rows, in, b.inputs[0],
             static_cast<const int64_t*>(b.inputs[1]), ignore_index,
             static_cast<float*>(b.outputs[0]));
    });
  }
};

struct CrossEntropyGrad {
  RowShape rows;
  DType in, out;
  int64_t ignore_index;

  void operator()(const Buffers& b, Launcher& launch) const {
    const int vector = RowVector(rows, {in, out}, {b.inputs[0], b.outputs[0]});
    WithVector(vector, [&](auto v) {
      launch(CrossEntropyGradKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length), rows, in, b.inputs[0],
             static_cast<const int64_t*>(b.inputs[1]),
             static_cast<const float*>(b.inputs[2]), ignore_index, out,
             b.outputs[0]);
    });
  }
};

template <typename Kernel>
Candidate MakeCrossEntropy() {
  return CudaCandidate("rows", [](const BoundOp& op) {
    return Kernel{RowShape::Along(op.Input("Logits"), -1),
                  op.Input("Logits").dtype, op.outputs()[0].dtype,
                  op.Int("ignore_index")};
  });
}

}  // namespace

void RegisterCudaLoss(KernelRegistry& registry) {
  AddForSchema(registry, "softmax_with_cross_entropy",
               MakeCrossEntropy<CrossEntropy>());
  AddForSchema(registry, "softmax_with_cross_entropy_grad",
               MakeCrossEntropy<CrossEntropyGrad>());
  RegisterCudaReduce(registry);
  RegisterCudaTopK(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
