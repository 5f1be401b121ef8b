// Softmax and its gradient along any axis: a block for each row, which it
// reads again rather than keep it; the caches hold a row.
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/loss.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

template <int V>
__global__ void __launch_bounds__(kThreads)
    SoftmaxKernel(RowShape rows, DType in, const void* x, DType out,
                  void* out_data) {
  const Row row(in, x, rows, blockIdx.x);
  const float maximum = row.Maximum<V>();
  const float sum = row.ExpSum<V>(maximum);
  row.ForEach<V>([&](int64_t i, float(&v)[V]) {
    for (int k = 0; k < V; ++k) v[k] = functors::Exp(v[k] - maximum) / sum;
    row.Store(out, out_data, i, v);
  });
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    SoftmaxGradKernel(RowShape rows, DType in, const void* y, const void* grad,
                      DType out, void* out_data) {
  const Row row(in, y, rows, blockIdx.x), row_grad(in, grad, rows, blockIdx.x);
  float dot = 0;
  row.ForEach<V>([&](int64_t i, const float(&v)[V]) {
    float g[V];
    row_grad.Load(i, g);
    for (int k = 0; k < V; ++k) dot += v[k] * g[k];
  });
  dot = CombineBlock(dot, 0.0f, Plus());
  row.ForEach<V>([&](int64_t i, float(&v)[V]) {
    float g[V];
    row_grad.Load(i, g);
    for (int k = 0; k < V; ++k) v[k] = functors::SoftmaxGrad(v[k], g[k], dot);
    row.Store(out, out_data, i, v);
  });
}

struct Softmax {
  RowShape rows;
  DType in, out;

  void operator()(const Buffers& b, Launcher& launch) const {
    const int vector = RowVector(rows, {in, out}, {b.inputs[0], b.outputs[0]});
    WithVector(vector, [&](auto v) {
      launch(SoftmaxKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length), rows, in, b.inputs[0], out, b.outputs[0]);
    });
  }
};

struct SoftmaxGrad {
  RowShape rows;
  DType in, out;

  void operator()(const Buffers& b, Launcher& launch) const {
    const int vector =
        RowVector(rows, {in, out}, {b.inputs[0], b.inputs[1], b.outputs[0]});
    WithVector(vector, [&](auto v) {
      launch(SoftmaxGradKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length), rows, in, b.inputs[0], b.inputs[1], out,
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

}  // namespace

void RegisterCudaSoftmax(KernelRegistry& registry) {
  AddForSchema(registry, "softmax", MakeSoftmax<Softmax>());
  AddForSchema(registry, "softmax_grad", MakeSoftmax<SoftmaxGrad>());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
