// Softmax with cross entropy. The gradient recomputes the softmax, so that
// nothing of the size of the logits is kept from forward to backward.
#include "kernels/cpu/loss.h"

#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/softmax.h"
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
            float* largest, float* sums) const {
    if (!use_softmax) return;
    ExpRows(x, n, rows.length, rows.padded(), kept ? e : nullptr, largest,
            sums);
  }
};

struct CrossEntropyKernel : CrossEntropy {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* losses = static_cast<float*>(buffers.outputs[0]);
    groups.Run(
        stream.threads(), buffers.workspace,
        [&](int64_t first, int64_t n, float* x, float* e) {
          float sums[kConvertBlock], largest[kConvertBlock];
          if (soft) {
            const float* const logits =
                rows.ReadFloats(in, buffers.inputs[0], first, n, x);
            Exps({DType::kF32, logits}, n, false, e, largest, sums);
            SoftLosses(logits,
                       rows.ReadFloats(label, buffers.inputs[1], first, n, e),
                       n, largest, sums, losses + first);
            return;
          }
          const StoredElements view =
              rows.Read(in, buffers.inputs[0], first, n, x);
          Exps(view, n, false, e, largest, sums);
          const auto* labels = static_cast<const int64_t*>(buffers.inputs[1]);
          Losses(view, labels + first, n, largest, sums, losses + first);
        });
  }

 private:
  void Losses(const StoredElements& x, const int64_t* labels, int64_t n,
              const float* largest, const float* sums, float* losses) const {
    const auto kind = [&](int64_t r) {
      return functors::KindOfLabel(labels[r], rows.length, ignore_index);
    };
    DispatchType(FloatTypes(), x.dtype, [&](auto tag) {
      const auto* row =
          static_cast<const typename decltype(tag)::type*>(x.data);
      for (int64_t r = 0; r < n; ++r) {
        const float at_label =
            kind(r) == LabelKind::kClass
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
      const LabelKind found = kind(r);
      if (found == LabelKind::kClass) continue;
      losses[r] = found == LabelKind::kIgnored ? 0.0f : functors::QuietNaN();
    }
  }

  void SoftLosses(const float* x, const float* labels, int64_t n,
                  const float* largest, const float* sums,
                  float* losses) const {
    ForIsa([=, length = rows.length, softmax = use_softmax] {
      for (int64_t r = 0; r < n; ++r) {
        const float *row = x + r * length, *y = labels + r * length;
        if (!softmax) {
          losses[r] = SumOf(length, [=](int64_t i) {
            return functors::SoftCrossEntropy(functors::Log(row[i]), y[i]);
          });
          continue;
        }
        const float most = largest[r], log = functors::Log(sums[r]);
        losses[r] = SumOf(length, [=](int64_t i) {
          return functors::SoftCrossEntropy(row[i] - most - log, y[i]);
        });
      }
    });
  }
};

struct CrossEntropyGradKernel : CrossEntropy {
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const float* grads = static_cast<const float*>(buffers.inputs[2]);
    groups.Run(
        stream.threads(), buffers.workspace,
        [&](int64_t first, int64_t n, float* x, float* e) {
          float sums[kConvertBlock], largest[kConvertBlock];
          const float* const logits =
              rows.ReadFloats(in, buffers.inputs[0], first, n, x);
          Exps({DType::kF32, logits}, n, true, e, largest, sums);
          float* const to = rows.Place(out, buffers.outputs[0], first, x);
          if (soft) {
            SoftGradients(buffers, first, n, grads + first, sums, logits, x, e,
                          to);
          } else {
            Gradients(static_cast<const int64_t*>(buffers.inputs[1]) + first,
                      grads + first, n, sums, logits, e, to);
          }
          rows.Store(out, to, buffers.outputs[0], first, n);
        });
  }

 private:
  // `to` may be x's place.
  void Gradients(const int64_t* labels, const float* grads, int64_t n,
                 const float* sums, const float* x, const float* e,
                 float* to) const {
    const int64_t length = rows.length, padded = rows.padded();
    if (use_softmax) {
      ForIsa([=] {
        for (int64_t r = 0; r < n; ++r) {
          const float sum = sums[r], grad = grads[r];
          const float* const from = e + r * padded;
          float* const made = to + r * length;
#pragma GCC ivdep
          for (int64_t i = 0; i < length; ++i) {
            made[i] = functors::CrossEntropyGrad(from[i], sum, 0.0f, grad);
          }
        }
      });
    }
    for (int64_t r = 0; r < n; ++r) {
      float* const made = to + r * length;
      const int64_t label = labels[r];
      const LabelKind kind = functors::KindOfLabel(label, length, ignore_index);
      if (kind != LabelKind::kClass) {
        std::fill_n(made, length,
                    kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN());
      } else if (use_softmax) {
        made[label] = functors::CrossEntropyGrad(e[r * padded + label], sums[r],
                                                 1.0f, grads[r]);
      } else {
        const float at_label =
            functors::ProbabilityGrad(x[r * length + label], 1.0f, grads[r]);
        std::fill_n(made, length, 0.0f);
        made[label] = at_label;
      }
    }
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
