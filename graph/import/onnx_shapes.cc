// Nodes that move elements.
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

// Those of a shape that a node is given: from an input or an attribute.
std::vector<Dim> TargetDims(OnnxNode& node, int input,
                            absl::string_view attribute) {
  if (!node.Has(input)) {
    const IntList dims = node.Ints(attribute, {});
    return {dims.begin(), dims.end()};
  }
  const OnnxConstant* const known = node.Known(input);
  if (known != nullptr && !known->is_float() && known->dims.size() == 1) {
    return known->ints;
  }
  node.Refuse(absl::StrCat("input ", input),
              ": expected a shape that is "
              "known at import");
  return {};
}

// Opens dims that a graph of a constant batch gives, where --dims has opened
// the batch: the one that the batch of `from` falls into is a multiple of what
// it was. Of one sample nothing is a multiple: between two dims it belongs to
// the second, except where that is whole without it.
void OpenBatch(OnnxNode& node, const Dims& from, Dims* dims) {
  const int64_t was = node.graph().batch_was();
  const auto batch = std::find_if(from.begin(), from.end(), [](const Dim& dim) {
    return !dim.is_constant();
  });
  if (was == 0 || batch == from.end()) return;
  int64_t before = 1;
  for (auto dim = from.begin(); dim != batch; ++dim) {
    before *= dim->coefficient();
  }
  int64_t passed = 1;
  size_t at = 0;
  for (; at < dims->size() && (*dims)[at].is_constant(); ++at) {
    const int64_t size = (*dims)[at].coefficient();
    if (passed == before && (was == 1 || size != 1)) break;
    if (size < 1 || size > before / passed) break;
    passed *= size;
  }
  // A dim that is given as open needs no help.
  if (at == dims->size() || !(*dims)[at].is_constant()) return;
  if (was == 1 && before > 1 && passed == before && (*dims)[at] != Dim(1)) {
    Dims whole(batch + 1, from.end());
    const bool alone = batch->coefficient() == 1;
    if (!alone) whole.insert(whole.begin(), Dim(batch->coefficient()));
    const Dims rest(dims->begin() + at, dims->end());
    if (rest.size() < whole.size() || (alone && rest == whole)) --at;
  }
  // Samples behind places, as what has been one list of both is taken apart.
  const Dim places(batch->coefficient());
  if ((*dims)[at] == places && places != Dim(1) && at + 1 < dims->size() &&
      (*dims)[at + 1] == Dim(was)) {
    if (places == Dim(was)) {
      return node.Refuse("a shape in which the batch may be either of two");
    }
    ++at;
  }
  const int64_t size = (*dims)[at].coefficient();
  if (size > 0 && size % was == 0) {
    (*dims)[at] = Dim(size / was) * node.graph().Batch();
  }
}

// ---- Dims alone.

void Reshape(OnnxNode& node, const Rule&) {
  std::vector<Dim> target = TargetDims(node, 1, "shape");
  const bool copies = node.Int("allowzero", 0) == 0;
  const std::string x = node.In(0);
  if (node.failed()) return;
  const TensorType from = node.TypeOf(x);
  Dims dims(target.begin(), target.end());
  OpenBatch(node, from.dims, &dims);
  Dim known(1);
  int open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == Dim(0) && copies && i < from.dims.size()) {
      dims[i] = from.dims[i];
    }
    if (dims[i] == Dim(-1) && open < 0) {
      open = static_cast<int>(i);
    } else {
      known = known * dims[i];
    }
  }
  if (open >= 0 && !from.Elements().DivideBy(known, &dims[open])) {
    return node.Refuse("a shape that does not fit its input");
  }
  if (dims == from.dims) return node.Same(0, x);
  node.ReshapeTo(x, dims);
}

void Flatten(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  const int rank = static_cast<int>(from.size());
  const int64_t given = node.Int("axis", 1);
  const int64_t axis = given == rank ? rank : node.Axis(given, rank);
  Dims dims = {Dim(1), Dim(1)};
  for (int i = 0; i < rank; ++i) dims[i >= axis] = dims[i >= axis] * from[i];
  node.ReshapeTo(x, dims);
}

void Squeeze(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  const bool named = node.HasAttr("axes") || node.Has(1);
  IntList axes = node.Axes("axes", 1, {});
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  const int rank = static_cast<int>(from.size());
  for (int64_t& axis : axes) {
    axis = node.Axis(axis, rank);
    if (node.failed()) return;
    if (from[axis] != Dim(1)) return node.Refuse("an axis that is not 1");
  }
  Dims dims;
  for (int i = 0; i < rank; ++i) {
    const bool goes =
        named ? std::count(axes.begin(), axes.end(), i) > 0 : from[i] == Dim(1);
    if (!goes) dims.push_back(from[i]);
  }
  node.ReshapeTo(x, dims);
}

void Unsqueeze(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  IntList axes = node.Axes("axes", 1, {});
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  constexpr size_t kMostAxes = 16;
  if (axes.size() > kMostAxes) return node.Refuse("axes beyond bounds");
  const int rank = static_cast<int>(from.size() + axes.size());
  for (int64_t& axis : axes) axis = node.Axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    return node.Refuse("an axis that is named twice");
  }
  Dims dims(from);
  for (const int64_t axis : axes) dims.insert(dims.begin() + axis, Dim(1));
  node.ReshapeTo(x, dims);
}

void Transpose(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  IntList order(node.TypeOf(x).rank());
  std::iota(order.rbegin(), order.rend(), 0);
  order = node.Ints("perm", order);
  node.Op("transpose").In("X", x).Attr("axis", order).Out();
}

// ---- Parts.

// What a graph of one sample has once, as a token of a class, for each of the
// batch that --dims has opened.
std::string WithBatch(OnnxNode& node, const std::string& value,
                      const Dim& batch) {
  Dims dims = node.TypeOf(value).dims;
  if (node.graph().batch_was() != 1 || dims.empty() || dims[0] != Dim(1)) {
    return value;
  }
  dims[0] = batch;
  return OnnxExpanded(node, value, dims);
}

void Concat(OnnxNode& node, const Rule&) {
  const int64_t axis = node.Int("axis", 0);
  Dim batch(1);
  for (int i = 0; i < node.inputs(); ++i) {
    const Dims dims = node.Type(i).dims;
    const bool along = axis == 0 || axis == -static_cast<int64_t>(dims.size());
    if (!along && !dims.empty() && !dims[0].is_constant()) batch = dims[0];
  }
  OnnxOp op = node.Op("concat");
  int parts = 0;
  std::string last;
  for (int i = 0; i < node.inputs(); ++i) {
    // Parts without elements, as caches that are empty yet.
    if (node.Type(i).Elements() == Dim(0)) continue;
    last = node.In(i);
    if (!node.failed()) last = WithBatch(node, last, batch);
    op.In("X", last);
    ++parts;
  }
  if (parts == 1) return node.Same(0, last);
  op.Attr("axis", axis).Out();
}

void Split(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int64_t axis =
      node.Axis(node.Int("axis", 0), static_cast<int>(dims.size()));
  IntList sections = node.Axes("split", 1, {});
  const int64_t count = node.Int("num_outputs", node.outputs());
  if (node.failed()) return;
  if (count != node.outputs() || count < 1) {
    return node.Refuse("another number of outputs than parts");
  }
  if (sections.empty()) {
    if (!dims[axis].is_constant()) return node.Refuse("parts of the batch");
    // The last one is what is left.
    const int64_t all = dims[axis].coefficient();
    const int64_t each = (all + count - 1) / count;
    sections.assign(count, each);
    sections.back() = all - each * (count - 1);
  }
  if (count == 1) return node.Same(0, x);
  node.Op("split")
      .In("X", x)
      .Attr("axis", axis)
      .Attr("sections", sections)
      .OutList("Out");
}

// The one element of an input as a dim; 0: it is left out; -1: there is
// another number of them, or they are not known.
Dim DimIn(OnnxNode& node, int input) {
  if (!node.Has(input)) return Dim(0);
  const OnnxConstant* const known = node.Known(input);
  const bool one = known != nullptr && known->ints.size() == 1;
  return one ? known->ints[0] : Dim(-1);
}

// How many times the batch it is; -1: no number of times.
int64_t TimesBatch(const Dim& dim, const Dim& batch) {
  Dim times;
  if (dim == Dim(0)) return 0;
  const bool multiple = dim.DivideBy(batch, &times) && times.is_constant();
  return multiple ? times.coefficient() : -1;
}

// From a multiple of the batch up to another, as of a token that is there for
// each frame of each sample. False: it is not that; nothing is done.
bool SliceByBatch(OnnxNode& node, const std::string& x) {
  if (node.opset() < 10 || node.failed()) return false;
  const Dim batch = node.graph().Batch();
  const Dim axis = DimIn(node, 3), step = DimIn(node, 4);
  Dims dims = node.TypeOf(x).dims;
  if (axis != Dim(0) || (step != Dim(0) && step != Dim(1)) || dims.empty()) {
    return false;
  }
  const int64_t start = TimesBatch(DimIn(node, 1), batch);
  const int64_t end = TimesBatch(DimIn(node, 2), batch);
  const int64_t all = TimesBatch(dims[0], batch);
  if (start < 0 || start >= end || end > all) return false;
  Dims apart = dims;
  apart[0] = batch;
  apart.insert(apart.begin(), Dim(all));
  const std::string part = node.Op("slice")
                               .In("Input", node.Reshaped(x, apart))
                               .Attr("axes", IntList{0})
                               .Attr("starts", IntList{start})
                               .Attr("ends", IntList{end})
                               .Made();
  dims[0] = Dim(end - start) * batch;
  node.Same(0, node.Reshaped(part, dims));
  return true;
}

// A slice without elements along a dim, as of what a head does not turn where
// it turns all: for Concat, which leaves it out, whatever the batch is.
void TakeNothing(OnnxNode& node, const Dims& dims, int64_t axis) {
  OnnxConstant nothing;
  nothing.dtype = node.Type(0).dtype;
  for (const Dim& dim : dims) {
    nothing.dims.push_back(dim.is_constant() ? dim.coefficient() : 1);
  }
  nothing.dims[axis] = 0;
  node.Constant(0, std::move(nothing));
}

void Slice(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  if (SliceByBatch(node, x)) return;
  IntList starts = node.Axes("starts", 1, {});
  IntList ends = node.Axes("ends", 2, {});
  IntList axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  axes = node.Axes("axes", 3, axes);
  steps = node.Has(4) ? node.KnownInts(4) : steps;
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const bool fits = axes.size() == starts.size() &&
                    ends.size() == starts.size() &&
                    steps.size() == starts.size();
  if (!fits) return node.Refuse("starts, ends, axes and steps of other sizes");
  IntList kept_axes, kept_starts, kept_ends, kept_steps;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.Axis(axes[i], static_cast<int>(dims.size()));
    if (node.failed()) return;
    const bool to_end =
        ends[i] >= int64_t{1} << 30 || Dim(ends[i]) == dims[axis];
    if (starts[i] == 0 && steps[i] == 1 && to_end) continue;
    if (!dims[axis].is_constant()) {
      return node.Refuse("a slice of the batch");
    }
    const int64_t dim = dims[axis].coefficient(), step = steps[i];
    if (step == 0) return node.Refuse("a step of 0");
    int64_t start = starts[i], end = ends[i];
    start = start < 0 ? std::max<int64_t>(start, -dim - 1) + dim : start;
    end = end < 0 ? std::max<int64_t>(end, -dim - 1) + dim : end;
    start = std::min(std::max<int64_t>(start, 0), step > 0 ? dim : dim - 1);
    end = std::min(std::max<int64_t>(end, step > 0 ? 0 : -1), dim);
    const int64_t size = step > 0 ? end - start : start - end;
    if (size <= 0) return TakeNothing(node, dims, axis);
    kept_axes.push_back(axis);
    kept_starts.push_back(start);
    // Before the first: where no negative number stands for it.
    kept_ends.push_back(end == -1 ? -dim - 1 : end);
    kept_steps.push_back(std::min(std::max(step, -dim), dim));
  }
  if (kept_axes.empty()) return node.Same(0, x);
  const bool plain = std::count(kept_steps.begin(), kept_steps.end(), 1) ==
                     static_cast<int64_t>(kept_steps.size());
  OnnxOp op = node.Op(plain ? "slice" : "strided_slice");
  op.In("Input", x).Attr("axes", kept_axes).Attr("starts", kept_starts);
  op.Attr("ends", kept_ends);
  if (!plain) op.Attr("strides", kept_steps);
  op.Out();
}

// ---- Repetition and borders.

void Expand(OnnxNode& node, const Rule&) {
  const std::vector<Dim> target = TargetDims(node, 1, "shape");
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims from = node.TypeOf(x).dims;
  Dims dims(std::max(from.size(), target.size()), Dim(1));
  for (size_t k = 1; k <= dims.size(); ++k) {
    const Dim own = k <= from.size() ? from[from.size() - k] : Dim(1);
    const Dim wish = k <= target.size() ? target[target.size() - k] : Dim(1);
    Dim& dim = dims[dims.size() - k];
    const bool opened =
        !own.is_constant() && wish == Dim(node.graph().batch_was());
    dim = wish == Dim(1) || wish == Dim(-1) || opened ? own : wish;
    if (dim != own && own != Dim(1)) {
      return node.Refuse("dims that do not go together");
    }
  }
  node.Same(0, OnnxExpanded(node, x, dims));
}

std::string Tiled(OnnxNode& node, const std::string& x,
                  const IntList& repeats) {
  if (std::count(repeats.begin(), repeats.end(), 1) ==
      static_cast<int64_t>(repeats.size())) {
    return x;
  }
  return node.Op("tile").In("X", x).Attr("repeat_times", repeats).Made();
}

void Tile(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  const OnnxConstant* const known = node.Known(1);
  if (known != nullptr && !known->is_float() && !node.failed() &&
      !known->Integers().has_value()) {
    // In numbers first, then as the batch is.
    Dims dims = node.TypeOf(x).dims;
    if (known->ints.size() != dims.size()) {
      return node.Refuse("repetitions of other dims");
    }
    IntList repeats;
    for (size_t i = 0; i < dims.size(); ++i) {
      const Dim& times = known->ints[i];
      repeats.push_back(times.is_constant() ? times.coefficient() : 1);
      dims[i] = dims[i] * times;
    }
    return node.Same(0, OnnxExpanded(node, Tiled(node, x, repeats), dims));
  }
  const IntList repeats = node.KnownInts(1);
  if (!node.failed()) node.Same(0, Tiled(node, x, repeats));
}

// What no constant can be, for it has the batch's dims.
void ConstantOfShape(OnnxNode& node, const Rule&) {
  const std::vector<Dim> target = TargetDims(node, 0, "");
  const onnx::TensorProto* const given = node.Tensor("value");
  double value = 0;
  DType dtype = DType::kF32;
  if (given != nullptr) {
    const auto tensor = ReadOnnxTensor(*given, "", "");
    const auto constant =
        tensor.ok() ? ConstantOf(*tensor) : std::optional<OnnxConstant>();
    if (!constant.has_value() || !constant->Uniform().has_value()) {
      return node.Refuse("attribute value", " is no number");
    }
    value = *constant->Uniform();
    dtype = constant->dtype;
  }
  node.Same(0, OnnxExpanded(node, node.Number(value, dtype),
                            Dims(target.begin(), target.end())));
}

// `x` once after the other along an axis until that has the dim `to`, a
// multiple of the batch.
std::string RepeatedAsBatch(OnnxNode& node, const std::string& x, int64_t axis,
                            const Dim& to) {
  Dims dims = node.TypeOf(x).dims, apart = dims;
  const Dim batch = node.graph().Batch();
  Dim times;
  if (!dims[axis].is_constant() || !to.DivideBy(batch * dims[axis], &times) ||
      !times.is_constant()) {
    node.Refuse("a dim that is repeated as the batch is");
    return x;
  }
  const auto zeros = node.graph().BatchOfZeros();
  if (!zeros.ok()) {
    node.Refuse(std::string(zeros.status().message()));
    return x;
  }
  const auto for_each = [&](const std::string& once) {
    return node.Op("gather")
        .In("X", once)
        .In("Index", *zeros)
        .Attr("axis", axis)
        .Made();
  };
  if (dims[axis] == Dim(1) && times == Dim(1)) return for_each(x);
  // For each of the batch, for each time, the dim.
  apart.insert(apart.begin() + axis, {Dim(1), Dim(1)});
  const std::string each = for_each(node.Reshaped(x, apart));
  apart[axis] = batch;
  apart[axis + 1] = times;
  dims[axis] = to;
  return node.Reshaped(OnnxExpanded(node, each, apart), dims);
}

}  // namespace

std::string OnnxExpanded(OnnxNode& node, std::string x, const Dims& dims) {
  x = OnnxToRank(node, x, static_cast<int>(dims.size()));
  IntList shape;
  bool repeats = false;
  for (size_t i = 0; i < dims.size() && !node.failed(); ++i) {
    const Dim from = node.TypeOf(x).dims[i];
    const bool constant = dims[i].is_constant();
    if (from == dims[i]) {
      shape.push_back(-1);
    } else if (constant) {
      repeats = true;
      shape.push_back(dims[i].coefficient());
    } else {
      x = RepeatedAsBatch(node, x, static_cast<int64_t>(i), dims[i]);
      shape.push_back(-1);
    }
  }
  if (!repeats) return x;
  return node.Op("expand_v2").In("X", x).Attr("shape", shape).Made();
}

const std::vector<OnnxRule>& OnnxShapeRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"Concat", Concat},       {"ConstantOfShape", ConstantOfShape},
      {"Expand", Expand},       {"Flatten", Flatten},
      {"Reshape", Reshape},     {"Slice", Slice},
      {"Split", Split},         {"Squeeze", Squeeze},
      {"Tile", Tile},           {"Transpose", Transpose},
      {"Unsqueeze", Unsqueeze},
  };
  return rules;
}

}  // namespace halftone
