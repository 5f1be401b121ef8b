// Convolutions and products with what a library does in their epilogue, while
// a tile is still in registers.
#include <string>

#include "graph/fusions/families.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace fusions {
namespace {

using Context = FusionPattern::Context;

bool HasBias(const Context& linear) { return linear.In("Bias").valid(); }

// Libraries have no other gelu in their products.
bool IsByTanh(const Context& gelu) {
  return AttrAs<std::string>(gelu.op, "approximate") == "tanh";
}

// Of one dtype, its result's, too.
bool IsOfOneDtype(const Context& product) {
  return product.InType("X").dtype == product.block.dtype(product.op.out(0));
}

// One dtype, over all dims but the last.
bool SumsRows(const Context& sum) {
  const TensorType& x = sum.InType("X");
  if (x.dtype != sum.block.dtype(sum.op.out(0)) ||
      AttrAs<bool>(sum.op, "keep_dim")) {
    return false;
  }
  std::vector<int64_t> all_but_last;
  for (int i = 0; i + 1 < x.rank(); ++i) all_but_last.push_back(i);
  return !all_but_last.empty() &&
         AttrAs<std::vector<int64_t>>(sum.op, "dim") == all_but_last;
}

// Whether the matmul adds over the rows of the matrix `g`, for the same part of
// the step as the sum.
bool AddsRowsOf(const Context& product, ValueId g) {
  if (!IsOfOneDtype(product) || product.In("Bias").valid() ||
      product.op.role != product.Of("sum").role) {
    return false;
  }
  const ValueId x = product.In("X"), y = product.In("Y");
  if (x == y || product.block.type(x).rank() != 2 ||
      product.block.type(y).rank() != 2) {
    return false;
  }
  return (y == g && !AttrAs<bool>(product.op, "trans_y")) ||
         (x == g && AttrAs<bool>(product.op, "trans_x"));
}

// What a product reads instead of the leading dims, for it alone.
bool IsFlatForProduct(const Context& view) {
  const Block& block = view.block;
  const TensorType& g = view.InType("X");
  const ValueId rows = view.op.out(0);
  if (g.rank() == 2 || block.type(rows).rank() != 2 ||
      block.value(rows).uses.size() != 1 ||
      block.type(rows).dims[1] != g.dims.back()) {
    return false;
  }
  const OpId reader = block.value(rows).uses[0].op;
  return block.op(reader).schema->name() == "matmul" &&
         AddsRowsOf({block, block.op(reader), view.group, view.held}, rows) &&
         OnlyFor(block, reader, rows, view.held) == view.op.id;
}

// An activation's gradient of a product that nothing else reads, and, of one
// matrix, the sum of its rows: the gradient of the bias of the product that the
// activation read.
FusionPattern ActivationGrad(const std::string& name, const std::string& type,
                             FusionPattern::Condition condition) {
  FusionPattern pattern(
      name, type +
                "(.., matmul(X, Y)) and the sum of its rows, if that of one "
                "matrix is read");
  pattern.Last("sum", "reduce_sum")
      .Optional()
      .If(SumsRows)
      .Producer("gradient", type, {"sum.X"})
      .If([condition](const Context& gradient) {
        return (!gradient.group.Has("sum") ||
                gradient.Of("sum").role == gradient.op.role) &&
               (!condition || condition(gradient));
      })
      .Hidden("product", "matmul", {"gradient.OutGrad"})
      .If([](const Context& product) {
        // Of a batch a library makes one sum for each of its products.
        return IsOfOneDtype(product) && !product.In("Bias").valid() &&
               (!product.group.Has("sum") || product.InType("Y").rank() == 2);
      })
      .KeyedBy("product.X");
  return pattern;
}

}  // namespace

FusionPattern ConvBiasRelu() {
  return FusionPattern("conv_bias_relu", "relu(conv2d(Input, Filter, Bias))")
      .Last("relu", "relu")
      .Hidden("conv", "conv2d", {"relu.X"})
      .If(HasBias)
      .KeyedBy("conv.Input");
}

FusionPattern MatmulBiasRelu() {
  return FusionPattern("matmul_bias_relu", "relu(matmul(X, Y, Bias))")
      .Last("relu", "relu")
      .Hidden("product", "matmul", {"relu.X"})
      .If(HasBias)
      .KeyedBy("product.X");
}

// What the gradient reads, the product itself, the fusion makes, too.
FusionPattern MatmulGelu() {
  return FusionPattern("matmul_gelu",
                       "gelu(matmul(X, Y)) by tanh, with or without Bias")
      .Last("gelu", "gelu")
      .If(IsByTanh)
      .Producer("product", "matmul", {"gelu.X"})
      .If([](const Context& product) {
        return IsOfOneDtype(product) &&
               product.op.role == product.Of("gelu").role;
      })
      .KeyedBy("product.X");
}

FusionPattern MatmulGeluGrad() {
  return ActivationGrad("matmul_gelu_grad", "gelu_grad", IsByTanh);
}

FusionPattern MatmulReluGrad() {
  return ActivationGrad("matmul_relu_grad", "relu_grad", nullptr);
}

// The gradients of a product's matrix and of its bias, from one look at g.
FusionPattern MatmulBiasGrad() {
  return FusionPattern("matmul_bias_grad",
                       "matmul(X, g) or matmul(g, Y) over the rows of g, and "
                       "reduce_sum(g) of those; g may be flattened for the "
                       "product")
      .Last("sum", "reduce_sum")
      .If(SumsRows)
      .Reader("view", "flatten", {"sum.X"})
      .Optional()
      .If(IsFlatForProduct)
      .Reader("product", "matmul", {"view.Out", "sum.X"})
      .If([](const Context& product) {
        const bool flat = product.group.Has("view");
        return AddsRowsOf(product, flat ? product.Of("view").out(0)
                                        : product.Of("sum").in(0));
      })
      .KeyedBy("product.X");
}

}  // namespace fusions
}  // namespace halftone
