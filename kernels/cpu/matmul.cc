// Matrix products through oneDNN, and as loops.
#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/reference.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;

// A product as a batch of matrices [batch, rows, columns] with strides.
struct Matrix {
  int64_t batch = 1, rows = 1, columns = 1;
  int64_t batch_stride = 0, row_stride = 1, column_stride = 1;
};

int64_t ProductOf(const TensorDesc& desc, int begin, int end) {
  return std::accumulate(desc.dims.begin() + begin, desc.dims.begin() + end,
                         int64_t{1}, std::multiplies<int64_t>());
}

// The last two dims are the matrix, swapped if `transposed`; those before
// are the batch, or rows too if `flat`.
Matrix MatrixOf(const TensorDesc& desc, bool transposed, bool flat) {
  const int rank = desc.rank();
  Matrix m;
  m.rows = desc.dims[rank - 2];
  m.columns = desc.dims[rank - 1];
  m.batch = ProductOf(desc, 0, rank - 2);
  if (flat) {
    m.rows *= m.batch;
    m.batch = 1;
  }
  m.row_stride = m.columns;
  m.batch_stride = m.rows * m.columns;
  if (transposed) {
    std::swap(m.rows, m.columns);
    std::swap(m.row_stride, m.column_stride);
  }
  return m;
}

struct Product {
  Matrix x, y, out;
};

Product MatmulOf(const BoundOp& op) {
  const bool flat = op.Input("Y").rank() == 2;
  Product p;
  p.x = MatrixOf(op.Input("X"), op.Bool("trans_x"), flat);
  p.y = MatrixOf(op.Input("Y"), op.Bool("trans_y"), false);
  p.out = MatrixOf(op.Output("Out"), false, flat);
  return p;
}

Product MulOf(const BoundOp& op) {
  const auto matrix = [](const TensorDesc& desc, int64_t split) {
    Matrix m;
    m.rows = ProductOf(desc, 0, static_cast<int>(split));
    m.columns = ProductOf(desc, static_cast<int>(split), desc.rank());
    m.row_stride = m.columns;
    m.batch_stride = m.rows * m.columns;
    return m;
  };
  Product p;
  p.x = matrix(op.Input("X"), op.Int("x_num_col_dims"));
  p.y = matrix(op.Input("Y"), op.Int("y_num_col_dims"));
  p.out = matrix(op.Output("Out"), op.Int("x_num_col_dims"));
  return p;
}

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
  spec.any_format = false;  // what a reorder costs, a product rarely saves
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
