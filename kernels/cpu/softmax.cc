// Softmax, its logarithm and their gradients along any axis.
#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_rows.h"
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

template <Exponentials kKind>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float ExpOf(float x) {
  return kKind == Exponentials::kLow ? functors::LowExpUpTo0(x)
                                     : functors::ExpUpTo0(x);
}

// The sum of exp(x - most) over a row.
template <typename Low, Exponentials kKind, bool kStored, typename T>
inline float ExpRow(const T* row, int64_t length, float most, float* e) {
  return SumOfLow<Low>(length, [=](int64_t i, float* v) {
    __builtin_prefetch(row + length + i);  // the next one
    Low::Load(row + i, v);
#pragma GCC unroll 1
    for (int j = 0; j < Low::kSize; ++j) v[j] -= most;
#pragma GCC unroll 1
    for (int j = 0; j < Low::kSize; ++j) v[j] = ExpOf<kKind>(v[j]);
    if constexpr (kStored) Low::Store(v, e + i);
  });
}

// The largest of each of some short rows, of kVectors vectors.
template <typename Low, int kVectors, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MostOfRows(const T* x, int64_t rows,
                                                    int64_t length,
                                                    float* largest) {
  constexpr int kSize = Low::kSize, kRest = (kVectors - 1) * kSize;
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = x + r * length;
    alignas(64) float most[kSize], v[kSize];
#pragma GCC unroll 1
    for (int j = 0; j < kSize; ++j) most[j] = -__builtin_inff();
#pragma GCC unroll 8
    for (int k = 0; k <= kRest; k += kSize) {
      Low::Load(row + k, v);
      if (k == kRest) SetRest<Low>(length - k, -__builtin_inff(), v);
      TakeGreater<kSize>(v, most);
    }
    if constexpr (kSize == 2 * kVector) {
      TakeGreater<kVector>(most + kVector, most);
    }
    largest[r] = MaxOfLanes(VectorAt(most));
  }
}

// exp(x - largest); anything behind a row.
template <typename Low, Exponentials kKind, int kVectors, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ExpOfRows(const T* x, int64_t rows,
                                                   int64_t length,
                                                   const float* largest,
                                                   int64_t padded, float* e) {
  constexpr int kSize = Low::kSize, kRest = (kVectors - 1) * kSize;
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = x + r * length;
    const float most = largest[r];
#pragma GCC unroll 8
    for (int k = 0; k <= kRest; k += kSize) {
      alignas(64) float v[kSize];
      __builtin_prefetch(row + rows * length + k);  // what is next
      Low::Load(row + k, v);
      if (k == kRest) SetRest<Low>(length - k, -__builtin_inff(), v);
#pragma GCC unroll 1
      for (int j = 0; j < kSize; ++j) {
        v[j] = ExpOf<kKind>(v[j] - most);
      }
      Low::Store(v, e + r * padded + k);
    }
  }
}

template <typename Low, Exponentials kKind, int kVectors, typename T>
void ExpShortRows(const T* x, int64_t rows, int64_t length, int64_t padded,
                  float* exponentials, float* largest, float* sums) {
  constexpr int64_t kRows = 32;
  float near[kRows * kLongRow];
  for (int64_t r = 0; r < rows; r += kRows) {
    const int64_t n = std::min(kRows, rows - r);
    float* const e = exponentials == nullptr ? near : exponentials + r * padded;
    const T* const from = x + r * length;
    MostOfRows<Low, kVectors>(from, n, length, largest + r);
    ExpOfRows<Low, kKind, kVectors>(from, n, length, largest + r, padded, e);
    for (int64_t i = 0; i < n; ++i) {
      const float* const made = e + i * padded;
      sums[r + i] = SumOfShort<Low, kVectors>(
          length, [=](int64_t k, float* v) { Low::Load(made + k, v); });
    }
  }
}

template <Exponentials kKind>
void ExpRowsOf(const StoredElements& x, int64_t n, int64_t length,
               int64_t padded, float* exponentials, float* largest,
               float* sums) {
  ForLowRows(x.dtype, [=, data = x.data](auto low, auto zero) {
    using Low = decltype(low);
    const auto* const rows = static_cast<const decltype(zero)*>(data);
    if (length < kLongRow) {
      ForVectorsOf<Low>(length, [=](auto vectors) {
        ExpShortRows<Low, kKind, decltype(vectors)::value>(
            rows, n, length, padded, exponentials, largest, sums);
      });
      return;
    }
    for (int64_t r = 0; r < n; ++r) {
      const auto* row = rows + r * length;
      const float most = MaxOfLow<Low>(row, length);
      largest[r] = most;
      sums[r] = exponentials == nullptr
                    ? ExpRow<Low, kKind, false>(row, length, most, nullptr)
                    : ExpRow<Low, kKind, true>(row, length, most,
                                               exponentials + r * padded);
    }
  });
}

struct SoftmaxKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;
  std::optional<functors::ScaleOp> scale;  // of what is read

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const StreamedOutput output = rows.Output(buffers, 0, out);
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* e) {
                 float sums[kConvertBlock], largest[kConvertBlock];
                 ExpRows(Scaled(buffers.inputs[0], first, n, x), n, rows.length,
                         rows.padded(), e, largest, sums, ExponentialsFor(out));
                 Divide(e, n, sums, first, output, x);
               });
  }

 private:
  // Rounded to the dtype of what is read, as the op alone would.
  StoredElements Scaled(const void* from, int64_t first, int64_t n,
                        float* x) const {
    if (!scale) return rows.Read(in, from, first, n, x);
    rows.Load(in, from, first, n, x);
    const int64_t elements = n * rows.length;
    ForIsa([=, f = *scale] {
      for (int64_t i = 0; i < elements; ++i) x[i] = f(x[i]);
    });
    RoundTo(in, x, elements);
    return {DType::kF32, x};
  }

  void Divide(const float* e, int64_t n, const float* sums, int64_t first,
              const StreamedOutput& y, float* buffer) const {
    StoreRows(rows, y, first, n, buffer,
              [=, length = rows.length, padded = rows.padded(),
               is_low = IsLow(out)](auto low, int64_t r, auto* to) {
                using Low = decltype(low);
                const float* row = e + r * padded;
                const float sum = sums[r], inverse = 1.0f / sum;
                if (is_low) return StoreTimes<Low>(to, length, row, inverse);
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
    const StreamedOutput output = rows.Output(buffers, 0, out);
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* y) {
                 float sums[kConvertBlock], largest[kConvertBlock];
                 const StoredElements view =
                     rows.Read(in, buffers.inputs[0], first, n, x);
                 ExpRows(view, n, rows.length, rows.padded(), nullptr, largest,
                         sums, ExponentialsFor(out));
                 ForIsa([&sums, n] {
                   for (int64_t r = 0; r < n; ++r)
                     sums[r] = functors::Log(sums[r]);
                 });
                 Normalize(view, n, largest, sums, first, output, y);
               });
  }

 private:
  void Normalize(const StoredElements& x, int64_t n, const float* largest,
                 const float* logs, int64_t first, const StreamedOutput& y,
                 float* buffer) const {
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = static_cast<const T*>(x.data);
      StoreRows(rows, y, first, n, buffer,
                [=, length = rows.length](auto low, int64_t r, auto* to) {
                  using Low = decltype(low);
                  const T* row = from + r * length;
                  const float most = largest[r], log = logs[r];
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
    const StreamedOutput output = rows.Output(buffers, 0, out);
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* y, float* grad) {
                 float sums[kConvertBlock];
                 alignas(64) float made[kConvertBlock + 2 * kVector];
                 const StoredElements outs =
                     rows.Read(in, buffers.inputs[0], first, n, y);
                 const StoredElements grads =
                     rows.Read(in, buffers.inputs[1], first, n, grad);
                 Sums(outs, grads.data, n, sums);
                 // A short row's vector would be written over what is still
                 // read.
                 Gradient(outs, grads.data, n, sums, first, output,
                          rows.length < kLongRow ? made : y);
               });
  }

 private:
  // Of the terms of each row.
  void Sums(const StoredElements& y, const void* grads, int64_t n,
            float* sums) const {
    ForLowRows(y.dtype, [=, length = rows.length](auto low, auto zero) {
      using Low = decltype(low);
      const auto* outs = static_cast<const decltype(zero)*>(y.data);
      const auto* gradients = static_cast<const decltype(zero)*>(grads);
      const auto term = [=](int64_t i, float* v) {
        alignas(64) float g[Low::kSize];
        Low::Load(outs + i, v);
        Low::Load(gradients + i, g);
#pragma GCC unroll 1
        for (int j = 0; j < Low::kSize; ++j) Rule::Term(v[j], g[j], v + j);
      };
      if (length >= kLongRow) {
        for (int64_t r = 0; r < n; ++r) {
          sums[r] = SumOfLow<Low>(
              length, [=](int64_t i, float* v) { term(r * length + i, v); });
        }
        return;
      }
      ForVectorsOf<Low>(length, [=](auto vectors) {
        for (int64_t r = 0; r < n; ++r) {
          sums[r] = SumOfShort<Low, decltype(vectors)::value>(
              length, [=](int64_t i, float* v) { term(r * length + i, v); });
        }
      });
    });
  }

  void Gradient(const StoredElements& y, const void* grads, int64_t n,
                const float* sums, int64_t first, const StreamedOutput& to,
                float* buffer) const {
    DispatchType(FloatTypes(), y.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *outs = static_cast<const T*>(y.data),
              *gradients = static_cast<const T*>(grads);
      StoreRows(rows, to, first, n, buffer,
                [=, length = rows.length, is_low = IsLow(out)](
                    auto low, int64_t r, auto* made) {
                  using Low = decltype(low);
                  constexpr bool kTakesLong =
                      std::is_same<Rule, functors::LogSoftmaxGrad>::value;
                  const float sum = sums[r];
                  const int64_t at = r * length, next = n * length;
                  const auto of = [=](const auto& probability, int64_t i,
                                      float* v) {
                    alignas(64) float g[Low::kSize];
                    if constexpr (kTakesLong) {  // memory is not waited for
                      __builtin_prefetch(outs + next + at + i);
                      __builtin_prefetch(gradients + next + at + i);
                    }
                    Low::Load(outs + at + i, v);
                    Low::Load(gradients + at + i, g);
#pragma GCC unroll 1
                    for (int j = 0; j < Low::kSize; ++j) {
                      Rule::Of(probability(v[j]), g[j], sum, v + j);
                    }
                  };
                  if (is_low) {
                    StoreLow<Low>(made, length, [=](int64_t i, float* v) {
                      of([](float x) { return Rule::LowProbability(x); }, i, v);
                    });
                  } else {
                    StoreLow<Low>(made, length, [=](int64_t i, float* v) {
                      of([](float x) { return Rule::Probability(x); }, i, v);
                    });
                  }
                });
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

void ExpRows(const StoredElements& x, int64_t n, int64_t length, int64_t padded,
             float* exponentials, float* largest, float* sums,
             Exponentials kind) {
  if (kind == Exponentials::kLow) {
    ExpRowsOf<Exponentials::kLow>(x, n, length, padded, exponentials, largest,
                                  sums);
  } else {
    ExpRowsOf<Exponentials::kWhole>(x, n, length, padded, exponentials, largest,
                                    sums);
  }
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
