// Softmax, its logarithm and their gradients along any axis.
#include "kernels/cpu/softmax.h"

#include <optional>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/math.h"
#include "kernels/fused_op.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

struct SoftmaxKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;
  std::optional<functors::ScaleOp> scale;  // of what is read

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float*) {
                 float sums[kConvertBlock];
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 if (scale) Scale(x, n * rows.length);
                 ExpRows(x, n, rows.length, sums);
                 Divide(x, n, sums);
                 rows.Store(out, x, buffers.outputs[0], first, n);
               });
  }

 private:
  // Rounded to the dtype of what is read, as the op alone would.
  void Scale(float* x, int64_t n) const {
    ForIsa([=, f = *scale] {
      for (int64_t i = 0; i < n; ++i) x[i] = f(x[i]);
    });
    RoundTo(in, x, n);
  }

  void Divide(float* x, int64_t n, const float* sums) const {
    ForIsa([=, length = rows.length] {
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t i = 0; i < length; ++i) x[r * length + i] /= sums[r];
      }
    });
  }
};

struct SoftmaxGradKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* y, float* grad) {
                 rows.Load(in, buffers.inputs[0], first, n, y);
                 rows.Load(in, buffers.inputs[1], first, n, grad);
                 Gradient(y, grad, n);
                 rows.Store(out, grad, buffers.outputs[0], first, n);
               });
  }

 private:
  void Gradient(const float* y, float* grad, int64_t n) const {
    ForIsa([=, length = rows.length] {
      for (int64_t r = 0; r < n; ++r) {
        const float* out = y + r * length;
        float* g = grad + r * length;
        const float dot =
            SumOf(length, [=](int64_t i) { return out[i] * g[i]; });
        for (int64_t i = 0; i < length; ++i) {
          g[i] = functors::SoftmaxGrad(out[i], g[i], dot);
        }
      }
    });
  }
};

struct LogSoftmaxKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* exponentials) {
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 Normalize(x, exponentials, n);
                 rows.Store(out, x, buffers.outputs[0], first, n);
               });
  }

 private:
  void Normalize(float* x, float* e, int64_t n) const {
    ForIsa([=, length = rows.length] {
      for (int64_t r = 0; r < n; ++r) {
        float* row = x + r * length;
        const float largest = MaxOf(row, length);
        for (int64_t i = 0; i < length; ++i) row[i] -= largest;
      }
      const int64_t elements = n * length;
      for (int64_t i = 0; i < elements; ++i) e[i] = functors::Exp(x[i]);
      for (int64_t r = 0; r < n; ++r) {
        float* row = x + r * length;
        const float* powers = e + r * length;
        const float log =
            functors::Log(SumOf(length, [=](int64_t i) { return powers[i]; }));
        for (int64_t i = 0; i < length; ++i) row[i] -= log;
      }
    });
  }
};

struct LogSoftmaxGradKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* y, float* grad) {
                 rows.Load(in, buffers.inputs[0], first, n, y);
                 rows.Load(in, buffers.inputs[1], first, n, grad);
                 Gradient(y, grad, n);
                 rows.Store(out, grad, buffers.outputs[0], first, n);
               });
  }

 private:
  void Gradient(const float* y, float* grad, int64_t n) const {
    ForIsa([=, length = rows.length] {
      for (int64_t r = 0; r < n; ++r) {
        const float* out = y + r * length;
        float* g = grad + r * length;
        const float sum = SumOf(length, [=](int64_t i) { return g[i]; });
        for (int64_t i = 0; i < length; ++i) {
          g[i] = functors::LogSoftmaxGrad(out[i], g[i], sum);
        }
      }
    });
  }
};

// Of `op`'s input, which lies where `softmax`'s does.
RowGroups GroupsOf(const BoundOp& op, const BoundOp& softmax, int buffers) {
  return RowGroups(Rows::Along(op.inputs()[0], softmax.Int("axis")), buffers,
                   op.context().threads);
}

template <typename Kernel, int kBuffers>
Candidate MakeRowCandidate() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    return Kernel{Rows::Along(op.inputs()[0], op.Int("axis")),
                  GroupsOf(op, op, kBuffers), op.inputs()[0].dtype,
                  op.outputs()[0].dtype};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return GroupsOf(op, op, kBuffers).workspace_bytes();
  };
  return candidate;
}

Candidate MakeScaleSoftmax() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& fusion) {
    const FusedOp fused(fusion);
    const BoundOp softmax = fused.Of("softmax");
    return SoftmaxKernel{Rows::Along(fusion.inputs()[0], softmax.Int("axis")),
                         GroupsOf(fusion, softmax, 1), fusion.inputs()[0].dtype,
                         fusion.outputs()[0].dtype,
                         MakeScale(fused.Of("scale"))};
  });
  candidate.workspace_bytes = [](const BoundOp& fusion) {
    return GroupsOf(fusion, FusedOp(fusion).Of("softmax"), 1).workspace_bytes();
  };
  return candidate;
}

}  // namespace

void ExpRows(float* x, int64_t rows, int64_t length, float* sums,
             const int64_t* columns, float* shifted) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = x + r * length;
      const float largest = MaxOf(row, length);
      for (int64_t i = 0; i < length; ++i) row[i] -= largest;
      if (shifted == nullptr) continue;
      const int64_t column = columns[r];
      shifted[r] = column >= 0 && column < length ? row[column] : 0.0f;
    }
    const int64_t elements = rows * length;
    for (int64_t i = 0; i < elements; ++i) x[i] = functors::Exp(x[i]);
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + r * length;
      sums[r] = SumOf(length, [=](int64_t i) { return row[i]; });
    }
  });
}

void RegisterCpuSoftmax(KernelRegistry& registry) {
  AddForSchema(registry, "softmax", MakeRowCandidate<SoftmaxKernel, 1>());
  AddForSchema(registry, "softmax_grad",
               MakeRowCandidate<SoftmaxGradKernel, 2>());
  AddForSchema(registry, "log_softmax",
               MakeRowCandidate<LogSoftmaxKernel, 2>());
  AddForSchema(registry, "log_softmax_grad",
               MakeRowCandidate<LogSoftmaxGradKernel, 2>());
  registry.AddPattern("scale_softmax", {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor}, MakeScaleSoftmax());
}

}  // namespace kernels
}  // namespace halftone
