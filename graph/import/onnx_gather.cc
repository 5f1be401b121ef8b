// Nodes that pick elements by their numbers, and the numbers of the batch.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/import/onnx_ops.h"
#include "graph/import/onnx_writer.h"

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

// Indices of any rank, which ours takes as a list. Not as lookup_table_v2, even
// of a table: that has no rows from the end.
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
  if (node.graph().batch_was() > 0 && !from[axis].is_constant() &&
      node.IsInitializer(1)) {
    // They are those of the batch that was.
    return node.Refuse("elements of the batch by their numbers");
  }
  const std::string index = node.In(1);
  if (node.failed()) return;
  const TensorType indices = node.TypeOf(index);
  if (indices.rank() <= 1) {
    return node.Op("gather")
        .In("X", x)
        .In("Index", index)
        .Attr("axis", axis)
        .Out();
  }
  Dims into(from.begin(), from.begin() + axis);
  into.insert(into.end(), indices.dims.begin(), indices.dims.end());
  into.insert(into.end(), from.begin() + axis + 1, from.end());
  const std::string picked =
      node.Op("gather")
          .In("X", x)
          .In("Index", node.Reshaped(index, {indices.Elements()}))
          .Attr("axis", axis)
          .Made();
  if (!node.failed()) node.ReshapeTo(picked, into);
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

// Indices, f32, of which negative ones count from the end of a dim.
std::string FromStart(OnnxNode& node, const std::string& index,
                      const Dim& dim) {
  if (node.failed() || !dim.is_constant()) return index;
  const double end = static_cast<double>(dim.coefficient());
  return node.Op("where")
      .In("Condition", OnnxBinary(node, "less_than", index, node.Number(0)))
      .In("X", OnnxScale(node, index, 1, end))
      .In("Y", index)
      .Made();
}

// One column of the indices, f32, from the start of `dim`.
std::string IndexColumn(OnnxNode& node, const std::string& index, int column,
                        const Dim& dim) {
  const int64_t last = node.TypeOf(index).rank() - 1;
  const std::string part = node.Op("slice")
                               .In("Input", index)
                               .Attr("axes", IntList{last})
                               .Attr("starts", IntList{column})
                               .Attr("ends", IntList{column + 1})
                               .Attr("decrease_axis", IntList{last})
                               .Made();
  return FromStart(node, node.Cast(part, DType::kF32), dim);
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
  if (rows[0].coefficient() > kMostPlaces) return node.Refuse("too many rows");
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

// By the rows' numbers, in the dims of an input where they are `rows` rows of
// `rest`.
void ScatterRows(OnnxNode& node, const std::string& numbers, const Dim& rows,
                 Dims rest, const std::string& reduction) {
  const bool adds = reduction == "add";
  if (!adds && reduction != "none") node.Refuse("reduction " + reduction);
  if (adds && !node.IsFloat(0)) node.Refuse("reduction add of whole numbers");
  if (node.failed()) return;
  const std::string x = node.In(0);
  const Dim count = node.TypeOf(numbers).Elements();
  Dims list(rest), news(std::move(rest));
  list.insert(list.begin(), rows);
  news.insert(news.begin(), count);
  const std::string before = node.Reshaped(x, list);
  const std::string ids = node.Reshaped(numbers, {count});
  const std::string updates = node.Reshaped(node.In(2), news);
  OnnxWriter writer(&node);
  const std::string made =
      adds ? writer.AddedAt(before, ids, updates)
           : writer.Add("scatter",
                        {{"X", before}, {"Ids", ids}, {"Updates", updates}});
  if (!node.failed()) node.Same(0, node.Reshaped(made, node.TypeOf(x).dims));
}

// Where the rows that are replaced are known, rows of X and of the updates in
// one list, of which each row of the result is one.
void ScatterND(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0), updates = node.In(2);
  const std::string reduction = node.String("reduction", "none");
  const OnnxConstant* const known = node.Known(1);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  const bool whole = known != nullptr && !known->is_float() &&
                     !known->dims.empty() && known->Integers().has_value();
  const TensorType index = whole ? TensorType() : node.TypeOf(node.In(1));
  if (node.failed()) return;
  const Dim last = whole              ? Dim(known->dims.back())
                   : index.rank() > 0 ? index.dims.back()
                                      : Dim(0);
  const int64_t parts = last.is_constant() ? last.coefficient() : 0;
  if (parts < 1 || parts > static_cast<int64_t>(from.size())) {
    return node.Refuse("indices that do not fit its input");
  }
  const auto rest = from.begin() + parts;
  Dim rows(1);
  for (auto dim = from.begin(); dim != rest; ++dim) rows = rows * *dim;
  if (!whole || reduction != "none") {
    if (rows.coefficient() > kMostPlaces) return node.Refuse("too many rows");
    const std::string numbers =
        RowsOf(node, Dims(from.begin(), rest), 0, node.In(1));
    return ScatterRows(node, numbers, rows, Dims(rest, from.end()), reduction);
  }
  if (!rows.is_constant()) return node.Refuse("a slice of the batch");
  if (rows.coefficient() > kMostKnownElements) {
    return node.Refuse("too many rows");
  }
  IntList sources(rows.coefficient());
  std::iota(sources.begin(), sources.end(), 0);
  const IntList indices = *known->Integers();
  const int64_t count = static_cast<int64_t>(indices.size()) / parts;
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = 0;
    for (int64_t k = 0; k < parts; ++k) {
      const int64_t dim = from[k].coefficient();
      int64_t at = indices[i * parts + k];
      at = at < 0 ? at + dim : at;
      if (at < 0 || at >= dim) return node.Refuse("an index beyond its axis");
      row = row * dim + at;
    }
    sources[row] = rows.coefficient() + i;
  }
  Dims list(rest, from.end());
  list.insert(list.begin(), rows);
  Dims news(list);
  news[0] = Dim(count);
  const std::string both = node.Op("concat")
                               .In("X", node.Reshaped(x, list))
                               .In("X", node.Reshaped(updates, news))
                               .Attr("axis", int64_t{0})
                               .Made();
  OnnxConstant order;
  order.dtype = DType::kI64;
  order.dims = {rows.coefficient()};
  order.ints.assign(sources.begin(), sources.end());
  const std::string picked = node.Op("gather")
                                 .In("X", both)
                                 .In("Index", node.Parameter(std::move(order)))
                                 .Attr("axis", int64_t{0})
                                 .Made();
  if (!node.failed()) node.Same(0, node.Reshaped(picked, from));
}

// Each element by its number among those of the input.
void ScatterEach(OnnxNode& node, int axis, const std::string& index,
                 const std::string& reduction) {
  const Dims from = node.TypeOf(node.In(0)).dims;
  const Dims into = node.TypeOf(index).dims;
  const int rank = static_cast<int>(from.size());
  Dim elements(1);
  std::string numbers;
  for (int i = rank - 1; i >= 0 && !node.failed(); --i) {
    if (elements.coefficient() > kMostPlaces || !elements.is_constant()) {
      return node.Refuse("indices of more than 64 places of such an axis");
    }
    const std::string places = i == axis ? FromStart(node, index, from[i])
                                         : NumbersOfDim(node, into[i], i, rank);
    const std::string part =
        OnnxScale(node, places, static_cast<double>(elements.coefficient()), 0);
    numbers = numbers.empty()
                  ? part
                  : OnnxBinary(node, "elementwise_add", numbers, part);
    elements = elements * from[i];
  }
  if (elements.coefficient() > kMostPlaces) return node.Refuse("too many rows");
  if (!node.failed()) numbers = node.Cast(numbers, DType::kI64);
  ScatterRows(node, numbers, elements, {}, reduction);
}

// Of more places of an axis the elements are numbered.
constexpr int64_t kMostChoices = 64;

// One place of the indices after the other: a choice between the element that
// goes there and what was there.
void ScatterElements(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0), updates = node.In(2);
  const std::string reduction = node.String("reduction", "none");
  const std::string index = node.Cast(node.In(1), DType::kF32);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims, into = node.TypeOf(index).dims;
  const int rank = static_cast<int>(from.size());
  const int64_t axis = node.Axis(node.Int("axis", 0), rank);
  if (node.failed()) return;
  static const auto& ours =
      *new std::map<std::string, absl::string_view>{{"none", ""},
                                                    {"add", "elementwise_add"},
                                                    {"max", "elementwise_max"},
                                                    {"min", "elementwise_min"},
                                                    {"mul", "elementwise_mul"}};
  const auto joined = ours.find(reduction);
  if (joined == ours.end()) return node.Refuse("reduction " + reduction);
  if (into.size() != from.size() || node.TypeOf(updates).dims != into) {
    return node.Refuse("indices that do not fit its input");
  }
  bool few = from[axis].is_constant() && into[axis].is_constant() &&
             into[axis].coefficient() <= kMostChoices;
  for (int i = 0; i < rank; ++i) {
    few = few && (i == axis || into[i] == from[i]);
  }
  if (!few) return ScatterEach(node, static_cast<int>(axis), index, reduction);
  const std::string places =
      NumbersOfDim(node, from[axis], static_cast<int>(axis), rank);
  const std::string at_place = FromStart(node, index, from[axis]);
  const auto part = [&](const std::string& value, int64_t at) {
    return node.Op("slice")
        .In("Input", value)
        .Attr("axes", IntList{axis})
        .Attr("starts", IntList{at})
        .Attr("ends", IntList{at + 1})
        .Made();
  };
  std::string result = x;
  for (int64_t i = 0; i < into[axis].coefficient() && !node.failed(); ++i) {
    std::string news = part(updates, i);
    if (!joined->second.empty()) {
      news = OnnxBinary(node, joined->second, result, news);
    }
    result = node.Op("where")
                 .In("Condition",
                     OnnxBinary(node, "equal", places, part(at_place, i)))
                 .In("X", news)
                 .In("Y", result)
                 .Made();
  }
  node.Same(0, result);
}

}  // namespace

const std::vector<OnnxRule>& OnnxGatherRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"Gather", Gather},
      {"GatherElements", GatherElements},
      {"GatherND", GatherND},
      {"Range", Range},
      {"Scatter", ScatterElements},  // as it was called
      {"ScatterElements", ScatterElements},
      {"ScatterND", ScatterND},
  };
  return rules;
}

}  // namespace halftone
