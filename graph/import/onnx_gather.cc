// Nodes that pick elements by their numbers, and the numbers of the batch.
#include <algorithm>
#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

// 0, 1, 2, ... below the batch's size, [B] f32.
std::string NumbersOfBatch(OnnxNode& node) {
  const auto zeros = node.graph().BatchOfZeros();
  if (!zeros.ok()) {
    node.Refuse(std::string(zeros.status().message()));
    return "";
  }
  return node.Op("cumsum")
      .In("X", OnnxScale(node, node.Cast(*zeros, DType::kF32), 1, 1))
      .Attr("axis", int64_t{0})
      .Attr("exclusive", true)
      .Made();
}

// What no constant can be, for it ends with the batch.
void Range(OnnxNode& node, const Rule&) {
  const OnnxConstant* const limit = node.Known(1);
  const int64_t start = node.KnownInt(0, 0), delta = node.KnownInt(2, 1);
  if (node.failed()) return;
  if (limit == nullptr || limit->is_float() || limit->elements() != 1 ||
      limit->ints[0] != node.graph().Batch() || start != 0 || delta != 1) {
    return node.Refuse("its value is not known at import");
  }
  node.Same(0, node.Cast(NumbersOfBatch(node), limit->dtype));
}

// Indices of any rank, which ours takes as a list.
void Gather(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  const int64_t axis =
      node.Axis(node.Int("axis", 0), static_cast<int>(from.size()));
  if (node.failed()) return;
  const OnnxConstant* const known = node.Known(1);
  if (known != nullptr && known->dims.empty() && from[axis].is_constant()) {
    // One that is known is a slice.
    const int64_t at = node.KnownInt(1, 0), dim = from[axis].coefficient();
    if (node.failed()) return;
    if (at < -dim || at >= dim) return node.Refuse("an index beyond its axis");
    const int64_t start = at < 0 ? at + dim : at;
    return node.Op("slice")
        .In("Input", x)
        .Attr("axes", IntList{axis})
        .Attr("starts", IntList{start})
        .Attr("ends", IntList{start + 1})
        .Attr("decrease_axis", IntList{axis})
        .Out();
  }
  const std::string index = node.In(1);
  if (node.failed()) return;
  const TensorType indices = node.TypeOf(index);
  const bool table = axis == 0 && from.size() == 2 && node.IsFloat(0);
  if (table && indices.rank() > 0 && known == nullptr &&
      node.IsInitializer(0)) {
    return node.Op("lookup_table_v2").In("W", x).In("Ids", index).Out();
  }
  Dims into(from.begin(), from.begin() + axis);
  into.insert(into.end(), indices.dims.begin(), indices.dims.end());
  into.insert(into.end(), from.begin() + axis + 1, from.end());
  const std::string list =
      indices.rank() <= 1 ? index : node.Reshaped(index, {indices.Elements()});
  const std::string picked =
      node.Op("gather").In("X", x).In("Index", list).Attr("axis", axis).Made();
  node.Same(0, node.Reshaped(picked, into));
}

// Of what the indices have no place for, the first are taken.
void GatherElements(OnnxNode& node, const Rule&) {
  std::string x = node.In(0);
  const std::string index = node.In(1);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims, into = node.TypeOf(index).dims;
  const int rank = static_cast<int>(from.size());
  const int64_t axis = node.Axis(node.Int("axis", 0), rank);
  if (node.failed()) return;
  if (into.size() != from.size()) return node.Refuse("indices of another rank");
  for (int i = 0; i < rank; ++i) {
    if (i == axis || into[i] == from[i]) continue;
    if (!into[i].is_constant() || !from[i].is_constant()) {
      return node.Refuse("a slice of the batch");
    }
    x = node.Op("slice")
            .In("Input", x)
            .Attr("axes", IntList{i})
            .Attr("starts", IntList{0})
            .Attr("ends", IntList{into[i].coefficient()})
            .Made();
  }
  node.Op("take_along_axis")
      .In("Input", x)
      .In("Index", index)
      .Attr("Axis", axis)
      .Out("Result");
}

// The numbers of the dim's places, f32[1, ..., dim, 1, ...] of `rank` dims.
std::string NumbersOfDim(OnnxNode& node, const Dim& dim, int at, int rank) {
  Dims dims(rank, Dim(1));
  dims[at] = dim;
  if (!dim.is_constant()) return node.Reshaped(NumbersOfBatch(node), dims);
  OnnxConstant numbers;
  numbers.dtype = DType::kF32;
  for (const Dim& one : dims) numbers.dims.push_back(one.coefficient());
  if (KnownElements(numbers.dims) < 0) {
    node.Refuse("too many rows");
    return "";
  }
  for (int64_t i = 0; i < dim.coefficient(); ++i) {
    numbers.reals.push_back(static_cast<double>(i));
  }
  return node.Parameter(std::move(numbers));
}

// One column of the indices, f32; negative ones count from the end of `dim`.
std::string IndexColumn(OnnxNode& node, const std::string& index, int column,
                        const Dim& dim) {
  const int64_t last = node.TypeOf(index).rank() - 1;
  const std::string part = node.Cast(node.Op("slice")
                                         .In("Input", index)
                                         .Attr("axes", IntList{last})
                                         .Attr("starts", IntList{column})
                                         .Attr("ends", IntList{column + 1})
                                         .Attr("decrease_axis", IntList{last})
                                         .Made(),
                                     DType::kF32);
  if (node.failed() || !dim.is_constant()) return part;
  const std::string wraps = OnnxBinary(node, "less_than", part, node.Number(0));
  const double end = static_cast<double>(dim.coefficient());
  return node.Op("where")
      .In("Condition", wraps)
      .In("X", OnnxScale(node, part, 1, end))
      .In("Y", part)
      .Made();
}

// Indices [..., k] of dims as numbers of rows, i64; the first `shared` dims are
// those of the indices, too.
std::string RowsOf(OnnxNode& node, const Dims& dims, int shared,
                   const std::string& index) {
  const int rank = node.TypeOf(index).rank() - 1;
  double stride = 1;
  std::string rows;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    if (i > 0 && !dims[i].is_constant()) {
      node.Refuse("indices of dims behind the batch's");
    }
    std::string part = i < shared
                           ? NumbersOfDim(node, dims[i], i, rank)
                           : IndexColumn(node, index, i - shared, dims[i]);
    if (node.failed()) return "";
    part = OnnxScale(node, part, stride, 0);
    rows =
        rows.empty() ? part : OnnxBinary(node, "elementwise_add", rows, part);
    stride *= static_cast<double>(dims[i].coefficient());
  }
  return node.Cast(rows, DType::kI64);
}

// As one axis of all that is indexed.
void GatherND(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0), index = node.In(1);
  const int64_t shared = node.Int("batch_dims", 0);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  const TensorType type = node.TypeOf(index);
  const int rank = static_cast<int>(from.size());
  if (type.rank() < 1 || !type.dims.back().is_constant() || shared < 0 ||
      shared >= type.rank() || shared >= rank ||
      type.dims.back().coefficient() < 1 ||
      type.dims.back().coefficient() > rank - shared) {
    return node.Refuse("indices that do not fit its input");
  }
  for (int64_t i = 0; i < shared; ++i) {
    if (type.dims[i] != from[i]) {
      return node.Refuse("indices that do not fit its input");
    }
  }
  const auto rest = from.begin() + shared + type.dims.back().coefficient();
  const Dims indexed(from.begin(), rest);
  Dims rows = {Dim(1)};
  for (const Dim& dim : indexed) rows[0] = rows[0] * dim;
  // Numbers of rows are computed in f32.
  constexpr int64_t kExact = int64_t{1} << 24;
  if (rows[0].coefficient() > kExact) return node.Refuse("too many rows");
  rows.insert(rows.end(), rest, from.end());
  Dims into(type.dims.begin(), type.dims.end() - 1);
  into.insert(into.end(), rest, from.end());
  const std::string numbers =
      RowsOf(node, indexed, static_cast<int>(shared), index);
  if (node.failed()) return;
  const std::string list =
      node.Reshaped(numbers, {node.TypeOf(numbers).Elements()});
  const std::string picked = node.Op("gather")
                                 .In("X", node.Reshaped(x, rows))
                                 .In("Index", list)
                                 .Attr("axis", int64_t{0})
                                 .Made();
  node.Same(0, node.Reshaped(picked, into));
}

}  // namespace

const std::vector<OnnxRule>& OnnxGatherRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"Gather", Gather},
      {"GatherElements", GatherElements},
      {"GatherND", GatherND},
      {"Range", Range},
  };
  return rules;
}

}  // namespace halftone
