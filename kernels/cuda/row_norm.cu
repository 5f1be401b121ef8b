// layer_norm, rms_norm, group_norm, instance_norm and their gradients: a block
// for each row; the gradients of scale and bias in pieces, which are added in
// f64.
#include "graph/base/dtype.h"
#include "kernels/common/row_norm.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/norm.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

RowShape RowsOf(const RowNormShape& shape) {
  return {shape.rows, shape.length(), 1};
}
const float* Optional(const Buffers& buffers, int input) {
  return input < 0 ? nullptr : In(buffers, input);
}

// Scale and bias by the elements of a row; null: none.
struct Affine {
  RowNormShape shape;
  Divider inner;
  const float *scale, *bias;
  bool vectors;  // as the row's elements

  Affine(const RowNormShape& of, const float* scales, const float* biases)
      : shape(of),
        inner(of.inner > 0 ? of.inner : 1),
        scale(scales),
        bias(biases),
        vectors(of.inner == 1 && Aligned({scales, biases})) {}

  // Of the elements [i, i + V) of a row whose first number is at `first`.
  template <int V>
  HT_DEVICE void LoadScales(int64_t first, int64_t i, float (&to)[V]) const {
    Load(scale, 1.0f, first, i, to);
  }
  template <int V>
  HT_DEVICE void LoadBiases(int64_t first, int64_t i, float (&to)[V]) const {
    Load(bias, 0.0f, first, i, to);
  }

 private:
  template <int V>
  HT_DEVICE void Load(const float* numbers, float none, int64_t first,
                      int64_t i, float (&to)[V]) const {
    if (numbers != nullptr && vectors) {
      LoadFloats(numbers, first + i, to);
    } else {
      for (int k = 0; k < V; ++k) {
        to[k] =
            numbers == nullptr ? none : numbers[first + inner.Divide(i + k)];
      }
    }
  }
};

struct ForwardData {
  bool centered;
  float epsilon;
  DType in, out;
  const void* x;
  void* y;
  float *mean, *variance;  // no mean: null
};

template <int V>
__global__ void __launch_bounds__(kThreads)
    RowNormKernel(const __grid_constant__ Affine affine,
                  const __grid_constant__ ForwardData data) {
  const int64_t r = blockIdx.x;
  const RowShape rows = {affine.shape.rows, affine.shape.length(), 1};
  const Row row(data.in, data.x, rows, r);
  const float n = static_cast<float>(row.length > 0 ? row.length : 1);
  float mean = 0;
  if (data.centered) {
    row.ForEach<V>([&](int64_t, const float(&x)[V]) {
      for (int k = 0; k < V; ++k) mean += x[k];
    });
    mean = CombineBlock(mean, 0.0f, Plus()) / n;
  }
  float squares = 0;
  row.ForEach<V>([&](int64_t, const float(&x)[V]) {
    for (int k = 0; k < V; ++k) squares += (x[k] - mean) * (x[k] - mean);
  });
  const float variance = CombineBlock(squares, 0.0f, Plus()) / n;
  if (threadIdx.x == 0) {
    if (data.centered) data.mean[r] = mean;
    data.variance[r] = variance;
  }
  const float inverse = functors::InverseDeviation(variance, data.epsilon);
  const int64_t first = affine.shape.AffineOf(r);
  row.ForEach<V>([&](int64_t i, float(&x)[V]) {
    float scale[V], bias[V];
    affine.LoadScales(first, i, scale);
    affine.LoadBiases(first, i, bias);
    for (int k = 0; k < V; ++k) {
      x[k] = functors::Normalize(x[k], mean, inverse * scale[k], bias[k]);
    }
    row.Store(data.out, data.y, i, x);
  });
}

struct RowNormForward {
  RowNormOp norm;
  DType in, out;

  void operator()(const Buffers& b, Launcher& launch) const {
    const RowShape rows = RowsOf(norm.shape);
    const Affine affine(norm.shape, Optional(b, norm.scale),
                        Optional(b, norm.bias));
    const ForwardData data = {norm.centered,
                              norm.epsilon,
                              in,
                              out,
                              b.inputs[0],
                              b.outputs[0],
                              norm.centered ? Out(b, norm.mean) : nullptr,
                              Out(b, norm.variance)};
    WithVector(RowVector(rows, {in, out}, {data.x, data.y}), [&](auto v) {
      launch(RowNormKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length, v), affine, data);
    });
  }
};

// ---- Gradients.

struct GradData {
  bool centered;
  float epsilon;
  DType x_dtype, y_dtype, out;
  const void *x, *y_grad;
  const float *mean, *variance;  // no mean: null
  void* x_grad;

  HT_DEVICE float MeanOf(int64_t row) const {
    return centered ? mean[row] : 0.0f;
  }
  HT_DEVICE float InverseOf(int64_t row) const {
    return functors::InverseDeviation(variance[row], epsilon);
  }
};

template <int V>
__global__ void __launch_bounds__(kThreads)
    RowNormGradKernel(const __grid_constant__ Affine affine,
                      const __grid_constant__ GradData data) {
  const int64_t r = blockIdx.x;
  const RowShape rows = {affine.shape.rows, affine.shape.length(), 1};
  const Row row(data.x_dtype, data.x, rows, r);
  const Row row_grad(data.y_dtype, data.y_grad, rows, r);
  const float mean = data.MeanOf(r);
  const int64_t first = affine.shape.AffineOf(r);
  float plain = 0, weighted = 0;
  row.ForEach<V>([&](int64_t i, const float(&x)[V]) {
    float g[V], scale[V];
    row_grad.Load(i, g);
    affine.LoadScales(first, i, scale);
    for (int k = 0; k < V; ++k) {
      const float scaled = g[k] * scale[k];
      plain += scaled;
      weighted += scaled * (x[k] - mean);
    }
  });
  plain = CombineBlock(plain, 0.0f, Plus());
  weighted = CombineBlock(weighted, 0.0f, Plus()) * data.InverseOf(r);
  const functors::NormGrad grad = functors::NormGradOf(
      1.0f, data.variance[r], data.epsilon, weighted,
      data.centered ? plain : 0.0f, static_cast<float>(row.length));
  row.ForEach<V>([&](int64_t i, float(&x)[V]) {
    float g[V], scale[V];
    row_grad.Load(i, g);
    affine.LoadScales(first, i, scale);
    for (int k = 0; k < V; ++k) {
      x[k] = grad.a * (g[k] * scale[k]) + grad.b * (x[k] - mean) + grad.c;
    }
    row.Store(data.out, data.x_grad, i, x);
  });
}

// Rows of a piece of the gradients of scale and bias, where each element has a
// scale of its own.
int64_t RowsPerPiece(const RowNormShape& shape) {
  return std::max<int64_t>(16, CeilDiv(shape.rows, 256));
}
// `pieces` of sums for each scale, then as many for each bias.
int64_t PiecesOf(const RowNormShape& shape) {
  if (shape.by_element()) return CeilDiv(shape.rows, RowsPerPiece(shape));
  return shape.period == 0 ? 0 : shape.rows / shape.period;
}

// A thread for each element of a row and each piece.
__global__ void __launch_bounds__(kThreads)
    ElementPieces(const __grid_constant__ RowNormShape shape,
                  const __grid_constant__ GradData data, int64_t rows,
                  int64_t pieces, float* partial) {
  constexpr int kRows = 64;  // whose numbers threads share at a time
  constexpr int kBatch = 4;  // rows that are loaded before one is added
  HT_SHARED(float[kRows], means);
  HT_SHARED(float[kRows], inverses);
  const int t = threadIdx.x;
  const int64_t length = shape.length();
  const int64_t blocks = CeilDiv(length, kThreads);
  const int64_t piece = blockIdx.x / blocks;
  const int64_t i = blockIdx.x % blocks * kThreads + t;
  const int64_t first = piece * rows, rest = shape.rows - first;
  const int64_t end = first + (rest < rows ? rest : rows);
  float by_scale = 0, by_bias = 0;
  for (int64_t begin = first; begin < end; begin += kRows) {
    const int n = static_cast<int>(end - begin < kRows ? end - begin : kRows);
    if (t < n) {
      means[t] = data.MeanOf(begin + t);
      inverses[t] = data.InverseOf(begin + t);
    }
    __syncthreads();
    for (int r = 0; r < n && i < length; r += kBatch) {
      Raw g[kBatch], x[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch && r + k < n; ++k) {
        const int64_t at = (begin + r + k) * length + i;
        g[k] = LoadRaw<1>(data.y_dtype, data.y_grad, at);
        x[k] = LoadRaw<1>(data.x_dtype, data.x, at);
      }
#pragma unroll
      for (int k = 0; k < kBatch && r + k < n; ++k) {
        float y_grad[1], value[1];
        Unpack(data.y_dtype, g[k], y_grad);
        Unpack(data.x_dtype, x[k], value);
        by_scale += y_grad[0] * ((value[0] - means[r + k]) * inverses[r + k]);
        by_bias += y_grad[0];
      }
    }
    __syncthreads();  // before those of the next rows
  }
  if (i >= length) return;
  partial[piece * length + i] = by_scale;
  partial[(pieces + piece) * length + i] = by_bias;
}

// A block for each channel of each row.
__global__ void __launch_bounds__(kThreads)
    ChannelPieces(const __grid_constant__ RowNormShape shape,
                  const __grid_constant__ GradData data, float* partial) {
  const int64_t channel = blockIdx.x, r = channel / shape.channels;
  const int64_t at = channel * shape.inner;
  const float mean = data.MeanOf(r);
  float by_scale = 0, by_bias = 0;
  for (int64_t i = threadIdx.x; i < shape.inner; i += blockDim.x) {
    const float g = LoadOne(data.y_dtype, data.y_grad, at + i);
    by_scale += g * (LoadOne(data.x_dtype, data.x, at + i) - mean);
    by_bias += g;
  }
  by_scale = CombineBlock(by_scale, 0.0f, Plus());
  by_bias = CombineBlock(by_bias, 0.0f, Plus());
  if (threadIdx.x != 0) return;
  partial[channel] = by_scale * data.InverseOf(r);
  partial[shape.rows * shape.channels + channel] = by_bias;
}

// A thread for each of n scales, then for each of n biases; null: not wanted.
__global__ void __launch_bounds__(kThreads)
    AddPieces(const float* partial, int64_t pieces, int64_t n, float* by_scale,
              float* by_bias) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool bias = at >= n;
  const int64_t i = bias ? at - n : at;
  float* const sums = bias ? by_bias : by_scale;
  if (i >= n || sums == nullptr) return;
  const float* const from = partial + (bias ? pieces * n : 0) + i;
  double sum = 0;
  for (int64_t p = 0; p < pieces; ++p) sum += static_cast<double>(from[p * n]);
  sums[i] = static_cast<float>(sum);
}

struct RowNormBackward {
  RowNormOp norm;
  DType x_dtype, y_dtype, out;

  static int64_t WorkspaceFloats(const RowNormShape& shape) {
    return 2 * PiecesOf(shape) * shape.affine();
  }

  void operator()(const Buffers& b, Launcher& launch) const {
    const GradData data = {norm.centered,
                           norm.epsilon,
                           x_dtype,
                           y_dtype,
                           out,
                           b.inputs[0],
                           b.inputs[1],
                           Optional(b, norm.mean),
                           In(b, norm.variance),
                           b.outputs[0]};
    const RowShape rows = RowsOf(norm.shape);
    const Affine affine(norm.shape, Optional(b, norm.scale), nullptr);
    const int vector = RowVector(rows, {x_dtype, y_dtype, out},
                                 {data.x, data.y_grad, data.x_grad});
    WithVector(vector, [&](auto v) {
      launch(RowNormGradKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length, v), affine, data);
    });
    if (norm.scale_grad < 0 && norm.bias_grad < 0) return;
    AddAffine(b, data, launch);
  }

 private:
  void AddAffine(const Buffers& b, const GradData& data,
                 Launcher& launch) const {
    const RowNormShape& shape = norm.shape;
    const int64_t pieces = PiecesOf(shape), n = shape.affine();
    float* partial = static_cast<float*>(b.workspace);
    if (shape.by_element()) {
      launch(ElementPieces, pieces * CeilDiv(n, kThreads), kThreads, shape,
             data, RowsPerPiece(shape), pieces, partial);
    } else {
      launch(ChannelPieces, shape.rows * shape.channels,
             RowThreads(shape.inner, 1), shape, data, partial);
    }
    const auto sums = [&b](int output) {
      return output < 0 ? nullptr : Out(b, output);
    };
    launch(AddPieces, CeilDiv(2 * n, kThreads), kThreads,
           static_cast<const float*>(partial), pieces, n, sums(norm.scale_grad),
           sums(norm.bias_grad));
  }
};

Candidate MakeForward() {
  return CudaCandidate("rows", [](const BoundOp& op) {
    return RowNormForward{RowNormOp::Forward(op), op.inputs()[0].dtype,
                          op.outputs()[0].dtype};
  });
}

Candidate MakeBackward() {
  Candidate candidate = CudaCandidate("rows", [](const BoundOp& op) {
    return RowNormBackward{RowNormOp::Backward(op), op.inputs()[0].dtype,
                           op.inputs()[1].dtype, op.outputs()[0].dtype};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return RowNormBackward::WorkspaceFloats(RowNormShape::Of(op)) *
           int64_t{sizeof(float)};
  };
  return candidate;
}

}  // namespace

void RegisterCudaRowNorm(KernelRegistry& registry) {
  for (const char* op :
       {"layer_norm", "rms_norm", "group_norm", "instance_norm"}) {
    AddForLayout(registry, op, Layout::kRowMajor, MakeForward());
  }
  for (const char* op : {"layer_norm_grad", "rms_norm_grad", "group_norm_grad",
                         "instance_norm_grad"}) {
    AddForLayout(registry, op, Layout::kRowMajor, MakeBackward());
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
