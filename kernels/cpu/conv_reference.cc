#include "kernels/cpu/conv_reference.h"

#include <algorithm>

#include "graph/ops/infer_helpers.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/reference.h"

namespace halftone {
namespace kernels {
namespace {

// All products of a convolution, each visited once, in a fixed order.
struct Products {
  int64_t stride[2], dilation[2], before[2];
  int64_t groups;

  explicit Products(const BoundOp& op) : groups(op.Int("groups")) {
    const auto paddings = ops::FullPaddings(op.Ints("paddings"));
    for (int i = 0; i < 2; ++i) {
      stride[i] = op.Ints("strides")[i];
      dilation[i] = op.Ints("dilations")[i];
      before[i] = paddings[2 * i];
    }
  }

  // visit(input&, filter&, output&) over all elements that meet.
  template <typename Visit>
  void ForEach(const ReferenceTensor& in, const ReferenceTensor& filter,
               const ReferenceTensor& out, const Visit& visit) const {
    for (int64_t n = 0; n < out.dims[0]; ++n) {
      for (int64_t o = 0; o < out.dims[1]; ++o) {
        for (int64_t c = 0; c < filter.dims[1]; ++c) {
          const int64_t group = o / (out.dims[1] / groups);
          Plane(in, filter, out, n, o, c, group * filter.dims[1] + c, visit);
        }
      }
    }
  }

 private:
  template <typename Visit>
  void Plane(const ReferenceTensor& in, const ReferenceTensor& filter,
             const ReferenceTensor& out, int64_t n, int64_t o, int64_t c,
             int64_t in_channel, const Visit& visit) const {
    for (int64_t y = 0; y < out.dims[2]; ++y) {
      for (int64_t x = 0; x < out.dims[3]; ++x) {
        for (int64_t i = 0; i < filter.dims[2]; ++i) {
          const int64_t iy = y * stride[0] - before[0] + i * dilation[0];
          if (iy < 0 || iy >= in.dims[2]) continue;
          for (int64_t j = 0; j < filter.dims[3]; ++j) {
            const int64_t ix = x * stride[1] - before[1] + j * dilation[1];
            if (ix < 0 || ix >= in.dims[3]) continue;
            visit(in.At(n, in_channel, iy, ix), filter.At(o, c, i, j),
                  out.At(n, o, y, x));
          }
        }
      }
    }
  }
};

void Clear(const ReferenceTensor& t, int64_t elements) {
  std::fill_n(t.data, elements, 0.0f);
}

ReferenceBody Forward(const BoundOp& op) {
  return [products = Products(op), input = op.InputIndex("Input"),
          filter = op.InputIndex("Filter"), bias = op.InputIndex("Bias"),
          elements = op.outputs()[0].elements()](const ReferenceCall& call) {
    const ReferenceTensor& out = call.outputs[0];
    Clear(out, elements);
    products.ForEach(call.inputs[input], call.inputs[filter], out,
                     [](float x, float w, float& y) { y += x * w; });
    if (bias < 0) return;
    for (int64_t n = 0; n < out.dims[0]; ++n) {
      for (int64_t o = 0; o < out.dims[1]; ++o) {
        const float b = call.inputs[bias].data[o];
        for (int64_t y = 0; y < out.dims[2]; ++y) {
          for (int64_t x = 0; x < out.dims[3]; ++x) out.At(n, o, y, x) += b;
        }
      }
    }
  };
}

ReferenceBody GradInput(const BoundOp& op) {
  return [products = Products(op), grad = op.InputIndex("OutputGrad"),
          filter = op.InputIndex("Filter"),
          elements = op.outputs()[0].elements()](const ReferenceCall& call) {
    Clear(call.outputs[0], elements);
    products.ForEach(call.outputs[0], call.inputs[filter], call.inputs[grad],
                     [](float& x, float w, float y) { x += y * w; });
  };
}

ReferenceBody GradFilter(const BoundOp& op) {
  return [products = Products(op), input = op.InputIndex("Input"),
          grad = op.InputIndex("OutputGrad"),
          elements = op.outputs()[0].elements()](const ReferenceCall& call) {
    Clear(call.outputs[0], elements);
    products.ForEach(call.inputs[input], call.outputs[0], call.inputs[grad],
                     [](float x, float& w, float y) { w += y * x; });
  };
}

}  // namespace

void RegisterCpuConvReference(KernelRegistry& registry) {
  AddForSchema(registry, "conv2d", ReferenceCandidate(Forward));
  AddForSchema(registry, "depthwise_conv2d", ReferenceCandidate(Forward));
  AddForSchema(registry, "conv2d_grad_input", ReferenceCandidate(GradInput));
  AddForSchema(registry, "conv2d_grad_filter", ReferenceCandidate(GradFilter));
}

}  // namespace kernels
}  // namespace halftone
