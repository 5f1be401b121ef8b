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

OnednnOperand Operand(int arg, int position, bool output, DType dtype,
                      const Matrix& m, bool batched) {
  OnednnOperand operand;
  operand.arg = arg;
  operand.position = position;
  operand.output = output;
  operand.dtype = dtype;
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
  const bool batched = p.y.batch > 1;
  OnednnSpec spec;
  // As they lie: what a reorder costs, a product rarely saves.
  spec.operands = {
      Operand(DNNL_ARG_SRC, at.x, false, op.Input("X").dtype, p.x, batched),
      Operand(DNNL_ARG_WEIGHTS, at.y, false, op.Input("Y").dtype, p.y, batched),
      Operand(DNNL_ARG_DST, 0, true, op.Output("Out").dtype, p.out, batched)};
  if (at.bias >= 0) {
    const Matrix bias = {1, 1, p.out.columns, 0, p.out.columns, 1};
    spec.operands.push_back(Operand(DNNL_ARG_BIAS, at.bias, false,
                                    op.Input("Bias").dtype, bias, batched));
  }
  spec.describe = [bias = at.bias >= 0](const dnnl::engine& engine,
                                        const std::vector<memory::desc>& d,
                                        const dnnl::primitive_attr& attr) {
    return dnnl::matmul::primitive_desc(
        bias ? dnnl::matmul::desc(d[0], d[1], d[3], d[2])
             : dnnl::matmul::desc(d[0], d[1], d[2]),
        attr, engine);
  };
  return spec;
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
