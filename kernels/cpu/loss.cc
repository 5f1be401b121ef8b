// Softmax with cross entropy. The gradient recomputes the softmax, so that
// nothing of the size of the logits is kept from forward to backward.
#include "kernels/cpu/loss.h"

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/softmax.h"
#include "kernels/functors/loss.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using functors::LabelKind;

struct CrossEntropyKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;
  int64_t ignore_index;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t* labels = static_cast<const int64_t*>(buffers.inputs[1]);
    float* losses = static_cast<float*>(buffers.outputs[0]);
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* e) {
                 float sums[kConvertBlock], largest[kConvertBlock];
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 ExpRows(x, n, rows.length, rows.padded(), e, largest, sums);
                 for (int64_t r = 0; r < n; ++r) {
                   losses[first + r] =
                       LossOf(labels[first + r], x + r * rows.length,
                              largest[r], sums[r]);
                 }
               });
  }

 private:
  float LossOf(int64_t label, const float* x, float largest, float sum) const {
    switch (functors::KindOfLabel(label, rows.length, ignore_index)) {
      case LabelKind::kClass:
        return functors::CrossEntropy(x[label] - largest, sum);
      case LabelKind::kIgnored:
        return 0.0f;
      case LabelKind::kInvalid:
        break;
    }
    return functors::QuietNaN();
  }
};

struct CrossEntropyGradKernel {
  Rows rows;
  RowGroups groups;
  DType in, out;
  int64_t ignore_index;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t* labels = static_cast<const int64_t*>(buffers.inputs[1]);
    const float* grads = static_cast<const float*>(buffers.inputs[2]);
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* e) {
                 float sums[kConvertBlock], largest[kConvertBlock];
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 ExpRows(x, n, rows.length, rows.padded(), e, largest, sums);
                 for (int64_t r = 0; r < n; ++r) {
                   Gradient(labels[first + r], grads[first + r], sums[r],
                            e + r * rows.padded(), x + r * rows.length);
                 }
                 rows.Store(out, x, buffers.outputs[0], first, n);
               });
  }

 private:
  void Gradient(int64_t label, float grad, float sum, const float* e,
                float* to) const {
    const int64_t length = rows.length;
    const LabelKind kind = functors::KindOfLabel(label, length, ignore_index);
    if (kind != LabelKind::kClass) {
      std::fill_n(to, length,
                  kind == LabelKind::kIgnored ? 0.0f : functors::QuietNaN());
      return;
    }
    ForIsa([=] {
      for (int64_t i = 0; i < length; ++i) {
        to[i] = functors::CrossEntropyGrad(e[i], sum, 0.0f, grad);
      }
    });
    to[label] = functors::CrossEntropyGrad(e[label], sum, 1.0f, grad);
  }
};

RowGroups GroupsOf(const BoundOp& op) {
  return RowGroups(Rows::Along(op.Input("Logits"), -1), 2,
                   op.context().threads);
}

template <typename Kernel>
Candidate MakeCrossEntropy() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    return Kernel{Rows::Along(op.Input("Logits"), -1), GroupsOf(op),
                  op.Input("Logits").dtype, op.outputs()[0].dtype,
                  op.Int("ignore_index")};
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
