// Nodes with windows: convolutions and pools over one to three spatial dims.
#include <algorithm>
#include <limits>
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
    // Rounded up, one that is larger than all there is takes that.
    if (window.ceil && sizes[i].is_constant() && window.dilations[i] == 1) {
      const int64_t all = sizes[i].coefficient() + before + after;
      window.kernel[i] = std::min(window.kernel[i], all);
    }
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

// ---- Convolutions.

// "conv2d" of "conv": ours are called by their spatial dims.
std::string OfSpatial(absl::string_view head, int rank,
                      absl::string_view tail = "") {
  return absl::StrCat(head, rank - 2, "d", tail);
}

bool HasSpatial(OnnxNode& node, const char* what, int rank) {
  if (rank >= 3 && rank <= 5) return true;
  node.Refuse(what, absl::StrCat(" of ", rank, " dims"));
  return false;
}

// Input, filter, bias and what both kinds of convolution have.
struct Operands {
  std::string input, filter, bias;
  Dims dims;       // of the input
  IntList kernel;  // sizes of the filter
};

Operands OperandsOf(OnnxNode& node) {
  Operands in{node.In(0), node.In(1), node.Has(2) ? node.In(2) : "", {}, {}};
  if (node.failed()) return in;
  in.dims = node.TypeOf(in.input).dims;
  const Dims filter = node.TypeOf(in.filter).dims;
  const int rank = static_cast<int>(in.dims.size());
  if (!HasSpatial(node, "a convolution", rank)) return in;
  if (filter.size() != in.dims.size()) {
    node.Refuse("a filter", absl::StrCat(" of ", filter.size(), " dims"));
    return in;
  }
  for (int i = 2; i < rank; ++i) in.kernel.push_back(filter[i].coefficient());
  return in;
}

OnnxOp Convolution(OnnxNode& node, const Operands& in, const Window& window,
                   absl::string_view tail = "") {
  OnnxOp op =
      node.Op(OfSpatial("conv", static_cast<int>(in.dims.size()), tail));
  op.In("Input", in.input).In("Filter", in.filter);
  if (!in.bias.empty()) op.In("Bias", in.bias);
  op.Attr("strides", window.strides).Attr("paddings", Short(window.paddings));
  op.Attr("dilations", window.dilations).Attr("groups", node.Int("group", 1));
  return op;
}

void Conv(OnnxNode& node, const Rule&) {
  const Operands in = OperandsOf(node);
  if (node.failed()) return;
  const Window window =
      WindowOf(node, Dims(in.dims.begin() + 2, in.dims.end()), in.kernel);
  if (node.failed()) return;
  Convolution(node, in, window).Out("Output");
}

// The sizes that a transposed convolution is to have, from which its paddings
// follow; empty: they follow from the paddings.
IntList WantedSizes(OnnxNode& node, const Operands& in, const Window& window,
                    const std::string& how) {
  if (node.HasAttr("output_shape")) return node.Ints("output_shape", {});
  IntList sizes;
  if (how != "SAME_UPPER" && how != "SAME_LOWER") return sizes;
  for (size_t i = 0; i < in.kernel.size(); ++i) {
    sizes.push_back(in.dims[2 + i].coefficient() * window.strides[i]);
  }
  return sizes;
}

void ConvTranspose(OnnxNode& node, const Rule&) {
  const Operands in = OperandsOf(node);
  if (node.failed()) return;
  const size_t count = in.kernel.size();
  const std::string how = node.String("auto_pad", "NOTSET");
  Window window =
      WindowOf(node, Dims(in.dims.begin() + 2, in.dims.end()), in.kernel);
  IntList beyond = node.Ints("output_padding", IntList(count, 0));
  if (node.failed()) return;
  const IntList wanted = WantedSizes(node, in, window, how);
  if (beyond.size() != count || (!wanted.empty() && wanted.size() != count)) {
    return node.Refuse("output sizes", " of other dims than the input's");
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Dim from = in.dims[2 + i];
    if (!from.is_constant()) return node.Refuse("output sizes of unknown ones");
    const int64_t all = (from.coefficient() - 1) * window.strides[i] +
                        (window.kernel[i] - 1) * window.dilations[i] + 1 +
                        beyond[i];
    const int64_t cut = std::max<int64_t>(0, all - wanted[i]);
    beyond[i] += std::max<int64_t>(0, wanted[i] - all);
    // ONNX's rule.
    const int64_t less = cut / 2, more = cut - cut / 2;
    window.paddings[2 * i] = how == "SAME_UPPER" ? less : more;
    window.paddings[2 * i + 1] = how == "SAME_UPPER" ? more : less;
  }
  OnnxOp op = Convolution(node, in, window, "_transpose");
  const bool plain =
      std::count(beyond.begin(), beyond.end(), 0) == static_cast<int>(count);
  if (!plain) op.Attr("output_padding", beyond);
  op.Out("Output");
}

// ---- Pools.

// The maximum over the elements that a window takes, one position of the
// window after the other: ours has no dilations.
std::string DilatedMaximum(OnnxNode& node, const std::string& x,
                           const Window& window) {
  const Dims dims = node.TypeOf(x).dims;
  IntList paddings(4, 0), axes, sizes;
  paddings.insert(paddings.end(), window.paddings.begin(),
                  window.paddings.end());
  int64_t positions = 1;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t room = dims[2 + i].coefficient() + window.paddings[2 * i] +
                         window.paddings[2 * i + 1] - reach;
    positions *= window.kernel[i];
    if (!dims[2 + i].is_constant() || room < 0 || positions > 1 << 10 ||
        window.ceil) {
      node.Refuse("attribute dilations", " of this window");
      return "";
    }
    axes.push_back(static_cast<int64_t>(i) + 2);
    sizes.push_back(room / window.strides[i] + 1);
  }
  const double lowest = std::numeric_limits<float>::lowest();
  const std::string padded = node.Op("pad")
                                 .In("X", x)
                                 .Attr("paddings", paddings)
                                 .Attr("pad_value", lowest)
                                 .Made();
  std::string all;
  for (int64_t p = 0; p < positions; ++p) {
    IntList starts, ends;
    int64_t rest = p;
    for (size_t i = 0; i < axes.size(); ++i) {
      starts.push_back(rest % window.kernel[i] * window.dilations[i]);
      ends.push_back(starts[i] + (sizes[i] - 1) * window.strides[i] + 1);
      rest /= window.kernel[i];
    }
    const std::string part = node.Op("strided_slice")
                                 .In("Input", padded)
                                 .Attr("axes", axes)
                                 .Attr("starts", starts)
                                 .Attr("ends", ends)
                                 .Attr("strides", window.strides)
                                 .Made();
    all = all.empty() ? part : OnnxBinary(node, "elementwise_max", all, part);
  }
  return all;
}

OnnxOp Pooled(OnnxNode& node, const std::string& x, const std::string& type,
              const Window& window) {
  OnnxOp op = node.Op(OfSpatial("pool", node.TypeOf(x).rank()));
  op.In("X", x)
      .Attr("pooling_type", type)
      .Attr("ksize", window.kernel)
      .Attr("strides", window.strides)
      .Attr("paddings", Short(window.paddings))
      .Attr("ceil_mode", window.ceil);
  return op;
}

bool IsDilated(const Window& window) {
  return std::any_of(window.dilations.begin(), window.dilations.end(),
                     [](int64_t one) { return one != 1; });
}

void Pool(OnnxNode& node, const Rule& rule) {
  node.ExpectUnread(1);
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  if (!HasSpatial(node, "a pool", static_cast<int>(dims.size()))) return;
  const Window window = WindowOf(node, Dims(dims.begin() + 2, dims.end()), {});
  const bool with_padding = node.Int("count_include_pad", 0) != 0;
  node.Int("storage_order", 0);  // of the places, which nobody reads
  if (node.failed()) return;
  if (IsDilated(window) && rule.ours == "max") {
    return node.Same(0, DilatedMaximum(node, x, window));
  }
  if (IsDilated(window)) {
    return node.Refuse("attribute dilations", " is not taken");
  }
  OnnxOp op = Pooled(node, x, std::string(rule.ours), window);
  if (rule.ours == "avg") op.Attr("exclusive", !with_padding);
  op.Out();
}

// Over all spatial dims, which stay with dim 1.
void GlobalPool(OnnxNode& node, const Rule& rule) {
  const std::string x = node.In(0);
  if (node.failed()) return;
  const int rank = node.TypeOf(x).rank();
  if (rank < 3) return node.Refuse("a pool without spatial dims");
  if (rank <= 5) {
    return node.Op(OfSpatial("pool", rank))
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
  if (p < 1) return node.Refuse("attribute p", " below 1");
  if (!HasSpatial(node, "a pool", static_cast<int>(dims.size()))) return;
  const Window window = WindowOf(node, Dims(dims.begin() + 2, dims.end()), {});
  if (node.failed()) return;
  double area = 1;
  for (const int64_t size : window.kernel) area *= static_cast<double>(size);
  if (IsDilated(window)) {
    return node.Refuse("attribute dilations", " is not taken");
  }
  const std::string size = node.Op("abs").In("X", x).Made();
  const std::string power =
      node.Op("pow").In("X", size).Attr("factor", p).Made();
  // Padding counts, so that the mean times the area is the sum.
  const std::string mean =
      Pooled(node, power, "avg", window).Attr("exclusive", false).Made();
  node.Op("pow")
      .In("X", OnnxScale(node, mean, area, 0))
      .Attr("factor", 1 / p)
      .Out();
}

// X / (bias + alpha * the mean of the squares of so many channels)^beta:
// windows of [channels, pixels] that slide over channels.
void LocalResponse(OnnxNode& node, const Rule&) {
  const int64_t size = node.Int("size", 0);
  const double alpha = node.Float("alpha", 0.0001);
  const double beta = node.Float("beta", 0.75), bias = node.Float("bias", 1);
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  if (dims.size() < 3 || !dims[1].is_constant() || size < 1 ||
      size > dims[1].coefficient()) {
    return node.Refuse("expected [N, C, ...] and a size of 1 to C");
  }
  Dim pixels(1);
  for (size_t i = 2; i < dims.size(); ++i) pixels = pixels * dims[i];
  const std::string squares = node.Reshaped(node.Op("square").In("X", x).Made(),
                                            {dims[0], Dim(1), dims[1], pixels});
  const std::string mean =
      node.Op("pool2d")
          .In("X", squares)
          .Attr("pooling_type", std::string("avg"))
          .Attr("ksize", IntList{size, 1})
          .Attr("paddings", IntList{(size - 1) / 2, size / 2, 0, 0})
          .Attr("exclusive", false)
          .Made();
  const std::string power = node.Op("pow")
                                .In("X", OnnxScale(node, mean, alpha, bias))
                                .Attr("factor", -beta)
                                .Made();
  node.Same(0,
            OnnxBinary(node, "elementwise_mul", x, node.Reshaped(power, dims)));
}

}  // namespace

const std::vector<OnnxRule>& OnnxWindowRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"AveragePool", Pool, "avg"},
      {"Conv", Conv},
      {"ConvTranspose", ConvTranspose},
      {"GlobalAveragePool", GlobalPool, "avg"},
      {"GlobalMaxPool", GlobalPool, "max"},
      {"LRN", LocalResponse},
      {"LpPool", LpPool},
      {"MaxPool", Pool, "max"},
  };
  return rules;
}

}  // namespace halftone
