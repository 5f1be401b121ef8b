// Products and dropout.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/import/einsum.h"
#include "graph/import/onnx_ops.h"
#include "graph/import/onnx_writer.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

// ---- Products.

// Leading dims of X and Y, broadcast, and the last two of each.
std::string WithLeading(OnnxNode& node, const std::string& x,
                        const Dims& leading) {
  if (node.failed()) return "";
  Dims dims = leading;
  const Dims own = node.TypeOf(x).dims;
  dims.insert(dims.end(), own.end() - 2, own.end());
  return OnnxExpanded(node, x, dims);
}

std::string Product(OnnxNode& node, std::string x, std::string y) {
  if (node.failed()) return "";
  Dims a = node.TypeOf(x).dims, b = node.TypeOf(y).dims;
  if (a.empty() || b.empty()) {
    node.Refuse("a product of scalars");
    return "";
  }
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) x = node.Reshaped(x, a = {Dim(1), a[0]});
  if (column) y = node.Reshaped(y, b = {b[0], Dim(1)});
  Dims result;
  if (b.size() > 2) {
    // numpy's rule: leading dims go together if they are equal or 1.
    const size_t count = std::max(a.size(), b.size()) - 2;
    for (size_t i = 0; i < count; ++i) {
      const auto at = [&](const Dims& dims) {
        const size_t missing = count + 2 - dims.size();
        return i < missing ? Dim(1) : dims[i - missing];
      };
      result.push_back(at(a) == Dim(1) ? at(b) : at(a));
    }
    x = WithLeading(node, x, result);
    y = WithLeading(node, y, result);
  } else {
    result.assign(a.begin(), a.end() - 2);
  }
  const std::string product = node.Op("matmul").In("X", x).In("Y", y).Made();
  if (!row && !column) return product;
  if (!row) result.push_back(a[a.size() - 2]);
  if (!column) result.push_back(b.back());
  return node.Reshaped(product, result);
}

void MatMul(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0), y = node.In(1);
  if (node.failed()) return;
  const int x_rank = node.TypeOf(x).rank(), y_rank = node.TypeOf(y).rank();
  if (x_rank >= 2 && y_rank == 2) {
    return node.Op("matmul").In("X", x).In("Y", y).Out();
  }
  node.Same(0, Product(node, x, y));
}

// alpha * X * Y + beta * C, X and Y transposed as asked.
void Gemm(OnnxNode& node, const Rule&) {
  const double alpha = node.Float("alpha", 1), beta = node.Float("beta", 1);
  const bool trans_x = node.Int("transA", 0) != 0;
  const bool trans_y = node.Int("transB", 0) != 0;
  const std::string x = node.In(0), y = node.In(1);
  const bool biased = node.Has(2) && beta != 0;
  const std::string c = biased ? node.In(2) : "";
  if (node.failed()) return;
  const auto product = [&] {
    OnnxOp op = node.Op("matmul");
    op.In("X", x).In("Y", y);
    return op.Attr("trans_x", trans_x).Attr("trans_y", trans_y);
  };
  const bool plain = alpha == 1 && beta == 1;
  const Dims y_dims = node.TypeOf(y).dims;
  if (plain && biased && y_dims.size() == 2 && node.TypeOf(c).rank() == 1 &&
      node.TypeOf(c).dims[0] == y_dims[trans_y ? 0 : 1]) {
    return product().In("Bias", c).Out();
  }
  if (plain && !biased) return product().Out();
  std::string sum = product().Made();
  if (alpha != 1) sum = OnnxScale(node, sum, alpha, 0);
  if (biased) {
    const std::string summand = beta == 1 ? c : OnnxScale(node, c, beta, 0);
    sum = OnnxBinary(node, "elementwise_add", sum, summand);
  }
  node.Same(0, sum);
}

void Einsum(OnnxNode& node, const Rule&) {
  const std::string equation = node.String("equation", "");
  std::vector<EinsumOperand> operands;
  for (int i = 0; i < node.inputs(); ++i) {
    const std::string value = node.In(i);
    if (node.failed()) return;
    operands.push_back({value, node.TypeOf(value).dims});
  }
  OnnxWriter ops(&node);
  std::string wrong;
  const std::string made = WriteEinsum(ops, equation, operands, &wrong);
  if (!wrong.empty()) {
    return node.Refuse(absl::StrCat("equation ", equation),
                       absl::StrCat(": ", wrong));
  }
  node.Same(0, made);
}

// A test passes its input on: our compiler makes both forms of this one.
void Dropout(OnnxNode& node, const Rule&) {
  node.ExpectUnread(1);
  // A test does not draw.
  const OnnxConstant* const training = node.Has(2) ? node.Known(2) : nullptr;
  const bool tests =
      !node.Has(2) || (training != nullptr && training->Uniform() == 0.0);
  if (tests) node.Ignore("seed");
  if (node.HasAttr("seed") && !tests) {
    return node.Refuse("attribute seed", ": random numbers come from the run");
  }
  const double p =
      node.HasAttr("ratio") ? node.Float("ratio", 0.5) : node.KnownReal(1, 0.5);
  if (node.Has(2)) node.KnownReal(2, 0);
  const std::string x = node.In(0);
  if (p == 0 || node.failed()) return node.Same(0, x);
  node.Op("dropout").In("X", x).Attr("p", p).Out();
}

}  // namespace

const std::vector<OnnxRule>& OnnxLayerRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"Dropout", Dropout},
      {"Einsum", Einsum},
      {"Gemm", Gemm},
      {"MatMul", MatMul},
  };
  return rules;
}

}  // namespace halftone
