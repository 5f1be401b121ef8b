// Products and norms of Paddle's that are several ops of ours.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/einsum.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;

EinsumOperand EinsumOperandOf(const PaddleOperand& x) {
  return {x.value, DimsOf(x.dims)};
}

}  // namespace

void EinsumOf(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"Operands*"}, scope, result);
  if (!in.ok()) return;
  std::vector<EinsumOperand> operands;
  for (int i = 0; i < in.size(); ++i)
    operands.push_back(EinsumOperandOf(in[i]));
  Parts parts = in.Write();
  const std::string equation = StringAttr(op, "equation", "");
  std::string wrong;
  const std::string made = WriteEinsum(parts, equation, operands, &wrong);
  if (!wrong.empty()) {
    result->refusals.push_back(
        {absl::StrCat("equation ", equation), absl::StrCat(": ", wrong)});
    return;
  }
  parts.EndWith(made);
}

// Of the last dims.
void DotProduct(const OpDesc& op, const Rule&, PaddleScope& scope,
                ImportedOp* result) {
  PaddleReader in(op, {"X", "Y"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string products =
      parts.Binary("elementwise_mul", {in[0].value, in[1].value});
  parts.Add("reduce_sum", {{"X", products}}, {{"dim", IntList{-1}}});
  parts.End();
}

void MatrixTimesVector(const OpDesc& op, const Rule&, PaddleScope& scope,
                       ImportedOp* result) {
  PaddleReader in(op, {"X", "Vec"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string column =
      parts.Add("unsqueeze2", {{"X", in[1].value}}, {{"axes", IntList{1}}});
  parts.Add("squeeze2", {{"X", parts.Binary("matmul", {in[0].value, column})}},
            {{"axes", IntList{1}}});
  parts.End();
}

// Beta Input + Alpha X Y.
void AddedProduct(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  PaddleReader in(op, {"Input", "X", "Y"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const auto times = [&](const char* name, const std::string& value) {
    const double factor = FloatAttr(op, name, 1);
    return factor == 1 ? value : parts.Scaled(value, factor);
  };
  const std::string product =
      times("Alpha", parts.Binary("matmul", {in[1].value, in[2].value}));
  parts.Binary("elementwise_add", {product, times("Beta", in[0].value)});
  parts.End();
}

// Out[b, k] = X[b] Weight[k] Y[b] + Bias[k].
void BilinearProduct(const OpDesc& op, const Rule&, PaddleScope& scope,
                     ImportedOp* result) {
  PaddleReader in(op, {"X", "Weight", "Y"}, scope, result);
  if (!in.ok()) return;
  const auto& bias = InputsOf(op, "Bias");
  const std::string added = bias.empty() ? "" : scope.Read(bias[0]);
  Parts parts = in.Write();
  std::string wrong;
  const std::string product = WriteEinsum(
      parts, "bm,kmn,bn->bk",
      {EinsumOperandOf(in[0]), EinsumOperandOf(in[1]), EinsumOperandOf(in[2])},
      &wrong);
  if (!wrong.empty()) {
    return RefuseDimsOf(in[1], "expected matrices between X and Y", result);
  }
  if (!added.empty()) parts.Binary("elementwise_add", {product, added});
  parts.End();
}

// The root of the sum of squares.
void FrobeniusNorm(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string sum =
      parts.Add("reduce_sum", {{"X", parts.Of("square", in[0].value)}},
                {{"dim", IntsAttr(op, "dim")},
                 {"keep_dim", BoolAttr(op, "keep_dim", false)},
                 {"reduce_all", BoolAttr(op, "reduce_all", false)}});
  parts.Of("sqrt", sum);
  parts.End();
}

// X over Norm, the root of the sum of its squares along an axis.
void Normalized(const OpDesc& op, const Rule&, PaddleScope& scope,
                ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string sum = parts.Add(
      "reduce_sum", {{"X", parts.Of("square", in[0].value)}},
      {{"dim", IntList{IntAttr(op, "axis", -1)}}, {"keep_dim", true}});
  std::string root =
      parts.Of("sqrt", parts.Scaled(sum, 1, FloatAttr(op, "epsilon", 1e-10)));
  const auto& norm = OutputsOf(op, "Norm");
  if (norm.size() == 1 && scope.IsRead(norm[0])) {
    root = scope.Write(norm[0]);
    parts.EndAs(root);
  }
  parts.Binary("elementwise_div", {in[0].value, root});
  parts.End();
}

// The p-norm of X - Y, over all elements.
void Distance(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X", "Y"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const std::string way =
      parts.Binary("elementwise_sub", {in[0].value, in[1].value});
  parts.Add("p_norm", {{"X", way}},
            {{"porder", FloatAttr(op, "p", 2)}, {"asvector", true}});
  parts.End();
}

// Every product of an element of X and one of Y, one matrix within the other.
void Kronecker(const OpDesc& op, const Rule&, PaddleScope& scope,
               ImportedOp* result) {
  PaddleReader in(op, {"X", "Y"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const int rank = std::max(in[0].rank(), in[1].rank());
  const auto filled = [&](const PaddleOperand& x) {
    Dims dims(rank - x.rank(), Dim(1));
    for (const Dim& dim : DimsOf(x.dims)) dims.push_back(dim);
    return dims;
  };
  const Dims own = filled(in[0]), other = filled(in[1]);
  Dims outer, inner, all;
  for (int i = 0; i < rank; ++i) {
    outer.insert(outer.end(), {own[i], Dim(1)});
    inner.insert(inner.end(), {Dim(1), other[i]});
    all.push_back(own[i] * other[i]);
  }
  const std::string product = parts.Binary(
      "elementwise_mul",
      {parts.Reshaped(in[0].value, outer), parts.Reshaped(in[1].value, inner)});
  parts.Reshaped(product, all);
  parts.End();
}

}  // namespace halftone
