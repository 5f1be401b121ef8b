// Softmax with cross entropy. The gradient recomputes the softmax, so that
// nothing of the size of the logits is kept from forward to backward.
#include "kernels/cpu/loss.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_rows.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/streamed_output.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/loss.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using functors::LabelKind;

// What the op and its gradient are told.
struct CrossEntropy {
  Rows rows;
  RowGroups groups;
  DType in, label, out;
  int64_t ignore_index;
  bool soft, use_softmax;

  // Exponentials, unless the rows are probabilities; only the sums unless they
  // are `kept`.
  void Exps(const StoredElements& x, int64_t n, bool kept, float* e,
            float* largest, float* sums,
            Exponentials kind = Exponentials::kWhole) const {
    if (!use_softmax) return;
    ExpRows(x, n, rows.length, rows.padded(), kept ? e : nullptr, largest, sums,
            kind);
  }
  LabelKind KindOf(int64_t label) const {
    return functors::KindOfLabel(label, rows.length, ignore_index);
  }
};

struct CrossEntropyKernel : CrossEntropy {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* losses = static_cast<float*>(buffers.outputs[0]);
    groups.Run(
        stream.threads(), buffers.workspace,
        [&](int64_t first, int64_t n, float* x, float* e) {
          float sums[kConvertBlock], largest[kConvertBlock];
          StoredElements view = rows.Read(in, buffers.inputs[0], first, n, x);
          if (soft) {
            StoredElements y = rows.Read(label, buffers.inputs[1], first, n, e);
            if (y.dtype != view.dtype) {
              view = {DType::kF32,
                      rows.ReadFloats(in, buffers.inputs[0], first, n, x)};
              y = {DType::kF32,
                   rows.ReadFloats(label, buffers.inputs[1], first, n, e)};
            }
            Exps(view, n, false, e, largest, sums);
            SoftLosses(view, y.data, n, largest, sums, losses + first);
            return;
          }
          Exps(view, n, false, e, largest, sums);
          const auto* labels = static_cast<const int64_t*>(buffers.inputs[1]);
          Losses(view, labels + first, n, largest, sums, losses + first);
        });
  }

 private:
  void Losses(const StoredElements& x, const int64_t* labels, int64_t n,
              const float* largest, const float* sums, float* losses) const {
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      const auto* row =
          static_cast<const typename decltype(tag)::type*>(x.data);
      for (int64_t r = 0; r < n; ++r) {
        const float at_label =
            KindOf(labels[r]) == LabelKind::kClass
                ? static_cast<float>(row[r * rows.length + labels[r]])
                : 0.0f;
        losses[r] = use_softmax ? at_label - largest[r] : at_label;
      }
    });
    ForIsa([=, softmax = use_softmax] {
      if (softmax) {
        for (int64_t r = 0; r < n; ++r) {
          losses[r] = functors::CrossEntropy(losses[r], sums[r]);
        }
      } else {
        for (int64_t r = 0; r < n; ++r) losses[r] = -functors::Log(losses[r]);
      }
    });
    for (int64_t r = 0; r < n; ++r) {
      const LabelKind found = KindOf(labels[r]);
      if (found == LabelKind::kClass) continue;
      losses[r] = found == LabelKind::kIgnored ? 0.0f : functors::QuietNaN();
    }
  }

  // `y`: labels of x's dtype.
  void SoftLosses(const StoredElements& x, const void* y, int64_t n,
                  const float* largest, const float* sums,
                  float* losses) const {
    ForLowRows(x.dtype, [=, data = x.data, length = rows.length,
                         softmax = use_softmax](auto low, auto zero) {
      using Low = decltype(low);
      const auto* const rows = static_cast<const decltype(zero)*>(data);
      const auto* const labels = static_cast<const decltype(zero)*>(y);
      for (int64_t r = 0; r < n; ++r) {
        const auto *row = rows + r * length, *label = labels + r * length;
        const float most = softmax ? largest[r] : 0.0f;
        const float log = softmax ? functors::Log(sums[r]) : 0.0f;
        const auto sum = [&](const auto& log_of) {
          return SumOfLow<Low>(length, [=](int64_t i, float* v) {
            alignas(64) float share[Low::kSize];
            Low::Load(row + i, v);
            Low::Load(label + i, share);
#pragma GCC unroll 1
            for (int j = 0; j < Low::kSize; ++j) {
              v[j] = functors::SoftCrossEntropy(log_of(v[j]), share[j]);
            }
          });
        };
        losses[r] = softmax
                        ? sum([=](float logit) { return logit - most - log; })
                        : sum([](float p) { return functors::Log(p); });
      }
    });
  }
};

struct CrossEntropyGradKernel : CrossEntropy {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const float* grads = static_cast<const float*>(buffers.inputs[2]);
    const StreamedOutput output = rows.Output(buffers, 0, out);
    groups.Run(
        stream.threads(), buffers.workspace,
        [&](int64_t first, int64_t n, float* x, float* e) {
          float sums[kConvertBlock], largest[kConvertBlock];
          if (!soft) {
            const StoredElements view =
                rows.Read(in, buffers.inputs[0], first, n, x);
            Exps(view, n, true, e, largest, sums, ExponentialsFor(out));
            Gradients(view,
                      static_cast<const int64_t*>(buffers.inputs[1]) + first,
                      grads + first, n, sums, e, first, output, x);
            return;
          }
          const float* const logits =
              rows.ReadFloats(in, buffers.inputs[0], first, n, x);
          Exps({DType::kF32, logits}, n, true, e, largest, sums,
               ExponentialsFor(out));
          float* const to = rows.Place(out, buffers.outputs[0], first, x);
          SoftGradients(buffers, first, n, grads + first, sums, logits, x, e,
                        to);
          rows.Store(out, to, buffers.outputs[0], first, n);
        });
  }

 private:
  // `buffer` may be x's place.
  void Gradients(const StoredElements& x, const int64_t* labels,
                 const float* grads, int64_t n, const float* sums,
                 const float* e, int64_t first, const StreamedOutput& output,
                 float* buffer) const {
    const bool is_low = IsLow(out);
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      const auto* const logits =
          static_cast<const typename decltype(tag)::type*>(x.data);
      StoreRows(
          rows, output, first, n, buffer, [=](auto low, int64_t r, auto* to) {
            using Low = decltype(low);
            using T = std::remove_pointer_t<decltype(to)>;
            const int64_t length = rows.length, label = labels[r];
            const float grad = grads[r];
            const LabelKind kind = KindOf(label);
            if (kind != LabelKind::kClass) {
              const float none =
                  kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN();
              std::fill_n(to, length, static_cast<T>(none));
              return;
            }
            if (!use_softmax) {
              const float p = static_cast<float>(logits[r * length + label]);
              std::fill_n(to, length, static_cast<T>(0.0f));
              to[label] =
                  static_cast<T>(functors::ProbabilityGrad(p, 1.0f, grad));
              return;
            }
            const float* const row = e + r * rows.padded();
            const float sum = sums[r];
            if (is_low) {
              StoreTimes<Low>(to, length, row, grad / sum);
            } else {
              StoreLow<Low>(to, length, [=](int64_t i, float* v) {
                Low::Load(row + i, v);
#pragma GCC unroll 1
                for (int j = 0; j < Low::kSize; ++j) {
                  v[j] = functors::CrossEntropyGrad(v[j], sum, 0.0f, grad);
                }
              });
            }
            to[label] = static_cast<T>(
                functors::CrossEntropyGrad(row[label], sum, 1.0f, grad));
          });
    });
  }

  // Labels come where what is no longer needed is: logits' room `x`, or
  // exponentials'.
  void SoftGradients(const Buffers& buffers, int64_t first, int64_t n,
                     const float* grads, const float* sums, const float* logits,
                     float* x, float* e, float* to) const {
    const float* const labels = rows.ReadFloats(label, buffers.inputs[1], first,
                                                n, use_softmax ? x : e);
    ForIsa([=, length = rows.length, padded = rows.padded(),
            softmax = use_softmax] {
      for (int64_t r = 0; r < n; ++r) {
        const float *p = logits + r * length, *y = labels + r * length;
        const float *er = e + r * padded, grad = grads[r];
        float* const made = to + r * length;
        if (!softmax) {
#pragma GCC ivdep
          for (int64_t i = 0; i < length; ++i) {
            made[i] = functors::ProbabilityGrad(p[i], y[i], grad);
          }
          continue;
        }
        const float sum = sums[r];
        const float all = SumOf(length, [=](int64_t i) { return y[i]; });
#pragma GCC ivdep
        for (int64_t i = 0; i < length; ++i) {
          made[i] = functors::SoftCrossEntropyGrad(er[i], sum, all, y[i], grad);
        }
      }
    });
  }
};

RowGroups GroupsOf(const BoundOp& op) {
  return RowGroups(Rows::Along(op.Input("Logits"), op.Int("axis")), 2,
                   op.context().threads);
}

template <typename Kernel>
Candidate MakeCrossEntropy() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    return Kernel{{Rows::Along(op.Input("Logits"), op.Int("axis")),
                   GroupsOf(op), op.Input("Logits").dtype,
                   op.Input("Label").dtype, op.outputs()[0].dtype,
                   op.Int("ignore_index"), op.Bool("soft_label"),
                   op.Bool("use_softmax")}};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return GroupsOf(op).workspace_bytes();
  };
  return candidate;
}

}  // namespace

void RegisterCpuLoss(KernelRegistry& registry) {
  AddForSchema(registry, "softmax_with_cross_entropy",
               MakeCrossEntropy<CrossEntropyKernel>());
  AddForSchema(registry, "softmax_with_cross_entropy_grad",
               MakeCrossEntropy<CrossEntropyGradKernel>());
  RegisterCpuReduce(registry);
  RegisterCpuTopK(registry);
}

}  // namespace kernels
}  // namespace halftone
