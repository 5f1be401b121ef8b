#include "kernels/cuda/matmul_product.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// What cuBLASLt asks of an epilogue's other matrix: bits and elements.
constexpr int64_t kMaskPitch = 128, kAuxPitch = 8;

ColumnMatrix ByColumns(const Matrix& m, DType dtype) {
  const Stored stored = StoredAs(m);
  ColumnMatrix by_columns;
  by_columns.dtype = dtype;
  by_columns.rows = stored.width;
  by_columns.columns = stored.height;
  by_columns.pitch = stored.pitch;
  by_columns.transposed = stored.transposed;
  by_columns.batch_stride = m.batch > 1 ? m.batch_stride : 0;
  return by_columns;
}

BoundProduct BindProduct(const BoundOp& op, const Product& product) {
  return cuda::BindProduct(product, op.Input("X").dtype, op.Input("Y").dtype,
                           op.Output("Out").dtype);
}

void SetBias(const BoundOp& op, Place at, BoundProduct* bound) {
  if (!at.there()) return;
  bound->bias_at = at;
  bound->bias = op.Input("Bias").dtype;
  bound->epilogue = Epilogue::kBias;
}

class FusionBinder {
 public:
  explicit FusionBinder(const BoundOp& fusion) : fused_(fusion) {}

  BoundProduct Bind() {
    const BoundOp product = fused_.Of("product");
    BindOperands(product);
    const std::string& pattern = fused_.pattern();
    if (pattern == "matmul_gelu") {
      BindGelu(product);
    } else if (pattern == "matmul_gelu_grad") {
      BindGradient("X", Epilogue::kGeluGrad);
    } else if (pattern == "matmul_relu_grad") {
      BindGradient("Out", Epilogue::kReluGrad);
    } else {
      BindSums(product);
    }
    Check();
    return bound_;
  }

 private:
  void Refuse(absl::string_view why) {
    if (bound_.refused.empty()) bound_.refused = std::string(why);
  }
  static Place Result(const BoundOp& op, absl::string_view slot) {
    return {ResultPosition(op, slot), true};
  }
  bool IsSums() const { return fused_.pattern() == "matmul_bias_grad"; }

  // An argument of the fusion that the product reads, flattened or not.
  Place Operand(const BoundOp& product, absl::string_view slot) {
    const Place direct = {ArgumentPosition(product, slot)};
    if (direct.there() || !IsSums()) return direct;
    return {ArgumentPosition(fused_.Of("view"), "X")};
  }

  void BindOperands(const BoundOp& product) {
    bound_ = BindProduct(product, MatmulOf(product));
    bound_.a_at = Operand(product, "Y");
    bound_.b_at = Operand(product, "X");
    SetBias(product, {ArgumentPosition(product, "Bias")}, &bound_);
  }

  void BindGelu(const BoundOp& product) {
    bound_.d_at = Result(fused_.Of("gelu"), "Out");
    bound_.aux_at = Result(product, "Out");
    bound_.epilogue =
        bound_.aux_at.there() ? Epilogue::kGeluAux : Epilogue::kGelu;
  }

  void BindGradient(absl::string_view read, Epilogue epilogue) {
    const BoundOp gradient = fused_.Of("gradient");
    bound_.epilogue = epilogue;
    bound_.d_at = Result(gradient, "XGrad");
    bound_.aux_at = {ArgumentPosition(gradient, read)};
    if (!bound_.aux_at.there()) Refuse("what its activation read is not there");
    if (fused_.Has("sum")) {
      bound_.sums_at = Result(fused_.Of("sum"), "Out");
      CheckSums();
    }
  }

  // What is summed is what products are added up over.
  void BindSums(const BoundOp& product) {
    const BoundOp sum = fused_.Of("sum");
    bound_.d_at = Result(product, "Out");
    bound_.sums_at = Result(sum, "Out");
    if (!bound_.sums_at.there()) Refuse("nobody reads its sums");
    const bool of_a = ArgumentPosition(sum, "X") == bound_.a_at.position;
    bound_.epilogue = of_a ? Epilogue::kSumA : Epilogue::kSumB;
    CheckSums();
    if (bound_.summed().rows == 1) {
      Refuse("cuBLASLt does not sum an operand of one column");
    }
  }

  void CheckSums() {
    if (bound_.sums_at.there() && bound_.d.batch > 1) {
      Refuse("cuBLASLt makes one sum for each product of a batch");
    }
  }

  // What cuBLASLt's documentation and NVIDIA's own bindings and tests rule out.
  void Check() {
    for (const Place& at : {bound_.a_at, bound_.b_at, bound_.d_at}) {
      if (!at.there()) Refuse("an operand of its product is hidden in it");
    }
    if (bound_.elements() == 0 || bound_.depth == 0) Refuse("it is empty");
    const bool gradient = bound_.epilogue == Epilogue::kGeluGrad ||
                          bound_.epilogue == Epilogue::kReluGrad;
    const bool gelu = bound_.epilogue == Epilogue::kGeluAux ||
                      bound_.epilogue == Epilogue::kGeluGrad;
    if (gradient && bound_.depth == 1) {
      Refuse("cuBLASLt takes no gradient of a product of depth 1");
    }
    if (gelu && bound_.d.rows % kAuxPitch != 0) {
      Refuse(
          absl::StrCat("cuBLASLt wants what gelu read in rows of a multiple "
                       "of ",
                       kAuxPitch, " elements, found ", bound_.d.rows));
    }
  }

  FusedOp fused_;
  BoundProduct bound_;
};

}  // namespace

BoundProduct BindProduct(const Product& product, DType x, DType y, DType out) {
  BoundProduct bound;
  bound.a = ByColumns(product.y, y);
  bound.b = ByColumns(product.x, x);
  bound.d = ByColumns(product.out, out);
  for (ColumnMatrix* m : {&bound.a, &bound.b, &bound.d}) {
    m->batch = product.out.batch;
  }
  bound.depth = product.x.columns;
  return bound;
}

int64_t BoundProduct::aux_pitch() const {
  if (epilogue != Epilogue::kReluGrad) return d.rows;
  return (d.rows + kMaskPitch - 1) / kMaskPitch * kMaskPitch;
}

int64_t BoundProduct::mask_bytes() const {
  if (epilogue != Epilogue::kReluGrad) return 0;
  return aux_pitch() / 8 * d.columns * d.batch;
}

const ColumnMatrix& BoundProduct::summed() const {
  return epilogue == Epilogue::kSumA ? a : b;
}

BoundProduct BindMatmul(const BoundOp& op) {
  BoundProduct bound = BindProduct(op, MatmulOf(op));
  bound.a_at = {op.InputIndex("Y")};
  bound.b_at = {op.InputIndex("X")};
  bound.d_at = {op.OutputIndex("Out"), true};
  SetBias(op, {op.InputIndex("Bias")}, &bound);
  return bound;
}

BoundProduct BindMul(const BoundOp& op) {
  BoundProduct bound = BindProduct(op, MulOf(op));
  bound.a_at = {op.InputIndex("Y")};
  bound.b_at = {op.InputIndex("X")};
  bound.d_at = {op.OutputIndex("Out"), true};
  return bound;
}

BoundProduct BindMatmulFusion(const BoundOp& fusion) {
  return FusionBinder(fusion).Bind();
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
