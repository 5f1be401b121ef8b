// Matrix products.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

absl::Span<const Dim> Leading(const Dims& dims) {
  return absl::MakeConstSpan(dims).subspan(0, dims.size() - 2);
}

absl::Status CheckMatmulRanks(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 2, kAnyRank, "[..., M, K]"));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Y", 2, kAnyRank, "[K, N] or [..., K, N]"));
  const Dims& x = c.Input("X").dims;
  const Dims& y = c.Input("Y").dims;
  if (y.size() == 2) {
    if (x.size() == 2 || !c.Bool("trans_x")) return absl::OkStatus();
    return AttrMismatch(c, "trans_x",
                        "false where X has leading dims and Y "
                        "none",
                        "transpose X first");
  }
  if (Leading(x) == Leading(y)) return absl::OkStatus();
  return SlotMismatch(
      c, "Y",
      absl::StrCat("rank 2, or the leading dims ", PrintDims(c, Leading(x)),
                   " of X, ", c.Print(c.Input("X"))),
      "leading dims are not broadcast");
}

absl::Status InferMatmul(InferContext& c) {
  HT_RETURN_IF_ERROR(CheckMatmulRanks(c));
  const Dims& x = c.Input("X").dims;
  const Dims& y = c.Input("Y").dims;
  Dim m = x[x.size() - 2], xk = x.back();
  Dim yk = y[y.size() - 2], n = y.back();
  if (c.Bool("trans_x")) std::swap(m, xk);
  if (c.Bool("trans_y")) std::swap(yk, n);
  if (xk != yk) {
    return SlotMismatch(
        c, "Y",
        absl::StrCat(c.Bool("trans_y") ? "[..., N, K]" : "[..., K, N]",
                     " with K = ", PrintDims(c, {xk}), " of X, ",
                     c.Print(c.Input("X"))),
        "check trans_x and trans_y, or flatten X");
  }
  HT_RETURN_IF_ERROR(ExpectDims(c, "Bias", {n}, "N of Y"));
  Dims out(x.begin(), x.end() - 2);
  out.push_back(m);
  out.push_back(n);
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// Out = a * b with transposes, in the dtype of a and b.
OpBuilder Multiply(GradContext& g, ValueId a, bool trans_a, ValueId b,
                   bool trans_b) {
  OpBuilder product = g.Emit("matmul");
  product.In("X", a).In("Y", b);
  if (trans_a) product.Attr("trans_x", true);
  if (trans_b) product.Attr("trans_y", true);
  return product;
}

// `value` with the dims [begin, end] as one.
absl::StatusOr<ValueId> Flatten(GradContext& g, ValueId value, int begin,
                                int end) {
  if (begin >= end) return value;
  return BuildValue(g, g.Emit("flatten")
                           .In("X", value)
                           .Attr("start_axis", int64_t{begin})
                           .Attr("stop_axis", int64_t{end}));
}

absl::Status GradMatmul(GradContext& g) {
  const ValueId x = g.Input("X"), y = g.Input("Y");
  const bool trans_x = std::get<bool>(g.Attr("trans_x"));
  const bool trans_y = std::get<bool>(g.Attr("trans_y"));
  const int rank = g.type(x).rank();
  HT_ASSIGN_OR_RETURN(const ValueId out_grad,
                      CastTo(g, g.OutGrad("Out"), InputDType(g, "X")));
  // First, as in conv2d's gradient.
  if (g.Has("Bias") && g.Wants("Bias")) {
    std::vector<int64_t> all_but_last;
    for (int i = 0; i + 1 < rank; ++i) all_but_last.push_back(i);
    HT_RETURN_IF_ERROR(g.SetGrad(
        "Bias",
        g.Emit("reduce_sum").In("X", out_grad).Attr("dim", all_but_last)));
  }
  if (g.Wants("X")) {
    HT_RETURN_IF_ERROR(
        g.SetGrad("X", trans_x ? Multiply(g, y, trans_y, out_grad, true)
                               : Multiply(g, out_grad, false, y, !trans_y)));
  }
  if (g.Wants("Y")) {
    ValueId rows = x, row_grads = out_grad;
    if (g.type(y).rank() == 2) {  // X's leading dims are rows
      HT_ASSIGN_OR_RETURN(rows, Flatten(g, x, 0, rank - 2));
      HT_ASSIGN_OR_RETURN(row_grads, Flatten(g, out_grad, 0, rank - 2));
    }
    HT_RETURN_IF_ERROR(g.SetGrad(
        "Y", trans_y ? Multiply(g, row_grads, true, rows, trans_x)
                     : Multiply(g, rows, !trans_x, row_grads, false)));
  }
  return absl::OkStatus();
}

// How many leading dims are rows: from 1 to rank - 1.
absl::StatusOr<int> RowDims(const InferContext& c, absl::string_view attr,
                            int rank) {
  const int64_t split = c.Int(attr);
  if (split >= 1 && split < rank) return static_cast<int>(split);
  return AttrMismatch(c, attr, absl::StrCat("1 to ", rank - 1));
}

absl::Status InferMul(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 2, kAnyRank, "[rows..., columns...]"));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Y", 2, kAnyRank, "[rows..., columns...]"));
  const Dims& x = c.Input("X").dims;
  const Dims& y = c.Input("Y").dims;
  HT_ASSIGN_OR_RETURN(const int x_split,
                      RowDims(c, "x_num_col_dims", x.size()));
  HT_ASSIGN_OR_RETURN(const int y_split,
                      RowDims(c, "y_num_col_dims", y.size()));
  const Dim columns = Product(absl::MakeConstSpan(x).subspan(x_split));
  const Dim rows = Product(absl::MakeConstSpan(y).subspan(0, y_split));
  if (columns != rows) {
    return SlotMismatch(c, "Y",
                        absl::StrCat("rows of ", PrintDims(c, {columns}),
                                     " in all, X's "
                                     "columns, X being ",
                                     c.Print(c.Input("X"))),
                        "check x_num_col_dims and y_num_col_dims");
  }
  Dims out(x.begin(), x.begin() + x_split);
  out.insert(out.end(), y.begin() + y_split, y.end());
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// `value` as a matrix whose rows are its first `split` dims.
absl::StatusOr<ValueId> AsMatrix(GradContext& g, ValueId value, int split) {
  const int rank = g.type(value).rank();
  HT_ASSIGN_OR_RETURN(const ValueId columns,
                      Flatten(g, value, split, rank - 1));
  return Flatten(g, columns, 0, split - 1);
}

// Sets the product as the gradient of the slot, with the slot's dims.
absl::Status SetProduct(GradContext& g, absl::string_view slot,
                        OpBuilder product) {
  if (g.type(g.Input(slot)).rank() == 2) {
    return g.SetGrad(slot, std::move(product));
  }
  HT_ASSIGN_OR_RETURN(const ValueId matrix, BuildValue(g, std::move(product)));
  return g.SetGrad(
      slot, g.Emit("reshape_like").In("X", matrix).In("Like", g.Input(slot)));
}

absl::Status GradMatrixMul(GradContext& g) {
  const int x_split = std::get<int64_t>(g.Attr("x_num_col_dims"));
  const int y_split = std::get<int64_t>(g.Attr("y_num_col_dims"));
  HT_ASSIGN_OR_RETURN(ValueId out_grad,
                      CastTo(g, g.OutGrad("Out"), InputDType(g, "X")));
  HT_ASSIGN_OR_RETURN(out_grad, AsMatrix(g, out_grad, x_split));
  if (g.Wants("X")) {
    HT_ASSIGN_OR_RETURN(const ValueId y, AsMatrix(g, g.Input("Y"), y_split));
    HT_RETURN_IF_ERROR(
        SetProduct(g, "X", Multiply(g, out_grad, false, y, true)));
  }
  if (g.Wants("Y")) {
    HT_ASSIGN_OR_RETURN(const ValueId x, AsMatrix(g, g.Input("X"), x_split));
    HT_RETURN_IF_ERROR(
        SetProduct(g, "Y", Multiply(g, x, true, out_grad, false)));
  }
  return absl::OkStatus();
}

// Two operations for each output element and each of the K that are summed.
Dim MatmulFlops(const Block& block, const Op& op) {
  const Dims& y = block.type(op.in(1)).dims;
  const bool last = y.size() < 2 || AttrAs<bool>(op, "trans_y");
  return Dim(2) * block.type(op.out(0)).Elements() *
         y[y.size() - (last ? 1 : 2)];
}
Dim MulFlops(const Block& block, const Op& op) {
  const Dims& y = block.type(op.in(1)).dims;
  Dim flops = Dim(2) * block.type(op.out(0)).Elements();
  const int64_t rows = AttrAs<int64_t>(op, "y_num_col_dims");
  for (int64_t i = 0; i < rows; ++i) flops = flops * y[i];
  return flops;
}

}  // namespace

void RegisterMatmul(OpRegistry& registry) {
  registry.Add(
      OpSchema("matmul")
          .Doc("Out = X * Y + Bias, computed in f32 and rounded once. Y of "
               "rank 2 is shared by X's leading dims; otherwise both have the "
               "same leading dims.")
          .TypeVar("T", kFloatTypes)
          .TypeVar("TOut", kFloatTypes, "T")
          .In("X", "T", "[..., M, K], or [..., K, M] with trans_x")
          .In("Y", "T", "[K, N] or [..., K, N]; K and N swapped with trans_y")
          .In("Bias", "T", "[N]", kOptional)
          .Out("Out", "TOut", "[..., M, N]")
          .Attr("trans_x", false, "swap the last two dims of X")
          .Attr("trans_y", false, "swap the last two dims of Y")
          .Infer(InferMatmul)
          .Lossy("X")
          .Lossy("Y")
          .Costs(Work::kProduct, MatmulFlops)
          .Grad(GradMatmul)
          .Amp(AmpClass::kWhite)
          .Accumulate(DType::kF32));
  registry.AddAlias("matmul_v2", "matmul");
  registry.Add(
      OpSchema("mul")
          .Doc("Out = X * Y, both taken as matrices: the first *_num_col_dims "
               "dims are rows, the others columns.")
          .TypeVar("T", kFloatTypes)
          .TypeVar("TOut", kFloatTypes, "T")
          .In("X", "T", "[rows..., columns...]")
          .In("Y", "T", "[rows..., columns...]; as many rows as X has columns")
          .Out("Out", "TOut", "[rows of X..., columns of Y...]")
          .Attr("x_num_col_dims", int64_t{1}, "dims of X that are rows")
          .Attr("y_num_col_dims", int64_t{1}, "dims of Y that are rows")
          .Infer(InferMul)
          .Lossy("X")
          .Lossy("Y")
          .Costs(Work::kProduct, MulFlops)
          .Grad(GradMatrixMul)
          .Amp(AmpClass::kWhite)
          .Accumulate(DType::kF32));
}

}  // namespace ops
}  // namespace halftone
