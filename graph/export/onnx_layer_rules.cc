// Products and convolutions.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "graph/export/onnx_rules.h"
#include "graph/ops/windows.h"

namespace halftone {
namespace onnx_export {
namespace {

// ---- Products.

// With its last two dims swapped.
std::string Turned(SourceOp& op, absl::string_view slot) {
  IntList order(op.Rank(slot));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return op.Transposed(op.In(slot), order);
}

void MatMul(SourceOp& op, const Rule&) {
  const bool trans_x = op.Bool("trans_x"), trans_y = op.Bool("trans_y");
  const bool plain = op.Rank("X") == 2 && op.Rank("Y") == 2;
  if (plain && (op.Has("Bias") || trans_x || trans_y)) {
    NodeMaker node = op.Node("Gemm");
    node.In(op.In("X")).In(op.In("Y"));
    if (op.Has("Bias")) node.In(op.In("Bias"));
    return node.Attr("transA", trans_x).Attr("transB", trans_y).Out();
  }
  const std::string x = trans_x ? Turned(op, "X") : op.In("X");
  const std::string y = trans_y ? Turned(op, "Y") : op.In("Y");
  if (!op.Has("Bias")) return op.Node("MatMul").In(x).In(y).Out();
  op.Node("Add").In(op.Make("MatMul", x, y)).In(op.In("Bias")).Out();
}

// Both as matrices.
void Mul(SourceOp& op, const Rule&) {
  const auto matrix = [&](absl::string_view slot, int64_t columns_from) {
    Dims dims = {Dim(1), Dim(1)};
    const Dims& own = op.DimsOf(slot);
    for (size_t i = 0; i < own.size(); ++i) {
      Dim& dim = dims[static_cast<int64_t>(i) >= columns_from];
      dim = dim * own[i];
    }
    return dims;
  };
  const Dims a = matrix("X", op.Int("x_num_col_dims"));
  const Dims b = matrix("Y", op.Int("y_num_col_dims"));
  const std::string product =
      op.Make("MatMul", op.Reshaped(op.In("X"), op.DimsOf("X"), a),
              op.Reshaped(op.In("Y"), op.DimsOf("Y"), b));
  op.Same(op.Reshaped(product, {a[0], b[1]}, op.OutType().dims));
}

// ---- Convolutions.

// ONNX has those before all dims, then those after.
IntList Pads(const IntList& paddings, int spatial) {
  const IntList full = ops::FullPaddings(paddings, spatial);
  IntList pads;
  for (const int side : {0, 1}) {
    for (int i = 0; i < spatial; ++i) pads.push_back(full[2 * i + side]);
  }
  return pads;
}

NodeMaker Convolution(SourceOp& op, absl::string_view type) {
  const int spatial = op.Rank("Input") - 2;
  IntList kernel;
  for (int i = 0; i < spatial; ++i) {
    kernel.push_back(op.DimsOf("Filter")[2 + i].coefficient());
  }
  NodeMaker node = op.Node(type);
  node.In(op.In("Input")).In(op.In("Filter"));
  if (op.Has("Bias")) node.In(op.In("Bias"));
  node.Attr("kernel_shape", kernel).Attr("strides", op.Ints("strides"));
  node.Attr("dilations", op.Ints("dilations")).Attr("group", op.Int("groups"));
  return node.Attr("pads", Pads(op.Ints("paddings"), spatial));
}

void Conv(SourceOp& op, const Rule&) { Convolution(op, "Conv").Out("Output"); }

// What the output has beyond the least size that its windows fill.
void ConvTranspose(SourceOp& op, const Rule&) {
  const int spatial = op.Rank("Input") - 2;
  const IntList full = ops::FullPaddings(op.Ints("paddings"), spatial);
  IntList beyond;
  for (int i = 0; i < spatial; ++i) {
    const Dim in = op.DimsOf("Input")[2 + i];
    const Dim out = op.OutType("Output").dims[2 + i];
    const int64_t reach = (op.DimsOf("Filter")[2 + i].coefficient() - 1) *
                              op.Ints("dilations")[i] +
                          1;
    if (!in.is_constant()) {
      beyond.push_back(0);
      continue;
    }
    const int64_t least = (in.coefficient() - 1) * op.Ints("strides")[i] +
                          reach - full[2 * i] - full[2 * i + 1];
    beyond.push_back(out.coefficient() - least);
  }
  Convolution(op, "ConvTranspose").Attr("output_padding", beyond).Out("Output");
}

}  // namespace

const std::vector<Rule>& LayerRules() {
  static const auto& rules = *new std::vector<Rule>{
      {"conv1d", Conv},           {"conv1d_transpose", ConvTranspose},
      {"conv2d", Conv},           {"conv2d_transpose", ConvTranspose},
      {"conv3d", Conv},           {"conv3d_transpose", ConvTranspose},
      {"depthwise_conv2d", Conv}, {"depthwise_conv2d_transpose", ConvTranspose},
      {"matmul", MatMul},         {"mul", Mul},
  };
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone
