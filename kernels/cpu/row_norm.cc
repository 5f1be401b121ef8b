// layer_norm, rms_norm, group_norm and instance_norm: a row's mean, then its
// variance about it, then the row. Sums are added by blocks in f64.
#include "kernels/cpu/row_norm.h"

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_rows.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/rows.h"
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

// Of short rows, of which a vector can be read beyond the last one's end: the
// sums of what `made`(row, v) makes of their elements.
template <typename Low, int kVectors, typename T, typename Made>
void SumShort(const T* x, int64_t rows, int64_t length, float* sums,
              const Made& made) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = x + r * length;
    sums[r] = SumOfShort<Low, kVectors>(length, [&](int64_t i, float* v) {
      Low::Load(row + i, v);
      made(r, v);
    });
  }
}

struct RowNormKernel {
  RowNormOp norm;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    if (IsShort()) {
      RunShort(buffers, stream.threads());
      return;
    }
    const RowTiles tiles = {norm.shape};
    const StreamedOutput output = StreamedOutput::Of(
        buffers, 0, out, norm.shape.rows * norm.shape.length());
    ParallelFor(stream.threads(), norm.shape.rows, tiles.grain(),
                [&](int64_t begin, int64_t end) {
                  BlockReader x(in, buffers.inputs[0]);
                  for (int64_t row = begin; row < end; row += tiles.group()) {
                    Normalize(buffers, row, std::min(tiles.group(), end - row),
                              x, output);
                  }
                  FinishStores();
                });
  }

 private:
  void Normalize(const Buffers& buffers, int64_t row, int64_t rows,
                 BlockReader& x, const StreamedOutput& output) const {
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
      x.Expect(at + rows * length, rows * n);
      output.WritePart(at, rows * n, [&](void* made) {
        float* to = OutputBlock(out, made, 0, buffer);
        Apply(buffers, row, rows, i, n, from, mean, variance, to);
        StoreBlock(out, to, made, 0, rows * n);
      });
    });
  }

  // Not of fewer elements than a vector has: scales are read as one.
  bool IsShort() const {
    constexpr int64_t kLeast = LowVector<Isa::kAvx512>::kSize;
    const int64_t length = norm.shape.length();
    return norm.shape.inner == 1 && length >= kLeast && length < kLongRow;
  }

  void RunShort(const Buffers& buffers, int threads) const {
    const Rows rows = {{norm.shape.rows, norm.shape.length()}};
    const StreamedOutput output = rows.Output(buffers, 0, out);
    RowGroups(rows, 2, threads)
        .Run(threads, nullptr,
             [&](int64_t first, int64_t n, float* x, float* y) {
               float mean[kConvertBlock], variance[kConvertBlock];
               const StoredElements view =
                   rows.Read(in, buffers.inputs[0], first, n, x);
               std::fill_n(mean, n, 0.0f);
               if (norm.centered) {
                 MeanOfShort(view, n, nullptr, mean);
                 std::copy_n(mean, n, Statistics(buffers, norm.mean) + first);
               }
               MeanOfShort(view, n, mean, variance);
               std::copy_n(variance, n,
                           Statistics(buffers, norm.variance) + first);
               ForIsa([&variance, n, epsilon = norm.epsilon] {
                 for (int64_t r = 0; r < n; ++r) {
                   variance[r] =
                       functors::InverseDeviation(variance[r], epsilon);
                 }
               });
               StoreShort(buffers, rows, view, first, n, mean, variance, output,
                          y);
             });
  }

  // Of each row, or of its squared deviations from `center`.
  void MeanOfShort(const StoredElements& x, int64_t rows, const float* center,
                   float* means) const {
    const int64_t length = norm.shape.length();
    ForLowRows(x.dtype, [=](auto low, auto zero) {
      using Low = decltype(low);
      const auto* const from = static_cast<const decltype(zero)*>(x.data);
      ForVectorsOf<Low>(length, [=](auto vectors) {
        constexpr int kVectors = decltype(vectors)::value;
        if (center == nullptr) {
          SumShort<Low, kVectors>(from, rows, length, means,
                                  [](int64_t, float*) {});
          return;
        }
        SumShort<Low, kVectors>(from, rows, length, means,
                                [=](int64_t r, float* v) {
                                  const float m = center[r];
#pragma GCC unroll 1
                                  for (int j = 0; j < Low::kSize; ++j) {
                                    v[j] = (v[j] - m) * (v[j] - m);
                                  }
                                });
      });
    });
    ForIsa([=, n = static_cast<double>(length)] {
      for (int64_t r = 0; r < rows; ++r) {
        means[r] = static_cast<float>(static_cast<double>(means[r]) / n);
      }
    });
  }

  void StoreShort(const Buffers& buffers, const Rows& rows,
                  const StoredElements& x, int64_t first, int64_t n,
                  const float* mean, const float* inverse,
                  const StreamedOutput& output, float* y) const {
    // What is multiplied by 1, or has -0 added to it, stays.
    float ones[kLongRow], zeros[kLongRow];
    const float *scale = Affine(buffers, norm.scale),
                *bias = Affine(buffers, norm.bias);
    RowNormShape scales = norm.shape, biases = norm.shape;
    if (scale == nullptr) {
      scale = ones;
      scales.period = 1;
      std::fill_n(ones, kLongRow, 1.0f);
    }
    if (bias == nullptr) {
      bias = zeros;
      biases.period = 1;
      std::fill_n(zeros, kLongRow, -0.0f);
    }
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      const auto* from =
          static_cast<const typename decltype(tag)::type*>(x.data);
      StoreRows(rows, output, first, n, y,
                [=, length = rows.length](auto low, int64_t r, auto* to) {
                  using Low = decltype(low);
                  const auto* row = from + r * length;
                  const float m = mean[r], f = inverse[r];
                  const float* const s = scale + scales.AffineOf(first + r);
                  const float* const b = bias + biases.AffineOf(first + r);
                  StoreLow<Low>(to, length, [=](int64_t i, float* v) {
                    Low::Load(row + i, v);
#pragma GCC unroll 1
                    for (int j = 0; j < Low::kSize; ++j) {
                      v[j] =
                          functors::Normalize(v[j], m, f * s[i + j], b[i + j]);
                    }
                  });
                });
    });
  }

  static const float* Affine(const Buffers& buffers, int input) {
    return input < 0 ? nullptr
                     : static_cast<const float*>(buffers.inputs[input]);
  }
  static float* Statistics(const Buffers& buffers, int output) {
    return static_cast<float*>(buffers.outputs[output]);
  }

  void Apply(const Buffers& buffers, int64_t row, int64_t rows, int64_t i,
             int64_t n, const float* x, const float* mean, const float* inverse,
             float* y) const {
    const float *scale = Affine(buffers, norm.scale),
                *bias = Affine(buffers, norm.bias);
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
