// sigmoid_cross_entropy_with_logits and nll_loss.
#include "kernels/common/class_rows.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/pointwise_loss.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using functors::LabelKind;

// The number of labels that are not ignored, at least 1. One block.
__global__ void __launch_bounds__(kThreads)
    CountLabels(DType dtype, const void* labels, int64_t n, float ignored,
                float* count) {
  int found = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    found += LoadOne(dtype, labels, i) == ignored ? 0 : 1;
  }
  found = CombineBlock(found, 0, Plus());
  if (threadIdx.x == 0) *count = static_cast<float>(found > 0 ? found : 1);
}

struct SigmoidData {
  DType dtype;
  int64_t n;
  const void *x, *y, *grad, *weight;  // no grad: the loss; no weight: 1
  const float* divisor;               // null: 1
  void* out;
};

__global__ void __launch_bounds__(kThreads)
    SigmoidKernel(const __grid_constant__ SigmoidData d,
                  functors::SigmoidCrossEntropy loss) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= d.n) return;
  const float x = LoadOne(d.dtype, d.x, i), y = LoadOne(d.dtype, d.y, i);
  const float w = d.weight == nullptr ? 1.0f : LoadOne(d.dtype, d.weight, i);
  float out = d.grad == nullptr
                  ? loss.Loss(x, y, w)
                  : loss.Slope(x, y, w) * LoadOne(d.dtype, d.grad, i);
  if (d.divisor != nullptr) out /= *d.divisor;
  StoreOne(d.dtype, d.out, i, out);
}

struct Sigmoid {
  DType dtype;
  int64_t elements;
  functors::SigmoidCrossEntropy loss;
  bool normalize;
  int grad, weight;

  void operator()(const Buffers& b, Launcher& launch) const {
    float* count = normalize ? static_cast<float*>(b.workspace) : nullptr;
    if (normalize) {
      launch(CountLabels, 1, kThreads, dtype, b.inputs[1], elements,
             loss.ignored, count);
    }
    const auto input = [&](int i) { return i < 0 ? nullptr : b.inputs[i]; };
    const SigmoidData data = {dtype,       elements,    b.inputs[0],
                              b.inputs[1], input(grad), input(weight),
                              count,       b.outputs[0]};
    launch(SigmoidKernel, CeilDiv(elements, kThreads), kThreads, data, loss);
  }
};

Candidate MakeSigmoid(bool backward) {
  Candidate candidate = CudaCandidate("elements", [=](const BoundOp& op) {
    return Sigmoid{op.Input("X").dtype,
                   op.Input("X").elements(),
                   {static_cast<float>(op.Int("ignore_index"))},
                   op.Bool("normalize"),
                   backward ? op.InputIndex("OutGrad") : -1,
                   op.InputIndex("pos_weight")};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return op.Bool("normalize") ? int64_t{sizeof(float)} : 0;
  };
  return candidate;
}

// ---- nll_loss.

struct NllData {
  DType dtype;  // of x, or of its gradient
  const void* x;
  const int64_t* labels;
  const float *grads, *weight;  // no weight: 1
  void* out;
};

__global__ void __launch_bounds__(kThreads)
    NllKernel(ClassRows rows, int64_t ignore_index,
              const __grid_constant__ NllData d) {
  const int64_t r = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= rows.count()) return;
  const int64_t label = d.labels[r];
  const LabelKind kind =
      functors::KindOfLabel(label, rows.classes, ignore_index);
  float loss = kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN();
  if (kind == LabelKind::kClass) {
    loss = -LoadOne(d.dtype, d.x, rows.Offset(r, label)) *
           (d.weight == nullptr ? 1.0f : d.weight[label]);
  }
  static_cast<float*>(d.out)[r] = loss;
}

// An element of the gradient a thread.
__global__ void __launch_bounds__(kThreads)
    NllGradKernel(ClassRows rows, int64_t ignore_index,
                  const __grid_constant__ NllData d) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows.count() * rows.classes) return;
  const int64_t outer = i / (rows.classes * rows.inner);
  const int64_t c = i / rows.inner % rows.classes;
  const int64_t r = outer * rows.inner + i % rows.inner;
  const int64_t label = d.labels[r];
  const LabelKind kind =
      functors::KindOfLabel(label, rows.classes, ignore_index);
  float grad = kind == LabelKind::kInvalid ? functors::QuietNaN() : 0.0f;
  if (kind == LabelKind::kClass && c == label) {
    grad = -d.grads[r] * (d.weight == nullptr ? 1.0f : d.weight[label]);
  }
  StoreOne(d.dtype, d.out, i, grad);
}

struct Nll {
  ClassRows rows;
  DType dtype;
  int64_t ignore_index;
  int weight;
  bool backward;

  void operator()(const Buffers& b, Launcher& launch) const {
    const auto floats = [&](int i) {
      return i < 0 ? nullptr : static_cast<const float*>(b.inputs[i]);
    };
    const NllData data = {dtype,
                          b.inputs[0],
                          static_cast<const int64_t*>(b.inputs[1]),
                          floats(backward ? 2 : -1),
                          floats(weight),
                          b.outputs[0]};
    if (backward) {
      launch(NllGradKernel, CeilDiv(rows.count() * rows.classes, kThreads),
             kThreads, rows, ignore_index, data);
    } else {
      launch(NllKernel, CeilDiv(rows.count(), kThreads), kThreads, rows,
             ignore_index, data);
    }
  }
};

Candidate MakeNll(bool backward) {
  return CudaCandidate("labels", [backward](const BoundOp& op) {
    return Nll{ClassRows::Of(op.Input("X"), 1),
               backward ? op.outputs()[0].dtype : op.Input("X").dtype,
               op.Int("ignore_index"), op.InputIndex("Weight"), backward};
  });
}

}  // namespace

void RegisterCudaPointwiseLoss(KernelRegistry& registry) {
  AddForSchema(registry, "sigmoid_cross_entropy_with_logits",
               MakeSigmoid(false));
  AddForSchema(registry, "sigmoid_cross_entropy_with_logits_grad",
               MakeSigmoid(true));
  AddForSchema(registry, "nll_loss", MakeNll(false));
  AddForSchema(registry, "nll_loss_grad", MakeNll(true));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
