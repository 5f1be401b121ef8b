// Matrix products through oneDNN, and as loops.
#include "kernels/cpu/matmul.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/matmul_shape.h"
#include "kernels/cpu/reference.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;

OnednnOperand Operand(int arg, bool output, const ProductOperand& at,
                      const Matrix& m, bool batched) {
  OnednnOperand operand;
  operand.arg = arg;
  operand.position = at.position;
  operand.output = output;
  operand.dtype = at.dtype;
  operand.dims = {m.rows, m.columns};
  operand.strides = {m.row_stride, m.column_stride};
  if (batched) {
    operand.dims.insert(operand.dims.begin(), m.batch);
    operand.strides.insert(operand.strides.begin(), m.batch_stride);
  }
  return operand;
}

OnednnSpec SpecOf(const BoundOp& op, const Product& p,
                  const MatmulPositions& at) {
  ProductOperand bias;
  if (at.bias >= 0) bias = {at.bias, op.Input("Bias").dtype};
  return ProductSpec(p, {at.x, op.Input("X").dtype},
                     {at.y, op.Input("Y").dtype}, {0, op.Output("Out").dtype},
                     bias);
}

ReferenceBody Loops(const BoundOp& op, const Product& p, int bias) {
  return [p, x_at = op.InputIndex("X"), y_at = op.InputIndex("Y"),
          bias](const ReferenceCall& call) {
    for (int64_t b = 0; b < p.out.batch; ++b) {
      const float* x = call.inputs[x_at].data + b * p.x.batch_stride;
      const float* y =
          call.inputs[y_at].data + (p.y.batch == 1 ? 0 : b * p.y.batch_stride);
      float* out = call.outputs[0].data + b * p.out.batch_stride;
      for (int64_t i = 0; i < p.out.rows; ++i) {
        for (int64_t j = 0; j < p.out.columns; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < p.x.columns; ++k) {
            sum += x[i * p.x.row_stride + k * p.x.column_stride] *
                   y[k * p.y.row_stride + j * p.y.column_stride];
          }
          if (bias >= 0) sum += call.inputs[bias].data[j];
          out[i * p.out.row_stride + j] = sum;
        }
      }
    }
  };
}

}  // namespace

OnednnSpec ProductSpec(const Product& product, const ProductOperand& x,
                       const ProductOperand& y, const ProductOperand& out,
                       const ProductOperand& bias) {
  const bool batched = product.y.batch > 1, biased = bias.position >= 0;
  OnednnSpec spec;
  spec.operands = {Operand(DNNL_ARG_SRC, false, x, product.x, batched),
                   Operand(DNNL_ARG_WEIGHTS, false, y, product.y, batched),
                   Operand(DNNL_ARG_DST, true, out, product.out, batched)};
  if (biased) {
    const int64_t columns = product.out.columns;
    spec.operands.push_back(Operand(DNNL_ARG_BIAS, false, bias,
                                    {1, 1, columns, 0, columns, 1}, batched));
  }
  spec.describe = [biased](const dnnl::engine& engine,
                           const std::vector<memory::desc>& d,
                           const dnnl::primitive_attr& attr) {
    return dnnl::matmul::primitive_desc(
        biased ? dnnl::matmul::desc(d[0], d[1], d[3], d[2])
               : dnnl::matmul::desc(d[0], d[1], d[2]),
        attr, engine);
  };
  return spec;
}

OnednnSpec MatmulForward(const BoundOp& op, const MatmulPositions& at) {
  return SpecOf(op, MatmulOf(op), at);
}

void RegisterCpuMatmul(KernelRegistry& registry) {
  AddForSchema(
      registry, "matmul", OnednnCandidate("onednn", [](const BoundOp& op) {
        return MatmulForward(op, {op.InputIndex("X"), op.InputIndex("Y"),
                                  op.InputIndex("Bias")});
      }));
  AddForSchema(registry, "matmul", ReferenceCandidate([](const BoundOp& op) {
                 return Loops(op, MatmulOf(op), op.InputIndex("Bias"));
               }));
  AddForSchema(registry, "mul",
               OnednnCandidate("onednn", [](const BoundOp& op) {
                 return SpecOf(op, MulOf(op),
                               {op.InputIndex("X"), op.InputIndex("Y"), -1});
               }));
  AddForSchema(registry, "mul", ReferenceCandidate([](const BoundOp& op) {
                 return Loops(op, MulOf(op), -1);
               }));
}

}  // namespace kernels
}  // namespace halftone
