// Ops of Paddle's that choose elements by their places and are several of ours.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/functions.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"
#include "graph/import/paddle_sizes.h"

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

void AffinePlaces(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  const auto sizes = SizesIn(op, "OutputShape", "", scope, result);
  if (!sizes.has_value()) return;
  PaddleReader in(op, {"Theta"}, scope, result, "Output");
  if (!in.ok()) return;
  std::vector<int64_t> shape = IntsAttr(op, "output_shape");
  if (!sizes->empty()) {
    shape.clear();
    for (const PaddleSize& size : *sizes) {
      shape.push_back(size.is_number() ? size.number : -1);
    }
  }
  const std::vector<int64_t>& theta = in[0].dims;
  if (theta.size() != 3 || theta[1] != 2 || theta[2] != 3) {
    return RefuseDimsOf(in[0], "expected [N, 2, 3]", result);
  }
  const bool known = shape.size() == 4 && HasAffineGrid(shape[2], shape[3]);
  if (!known) {
    result->refusals.push_back(
        {"expected an output shape of [N, C, height, width]"});
    return;
  }
  Parts parts = in.Write();
  AffineGrid(parts, in[0].value, DimsOf(theta)[0], shape[2], shape[3],
             BoolAttr(op, "align_corners", true));
  parts.End();
}

void SampledByIndex(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                    ImportedOp* result) {
  ByName(Renamed(op, "take_along_axis", {{"X", "Input"}, {"Out", "Result"}}),
         rule, scope, result);
  SetLast("Axis", int64_t{1}, result);
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
    Parts also(scope.Write(indices[0]), scope, result);
    also.EndWith(WithLast(also, places, rank, axis));
  }
  if (!falls) best = parts.Scaled(best, -1);
  parts.EndWith(WithLast(parts, best, rank, axis));
}

// Each element `Repeats` times along a dim.
void Repeated(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const int axis = AxisOf(in[0], IntAttr(op, "dim", 0), result);
  const int64_t times = SizeAttr(op, "Repeats", 0);
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
  const IntList shape = SizesAttr(op, "shape");
  const IntList first = SizesAttr(op, "offsets");
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
    made = parts.Slice(made, static_cast<int64_t>(i), first[i], end);
  }
  parts.EndWith(made);
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
  const int64_t frames = SizeAttr(op, "seg_num", 1);
  const double ratio = FloatAttr(op, "shift_ratio", 0.25);
  if (in[0].rank() != 4 || frames < 2 || !(ratio >= 0 && ratio <= 0.5) ||
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
    const std::string part = parts.Slice(films, 2, first, end);
    const std::string kept = parts.Slice(part, 1, from, from + frames - 1);
    IntList paddings(10, 0);
    paddings[from == 0 ? 2 : 3] = 1;
    return parts.Add("pad", {{"X", kept}}, {{"paddings", paddings}});
  };
  std::vector<std::string> all;
  if (before > 0) all.push_back(moved(0, before, 0));
  if (behind > before) all.push_back(moved(before, behind, 1));
  if (behind < dims[1]) all.push_back(parts.Slice(films, 2, behind, dims[1]));
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
  const int64_t offset = SizeAttr(op, "offset", 0);
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
      "where", {{"Condition", parts.ByDiagonal("equal", rows, columns, offset)},
                {"X", x},
                {"Y", parts.Number(0)}});
  const bool trace = op.type() == "trace";
  const IntList summed = trace ? IntList{-2, -1} : IntList{-1};
  const std::string sum =
      parts.Add("reduce_sum", {{"X", kept}}, {{"dim", summed}});
  if (!trace && count < rows) {
    parts.Slice(sum, rank - 2, first, first + count);
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
  if (SizeAttr(op, "offset", 0) != 0 || rank < 2 || in[0].dims.back() < 1 ||
      !is("dim1", rank - 2) || !is("dim2", rank - 1)) {
    return RefuseDimsOf(
        in[0], "expected the main diagonal of the last two dims", result);
  }
  const int64_t count = in[0].dims.back();
  Parts parts = in.Write();
  const std::string own = parts.ByDiagonal("equal", count, count, 0);
  const std::string row =
      parts.Add("unsqueeze2", {{"X", in[0].value}}, {{"axes", IntList{-2}}});
  parts.Add("where", {{"Condition", own}, {"X", row}, {"Y", parts.Number(0)}});
  parts.End();
}

void Identity(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {}, scope, result);
  const int64_t rows = SizeAttr(op, "num_rows", 0);
  int64_t columns = SizeAttr(op, "num_columns", -1);
  if (columns < 0) columns = rows;
  if (!in.ok()) return;
  if (rows < 1 || columns < 1) {
    result->refusals.push_back({"expected numbers of rows and columns"});
    return;
  }
  Parts parts = in.Write();
  parts.Cast(parts.ByDiagonal("equal", rows, columns, 0),
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
  if (!result->refusals.empty()) return;
  if (!(bounds[2] >= 1 && bounds[2] <= kMostPlaces)) {
    result->refusals.push_back({"expected a Num from 1 to 2^24"});
    return;
  }
  const auto count = static_cast<int64_t>(bounds[2]);
  Parts parts = in.Write();
  const std::string places = parts.Cast(parts.Counted(0, count), VarType::FP32);
  const double step =
      count == 1 ? 0 : (bounds[1] - bounds[0]) / static_cast<double>(count - 1);
  const std::string made = parts.Scaled(places, step, bounds[0]);
  const int64_t dtype = IntAttr(op, "dtype", VarType::FP32);
  if (dtype != VarType::FP32) parts.Cast(made, dtype);
  parts.End();
}

}  // namespace halftone
