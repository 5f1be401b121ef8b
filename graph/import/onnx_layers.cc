// Nodes with weights or windows: products, convolutions, pools, dropout.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/import/onnx_ops.h"

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

// ---- Windows.

struct Window {
  IntList kernel, strides, dilations, paddings;  // before, after; dim by dim
  bool ceil = false;
};

// For `spatial` dims of the sizes `dims`; kernel: the attribute, else `given`.
Window WindowOf(OnnxNode& node, const Dims& sizes, IntList given) {
  const size_t count = sizes.size();
  Window window;
  window.kernel = node.Ints("kernel_shape", std::move(given));
  window.strides = node.Ints("strides", IntList(count, 1));
  window.dilations = node.Ints("dilations", IntList(count, 1));
  window.ceil = node.Int("ceil_mode", 0) != 0;
  const IntList pads = node.Ints("pads", IntList(2 * count, 0));
  const std::string how = node.String("auto_pad", "NOTSET");
  const auto too_small = [](int64_t one) { return one < 1 || one > 1 << 24; };
  const auto bad = [&](const IntList& list) {
    return list.size() != count ||
           std::any_of(list.begin(), list.end(), too_small);
  };
  if (bad(window.kernel) || bad(window.strides) || bad(window.dilations) ||
      pads.size() != 2 * count) {
    node.Refuse("window attributes", " of other dims than the input's");
    return window;
  }
  for (size_t i = 0; i < count; ++i) {
    int64_t before = pads[i], after = pads[i + count];
    if (how == "VALID") before = after = 0;
    if (how == "SAME_UPPER" || how == "SAME_LOWER") {
      if (!sizes[i].is_constant()) node.Refuse("auto_pad of unknown sizes");
      const int64_t size = sizes[i].coefficient(), step = window.strides[i];
      const int64_t outputs = (size + step - 1) / step;
      const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
      const int64_t sum =
          std::max<int64_t>(0, (outputs - 1) * step + reach - size);
      before = how == "SAME_UPPER" ? sum / 2 : sum - sum / 2;
      after = sum - before;
    } else if (how != "VALID" && how != "NOTSET") {
      node.Refuse("attribute auto_pad", absl::StrCat(" = ", how));
    }
    if (before < 0 || after < 0) node.Refuse("negative pads");
    window.paddings.push_back(before);
    window.paddings.push_back(after);
  }
  return window;
}

// One number for both ends where they are the same.
IntList Short(const IntList& paddings) {
  IntList one;
  for (size_t i = 0; i < paddings.size(); i += 2) {
    if (paddings[i] != paddings[i + 1]) return paddings;
    one.push_back(paddings[i]);
  }
  return one;
}

// Of one spatial dim as of two, the first of 1.
void Widen(Window* window) {
  for (IntList* list :
       {&window->kernel, &window->strides, &window->dilations}) {
    list->insert(list->begin(), 1);
  }
  window->paddings.insert(window->paddings.begin(), {0, 0});
}

std::string Widened(OnnxNode& node, const std::string& x) {
  Dims dims = node.TypeOf(x).dims;
  if (dims.size() != 3) return x;
  dims.insert(dims.begin() + 2, Dim(1));
  return node.Reshaped(x, dims);
}

// Back to one spatial dim where the input has one.
void Narrowed(OnnxNode& node, const std::string& made, bool widened) {
  if (!widened || node.failed()) return node.Same(0, made);
  Dims dims = node.TypeOf(made).dims;
  dims.erase(dims.begin() + 2);
  node.ReshapeTo(made, dims);
}

void Conv(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0), filter = node.In(1);
  const std::string bias = node.Has(2) ? node.In(2) : "";
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims, weights = node.TypeOf(filter).dims;
  const int rank = static_cast<int>(dims.size());
  if (rank < 3 || rank > 4 || weights.size() != dims.size()) {
    return node.Refuse("a convolution", absl::StrCat(" of ", rank, " dims"));
  }
  IntList kernel;
  for (int i = 2; i < rank; ++i) kernel.push_back(weights[i].coefficient());
  Window window =
      WindowOf(node, Dims(dims.begin() + 2, dims.end()), std::move(kernel));
  const int64_t groups = node.Int("group", 1);
  if (node.failed()) return;
  if (rank == 3) Widen(&window);
  OnnxOp op = node.Op("conv2d");
  op.In("Input", Widened(node, x)).In("Filter", Widened(node, filter));
  if (!bias.empty()) op.In("Bias", bias);
  op.Attr("strides", window.strides).Attr("paddings", Short(window.paddings));
  op.Attr("dilations", window.dilations).Attr("groups", groups);
  if (rank == 4) return op.Out("Output");
  Narrowed(node, op.Made("Output"), true);
}

void Pool(OnnxNode& node, const Rule& rule) {
  node.ExpectUnread(1);
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int rank = static_cast<int>(dims.size());
  if (rank < 3 || rank > 4) {
    return node.Refuse("a pool", absl::StrCat(" of ", rank, " dims"));
  }
  Window window = WindowOf(node, Dims(dims.begin() + 2, dims.end()), {});
  const bool with_padding = node.Int("count_include_pad", 0) != 0;
  node.Int("storage_order", 0);  // of the places, which nobody reads
  if (node.failed()) return;
  for (const int64_t one : window.dilations) {
    if (one != 1) return node.Refuse("attribute dilations", " is not taken");
  }
  if (rank == 3) Widen(&window);
  OnnxOp op = node.Op("pool2d");
  op.In("X", Widened(node, x))
      .Attr("pooling_type", std::string(rule.ours))
      .Attr("ksize", window.kernel)
      .Attr("strides", window.strides)
      .Attr("paddings", Short(window.paddings))
      .Attr("ceil_mode", window.ceil);
  if (rule.ours == "avg") op.Attr("exclusive", !with_padding);
  if (rank == 4) return op.Out();
  Narrowed(node, op.Made(), true);
}

// Over all spatial dims, which stay with dim 1.
void GlobalPool(OnnxNode& node, const Rule& rule) {
  const std::string x = node.In(0);
  if (node.failed()) return;
  const int rank = node.TypeOf(x).rank();
  if (rank < 3) return node.Refuse("a pool without spatial dims");
  if (rank == 4) {
    return node.Op("pool2d")
        .In("X", x)
        .Attr("pooling_type", std::string(rule.ours))
        .Attr("global_pooling", true)
        .Out();
  }
  IntList axes(rank - 2);
  std::iota(axes.begin(), axes.end(), 2);
  node.Same(
      0, OnnxReduce(node, rule.ours == "avg" ? "reduce_mean" : "reduce_max", x,
                    axes));
}

// (sum of |X|^p) ^ (1 / p) of each window.
void LpPool(OnnxNode& node, const Rule&) {
  const double p = static_cast<double>(node.Int("p", 2));
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int rank = static_cast<int>(dims.size());
  if (p < 1) return node.Refuse("attribute p", " below 1");
  if (rank < 3 || rank > 4) {
    return node.Refuse("a pool", absl::StrCat(" of ", rank, " dims"));
  }
  Window window = WindowOf(node, Dims(dims.begin() + 2, dims.end()), {});
  if (node.failed()) return;
  double area = 1;
  for (const int64_t size : window.kernel) area *= static_cast<double>(size);
  for (const int64_t one : window.dilations) {
    if (one != 1) return node.Refuse("attribute dilations", " is not taken");
  }
  if (rank == 3) Widen(&window);
  const std::string size = node.Op("abs").In("X", x).Made();
  const std::string power =
      node.Op("pow").In("X", size).Attr("factor", p).Made();
  // Padding counts, so that the mean times the area is the sum.
  const std::string mean = node.Op("pool2d")
                               .In("X", Widened(node, power))
                               .Attr("pooling_type", std::string("avg"))
                               .Attr("ksize", window.kernel)
                               .Attr("strides", window.strides)
                               .Attr("paddings", Short(window.paddings))
                               .Attr("ceil_mode", window.ceil)
                               .Attr("exclusive", false)
                               .Made();
  const std::string root = node.Op("pow")
                               .In("X", OnnxScale(node, mean, area, 0))
                               .Attr("factor", 1 / p)
                               .Made();
  Narrowed(node, root, rank == 3);
}

// A test passes its input on: our compiler makes both forms of this one.
void Dropout(OnnxNode& node, const Rule&) {
  node.ExpectUnread(1);
  if (node.HasAttr("seed")) {
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
      {"AveragePool", Pool, "avg"},
      {"Conv", Conv},
      {"Dropout", Dropout},
      {"Gemm", Gemm},
      {"GlobalAveragePool", GlobalPool, "avg"},
      {"GlobalMaxPool", GlobalPool, "max"},
      {"LpPool", LpPool},
      {"MatMul", MatMul},
      {"MaxPool", Pool, "max"},
  };
  return rules;
}

}  // namespace halftone
