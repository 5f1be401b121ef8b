// sigmoid_cross_entropy_with_logits and nll_loss. (Losses of two operands are
// element-wise ops: kernels/common/elementwise_functors.h.)
#include "kernels/functors/pointwise_loss.h"

#include <algorithm>
#include <cstdint>

#include "kernels/common/class_rows.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_table.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/functors/loss.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using functors::LabelKind;

// ---- Element by element.

struct SigmoidKernel {
  DType dtype;
  int64_t elements;
  functors::SigmoidCrossEntropy loss;
  bool normalize;
  int grad, weight;  // inputs; -1: none
  LowParts parts;    // of Soft or Share; null: they are computed

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const float divisor = normalize ? Counted(buffers.inputs[1]) : 1.0f;
    const auto input = [&](int i) {
      return i < 0 ? nullptr : buffers.inputs[i];
    };
    if (parts != nullptr && divisor == 1.0f) {
      return LookUp(buffers, stream.threads());
    }
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          alignas(64) float buffer[5][kConvertBlock];
          ForBlocks(begin, end, [&](int64_t at, int64_t n) {
            const auto block = [&](const void* tensor, int b) {
              return tensor == nullptr
                         ? nullptr
                         : LoadBlock(dtype, tensor, at, n, buffer[b]);
            };
            float* to = OutputBlock(dtype, buffers.outputs[0], at, buffer[4]);
            Block(block(buffers.inputs[0], 0), block(buffers.inputs[1], 1),
                  block(input(grad), 2), block(input(weight), 3), n, divisor,
                  to);
            StoreBlock(dtype, to, buffers.outputs[0], at, n);
          });
        });
  }

 private:
  // Labels that are not ignored, at least 1.
  float Counted(const void* labels) const {
    alignas(64) float buffer[kConvertBlock];
    int64_t count = 0;
    ForBlocks(0, elements, [&](int64_t at, int64_t n) {
      const float* y = LoadBlock(dtype, labels, at, n, buffer);
      int32_t found = 0;
      ForIsa([=, to = &found, ignored = loss.ignored] {
        int32_t here = 0;
        for (int64_t i = 0; i < n; ++i) here += y[i] == ignored ? 0 : 1;
        *to = here;
      });
      count += found;
    });
    return static_cast<float>(std::max<int64_t>(1, count));
  }

  void LookUp(const Buffers& buffers, int threads) const {
    const void *x = buffers.inputs[0], *y = buffers.inputs[1];
    void* const to = buffers.outputs[0];
    if (grad < 0) {
      const auto f = [f = loss](float soft, float logit, float label) {
        return f.LossWith(soft, logit, label, 1.0f);
      };
      return MapWithTable(dtype, f, parts, x, to, elements, threads, x, y);
    }
    const auto f = [f = loss](float share, float label, float g) {
      return f.SlopeWith(share, label, 1.0f) * g;
    };
    MapWithTable(dtype, f, parts, x, to, elements, threads, y,
                 buffers.inputs[grad]);
  }

  // `g`: null for the loss; `w`: null for 1.
  void Block(const float* x, const float* y, const float* g, const float* w,
             int64_t n, float divisor, float* to) const {
    ForIsa([=, f = loss] {
      if (g == nullptr && w == nullptr) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) to[i] = f.Loss(x[i], y[i], 1.0f);
      } else if (g == nullptr) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) to[i] = f.Loss(x[i], y[i], w[i]);
      } else if (w == nullptr) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          to[i] = f.Slope(x[i], y[i], 1.0f) * g[i];
        }
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          to[i] = f.Slope(x[i], y[i], w[i]) * g[i];
        }
      }
      if (divisor == 1.0f) return;
      for (int64_t i = 0; i < n; ++i) to[i] /= divisor;
    });
  }
};

Candidate MakeSigmoid(bool backward) {
  return MakeCandidate("blocks", [backward](const BoundOp& op) {
    const TensorDesc& x = op.Input("X");
    SigmoidKernel kernel{x.dtype,
                         x.elements(),
                         {static_cast<float>(op.Int("ignore_index"))},
                         op.Bool("normalize"),
                         backward ? op.InputIndex("OutGrad") : -1,
                         op.InputIndex("pos_weight")};
    if (kernel.weight >= 0) return kernel;
    using Loss = functors::SigmoidCrossEntropy;
    const Operand whole(x, x);
    kernel.parts =
        backward
            ? MakeLowTable<float>(whole, x.dtype, x.elements(), Loss::Share())
            : MakeLowTable<float>(whole, x.dtype, x.elements(), Loss::Soft());
    return kernel;
  });
}

// ---- nll_loss.

struct NllKernel {
  ClassRows rows;
  DType dtype;
  int64_t ignore_index;
  int weight;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t* labels = static_cast<const int64_t*>(buffers.inputs[1]);
    const float* w = weight < 0
                         ? nullptr
                         : static_cast<const float*>(buffers.inputs[weight]);
    float* out = static_cast<float*>(buffers.outputs[0]);
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = static_cast<const T*>(buffers.inputs[0]);
      ParallelFor(stream.threads(), rows.count(), kMapGrain,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r) {
                      out[r] = LossOf(x, w, labels[r], r);
                    }
                  });
    });
  }

 private:
  template <typename T>
  float LossOf(const T* x, const float* w, int64_t label, int64_t row) const {
    const LabelKind kind =
        functors::KindOfLabel(label, rows.classes, ignore_index);
    if (kind == LabelKind::kIgnored) return 0.0f;
    if (kind == LabelKind::kInvalid) return functors::QuietNaN();
    const float value = static_cast<float>(x[rows.Offset(row, label)]);
    return -value * (w == nullptr ? 1.0f : w[label]);
  }
};

struct NllGradKernel {
  ClassRows rows;
  DType dtype;
  int64_t ignore_index;
  int weight;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t* labels = static_cast<const int64_t*>(buffers.inputs[1]);
    const float* grads = static_cast<const float*>(buffers.inputs[2]);
    const float* w = weight < 0
                         ? nullptr
                         : static_cast<const float*>(buffers.inputs[weight]);
    DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = static_cast<T*>(buffers.outputs[0]);
      const int64_t image = rows.classes * rows.inner;
      const int64_t grain =
          std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, image));
      ParallelFor(
          stream.threads(), rows.outer, grain, [&](int64_t begin, int64_t end) {
            std::fill(to + begin * image, to + end * image,
                      static_cast<T>(0.0f));
            for (int64_t r = begin * rows.inner; r < end * rows.inner; ++r) {
              Set(to, w, labels[r], grads[r], r);
            }
          });
    });
  }

 private:
  template <typename T>
  void Set(T* to, const float* w, int64_t label, float grad,
           int64_t row) const {
    const LabelKind kind =
        functors::KindOfLabel(label, rows.classes, ignore_index);
    if (kind == LabelKind::kIgnored) return;
    if (kind == LabelKind::kClass) {
      to[rows.Offset(row, label)] =
          static_cast<T>(-grad * (w == nullptr ? 1.0f : w[label]));
      return;
    }
    for (int64_t c = 0; c < rows.classes; ++c) {
      to[rows.Offset(row, c)] = static_cast<T>(functors::QuietNaN());
    }
  }
};

template <typename Kernel>
Candidate MakeNll() {
  return MakeCandidate("labels", [](const BoundOp& op) {
    const bool backward = op.type() == "nll_loss_grad";
    return Kernel{ClassRows::Of(op.Input("X"), 1),
                  backward ? op.outputs()[0].dtype : op.Input("X").dtype,
                  op.Int("ignore_index"), op.InputIndex("Weight")};
  });
}

}  // namespace

void RegisterCpuPointwiseLoss(KernelRegistry& registry) {
  AddForSchema(registry, "sigmoid_cross_entropy_with_logits",
               MakeSigmoid(false));
  AddForSchema(registry, "sigmoid_cross_entropy_with_logits_grad",
               MakeSigmoid(true));
  AddForSchema(registry, "nll_loss", MakeNll<NllKernel>());
  AddForSchema(registry, "nll_loss_grad", MakeNll<NllGradKernel>());
}

}  // namespace kernels
}  // namespace halftone
