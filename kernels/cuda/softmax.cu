// Softmax, its logarithm and their gradients along any axis: a block for each
// row, which it reads again rather than keep it; the caches hold a row.
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/loss.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Rounded to the dtype of what is read, as the op alone would.
struct Scaled {
  functors::ScaleOp scale;
  DType dtype;

  template <int V>
  HT_DEVICE void operator()(float (&x)[V]) const {
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] = scale(x[k]);
    Unpack(dtype, Pack(dtype, x), x);
  }
};

template <int V, typename Read>
__global__ void __launch_bounds__(kThreads)
    SoftmaxKernel(RowShape rows, DType in, const void* x, Read read, DType out,
                  void* out_data) {
  const RowOf<Read> row(in, x, rows, blockIdx.x, read);
  const float maximum = row.template Maximum<V>();
  const float sum = row.template ExpSum<V>(maximum);
  row.template ForEach<V>([&](int64_t i, float(&v)[V]) {
    for (int k = 0; k < V; ++k) v[k] = functors::Exp(v[k] - maximum) / sum;
    row.Store(out, out_data, i, v);
  });
}

// `Rule`: functors::SoftmaxGrad or LogSoftmaxGrad.
template <int V, typename Rule>
__global__ void __launch_bounds__(kThreads)
    SoftmaxGradKernel(RowShape rows, DType in, const void* y, const void* grad,
                      DType out, void* out_data) {
  const Row row(in, y, rows, blockIdx.x), row_grad(in, grad, rows, blockIdx.x);
  float sum = 0;
  row.ForEach<V>([&](int64_t i, const float(&v)[V]) {
    float g[V];
    row_grad.Load(i, g);
    for (int k = 0; k < V; ++k) {
      float term;
      Rule::Term(Rule::Probability(v[k]), g[k], &term);
      sum += term;
    }
  });
  sum = CombineBlock(sum, 0.0f, Plus());
  row.ForEach<V>([&](int64_t i, float(&v)[V]) {
    float g[V];
    row_grad.Load(i, g);
    for (int k = 0; k < V; ++k) {
      Rule::Of(Rule::Probability(v[k]), g[k], sum, &v[k]);
    }
    row.Store(out, out_data, i, v);
  });
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    LogSoftmaxKernel(RowShape rows, DType in, const void* x, DType out,
                     void* out_data) {
  const Row row(in, x, rows, blockIdx.x);
  const float maximum = row.Maximum<V>();
  const float log = functors::Log(row.ExpSum<V>(maximum));
  row.ForEach<V>([&](int64_t i, float(&v)[V]) {
    for (int k = 0; k < V; ++k) v[k] = v[k] - maximum - log;
    row.Store(out, out_data, i, v);
  });
}

template <typename Read>
struct Softmax {
  RowShape rows;
  DType in, out;
  Read read;

  void operator()(const Buffers& b, Launcher& launch) const {
    const int vector = RowVector(rows, {in, out}, {b.inputs[0], b.outputs[0]});
    WithVector(vector, [&](auto v) {
      launch(SoftmaxKernel<decltype(v)::value, Read>, rows.count,
             RowThreads(rows.length, v), rows, in, b.inputs[0], read, out,
             b.outputs[0]);
    });
  }
};

template <typename Rule>
struct SoftmaxGrad {
  RowShape rows;
  DType in, out;

  void operator()(const Buffers& b, Launcher& launch) const {
    const int vector =
        RowVector(rows, {in, out}, {b.inputs[0], b.inputs[1], b.outputs[0]});
    WithVector(vector, [&](auto v) {
      launch(SoftmaxGradKernel<decltype(v)::value, Rule>, rows.count,
             RowThreads(rows.length, v), rows, in, b.inputs[0], b.inputs[1],
             out, b.outputs[0]);
    });
  }
};

struct LogSoftmax {
  RowShape rows;
  DType in, out;

  void operator()(const Buffers& b, Launcher& launch) const {
    const int vector = RowVector(rows, {in, out}, {b.inputs[0], b.outputs[0]});
    WithVector(vector, [&](auto v) {
      launch(LogSoftmaxKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length, v), rows, in, b.inputs[0], out,
             b.outputs[0]);
    });
  }
};

template <typename Kernel>
Candidate MakeSoftmax() {
  return CudaCandidate("rows", [](const BoundOp& op) {
    return Kernel{RowShape::Along(op.inputs()[0], op.Int("axis")),
                  op.inputs()[0].dtype, op.outputs()[0].dtype};
  });
}

Softmax<Scaled> MakeScaleSoftmax(const BoundOp& fusion) {
  const FusedOp fused(fusion);
  const DType in = fusion.inputs()[0].dtype;
  return {RowShape::Along(fusion.inputs()[0], fused.Of("softmax").Int("axis")),
          in,
          fusion.outputs()[0].dtype,
          {MakeScale(fused.Of("scale")), in}};
}

}  // namespace

void RegisterCudaSoftmax(KernelRegistry& registry) {
  AddForSchema(registry, "softmax", MakeSoftmax<Softmax<AsStored>>());
  AddForSchema(registry, "softmax_grad",
               MakeSoftmax<SoftmaxGrad<functors::SoftmaxGrad>>());
  AddForSchema(registry, "log_softmax", MakeSoftmax<LogSoftmax>());
  AddForSchema(registry, "log_softmax_grad",
               MakeSoftmax<SoftmaxGrad<functors::LogSoftmaxGrad>>());
  registry.AddPattern("scale_softmax", {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor},
                      CudaCandidate("rows", MakeScaleSoftmax));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
