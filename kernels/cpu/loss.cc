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

  // Logits as f32 in `x`, or, if they are of long rows, where they lie.
  StoredElements Logits(const void* tensor, int64_t first, int64_t n,
                        float* x) const {
    if (rows.length >= kLongRow) return rows.Read(in, tensor, first, n, x);
    rows.Load(in, tensor, first, n, x);
    return {DType::kF32, x};
  }
  // Exponentials, unless the rows are probabilities; of long rows only the sums
  // unless they are `kept`.
  void Exps(const StoredElements& x, int64_t n, bool kept, float* e,
            float* largest, float* sums) const {
    if (!use_softmax) return;
    if (rows.length >= kLongRow) {
      ExpLongRows(x, n, rows.length, rows.padded(), kept ? e : nullptr, largest,
                  sums);
      return;
    }
    ExpRows(static_cast<const float*>(x.data), n, rows.length, rows.padded(),
            kept ? e : nullptr, largest, sums);
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
            rows.Load(in, buffers.inputs[0], first, n, x);
            Exps({DType::kF32, x}, n, false, e, largest, sums);
            rows.Load(label, buffers.inputs[1], first, n, e);
            SoftLosses(x, e, n, largest, sums, losses + first);
            return;
          }
          const StoredElements view = Logits(buffers.inputs[0], first, n, x);
          Exps(view, n, false, e, largest, sums);
          const auto* labels = static_cast<const int64_t*>(buffers.inputs[1]);
          DispatchType(FloatTypes(), view.dtype, [&](auto tag) {
            const auto* row =
                static_cast<const typename decltype(tag)::type*>(view.data);
            for (int64_t r = 0; r < n; ++r) {
              losses[first + r] =
                  LossOf(labels[first + r], row + r * rows.length, largest[r],
                         sums[r]);
            }
          });
        });
  }

 private:
  template <typename T>
  float LossOf(int64_t label, const T* x, float largest, float sum) const {
    switch (functors::KindOfLabel(label, rows.length, ignore_index)) {
      case LabelKind::kClass:
        return use_softmax ? functors::CrossEntropy(
                                 static_cast<float>(x[label]) - largest, sum)
                           : -functors::Log(static_cast<float>(x[label]));
      case LabelKind::kIgnored:
        return 0.0f;
      case LabelKind::kInvalid:
        break;
    }
    return functors::QuietNaN();
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
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* e) {
                 float sums[kConvertBlock], largest[kConvertBlock];
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 Exps({DType::kF32, x}, n, true, e, largest, sums);
                 if (soft) {
                   SoftGradients(buffers, first, n, grads + first, sums, x, e);
                 } else {
                   const auto* labels =
                       static_cast<const int64_t*>(buffers.inputs[1]);
                   for (int64_t r = 0; r < n; ++r) {
                     Gradient(labels[first + r], grads[first + r], sums[r],
                              e + r * rows.padded(), x + r * rows.length);
                   }
                 }
                 rows.Store(out, x, buffers.outputs[0], first, n);
               });
  }

 private:
  // `to` holds the row of logits.
  void Gradient(int64_t label, float grad, float sum, const float* e,
                float* to) const {
    const int64_t length = rows.length;
    const LabelKind kind = functors::KindOfLabel(label, length, ignore_index);
    if (kind != LabelKind::kClass) {
      std::fill_n(to, length,
                  kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN());
      return;
    }
    if (!use_softmax) {
      const float at_label = functors::ProbabilityGrad(to[label], 1.0f, grad);
      std::fill_n(to, length, 0.0f);
      to[label] = at_label;
      return;
    }
    ForIsa([=] {
      for (int64_t i = 0; i < length; ++i) {
        to[i] = functors::CrossEntropyGrad(e[i], sum, 0.0f, grad);
      }
    });
    to[label] = functors::CrossEntropyGrad(e[label], sum, 1.0f, grad);
  }

  // In place of x: of probabilities, or where x is no longer needed.
  void SoftGradients(const Buffers& buffers, int64_t first, int64_t n,
                     const float* grads, const float* sums, float* x,
                     float* e) const {
    float* labels = use_softmax ? x : e;
    rows.Load(label, buffers.inputs[1], first, n, labels);
    ForIsa([=, length = rows.length, padded = rows.padded(),
            softmax = use_softmax] {
      for (int64_t r = 0; r < n; ++r) {
        float* to = x + r * length;
        const float *y = labels + r * length, *er = e + r * padded;
        const float grad = grads[r];
        if (!softmax) {
          for (int64_t i = 0; i < length; ++i) {
            to[i] = functors::ProbabilityGrad(to[i], y[i], grad);
          }
          continue;
        }
        const float sum = sums[r];
        const float all = SumOf(length, [=](int64_t i) { return y[i]; });
        for (int64_t i = 0; i < length; ++i) {
          to[i] = functors::SoftCrossEntropyGrad(er[i], sum, all, y[i], grad);
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
