// Softmax, its logarithm and their gradients along any axis.
#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/low_rows.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sums.h"
#include "kernels/cpu/transpose.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/math.h"
#include "kernels/fused_op.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// The sum of exp(x - most) over a row.
template <typename Low, bool kStored, typename T>
inline float ExpRow(const T* row, int64_t length, float most, float* e) {
  return SumOfLow<Low>(length, [=](int64_t i, float* v) {
    Low::Load(row + i, v);
#pragma GCC unroll 1
    for (int j = 0; j < Low::kSize; ++j) v[j] -= most;
    // What exponentials of what is behind the row underflow of is slow.
    if (i + Low::kSize > length) SetRest<Low>(length - i, 0.0f, v);
#pragma GCC unroll 1
    for (int j = 0; j < Low::kSize; ++j) v[j] = functors::ExpOfNegative(v[j]);
    if constexpr (kStored) Low::Store(v, e + i);
  });
}

// ExpRows of eight rows, each in a lane of its own: what is done with a row
// goes along vectors, in the order of SumOf (sums.h).
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ExpEightRows(
    const float* x, int64_t length, int64_t padded, float* exponentials,
    float* largest, float* sums) {
  static_assert(kTransposed == kVector && kLongRow == 2 * kLanes, "as below");
  alignas(64) float columns[kVector * kLongRow];
  for (int64_t i = 0; i < padded; i += kVector) {
    TransposeBlock(x + i, length, columns + i * kVector, kVector);
  }
  const auto column = [&](int64_t i) -> Vector& {
    return VectorAt(columns + i * kVector);
  };
  const Vector lowest = -__builtin_inff() - Vector{};
  Vector most = lowest;
  for (int64_t i = 0; i < length; ++i) {
    most = column(i) > most ? column(i) : most;  // NaNs are left out
  }
  for (int64_t i = 0; i < length; ++i) column(i) -= most;
  const int64_t elements = length * kVector;
#pragma GCC ivdep
  for (int64_t i = 0; i < elements; ++i) {
    columns[i] = functors::ExpOfNegative(columns[i]);
  }
  for (int64_t i = 0; i < padded && exponentials != nullptr; i += kVector) {
    TransposeBlock(columns + i * kVector, kVector, exponentials + i, padded);
  }
  for (int64_t i = kLanes; i < length; ++i) column(i - kLanes) += column(i);
  for (int64_t i = length; i < kLanes; ++i) column(i) = Vector{};
  Vector folded[kVector];
  for (int64_t j = 0; j < kVector; ++j) {
    folded[j] = (column(j) + column(j + 16)) + (column(j + 8) + column(j + 24));
  }
  for (int64_t j = 0; j < 4; ++j) folded[j] += folded[j + 4];
  VectorAt(largest) = most;
  VectorAt(sums) = (folded[0] + folded[2]) + (folded[1] + folded[3]);
}

// Rows [first, first + n) of an output, of which `row`(low, r, to) stores one:
// where they are, if vectors can write them there, else by way of `buffer`.
template <typename StoreRow>
void StoreRows(const Rows& rows, DType dtype, int64_t first, int64_t n,
               void* tensor, float* buffer, const StoreRow& row) {
  const bool in_place = rows.StoresInPlace(dtype);
  void* there =
      static_cast<char*>(tensor) + first * rows.length * SizeOf(dtype);
  ForLowRows(in_place ? dtype : DType::kF32,
             [&, to = in_place ? there : buffer, length = rows.length](
                 auto low, auto zero) {
               auto* made = static_cast<decltype(zero)*>(to);
               for (int64_t r = 0; r < n; ++r) row(low, r, made + r * length);
             });
  if (!in_place) rows.Store(dtype, buffer, tensor, first, n);
}

struct SoftmaxKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;
  std::optional<functors::ScaleOp> scale;  // of what is read

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* e) {
                 float sums[kConvertBlock], largest[kConvertBlock];
                 if (!scale && rows.length >= kLongRow) {
                   ExpLongRows(rows.Read(in, buffers.inputs[0], first, n, x), n,
                               rows.length, rows.padded(), e, largest, sums);
                   DivideLong(e, n, sums, first, buffers.outputs[0], x);
                   return;
                 }
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 if (scale) Scale(x, n * rows.length);
                 if (rows.length >= kLongRow) {
                   ExpLongRows({DType::kF32, x}, n, rows.length, rows.padded(),
                               e, largest, sums);
                 } else {
                   ExpRows(x, n, rows.length, rows.padded(), e, largest, sums);
                 }
                 Divide(e, n, sums, x);
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

  void Divide(const float* e, int64_t n, const float* sums, float* y) const {
    ForIsa([=, length = rows.length, padded = rows.padded()] {
      for (int64_t r = 0; r < n; ++r) {
        const float sum = sums[r], inverse = 1.0f / sum;
        const float* const from = e + r * padded;
        float* const to = y + r * length;
#pragma GCC ivdep
        for (int64_t i = 0; i < padded; ++i) {
          to[i] = functors::Quotient(from[i], sum, inverse);
        }
      }
    });
  }

  void DivideLong(const float* e, int64_t n, const float* sums, int64_t first,
                  void* y, float* buffer) const {
    StoreRows(rows, out, first, n, y, buffer,
              [=, length = rows.length, padded = rows.padded()](
                  auto low, int64_t r, auto* to) {
                using Low = decltype(low);
                const float* row = e + r * padded;
                const float sum = sums[r], inverse = 1.0f / sum;
                StoreLow<Low>(to, length, [=](int64_t i, float* v) {
                  Low::Load(row + i, v);
#pragma GCC unroll 1
                  for (int j = 0; j < Low::kSize; ++j) {
                    v[j] = functors::Quotient(v[j], sum, inverse);
                  }
                });
              });
  }
};

struct LogSoftmaxKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(
        stream.threads(), buffers.workspace,
        [&](int64_t first, int64_t n, float* x, float* y) {
          float sums[kConvertBlock], largest[kConvertBlock];
          if (rows.length >= kLongRow) {
            const StoredElements view =
                rows.Read(in, buffers.inputs[0], first, n, x);
            ExpLongRows(view, n, rows.length, rows.padded(), nullptr, largest,
                        sums);
            NormalizeLong(view, n, largest, sums, first, buffers.outputs[0], y);
            return;
          }
          rows.Load(in, buffers.inputs[0], first, n, x);
          ExpRows(x, n, rows.length, rows.padded(), nullptr, largest, sums);
          Normalize(x, n, largest, sums, y);
          rows.Store(out, y, buffers.outputs[0], first, n);
        });
  }

 private:
  // `y`: no longer padded.
  void Normalize(const float* x, int64_t n, const float* largest, float* sums,
                 float* y) const {
    ForIsa([=, length = rows.length] {
      for (int64_t r = 0; r < n; ++r) sums[r] = functors::Log(sums[r]);
      for (int64_t r = 0; r < n; ++r) {
        const float most = largest[r], log = sums[r];
        for (int64_t i = 0; i < length; i += kVector) {
          VectorAt(y + r * length + i) =
              VectorAt(x + r * length + i) - most - log;
        }
      }
    });
  }

  void NormalizeLong(const StoredElements& x, int64_t n, const float* largest,
                     const float* sums, int64_t first, void* y,
                     float* buffer) const {
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = static_cast<const T*>(x.data);
      StoreRows(rows, out, first, n, y, buffer,
                [=, length = rows.length](auto low, int64_t r, auto* to) {
                  using Low = decltype(low);
                  const T* row = from + r * length;
                  const float most = largest[r], log = functors::Log(sums[r]);
                  StoreLow<Low>(to, length, [=](int64_t i, float* v) {
                    Low::Load(row + i, v);
#pragma GCC unroll 1
                    for (int j = 0; j < Low::kSize; ++j) {
                      v[j] = v[j] - most - log;
                    }
                  });
                });
    });
  }
};

// `Rule`: functors::SoftmaxGrad or LogSoftmaxGrad.
template <typename Rule>
struct SoftmaxGradKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* p, float* grad) {
                 const int64_t there = RowsInPlace(first, n);
                 if (there > 0) InPlace(buffers, first, there, p);
                 if (there == n) return;
                 first += there;
                 n -= there;
                 rows.Load(in, buffers.inputs[0], first, n, p);
                 rows.Load(in, buffers.inputs[1], first, n, grad);
                 Gradient(p, p, grad, n, p);
                 rows.Store(out, p, buffers.outputs[0], first, n);
               });
  }

 private:
  // How many of n rows are worked on where they are: the tensor's last one may
  // not be read beyond its end.
  int64_t RowsInPlace(int64_t first, int64_t n) const {
    if (in != DType::kF32 || out != DType::kF32 || rows.stride != 1 ||
        rows.length < kVector) {
      return 0;
    }
    const bool last = first + n == rows.count;
    return last && rows.length % kVector != 0 ? n - 1 : n;
  }

  void InPlace(const Buffers& buffers, int64_t first, int64_t n,
               float* p) const {
    const int64_t at = first * rows.length;
    Gradient(static_cast<const float*>(buffers.inputs[0]) + at, p,
             static_cast<const float*>(buffers.inputs[1]) + at, n,
             static_cast<float*>(buffers.outputs[0]) + at);
  }

  // `p`: room for probabilities, or y's place; `to`: p, or the output.
  void Gradient(const float* y, float* p, const float* grad, int64_t n,
                float* to) const {
    ForIsa([=, length = rows.length] {
      const float* probabilities = y;
      if constexpr (!std::is_same<Rule, functors::SoftmaxGrad>::value) {
        const int64_t elements = n * length;
#pragma GCC ivdep
        for (int64_t i = 0; i < elements; ++i) p[i] = Rule::Probability(y[i]);
        probabilities = p;
      }
      for (int64_t r = 0; r < n; ++r) {
        const float* row = probabilities + r * length;
        const float* g = grad + r * length;
        const float sum = SumOfVectors(length, [=](int64_t i, Vector* v) {
          Rule::Term(VectorAt(row + i), VectorAt(g + i), v);
        });
        float* made = to + r * length;
        // The last vector first, and within the row: it overlaps another, of
        // which `made` may be the place, and stays out of the next row.
        const int64_t last = length - kVector;
        Vector v, tail;
        if (last >= 0) {
          Rule::Of(VectorAt(row + last), VectorAt(g + last), sum, &tail);
        }
        for (int64_t i = 0; i < last; i += kVector) {
          Rule::Of(VectorAt(row + i), VectorAt(g + i), sum, &v);
          VectorAt(made + i) = v;
        }
        if (last >= 0) {
          VectorAt(made + last) = tail;
          continue;
        }
        Rule::Of(VectorAt(row), VectorAt(g), sum, &v);
        TakeFrom(length, VectorAt(made), &v);  // the next row is still read
        VectorAt(made) = v;
      }
    });
  }
};

// Of `op`'s input, which lies where `softmax`'s does.
RowGroups GroupsOf(const BoundOp& op, const BoundOp& softmax) {
  return RowGroups(Rows::Along(op.inputs()[0], softmax.Int("axis")), 2,
                   op.context().threads);
}

template <typename Kernel>
Candidate MakeRowCandidate() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    return Kernel{Rows::Along(op.inputs()[0], op.Int("axis")), GroupsOf(op, op),
                  op.inputs()[0].dtype, op.outputs()[0].dtype};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return GroupsOf(op, op).workspace_bytes();
  };
  return candidate;
}

Candidate MakeScaleSoftmax() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& fusion) {
    const FusedOp fused(fusion);
    const BoundOp softmax = fused.Of("softmax");
    return SoftmaxKernel{Rows::Along(fusion.inputs()[0], softmax.Int("axis")),
                         GroupsOf(fusion, softmax), fusion.inputs()[0].dtype,
                         fusion.outputs()[0].dtype,
                         MakeScale(fused.Of("scale"))};
  });
  candidate.workspace_bytes = [](const BoundOp& fusion) {
    return GroupsOf(fusion, FusedOp(fusion).Of("softmax")).workspace_bytes();
  };
  return candidate;
}

}  // namespace

void ExpRows(const float* x, int64_t rows, int64_t length, int64_t padded,
             float* exponentials, float* largest, float* sums) {
  ForIsa([=] {
    int64_t r = 0;
    for (; r + kVector <= rows; r += kVector) {
      ExpEightRows(
          x + r * length, length, padded,
          exponentials == nullptr ? nullptr : exponentials + r * padded,
          largest + r, sums + r);
    }
    if (r == rows) return;
    // The last ones among eight.
    const int64_t n = rows - r;
    alignas(64) float last[kVector * kLongRow + kVector] = {};
    alignas(64) float made[kVector * kLongRow];
    float most[kVector], sum[kVector];
    std::memcpy(last, x + r * length, n * length * sizeof(float));
    ExpEightRows(last, length, padded, exponentials == nullptr ? nullptr : made,
                 most, sum);
    std::copy_n(most, n, largest + r);
    std::copy_n(sum, n, sums + r);
    if (exponentials == nullptr) return;
    std::memcpy(exponentials + r * padded, made, n * padded * sizeof(float));
  });
}

void ExpLongRows(const StoredElements& x, int64_t n, int64_t length,
                 int64_t padded, float* exponentials, float* largest,
                 float* sums) {
  ForLowRows(x.dtype, [=, data = x.data](auto low, auto zero) {
    const auto* rows = static_cast<const decltype(zero)*>(data);
    for (int64_t r = 0; r < n; ++r) {
      const auto* row = rows + r * length;
      const float most = MaxOfLow<decltype(low)>(row, length);
      largest[r] = most;
      sums[r] = exponentials == nullptr
                    ? ExpRow<decltype(low), false>(row, length, most, nullptr)
                    : ExpRow<decltype(low), true>(row, length, most,
                                                  exponentials + r * padded);
    }
  });
}

void RegisterCpuSoftmax(KernelRegistry& registry) {
  AddForSchema(registry, "softmax", MakeRowCandidate<SoftmaxKernel>());
  AddForSchema(registry, "softmax_grad",
               MakeRowCandidate<SoftmaxGradKernel<functors::SoftmaxGrad>>());
  AddForSchema(registry, "log_softmax", MakeRowCandidate<LogSoftmaxKernel>());
  AddForSchema(registry, "log_softmax_grad",
               MakeRowCandidate<SoftmaxGradKernel<functors::LogSoftmaxGrad>>());
  registry.AddPattern("scale_softmax", {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor}, MakeScaleSoftmax());
}

}  // namespace kernels
}  // namespace halftone
