// Ops of Paddle's that choose elements by their places and are several of ours.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarType;

// The op with another name, and other names of its slots.
struct Slot {
  const char *paddle, *ours;
};
OpDesc Renamed(const OpDesc& op, const char* type,
               std::initializer_list<Slot> slots) {
  OpDesc renamed = op;
  renamed.set_type(type);
  const auto rename = [&](auto* vars) {
    for (OpDesc::Var& var : *vars) {
      for (const Slot& slot : slots) {
        if (var.parameter() == slot.paddle) var.set_parameter(slot.ours);
      }
    }
  };
  rename(renamed.mutable_inputs());
  rename(renamed.mutable_outputs());
  return renamed;
}

std::string Counted(Parts& parts, int64_t first, int64_t count) {
  const double start = static_cast<double>(first);
  return parts.Add(
      "arange", {},
      {{"start", start}, {"end", start + static_cast<double>(count)}});
}

// Whether column - row is `offset`: [rows, columns].
std::string OnDiagonal(Parts& parts, int64_t rows, int64_t columns,
                       int64_t offset) {
  const std::string wanted =
      parts.Add("unsqueeze2", {{"X", Counted(parts, offset, rows)}},
                {{"axes", IntList{1}}});
  return parts.Binary("equal", {Counted(parts, 0, columns), wanted});
}

std::string Slice(Parts& parts, const std::string& x, int64_t axis,
                  int64_t first, int64_t end) {
  return parts.Add("slice", {{"Input", x}},
                   {{"axes", IntList{axis}},
                    {"starts", IntList{first}},
                    {"ends", IntList{end}}});
}

// With the axis last, or back.
std::string WithLast(Parts& parts, const std::string& x, int rank, int axis) {
  if (axis == rank - 1) return x;
  IntList order = AxesOf(rank);
  std::swap(order[axis], order[rank - 1]);
  return parts.Add("transpose2", {{"X", x}}, {{"axis", order}});
}

}  // namespace

void Unbound(const OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result) {
  ByName(Renamed(op, "unstack", {{"Out", "Y"}}), rule, scope, result);
}

void SampledByIndex(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                    ImportedOp* result) {
  ByName(Renamed(op, "take_along_axis", {{"X", "Input"}, {"Out", "Result"}}),
         rule, scope, result);
  SetLast("Axis", int64_t{1}, result);
}

// Slices of X by the numbers of its first dims, as one number: places from 0
// up, exact up to 2^24.
void GatherByRows(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  PaddleReader in(op, {"X", "Index"}, scope, result);
  if (!in.ok()) return;
  const int64_t count = in[1].rank() < 1 ? -1 : in[1].dims.back();
  if (count < 1 || count > in[0].rank()) {
    return RefuseDimsOf(in[1], "expected an Index of [..., first dims of X]",
                        result);
  }
  const auto rest = in[0].dims.begin() + count;
  if (std::any_of(in[0].dims.begin() + (count > 1), rest,
                  [](int64_t dim) { return dim < 1; })) {
    return RefuseDimsOf(in[0], "expected known dims where it is indexed",
                        result);
  }
  Parts parts = in.Write();
  Dims made = DimsOf({in[1].dims.begin(), in[1].dims.end() - 1});
  std::string place, slices = in[0].value;
  if (count == 1) {
    place = in[1].value;
  } else {
    int64_t stride = 1;
    for (int64_t i = count - 1; i >= 0; --i) {
      const std::string column = parts.Cast(
          Slice(parts, in[1].value, in[1].rank() - 1, i, i + 1), VarType::FP32);
      const std::string part =
          stride == 1 ? column
                      : parts.Scaled(column, static_cast<double>(stride));
      place =
          place.empty() ? part : parts.Binary("elementwise_add", {place, part});
      stride *= in[0].dims[i];
    }
    place = parts.Cast(place, VarType::INT64);
    IntList flat(rest, in[0].dims.end());
    flat.insert(flat.begin(), in[0].dims[0] < 0 ? -1 : stride);
    slices = parts.Reshaped(slices, DimsOf(flat));
  }
  const std::string list =
      parts.Add("reshape2", {{"X", place}}, {{"shape", IntList{-1}}});
  const std::string taken = parts.Add(
      "gather", {{"X", slices}, {"Index", list}}, {{"axis", int64_t{0}}});
  for (const Dim& dim : DimsOf({rest, in[0].dims.end()})) made.push_back(dim);
  if (in[1].rank() != 2) parts.Reshaped(taken, made);
  parts.End();
}

// The greatest or the least along an axis, in order, and their places.
void Sorted(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  const bool all = op.type() == "argsort";
  const bool falls = BoolAttr(op, all ? "descending" : "largest", !all);
  const int64_t given = IntAttr(op, "axis", -1);
  if (!all && falls && given == -1) {
    return ByName(op, rule, scope, result);
  }
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const int rank = in[0].rank();
  const int axis = AxisOf(in[0], given, result);
  if (axis < 0) return;
  const int64_t k = all ? in[0].dims[axis] : IntAttr(op, "k", 1);
  if (k < 1) {
    return RefuseDimsOf(in[0], "expected a known dim to sort", result);
  }
  Parts parts = in.Write();
  std::string x = WithLast(parts, in[0].value, rank, axis);
  if (!falls) x = parts.Scaled(x, -1);
  std::string best = parts.Add("top_k", {{"X", x}}, {{"k", k}});
  const std::string places = parts.AlsoIn("Indices");
  const auto& indices = OutputsOf(op, "Indices");
  if (indices.size() == 1) {
    if (WithLast(parts, places, rank, axis) == places) {
      parts.Of("assign", places);
    }
    parts.EndAs(scope.Write(indices[0]));
  }
  if (!falls) best = parts.Scaled(best, -1);
  const bool moved = WithLast(parts, best, rank, axis) != best;
  if (falls && !moved) parts.Of("assign", best);
  parts.End();
}

// Each element `Repeats` times along a dim.
void Repeated(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const int axis = AxisOf(in[0], IntAttr(op, "dim", 0), result);
  const int64_t times = IntAttr(op, "Repeats", 0);
  if (axis < 0) return;
  if (!InputsOf(op, "RepeatsTensor").empty() || times < 1 ||
      in[0].dims[axis] < 1) {
    return RefuseDimsOf(
        in[0], "expected a number of times, and a known dim to repeat", result);
  }
  Parts parts = in.Write();
  IntList shape(in[0].rank() + 1, -1);
  shape[axis + 1] = times;
  const std::string one = parts.Add("unsqueeze2", {{"X", in[0].value}},
                                    {{"axes", IntList{axis + 1}}});
  const std::string more =
      parts.Add("expand_v2", {{"X", one}}, {{"shape", shape}});
  Dims dims = DimsOf(in[0].dims);
  dims[axis] = dims[axis] * Dim(times);
  parts.Reshaped(more, dims);
  parts.End();
}

void Cropped(const OpDesc& op, const Rule&, PaddleScope& scope,
             ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const IntList shape = IntsAttr(op, "shape"), first = IntsAttr(op, "offsets");
  const size_t rank = in[0].dims.size();
  const bool numbers = std::all_of(
      op.inputs().begin(), op.inputs().end(), [](const OpDesc::Var& slot) {
        return slot.parameter() == "X" || slot.arguments().empty();
      });
  if (shape.size() != rank || first.size() != rank || !numbers) {
    result->refusals.push_back({"expected shape and offsets in numbers"});
    return;
  }
  Parts parts = in.Write();
  std::string made = in[0].value;
  for (size_t i = 0; i < rank; ++i) {
    if (first[i] == 0 && shape[i] < 1) continue;  // what there is
    const int64_t end = shape[i] < 1 ? INT32_MAX : first[i] + shape[i];
    made = Slice(parts, made, static_cast<int64_t>(i), first[i], end);
  }
  if (result->nodes.empty()) parts.Of("assign", made);
  parts.End();
}

// ---- Windows.

namespace {

// What a convolution takes from each place of a window, to a channel of its
// own: [channels * places, 1, height, width].
std::string Windows(Parts& parts, int64_t channels, const IntList& window) {
  const int64_t places = window[0] * window[1];
  const std::string own =
      parts.Cast(OnDiagonal(parts, places, places, 0), VarType::FP32);
  const std::string filter =
      parts.Reshaped(own, DimsOf({places, 1, window[0], window[1]}));
  return parts.Add("tile", {{"X", filter}},
                   {{"repeat_times", IntList{channels, 1, 1, 1}}});
}

struct WindowAttrs {
  IntList window, strides, paddings, dilations;
  IntList counts;  // windows along height and width
};

// Paddings in Paddle's unfold: top, left, bottom, right.
bool ReadWindows(const OpDesc& op, const IntList& sizes, WindowAttrs* attrs) {
  attrs->window = IntsAttr(op, "kernel_sizes");
  attrs->strides = IntsAttr(op, "strides");
  attrs->dilations = IntsAttr(op, "dilations");
  const IntList by_side = IntsAttr(op, "paddings");
  const IntList* const pairs[] = {&sizes, &attrs->window, &attrs->strides,
                                  &attrs->dilations};
  for (const IntList* const two : pairs) {
    if (two->size() != 2 || std::min((*two)[0], (*two)[1]) < 1) return false;
    if (std::max((*two)[0], (*two)[1]) > 1 << 20) return false;
  }
  if (by_side.size() != 4) return false;
  attrs->paddings = {by_side[0], by_side[2], by_side[1], by_side[3]};
  for (int i = 0; i < 2; ++i) {
    const int64_t room = sizes[i] + by_side[i] + by_side[i + 2] -
                         attrs->dilations[i] * (attrs->window[i] - 1) - 1;
    if (room < 0) return false;
    attrs->counts.push_back(room / attrs->strides[i] + 1);
  }
  return true;
}

}  // namespace

// Windows of [N, C, H, W] as columns of [N, C * places, windows]: a convolution
// of each channel.
void Unfolded(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result, "Y");
  if (!in.ok()) return;
  const IntList& dims = in[0].dims;
  WindowAttrs by;
  if (in[0].rank() != 4 || dims[1] < 1 ||
      !ReadWindows(op, {dims[2], dims[3]}, &by)) {
    return RefuseDimsOf(in[0], "expected [N, C, H, W] with room for a window",
                        result);
  }
  Parts parts = in.Write();
  const std::string columns = parts.Add(
      "conv2d",
      {{"Input", in[0].value}, {"Filter", Windows(parts, dims[1], by.window)}},
      {{"strides", by.strides},
       {"paddings", by.paddings},
       {"dilations", by.dilations},
       {"groups", dims[1]}});
  parts.Reshaped(columns,
                 DimsOf({dims[0], dims[1] * by.window[0] * by.window[1],
                         by.counts[0] * by.counts[1]}));
  parts.End();
}

// Columns of windows added where they came from: the gradient of that.
void Folded(const OpDesc& op, const Rule&, PaddleScope& scope,
            ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result, "Y");
  if (!in.ok()) return;
  const IntList& dims = in[0].dims;
  const IntList sizes = IntsAttr(op, "output_sizes");
  WindowAttrs by;
  if (in[0].rank() != 3 || !ReadWindows(op, sizes, &by) || dims[1] < 1 ||
      dims[1] % (by.window[0] * by.window[1]) != 0 ||
      dims[2] != by.counts[0] * by.counts[1]) {
    return RefuseDimsOf(in[0], "expected [N, C * places, windows]", result);
  }
  const int64_t channels = dims[1] / (by.window[0] * by.window[1]);
  Parts parts = in.Write();
  const std::string image = parts.Reshaped(
      in[0].value, DimsOf({dims[0], dims[1], by.counts[0], by.counts[1]}));
  parts.Add("conv2d_transpose",
            {{"Input", image}, {"Filter", Windows(parts, channels, by.window)}},
            {{"strides", by.strides},
             {"paddings", by.paddings},
             {"dilations", by.dilations},
             {"groups", channels},
             {"output_size", sizes}});
  parts.End();
}

// The greatest of `groups` channels beside each other.
void GreatestOfChannels(const OpDesc& op, const Rule&, PaddleScope& scope,
                        ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const int axis = AxisOf(in[0], IntAttr(op, "axis", 1), result);
  const int64_t groups = IntAttr(op, "groups", 1);
  if (axis < 0) return;
  if (groups < 1 || in[0].dims[axis] < 1 || in[0].dims[axis] % groups != 0) {
    return RefuseDimsOf(in[0], "expected channels in whole groups", result);
  }
  Parts parts = in.Write();
  IntList dims = in[0].dims;
  dims[axis] /= groups;
  dims.insert(dims.begin() + axis + 1, groups);
  parts.Add("reduce_max", {{"X", parts.Reshaped(in[0].value, DimsOf(dims))}},
            {{"dim", IntList{axis + 1}}});
  parts.End();
}

// A part of the channels from the frame before, one from the frame behind.
void ShiftedFrames(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const IntList& dims = in[0].dims;
  const int64_t frames = IntAttr(op, "seg_num", 1);
  const double ratio = FloatAttr(op, "shift_ratio", 0.25);
  if (in[0].rank() != 4 || frames < 2 ||
      *std::min_element(dims.begin() + 1, dims.end()) < 1) {
    return RefuseDimsOf(in[0], "expected frames of [C, H, W]", result);
  }
  const auto channels = [&](double share) {
    const auto count =
        static_cast<int64_t>(static_cast<double>(dims[1]) * share);
    return std::clamp<int64_t>(count, 0, dims[1]);
  };
  const int64_t before = channels(ratio), behind = channels(2 * ratio);
  Parts parts = in.Write();
  const std::string films =
      parts.Reshaped(in[0].value, DimsOf({dims[0] < 0 ? -1 : dims[0] / frames,
                                          frames, dims[1], dims[2], dims[3]}));
  const auto moved = [&](int64_t first, int64_t end, int64_t from) {
    const std::string part = Slice(parts, films, 2, first, end);
    const std::string kept = Slice(parts, part, 1, from, from + frames - 1);
    IntList paddings(10, 0);
    paddings[from == 0 ? 2 : 3] = 1;
    return parts.Add("pad", {{"X", kept}}, {{"paddings", paddings}});
  };
  std::vector<std::string> all;
  if (before > 0) all.push_back(moved(0, before, 0));
  if (behind > before) all.push_back(moved(before, behind, 1));
  if (behind < dims[1]) all.push_back(Slice(parts, films, 2, behind, dims[1]));
  std::string made = all[0];
  for (size_t i = 1; i < all.size(); ++i) {
    made = parts.Add("concat", {{"X", made}, {"X", all[i]}},
                     {{"axis", int64_t{2}}});
  }
  parts.Reshaped(made, DimsOf(dims));
  parts.End();
}

// ---- Diagonals and constants.

// The elements of a diagonal, as the last dim; of trace their sum.
void Diagonal(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"Input"}, scope, result);
  if (!in.ok()) return;
  const int rank = in[0].rank();
  const int row = AxisOf(in[0], IntAttr(op, "axis1", 0), result);
  const int column = AxisOf(in[0], IntAttr(op, "axis2", 1), result);
  if (row < 0 || column < 0) return;
  const int64_t rows = in[0].dims[row], columns = in[0].dims[column];
  const int64_t offset = IntAttr(op, "offset", 0);
  const int64_t first = std::max<int64_t>(0, -offset);
  const int64_t count = std::min(rows - first, columns - first - offset);
  if (row == column || rows < 1 || columns < 1 || count < 1) {
    return RefuseDimsOf(in[0], "expected a diagonal of known dims", result);
  }
  Parts parts = in.Write();
  std::string x = in[0].value;
  IntList order = AxesOf(rank, {row, column});
  order.insert(order.end(), {row, column});
  if (order != AxesOf(rank)) {
    x = parts.Add("transpose2", {{"X", x}}, {{"axis", order}});
  }
  const std::string kept = parts.Add(
      "where", {{"Condition", OnDiagonal(parts, rows, columns, offset)},
                {"X", x},
                {"Y", parts.Number(0)}});
  const bool trace = op.type() == "trace";
  const IntList summed = trace ? IntList{-2, -1} : IntList{-1};
  const std::string sum =
      parts.Add("reduce_sum", {{"X", kept}}, {{"dim", summed}});
  if (!trace && count < rows) {
    Slice(parts, sum, rank - 2, first, first + count);
  }
  parts.End();
}

// The last dim on a diagonal of zeros.
void OnADiagonal(const OpDesc& op, const Rule&, PaddleScope& scope,
                 ImportedOp* result) {
  PaddleReader in(op, {"Input"}, scope, result);
  if (!in.ok()) return;
  const int rank = in[0].rank() + 1;
  const auto is = [&](const char* name, int axis) {
    const int64_t given = IntAttr(op, name, axis - rank);
    return given == axis || given == axis - rank;
  };
  if (IntAttr(op, "offset", 0) != 0 || rank < 2 || in[0].dims.back() < 1 ||
      !is("dim1", rank - 2) || !is("dim2", rank - 1)) {
    return RefuseDimsOf(
        in[0], "expected the main diagonal of the last two dims", result);
  }
  const int64_t count = in[0].dims.back();
  Parts parts = in.Write();
  const std::string own = OnDiagonal(parts, count, count, 0);
  const std::string row =
      parts.Add("unsqueeze2", {{"X", in[0].value}}, {{"axes", IntList{-2}}});
  parts.Add("where", {{"Condition", own}, {"X", row}, {"Y", parts.Number(0)}});
  parts.End();
}

void Identity(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {}, scope, result);
  const int64_t rows = IntAttr(op, "num_rows", 0);
  int64_t columns = IntAttr(op, "num_columns", -1);
  if (columns < 0) columns = rows;
  if (!in.ok()) return;
  if (rows < 1 || columns < 1) {
    result->refusals.push_back({"expected numbers of rows and columns"});
    return;
  }
  Parts parts = in.Write();
  parts.Cast(OnDiagonal(parts, rows, columns, 0),
             IntAttr(op, "dtype", VarType::FP32));
  parts.End();
}

// Num numbers from Start to Stop, both of them there.
void EvenlySpaced(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  double bounds[3] = {};
  constexpr const char* kSlots[] = {"Start", "Stop", "Num"};
  for (int i = 0; i < 3; ++i) {
    const auto& names = InputsOf(op, kSlots[i]);
    const OpDesc* const fill = names.empty() ? nullptr : scope.Writer(names[0]);
    if (fill == nullptr || fill->type() != "fill_constant") {
      result->refusals.push_back(
          {absl::StrCat("input ", kSlots[i]), ": expected a constant"});
      continue;
    }
    bounds[i] = ConstantOf(*fill);
  }
  PaddleReader in(op, {}, scope, result);
  const auto count = static_cast<int64_t>(bounds[2]);
  if (!result->refusals.empty()) return;
  if (count < 1 || count > int64_t{1} << 24) {
    result->refusals.push_back({"expected a number of numbers"});
    return;
  }
  Parts parts = in.Write();
  const std::string places =
      parts.Cast(Counted(parts, 0, count), VarType::FP32);
  const double step =
      count == 1 ? 0 : (bounds[1] - bounds[0]) / static_cast<double>(count - 1);
  const std::string made = parts.Scaled(places, step, bounds[0]);
  const int64_t dtype = IntAttr(op, "dtype", VarType::FP32);
  if (dtype != VarType::FP32) parts.Cast(made, dtype);
  parts.End();
}

}  // namespace halftone
