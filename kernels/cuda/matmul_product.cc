#include "kernels/cuda/matmul_product.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/fusion_body.h"
#include "kernels/common/gelu_settings.h"

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
  BoundProduct bound;
  bound.a = ByColumns(product.y, op.Input("Y").dtype);
  bound.b = ByColumns(product.x, op.Input("X").dtype);
  bound.d = ByColumns(product.out, op.Output("Out").dtype);
  for (ColumnMatrix* m : {&bound.a, &bound.b, &bound.d}) {
    m->batch = product.out.batch;
  }
  bound.depth = product.x.columns;
  return bound;
}

void SetBias(const BoundOp& op, Place at, BoundProduct* bound) {
  if (!at.there()) return;
  bound->bias_at = at;
  bound->bias = op.Input("Bias").dtype;
  bound->epilogue = Epilogue::kBias;
}

class FusionBinder {
 public:
  explicit FusionBinder(const BoundOp& fusion) : fusion_(fusion) {}

  // A body of other ops than its pattern's is refused.
  BoundProduct Bind() {
    const std::vector<BoundOp> products = OpsOfBody(fusion_, "matmul");
    if (products.size() != 1) return Refuse("it has no product");
    BindOperands(products[0]);
    sums_ = OpsOfBody(fusion_, "reduce_sum");
    const std::vector<BoundOp> gelu = OpsOfBody(fusion_, "gelu");
    const std::vector<BoundOp> gelu_grad = OpsOfBody(fusion_, "gelu_grad");
    const std::vector<BoundOp> relu_grad = OpsOfBody(fusion_, "relu_grad");
    if (gelu.size() == 1) {
      BindGelu(products[0], gelu[0]);
    } else if (gelu_grad.size() == 1) {
      if (!IsTanh(gelu_grad[0])) return Refuse("its gelu is not by tanh");
      BindGradient(products[0], gelu_grad[0], "X", Epilogue::kGeluGrad);
    } else if (relu_grad.size() == 1) {
      BindGradient(products[0], relu_grad[0], "Out", Epilogue::kReluGrad);
    } else if (sums_.size() == 1) {
      BindSums(products[0]);
    } else {
      return Refuse("it has no epilogue");
    }
    Check(products[0]);
    return bound_;
  }

 private:
  BoundProduct Refuse(absl::string_view why) {
    if (bound_.refused.empty()) bound_.refused = std::string(why);
    return bound_;
  }
  static Place Result(const BoundOp& op, absl::string_view slot) {
    return {ResultPosition(op, slot), true};
  }
  // Whether `op` reads in the slot what `producer` makes.
  static bool Reads(const BoundOp& op, absl::string_view slot,
                    const BoundOp& producer) {
    return op.op().inputs.all()[op.InputIndex(slot)] == producer.op().out(0);
  }

  // An argument of the fusion that the product reads, flattened or not.
  Place Operand(const BoundOp& product, absl::string_view slot) {
    const Place direct = {ArgumentPosition(product, slot)};
    if (direct.there()) return direct;
    const ValueId value = product.op().inputs.all()[product.InputIndex(slot)];
    for (const BoundOp& view : OpsOfBody(fusion_, "flatten")) {
      if (view.op().out(0) == value) return {ArgumentPosition(view, "X")};
    }
    return {};
  }

  void BindOperands(const BoundOp& product) {
    bound_ = BindProduct(product, MatmulOf(product));
    bound_.a_at = Operand(product, "Y");
    bound_.b_at = Operand(product, "X");
    SetBias(product, {ArgumentPosition(product, "Bias")}, &bound_);
  }

  void BindGelu(const BoundOp& product, const BoundOp& gelu) {
    if (!IsTanh(gelu)) Refuse("its gelu is not by tanh");
    if (!Reads(gelu, "X", product)) Refuse("its gelu is not of the product");
    bound_.d_at = Result(gelu, "Out");
    bound_.aux_at = Result(product, "Out");
    bound_.epilogue =
        bound_.aux_at.there() ? Epilogue::kGeluAux : Epilogue::kGelu;
  }

  void BindGradient(const BoundOp& product, const BoundOp& gradient,
                    absl::string_view read, Epilogue epilogue) {
    if (bound_.bias_at.there()) Refuse("a gradient's product has no bias");
    if (!Reads(gradient, "OutGrad", product)) {
      Refuse("its gradient is not of the product");
    }
    bound_.epilogue = epilogue;
    bound_.d_at = Result(gradient, "XGrad");
    bound_.aux_at = {ArgumentPosition(gradient, read)};
    if (!bound_.aux_at.there()) Refuse("what its activation read is not there");
    if (gradient.Input(read).dtype != bound_.d.dtype) {
      Refuse("what its activation read has another dtype");
    }
    if (sums_.empty()) return;
    bound_.sums_at = Result(sums_[0], "Out");
    if (!Reads(sums_[0], "X", gradient)) Refuse("it sums something else");
  }

  void BindSums(const BoundOp& product) {
    if (bound_.bias_at.there()) Refuse("a gradient's product has no bias");
    bound_.d_at = Result(product, "Out");
    bound_.sums_at = Result(sums_[0], "Out");
    const int summed = ArgumentPosition(sums_[0], "X");
    const bool of_a = summed == bound_.a_at.position;
    if (!of_a && summed != bound_.b_at.position) {
      Refuse("it sums something else");
    }
    // What is summed is what products are added up over.
    if (of_a == product.Bool(of_a ? "trans_y" : "trans_x")) {
      Refuse("it sums over other rows than the product");
    }
    if (!bound_.sums_at.there()) Refuse("nobody reads its sums");
    bound_.epilogue = of_a ? Epilogue::kSumA : Epilogue::kSumB;
  }

  // What cuBLASLt's documentation and NVIDIA's own bindings and tests rule out.
  void Check(const BoundOp& product) {
    for (const Place& at : {bound_.a_at, bound_.b_at, bound_.d_at}) {
      if (!at.there()) Refuse("an operand of its product is hidden in it");
    }
    const DType dtype = bound_.d.dtype;
    if (product.Input("X").dtype != dtype) {
      Refuse("the product has another dtype than its operands");
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
    if (bound_.sums_at.there()) CheckSums();
  }

  void CheckSums() {
    if (bound_.d.batch > 1) {
      Refuse("cuBLASLt makes one sum for each product of a batch");
    }
    const BoundOp& sum = sums_[0];
    const int rank = sum.Input("X").rank();
    std::vector<int64_t> all_but_last;
    for (int i = 0; i + 1 < rank; ++i) all_but_last.push_back(i);
    if (sum.Ints("dim") != all_but_last) Refuse("it sums over other dims");
    if (sum.Output("Out").dtype != bound_.d.dtype) {
      Refuse("its sums have another dtype than the product");
    }
    const bool of_operand = bound_.epilogue == Epilogue::kSumA ||
                            bound_.epilogue == Epilogue::kSumB;
    if (of_operand && bound_.summed().rows == 1) {
      Refuse("cuBLASLt does not sum an operand of one column");
    }
  }

  const BoundOp& fusion_;
  BoundProduct bound_;
  std::vector<BoundOp> sums_;
};

}  // namespace

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
