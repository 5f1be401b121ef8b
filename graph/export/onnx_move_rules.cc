// Ops that move, repeat, choose or make elements.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "graph/export/onnx_rules.h"
#include "graph/ops/slice_ranges.h"

namespace halftone {
namespace onnx_export {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kBeginning = std::numeric_limits<int64_t>::min() + 1;

// ---- Dims alone.

// Whatever they are called: reshape, flatten, squeeze ...
void Reshape(SourceOp& op, const Rule&) {
  op.Same(op.Reshaped(op.In("X"), op.DimsOf("X"), op.OutType().dims));
}

std::string ShapeOf(SourceOp& op, absl::string_view slot) {
  return op.Make("Shape", op.In(slot));
}

void ReshapeLike(SourceOp& op, const Rule&) {
  op.Node("Reshape").In(op.In("X")).In(ShapeOf(op, "Like")).Out();
}

void Shape(SourceOp& op, const Rule&) {
  const std::string shape = ShapeOf(op, "Input");
  op.Node("Cast").In(shape).Attr("to", op.OutType().dtype).Out();
}

void Transpose(SourceOp& op, const Rule&) {
  IntList order = op.Ints("axis");
  for (int64_t& axis : order) axis = op.Axis(axis, op.Rank("X"));
  op.Node("Transpose").In(op.In("X")).Attr("perm", order).Out();
}

// ---- Parts and joins.

std::string Sliced(SourceOp& op, const std::string& x,
                   const ops::SliceBounds& bounds) {
  Builder& builder = op.builder();
  return op.Node("Slice")
      .In(x)
      .In(builder.Ints(bounds.starts))
      .In(builder.Ints(bounds.ends))
      .In(builder.Ints(bounds.axes))
      .In(builder.Ints(bounds.strides))
      .Made();
}

void Slice(SourceOp& op, const Rule&) {
  ops::SliceBounds bounds{
      op.Ints("axes"), op.Ints("starts"), op.Ints("ends"), {}};
  if (op.HasAttr("strides")) bounds.strides = op.Ints("strides");
  bounds.Complete();
  if (bounds.axes.empty()) return op.Same(op.In("Input"));
  for (size_t i = 0; i < bounds.axes.size(); ++i) {
    int64_t& end = bounds.ends[i];
    if (bounds.strides[i] < 0 && end == -1) end = kBeginning;
    if (bounds.strides[i] > 0 && end >= ops::kToTheEnd) end = kEnd;
  }
  const std::string part = Sliced(op, op.In("Input"), bounds);
  IntList gone = op.Ints("decrease_axis");
  if (gone.empty()) return op.Same(part);
  for (int64_t& axis : gone) axis = op.Axis(axis, op.Rank("Input"));
  op.Node("Squeeze").In(part).In(op.builder().Ints(gone)).Out();
}

void Flip(SourceOp& op, const Rule&) {
  ops::SliceBounds bounds;
  for (const int64_t axis : op.Ints("axis")) {
    bounds.axes.push_back(op.Axis(axis, op.Rank("X")));
  }
  const size_t count = bounds.axes.size();
  bounds.starts.assign(count, -1);
  bounds.ends.assign(count, kBeginning);
  bounds.strides.assign(count, -1);
  op.Same(count == 0 ? op.In("X") : Sliced(op, op.In("X"), bounds));
}

void Concat(SourceOp& op, const Rule&) {
  NodeMaker node = op.Node("Concat");
  for (int i = 0; i < op.Count("X"); ++i) node.In(op.In("X", i));
  node.Attr("axis", op.Axis(op.Int("axis"), op.Rank("X"))).Out();
}

void Stack(SourceOp& op, const Rule&) {
  const int64_t axis = op.Axis(op.Int("axis"), op.Rank("X") + 1);
  std::vector<std::string> parts;
  for (int i = 0; i < op.Count("X"); ++i) {
    parts.push_back(op.Unsqueezed(op.In("X", i), {axis}));
  }
  NodeMaker node = op.Node("Concat");
  for (const std::string& part : parts) node.In(part);
  node.Attr("axis", axis).Out("Y");
}

void Split(SourceOp& op, const Rule&) {
  const int64_t axis = op.Axis(op.Int("axis"), op.Rank("X"));
  IntList sections;
  for (int i = 0; i < op.Outputs("Out"); ++i) {
    sections.push_back(op.OutType("Out", i).dims[axis].coefficient());
  }
  op.Node("Split")
      .In(op.In("X"))
      .In(op.builder().Ints(sections))
      .Attr("axis", axis)
      .Out();
}

void Unstack(SourceOp& op, const Rule&) {
  const int64_t axis = op.Axis(op.Int("axis"), op.Rank("X"));
  for (int i = 0; i < op.Outputs("Y"); ++i) {
    const std::string index = op.builder().Number(i, DType::kI64);
    op.Node("Gather").In(op.In("X")).In(index).Attr("axis", axis).Out("Y", i);
  }
}

// ---- Choices.

void Gather(SourceOp& op, const Rule& rule) {
  const int64_t axis = op.Int(rule.ours == "gather" ? "axis" : "dim");
  std::string index = op.In("Index");
  const Dims dims = op.DimsOf("Index");
  if (dims.size() == 2) index = op.Reshaped(index, dims, {dims[0]});
  op.Node("Gather")
      .In(op.In("X"))
      .In(index)
      .Attr("axis", op.Axis(axis, op.Rank("X")))
      .Out();
}

// Zeros go where there are sums, which are then added: ScatterND's begin with
// what was there.
void Scatter(SourceOp& op, const Rule&) {
  const Dims dims = op.DimsOf("Ids");
  const int64_t axis = op.Axis(op.Int("axis"), op.Rank("X"));
  IntList order(op.Rank("X"));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[0], order[axis]);
  const auto turned = [&](const std::string& value) {
    return axis == 0 ? value : op.Transposed(value, order);
  };
  std::string updates = op.In("Updates");
  if (dims.empty()) updates = op.Unsqueezed(updates, {axis});
  updates = turned(updates);
  std::string ids = op.In("Ids");
  if (dims.size() < 2) {
    ids = op.Unsqueezed(ids, dims.empty() ? IntList{0, 1} : IntList{1});
  }
  ids = op.Cast(ids, op.dtype("Ids"), DType::kI64);
  const auto scattered = [&](const std::string& into, const std::string& news,
                             const char* reduction) {
    NodeMaker node = op.Node("ScatterND");
    node.In(into).In(ids).In(news);
    if (*reduction != 0) node.Attr("reduction", std::string(reduction));
    return node.Made();
  };
  std::string made = turned(op.In("X"));
  if (op.Bool("overwrite")) {
    made = scattered(made, updates, "");
  } else {
    const std::string zero = op.builder().Number(0, op.dtype("X"));
    const std::string zeros =
        op.Node("Expand").In(zero).In(op.Make("Shape", updates)).Made();
    made = scattered(scattered(made, zeros, ""), updates, "add");
  }
  op.Same(turned(made));
}

void TakeAlong(SourceOp& op, const Rule&) {
  op.Node("GatherElements")
      .In(op.In("Input"))
      .In(op.In("Index"))
      .Attr("axis", op.Axis(op.Int("Axis"), op.Rank("Input")))
      .Out("Result");
}

void LookupTable(SourceOp& op, const Rule&) {
  const int64_t padding = op.Int("padding_idx");
  NodeMaker rows = op.Node("Gather");
  rows.In(op.In("W")).In(op.In("Ids")).Attr("axis", int64_t{0});
  if (padding < 0) return rows.Out();
  const std::string made = rows.Made();
  const std::string is_padding = op.Make(
      "Equal", op.In("Ids"),
      op.builder().Number(static_cast<double>(padding), op.dtype("Ids")));
  op.Node("Where")
      .In(op.Unsqueezed(is_padding, {-1}))
      .In(op.builder().Number(0, op.dtype("W")))
      .In(made)
      .Out();
}

// ONNX's OneHot counts negative classes from the end; ours are zeros.
void OneHot(SourceOp& op, const Rule&) {
  const DType dtype = op.dtype("X");
  std::vector<double> classes(op.Int("depth"));
  std::iota(classes.begin(), classes.end(), 0);
  const std::string list = op.builder().Reals(
      classes, {static_cast<int64_t>(classes.size())}, dtype);
  const std::string hot =
      op.Make("Equal", op.Unsqueezed(op.In("X"), {-1}), list);
  op.Node("Cast").In(hot).Attr("to", op.OutType().dtype).Out();
}

// ---- Repetition and borders.

void Expand(SourceOp& op, const Rule&) {
  IntList shape = op.Ints("shape");
  for (int64_t& dim : shape) dim = dim == -1 ? 1 : dim;
  op.Node("Expand").In(op.In("X")).In(op.builder().Ints(shape)).Out();
}

void Tile(SourceOp& op, const Rule&) {
  IntList repeats = op.Ints("repeat_times");
  const size_t rank = op.DimsOf("X").size();
  std::string x = op.In("X");
  if (repeats.size() < rank) {
    repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  }
  IntList front(repeats.size() - rank);
  std::iota(front.begin(), front.end(), 0);
  op.Node("Tile")
      .In(op.Unsqueezed(x, front))
      .In(op.builder().Ints(repeats))
      .Out();
}

// Before all dims, then after all.
std::string Pads(SourceOp& op, const IntList& before, const IntList& after) {
  IntList pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  return op.builder().Ints(pads);
}

void Pad(SourceOp& op, const Rule&) {
  IntList before, after;
  for (int i = 0; i < op.Rank("X"); ++i) {
    before.push_back(op.Ints("paddings")[2 * i]);
    after.push_back(op.Ints("paddings")[2 * i + 1]);
  }
  op.Node("Pad")
      .In(op.In("X"))
      .In(Pads(op, before, after))
      .In(op.builder().Number(op.Float("pad_value"), op.dtype("X")))
      .Out();
}

// From the other end, axis by axis: opset 17 has no such mode.
void PadCircular(SourceOp& op, const IntList& before, const IntList& after) {
  std::string x = op.In("X");
  for (int axis = 2; axis < 5; ++axis) {
    std::vector<std::string> parts = {x};
    if (before[axis] > 0) {
      parts.insert(parts.begin(),
                   Sliced(op, x, {{axis}, {-before[axis]}, {kEnd}, {1}}));
    }
    if (after[axis] > 0) {
      parts.push_back(Sliced(op, x, {{axis}, {0}, {after[axis]}, {1}}));
    }
    if (parts.size() == 1) continue;
    NodeMaker node = op.Node("Concat");
    for (const std::string& part : parts) node.In(part);
    x = node.Attr("axis", int64_t{axis}).Made();
  }
  op.Same(x);
}

void Pad3d(SourceOp& op, const Rule&) {
  const IntList& paddings = op.Ints("paddings");  // the last dim first
  IntList before(5, 0), after(5, 0);
  for (int i = 0; i < 3; ++i) {
    before[4 - i] = paddings[2 * i];
    after[4 - i] = paddings[2 * i + 1];
  }
  const std::string& mode = op.String("mode");
  if (mode == "circular") return PadCircular(op, before, after);
  NodeMaker node = op.Node("Pad");
  node.In(op.In("X")).In(Pads(op, before, after));
  if (mode == "constant") {
    node.In(op.builder().Number(op.Float("value"), op.dtype("X")));
  }
  node.Attr("mode", std::string(mode == "replicate" ? "edge" : mode)).Out();
}

// ---- Channels as pixels, and back.

void PixelShuffle(SourceOp& op, const Rule&) {
  op.Node("DepthToSpace")
      .In(op.In("X"))
      .Attr("blocksize", op.Int("upscale_factor"))
      .Attr("mode", std::string("CRD"))
      .Out();
}

// ONNX's SpaceToDepth has another order of channels.
void PixelUnshuffle(SourceOp& op, const Rule&) {
  const Dims from = op.DimsOf("X"), to = op.OutType().dims;
  const Dim f(op.Int("upscale_factor"));
  const Dims parts = {from[0], from[1], to[2], f, to[3], f};
  const Dims moved = {from[0], from[1], f, f, to[2], to[3]};
  const std::string turned =
      op.Transposed(op.Reshaped(op.In("X"), from, parts), {0, 1, 3, 5, 2, 4});
  op.Same(op.Reshaped(turned, moved, to));
}

// ---- Made of nothing.

void Fill(SourceOp& op, const Rule&) {
  const TensorType& type = op.OutType();
  double value = op.Float("value");
  if (!op.String("str_value").empty() &&
      !absl::SimpleAtod(op.String("str_value"), &value)) {
    op.Refuse("str_value is no number");
  }
  IntList shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.coefficient());
  op.Node("Expand")
      .In(op.builder().Number(value, type.dtype))
      .In(op.builder().Ints(shape))
      .Out();
}

void FillLike(SourceOp& op, const Rule&) {
  op.Node("Expand")
      .In(op.builder().Number(0, op.dtype("X")))
      .In(ShapeOf(op, "X"))
      .Out();
}

void Arange(SourceOp& op, const Rule&) {
  const TensorType& type = op.OutType();
  std::vector<double> values(type.dims[0].coefficient());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = op.Float("start") + op.Float("step") * static_cast<double>(i);
  }
  op.Same(op.builder().Reals(values, {static_cast<int64_t>(values.size())},
                             type.dtype));
}

}  // namespace

const std::vector<Rule>& MoveRules() {
  static const auto& rules = *new std::vector<Rule>{
      {"arange", Arange},
      {"concat", Concat},
      {"expand_v2", Expand},
      {"fill_constant", Fill},
      {"fill_zeros_like", FillLike},
      {"flatten", Reshape},
      {"flip", Flip},
      {"gather", Gather},
      {"index_select", Gather},
      {"lookup_table_v2", LookupTable},
      {"one_hot_v2", OneHot},
      {"pad", Pad},
      {"pad3d", Pad3d},
      {"pixel_shuffle", PixelShuffle},
      {"pixel_unshuffle", PixelUnshuffle},
      {"reshape", Reshape},
      {"reshape_like", ReshapeLike},
      {"scatter", Scatter},
      {"shape", Shape},
      {"slice", Slice},
      {"split", Split},
      {"squeeze", Reshape},
      {"stack", Stack},
      {"strided_slice", Slice},
      {"take_along_axis", TakeAlong},
      {"tile", Tile},
      {"transpose", Transpose},
      {"unsqueeze", Reshape},
      {"unstack", Unstack},
  };
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone
