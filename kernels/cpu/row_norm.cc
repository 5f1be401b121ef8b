// layer_norm, rms_norm, group_norm and instance_norm: a row's mean, then its
// variance about it, then the row. Sums are added by blocks in f64.
#include "kernels/cpu/row_norm.h"

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/norm.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

void AddSums(const float* x, int64_t rows, int64_t n, double* sums) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + r * n;
      sums[r] +=
          static_cast<double>(SumOf(n, [=](int64_t i) { return row[i]; }));
    }
  });
}

void AddSquares(const float* x, int64_t rows, int64_t n, const float* mean,
                double* sums) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + r * n;
      const float m = mean[r];
      sums[r] += static_cast<double>(SumOf(n, [=](int64_t i) {
        const float deviation = row[i] - m;
        return deviation * deviation;
      }));
    }
  });
}

// What is added up of rows, as their mean.
void Divide(const double* sums, int64_t rows, int64_t length, float* means) {
  const double n = static_cast<double>(std::max<int64_t>(1, length));
  for (int64_t r = 0; r < rows; ++r) {
    means[r] = static_cast<float>(sums[r] / n);
  }
}

struct RowNormKernel {
  RowNormOp norm;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const RowTiles tiles = {norm.shape};
    ParallelFor(stream.threads(), norm.shape.rows, tiles.grain(),
                [&](int64_t begin, int64_t end) {
                  BlockReader x(in, buffers.inputs[0]);
                  for (int64_t row = begin; row < end; row += tiles.group()) {
                    Normalize(buffers, row, std::min(tiles.group(), end - row),
                              x);
                  }
                });
  }

 private:
  void Normalize(const Buffers& buffers, int64_t row, int64_t rows,
                 BlockReader& x) const {
    const int64_t length = norm.shape.length();
    const RowTiles tiles = {norm.shape};
    float mean[kConvertBlock], variance[kConvertBlock];
    double sums[kConvertBlock];
    std::fill_n(mean, rows, 0.0f);
    std::fill_n(sums, rows, 0.0);
    x.Hold(row * length, rows * length);
    if (norm.centered) {
      tiles.ForEach([&](int64_t i, int64_t n) {
        AddSums(x.Block(row * length + i, rows * n), rows, n, sums);
      });
      Divide(sums, rows, length, mean);
      std::fill_n(sums, rows, 0.0);
      std::copy_n(mean, rows, Statistics(buffers, norm.mean) + row);
    }
    tiles.ForEach([&](int64_t i, int64_t n) {
      AddSquares(x.Block(row * length + i, rows * n), rows, n, mean, sums);
    });
    Divide(sums, rows, length, variance);
    std::copy_n(variance, rows, Statistics(buffers, norm.variance) + row);
    for (int64_t r = 0; r < rows; ++r) {
      variance[r] = functors::InverseDeviation(variance[r], norm.epsilon);
    }
    alignas(64) float buffer[kConvertBlock];
    tiles.ForEach([&](int64_t i, int64_t n) {
      const int64_t at = row * length + i;
      const float* from = x.Block(at, rows * n);
      float* to = OutputBlock(out, buffers.outputs[0], at, buffer);
      Apply(buffers, row, rows, i, n, from, mean, variance, to);
      StoreBlock(out, to, buffers.outputs[0], at, rows * n);
    });
  }

  static float* Statistics(const Buffers& buffers, int output) {
    return static_cast<float*>(buffers.outputs[output]);
  }

  void Apply(const Buffers& buffers, int64_t row, int64_t rows, int64_t i,
             int64_t n, const float* x, const float* mean, const float* inverse,
             float* y) const {
    const auto affine = [&](int input) {
      return input < 0 ? nullptr
                       : static_cast<const float*>(buffers.inputs[input]);
    };
    const float *scale = affine(norm.scale), *bias = affine(norm.bias);
    if (norm.shape.inner == 1) {
      ApplyByElement(row, rows, i, n, x, mean, inverse, scale, bias, y);
    } else {
      ApplyByChannel(row, rows, i, n, x, mean, inverse, scale, bias, y);
    }
  }

  void ApplyByElement(int64_t row, int64_t rows, int64_t i, int64_t n,
                      const float* x, const float* mean, const float* inverse,
                      const float* scale, const float* bias, float* y) const {
    ForIsa([=, shape = norm.shape] {
      for (int64_t r = 0; r < rows; ++r) {
        const float *xr = x + r * n, m = mean[r], f = inverse[r];
        float* yr = y + r * n;
        const int64_t at = shape.AffineOf(row + r) + i;
        const float* s = scale + at;
        const float* b = bias + at;
        if (scale != nullptr && bias != nullptr) {
#pragma GCC ivdep
          for (int64_t k = 0; k < n; ++k) {
            yr[k] = functors::Normalize(xr[k], m, f * s[k], b[k]);
          }
        } else if (scale != nullptr) {
#pragma GCC ivdep
          for (int64_t k = 0; k < n; ++k) yr[k] = (xr[k] - m) * (f * s[k]);
        } else if (bias != nullptr) {
#pragma GCC ivdep
          for (int64_t k = 0; k < n; ++k) {
            yr[k] = functors::Normalize(xr[k], m, f, b[k]);
          }
        } else {
#pragma GCC ivdep
          for (int64_t k = 0; k < n; ++k) yr[k] = (xr[k] - m) * f;
        }
      }
    });
  }

  void ApplyByChannel(int64_t row, int64_t rows, int64_t i, int64_t n,
                      const float* x, const float* mean, const float* inverse,
                      const float* scale, const float* bias, float* y) const {
    ForIsa([=, shape = norm.shape] {
      for (int64_t r = 0; r < rows; ++r) {
        const float *xr = x + r * n, m = mean[r], inverse_r = inverse[r];
        float* yr = y + r * n;
        const int64_t affine = shape.AffineOf(row + r);
        shape.ForChannels(i, n, [&](int64_t c, int64_t begin, int64_t end) {
          const float f =
              scale == nullptr ? inverse_r : inverse_r * scale[affine + c];
          const float b = bias == nullptr ? 0.0f : bias[affine + c];
#pragma GCC ivdep
          for (int64_t k = begin; k < end; ++k) {
            yr[k] = functors::Normalize(xr[k], m, f, b);
          }
        });
      }
    });
  }
};

Candidate MakeRowNorm() {
  return MakeCandidate("rows", [](const BoundOp& op) {
    return RowNormKernel{RowNormOp::Forward(op), op.inputs()[0].dtype,
                         op.outputs()[0].dtype};
  });
}

}  // namespace

void RegisterCpuRowNorm(KernelRegistry& registry) {
  for (const char* op :
       {"layer_norm", "rms_norm", "group_norm", "instance_norm"}) {
    AddForLayout(registry, op, Layout::kRowMajor, MakeRowNorm());
  }
  RegisterCpuRowNormLast(registry);
  RegisterCpuRowNormGrad(registry);
}

}  // namespace kernels
}  // namespace halftone
