// Ops of Paddle's that read or write slices of a tensor by their places.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarType;

// Slices of x by the numbers of its first dims, from 0 up, of which an index
// has rows: as slices in one list.
class SlicesByPlace {
 public:
  SlicesByPlace(const PaddleOperand& x, const PaddleOperand& index,
                ImportedOp* result)
      : x_(x),
        index_(index),
        count_(index.rank() < 1 ? -1 : index.dims.back()) {
    if (count_ < 1 || count_ > x.rank()) {
      RefuseDimsOf(index, "expected an Index of [..., first dims of X]",
                   result);
      return;
    }
    const bool known =
        std::all_of(x.dims.begin() + (count_ > 1), x.dims.begin() + count_,
                    [](int64_t dim) { return dim > 0; });
    strides_ = known ? Strides(x.dims, count_) : IntList();
    if (strides_.empty()) {
      RefuseDimsOf(
          x, "expected known dims where it is indexed, 2^24 places at most",
          result);
    }
  }
  bool ok() const { return !strides_.empty(); }

  // Their numbers in the list.
  std::string Places(Parts& parts) const {
    std::string place = index_.value;
    if (count_ > 1) place = PlaceOf(parts);
    return parts.Add("reshape2", {{"X", place}}, {{"shape", IntList{-1}}});
  }
  // x as the list.
  std::string Listed(Parts& parts) const {
    if (count_ == 1) return x_.value;
    return parts.Reshaped(
        x_.value, Slices(x_.dims[0] < 0 ? -1 : strides_[0] * x_.dims[0]));
  }
  // The dims of so many.
  Dims Slices(int64_t count) const {
    IntList dims(x_.dims.begin() + count_, x_.dims.end());
    dims.insert(dims.begin(), count);
    return DimsOf(dims);
  }
  // The dims of what is read or written.
  IntList Moved() const {
    IntList dims(index_.dims.begin(), index_.dims.end() - 1);
    dims.insert(dims.end(), x_.dims.begin() + count_, x_.dims.end());
    return dims;
  }

 private:
  // How far apart the elements of each of the first `count` dims lie, counted
  // in slices of the others; empty: there are more than can be told apart.
  static IntList Strides(const IntList& dims, int64_t count) {
    IntList strides(count, 1);
    for (int64_t i = count - 1; i >= 0; --i) {
      const int64_t total = strides[i] * dims[i];
      if (total > kMostPlaces) return {};
      if (i > 0) strides[i - 1] = total;
    }
    return strides;
  }

  // Rows of numbers, one a dim, as one number each.
  std::string PlaceOf(Parts& parts) const {
    std::string place;
    for (int64_t i = 0; i < count_; ++i) {
      const std::string column =
          parts.Slice(index_.value, index_.rank() - 1, i, i + 1);
      const std::string part = parts.Scaled(parts.Cast(column, VarType::FP32),
                                            static_cast<double>(strides_[i]));
      place =
          place.empty() ? part : parts.Binary("elementwise_add", {place, part});
    }
    return parts.Cast(place, VarType::INT64);
  }

  const PaddleOperand &x_, &index_;
  int64_t count_;  // of dims that are indexed
  IntList strides_;
};

// `value`, which may be broadcast, in the dims of x, both of `dtype`.
std::string InDimsOf(Parts& parts, const std::string& x,
                     const std::string& value, int64_t dtype) {
  if (IsOurFloat(dtype)) {
    return parts.Binary("elementwise_add",
                        {parts.Of("fill_zeros_like", x), value});
  }
  return parts.Add(
      "where",
      {{"Condition", parts.Binary("equal", {x, x})}, {"X", value}, {"Y", x}});
}

bool RefuseInts(const PaddleOperand& x, ImportedOp* result) {
  if (IsOurFloat(x.dtype)) return false;
  RefuseDimsOf(x, "expected floats to add to", result);
  return true;
}

}  // namespace

void AddedSlices(const OpDesc& op, const Rule&, PaddleScope& scope,
                 ImportedOp* result) {
  PaddleReader in(op, {"X", "Index", "AddValue"}, scope, result);
  if (!in.ok()) return;
  const int axis = AxisOf(in[0], IntAttr(op, "axis", 0), result);
  if (axis < 0 || RefuseInts(in[0], result)) return;
  Parts parts = in.Write();
  parts.AddedAt(in[0].value, in[1].value, in[2].value, axis);
  parts.End();
}

void AddedByRows(const OpDesc& op, const Rule&, PaddleScope& scope,
                 ImportedOp* result) {
  PaddleReader in(op, {"X", "Index", "Updates"}, scope, result);
  if (!in.ok() || RefuseInts(in[0], result)) return;
  const SlicesByPlace slices(in[0], in[1], result);
  if (!slices.ok()) return;
  Parts parts = in.Write();
  const std::string places = slices.Places(parts);
  const std::string list = slices.Listed(parts);
  std::string updates = in[2].value;
  if (in[1].rank() != 2) {
    updates = parts.Reshaped(updates, slices.Slices(-1));
  }
  const std::string sum = parts.AddedAt(list, places, updates);
  if (list != in[0].value) parts.Reshaped(sum, DimsOf(in[0].dims));
  parts.End();
}

void GatherByRows(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  PaddleReader in(op, {"X", "Index"}, scope, result);
  if (!in.ok()) return;
  const SlicesByPlace slices(in[0], in[1], result);
  if (!slices.ok()) return;
  Parts parts = in.Write();
  const std::string places = slices.Places(parts);
  const std::string read =
      parts.Add("gather", {{"X", slices.Listed(parts)}, {"Index", places}},
                {{"axis", int64_t{0}}});
  if (in[1].rank() != 2) parts.Reshaped(read, DimsOf(slices.Moved()));
  parts.End();
}

namespace {

// Where a mask of the first dims is true.
void PutByMask(const OpDesc& op, PaddleReader& in, ImportedOp* result) {
  const PaddleOperand &x = in[0], &value = in[1], &mask = in[2];
  const bool one = std::all_of(value.dims.begin(), value.dims.end(),
                               [](int64_t dim) { return dim == 1; });
  if (in.size() != 3 || !one || mask.rank() > x.rank()) {
    return RefuseDimsOf(value, "expected one value, where a mask is true",
                        result);
  }
  Parts parts = in.Write();
  std::string where = mask.value;
  if (mask.rank() < x.rank()) {
    IntList axes;
    for (int i = mask.rank(); i < x.rank(); ++i) axes.push_back(i);
    where = parts.Add("unsqueeze2", {{"X", where}}, {{"axes", axes}});
  }
  std::string put = value.value;
  if (value.rank() > x.rank()) put = parts.Reshaped(put, {});
  if (BoolAttr(op, "accumulate", false)) {
    put = parts.Binary("elementwise_add", {x.value, put});
  }
  parts.Add("where", {{"Condition", where}, {"X", put}, {"Y", x.value}});
  parts.End();
}

}  // namespace

// Whole slices along the first dim, or what a mask chooses.
void PutByIndex(const OpDesc& op, const Rule&, PaddleScope& scope,
                ImportedOp* result) {
  PaddleReader in(op, {"x", "value", "indices*"}, scope, result, "out");
  if (!in.ok()) return;
  const PaddleOperand &x = in[0], &value = in[1], &index = in[2];
  if (index.dtype == VarType::BOOL) return PutByMask(op, in, result);
  if (in.size() != 3 || index.rank() != 1 || x.rank() < 1) {
    return RefuseDimsOf(index, "expected one list of numbers, or a mask",
                        result);
  }
  const bool adds = BoolAttr(op, "accumulate", false);
  if (adds && RefuseInts(x, result)) return;
  Parts parts = in.Write();
  IntList whole = x.dims;
  whole[0] = index.dims[0];
  std::string updates = value.value;
  if (value.dims != whole) {
    const std::string slices =
        parts.Add("gather", {{"X", x.value}, {"Index", index.value}},
                  {{"axis", int64_t{0}}});
    updates = InDimsOf(parts, slices, updates, x.dtype);
  }
  if (adds) {
    parts.AddedAt(x.value, index.value, updates);
  } else {
    parts.Add("scatter",
              {{"X", x.value}, {"Ids", index.value}, {"Updates", updates}});
  }
  parts.End();
}

namespace {

// start, start + step ... before end, along an axis.
struct Cut {
  int axis = 0;
  int64_t start = 0, end = 0, step = 1;

  int64_t count() const {
    return (end - start + step - (step > 0 ? 1 : -1)) / step;
  }
};

// Replaces what is cut out of a tensor, along one axis within the other.
class SliceSetter {
 public:
  // `dims`: of the value, as it stands beside x.
  SliceSetter(Parts& parts, std::vector<Cut> cuts, std::string value,
              const IntList& dims, const PaddleOperand& x)
      : parts_(parts), cuts_(std::move(cuts)), value_(std::move(value)), x_(x) {
    IntList cut_out = x.dims;
    for (const Cut& cut : cuts_) cut_out[cut.axis] = cut.count();
    whole_ = dims == cut_out;
  }

  // `x` with what lies within the cuts from the k-th on replaced.
  std::string Set(const std::string& x, size_t k) {
    if (k == cuts_.size()) {
      return whole_ ? value_ : InDimsOf(parts_, x, value_, x_.dtype);
    }
    const Cut& cut = cuts_[k];
    return cut.step == 1 ? SetRange(x, cut, k) : SetSteps(x, cut, k);
  }

 private:
  std::string SetRange(const std::string& x, const Cut& cut, size_t k) {
    std::vector<std::string> joined;
    if (cut.start != 0) {
      joined.push_back(parts_.Slice(x, cut.axis, 0, cut.start));
    }
    joined.push_back(Set(parts_.Slice(x, cut.axis, cut.start, cut.end), k + 1));
    if (cut.end < x_.dims[cut.axis]) {
      joined.push_back(parts_.Slice(x, cut.axis, cut.end, INT32_MAX));
    }
    std::string made = joined[0];
    for (size_t i = 1; i < joined.size(); ++i) {
      made = parts_.Add("concat", {{"X", made}, {"X", joined[i]}},
                        {{"axis", int64_t{cut.axis}}});
    }
    return made;
  }

  std::string SetSteps(const std::string& x, const Cut& cut, size_t k) {
    const std::string ids =
        parts_.Add("arange", {},
                   {{"start", static_cast<double>(cut.start)},
                    {"end", static_cast<double>(cut.end)},
                    {"step", static_cast<double>(cut.step)}});
    const std::string slices = parts_.Add("gather", {{"X", x}, {"Index", ids}},
                                          {{"axis", int64_t{cut.axis}}});
    const std::string news = Set(slices, k + 1);
    return parts_.Add("scatter", {{"X", x}, {"Ids", ids}, {"Updates", news}},
                      {{"axis", int64_t{cut.axis}}});
  }

  Parts& parts_;
  const std::vector<Cut> cuts_;
  const std::string value_;
  const PaddleOperand& x_;
  bool whole_;  // the value has an element for each that is set
};

// Within a dim, which is known unless all of it is cut out; false: it is not,
// or there is nothing within.
bool Normalize(int64_t dim, Cut* cut) {
  const bool down = cut->step < 0;
  if (dim < 0) {
    return cut->step == 1 && cut->start == 0 && cut->end >= INT32_MAX;
  }
  const auto inside = [&](int64_t at) {
    if (at < 0) at += dim;
    return std::clamp<int64_t>(at, down ? -1 : 0, down ? dim - 1 : dim);
  };
  cut->start = inside(cut->start);
  cut->end = inside(cut->end);
  return cut->step != 0 &&
         (down ? cut->start > cut->end : cut->start < cut->end);
}

// Dims with which a value that has none for the `decreased` axes of x stands
// beside x; empty: it does not fit.
IntList Beside(const PaddleOperand& value, int rank, const IntList& decreased) {
  IntList dims(rank, 1);
  int at = value.rank();
  for (int i = rank - 1; i >= 0 && at > 0; --i) {
    const bool gone = std::count(decreased.begin(), decreased.end(), i) > 0;
    if (!gone) dims[i] = value.dims[--at];
  }
  return at == 0 ? dims : IntList();
}

}  // namespace

// x[a:b:c, ...] = value.
void SlicesSet(const OpDesc& op, const Rule&, PaddleScope& scope,
               ImportedOp* result) {
  const bool tensor = !InputsOf(op, "ValueTensor").empty();
  PaddleReader in =
      tensor ? PaddleReader(op, {"Input", "ValueTensor"}, scope, result)
             : PaddleReader(op, {"Input"}, scope, result);
  if (!in.ok()) return;
  const IntList axes = IntsAttr(op, "axes"), starts = SizesAttr(op, "starts");
  const IntList ends = SizesAttr(op, "ends"), steps = SizesAttr(op, "steps");
  const bool numbers = std::all_of(
      op.inputs().begin(), op.inputs().end(), [](const OpDesc::Var& slot) {
        return slot.parameter() == "Input" ||
               slot.parameter() == "ValueTensor" || slot.arguments().empty();
      });
  if (!numbers || !IntsAttr(op, "none_axes").empty() ||
      starts.size() != axes.size() || ends.size() != axes.size() ||
      steps.size() != axes.size()) {
    result->refusals.push_back(
        {"expected starts, ends and steps in numbers, one of each axis"});
    return;
  }
  std::vector<Cut> cuts;
  for (size_t i = 0; i < axes.size(); ++i) {
    Cut cut = {AxisOf(in[0], axes[i], result), starts[i], ends[i], steps[i]};
    if (cut.axis < 0) return;
    if (!Normalize(in[0].dims[cut.axis], &cut)) {
      return RefuseDimsOf(
          in[0], "expected elements of known dims within starts and ends",
          result);
    }
    cuts.push_back(cut);
  }
  const std::optional<double> constant = OneConstantOf(op);
  IntList beside;
  if (tensor) {
    beside = Beside(in[1], in[0].rank(), IntsAttr(op, "decrease_axes"));
    if (in[1].rank() > 0 && beside.empty()) {
      return RefuseDimsOf(in[1], "expected a value of the dims that are set",
                          result);
    }
  } else if (!constant.has_value()) {
    result->refusals.push_back({"expected one number, or a tensor"});
    return;
  }
  Parts parts = in.Write();
  std::string value;
  if (!tensor) {
    value = parts.Number(*constant);
    if (in[0].dtype != VarType::FP32) value = parts.Cast(value, in[0].dtype);
  } else {
    value = in[1].value;
    if (DimsOf(in[1].dims) != DimsOf(beside)) {
      value = parts.Reshaped(value, DimsOf(beside));
    }
  }
  parts.EndWith(SliceSetter(parts, std::move(cuts), value, beside, in[0])
                    .Set(in[0].value, 0));
}

}  // namespace halftone
