// Nodes that give elements a place: borders, blocks, sides of a diagonal,
// classes.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

void Pad(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  const std::string mode = node.String("mode", "constant");
  const IntList pads = node.Axes("pads", 1, {});
  const double value =
      node.HasAttr("value") ? node.Float("value", 0) : node.KnownReal(2, 0);
  if (node.failed()) return;
  const int rank = node.TypeOf(x).rank();
  IntList axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.Has(3)) axes = node.KnownInts(3);
  if (pads.size() != 2 * axes.size()) {
    return node.Refuse("pads of other dims than its input");
  }
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const int64_t pad : pads) {
    if (pad < -kMost || pad > kMost) return node.Refuse("pads beyond bounds");
  }
  IntList before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.Axis(axes[i], rank);
    if (node.failed()) return;
    before[axis] = pads[i];
    after[axis] = pads[i + axes.size()];
  }
  // Negative ones cut.
  const Dims from = node.TypeOf(x).dims;
  IntList cut_axes, starts, ends, paddings;
  for (int i = 0; i < rank; ++i) {
    paddings.push_back(std::max<int64_t>(before[i], 0));
    paddings.push_back(std::max<int64_t>(after[i], 0));
    if (before[i] >= 0 && after[i] >= 0) continue;
    if (!from[i].is_constant()) return node.Refuse("a slice of the batch");
    cut_axes.push_back(i);
    starts.push_back(std::max<int64_t>(-before[i], 0));
    ends.push_back(from[i].coefficient() + std::min<int64_t>(after[i], 0));
  }
  std::string value_in = x;
  if (!cut_axes.empty()) {
    value_in = node.Op("slice")
                   .In("Input", x)
                   .Attr("axes", cut_axes)
                   .Attr("starts", starts)
                   .Attr("ends", ends)
                   .Made();
  }
  const int64_t all =
      std::accumulate(paddings.begin(), paddings.end(), int64_t{0});
  if (all == 0) return node.Same(0, value_in);
  if (mode == "constant") {
    return node.Op("pad")
        .In("X", value_in)
        .Attr("paddings", paddings)
        .Attr("pad_value", value)
        .Out();
  }
  const std::string ours = mode == "edge"   ? "replicate"
                           : mode == "wrap" ? "circular"
                                            : mode;
  // Ours takes three spatial dims behind two others.
  Dims dims = node.TypeOf(value_in).dims;
  int first = 0;
  while (first < rank - 1 && paddings[2 * first] == 0 &&
         paddings[2 * first + 1] == 0) {
    ++first;
  }
  if (rank - first > 3) return node.Refuse("a border of more than three dims");
  Dims five = {Dim(1), Dim(1), Dim(1), Dim(1), Dim(1)};
  Dims result = dims;
  IntList last3(6, 0);
  for (int i = 0; i < rank; ++i) {
    if (i < first) {
      five[0] = five[0] * dims[i];
      continue;
    }
    const int place = 5 - (rank - i);
    five[place] = dims[i];
    last3[2 * (4 - place)] = paddings[2 * i];
    last3[2 * (4 - place) + 1] = paddings[2 * i + 1];
    if (dims[i].is_constant()) {
      result[i] =
          Dim(dims[i].coefficient() + paddings[2 * i] + paddings[2 * i + 1]);
    }
  }
  const std::string padded = node.Op("pad3d")
                                 .In("X", node.Reshaped(value_in, five))
                                 .Attr("paddings", last3)
                                 .Attr("mode", ours)
                                 .Made();
  node.Same(0, node.Reshaped(padded, result));
}

// ---- Blocks of an image as channels, and back.

void SpaceAndDepth(OnnxNode& node, const Rule& rule) {
  const std::string x = node.In(0);
  const int64_t block = node.Int("blocksize", 1);
  const bool to_space = rule.type == "DepthToSpace";
  const bool rows_first = node.String("mode", "DCR") == "CRD";
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  if (from.size() != 4 || block < 1 || block > 1 << 20) {
    return node.Refuse("expected [N, C, H, W] and a block of 1 or more");
  }
  const Dim n = from[0], b(block), bb(block * block);
  Dim c, h, w;
  if (to_space) {
    if (!from[1].DivideBy(bb, &c)) return node.Refuse("channels left over");
    const Dims split = rows_first ? Dims{n, c, b, b, from[2], from[3]}
                                  : Dims{n, b, b, c, from[2], from[3]};
    const IntList order =
        rows_first ? IntList{0, 1, 4, 2, 5, 3} : IntList{0, 3, 4, 1, 5, 2};
    const std::string moved = node.Op("transpose")
                                  .In("X", node.Reshaped(x, split))
                                  .Attr("axis", order)
                                  .Made();
    return node.ReshapeTo(moved, {n, c, from[2] * b, from[3] * b});
  }
  if (!from[2].DivideBy(b, &h) || !from[3].DivideBy(b, &w)) {
    return node.Refuse("rows or columns left over");
  }
  const IntList order =
      rows_first ? IntList{0, 1, 3, 5, 2, 4} : IntList{0, 3, 5, 1, 2, 4};
  const std::string moved =
      node.Op("transpose")
          .In("X", node.Reshaped(x, {n, from[1], h, b, w, b}))
          .Attr("axis", order)
          .Made();
  node.ReshapeTo(moved, {n, from[1] * bb, h, w});
}

// What of a matrix lies on one side of a diagonal.
void Trilu(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  const bool upper = node.Int("upper", 1) != 0;
  const double k = node.KnownReal(1, 0);
  if (node.failed()) return;
  const TensorType type = node.TypeOf(x);
  const int rank = type.rank();
  if (rank < 2 || !type.dims[rank - 1].is_constant() ||
      !type.dims[rank - 2].is_constant()) {
    return node.Refuse("expected a matrix of known dims");
  }
  const int64_t rows = type.dims[rank - 2].coefficient();
  const int64_t columns = type.dims[rank - 1].coefficient();
  OnnxConstant keep;
  keep.dtype = DType::kBool;
  keep.dims = {rows, columns};
  if (KnownElements(keep.dims) < 0) return node.Refuse("too large a matrix");
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const double above = static_cast<double>(j - i);
      keep.ints.emplace_back(upper ? above >= k : above <= k);
    }
  }
  node.Op("where")
      .In("Condition", node.Parameter(std::move(keep)))
      .In("X", x)
      .In("Y", node.Number(0, type.dtype))
      .Out();
}

void OneHot(OnnxNode& node, const Rule&) {
  const int64_t depth = node.KnownInt(1, 0);
  const OnnxConstant* const values = node.Known(2);
  std::string x = node.In(0);
  if (node.failed()) return;
  if (values == nullptr || values->elements() != 2 || depth < 1) {
    return node.Refuse("expected a known depth and two known values");
  }
  const bool real = values->is_float();
  const auto value = [&](int i) {
    return real ? values->reals[i]
                : static_cast<double>(values->ints[i].coefficient());
  };
  const int rank = node.TypeOf(x).rank() + 1;
  const int64_t axis = node.Axis(node.Int("axis", -1), rank);
  // Negative classes count from the end.
  x = node.Cast(x, DType::kI64);
  const std::string wraps =
      OnnxBinary(node, "less_than", x, node.Number(0, DType::kI64));
  const std::string from_end = node.Cast(
      OnnxScale(node, node.Cast(x, DType::kF32), 1, static_cast<double>(depth)),
      DType::kI64);
  x = node.Op("where")
          .In("Condition", wraps)
          .In("X", from_end)
          .In("Y", x)
          .Made();
  std::string hot =
      node.Op("one_hot_v2").In("X", x).Attr("depth", depth).Made();
  if (axis != rank - 1) {
    IntList order(rank - 1);
    std::iota(order.begin(), order.end(), 0);
    order.insert(order.begin() + axis, rank - 1);
    hot = node.Op("transpose").In("X", hot).Attr("axis", order).Made();
  }
  if (value(0) != 0 || value(1) != 1) {
    hot = OnnxScale(node, hot, value(1) - value(0), value(0));
  }
  node.Same(0, node.Cast(hot, values->dtype));
}

// Of a matrix whose dims are known.
void EyeLike(OnnxNode& node, const Rule&) {
  const TensorType type = node.Type(0);
  const int64_t k = node.Int("k", 0);
  DType dtype = node.HasAttr("dtype")
                    ? FromOnnx(static_cast<int32_t>(node.Int("dtype", 1)))
                    : type.dtype;
  if (IsFloat(dtype)) dtype = DType::kF32;
  if (dtype == DType::kInvalid || type.rank() != 2 ||
      !type.Elements().is_constant()) {
    return node.Refuse("expected a matrix of known dims");
  }
  OnnxConstant eye;
  eye.dtype = dtype;
  for (const Dim& dim : type.dims) eye.dims.push_back(dim.coefficient());
  if (KnownElements(eye.dims) < 0) return node.Refuse("too large a matrix");
  for (int64_t i = 0; i < eye.dims[0]; ++i) {
    for (int64_t j = 0; j < eye.dims[1]; ++j) {
      if (IsFloat(dtype)) {
        eye.reals.push_back(j - i == k);
      } else {
        eye.ints.emplace_back(j - i == k);
      }
    }
  }
  node.Constant(0, std::move(eye));
}

}  // namespace

const std::vector<OnnxRule>& OnnxPlaceRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"DepthToSpace", SpaceAndDepth},
      {"EyeLike", EyeLike},
      {"OneHot", OneHot},
      {"Pad", Pad},
      {"SpaceToDepth", SpaceAndDepth},
      {"Trilu", Trilu},
  };
  return rules;
}

}  // namespace halftone
