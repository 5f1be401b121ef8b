// Ops of Paddle's whose shapes are values: dims of others, of which the batch's
// is known at run time alone.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"
#include "graph/import/paddle_sizes.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarType;

using Size = PaddleSize;

void RefuseBatch(ImportedOp* result) {
  result->refusals.push_back(
      {"a shape in which the batch stands in such a place"});
}

// 0 in dims that are 1 but for the place of the batch, whose dim is that of
// `of`: f32.
std::string BatchOfZeros(Parts& parts, const std::string& of, int place,
                         int rank, PaddleScope& scope) {
  const int own = TensorOf(of, scope)->dims_size();
  IntList axes, starts, ends;
  for (int i = 1; i < own; ++i) {
    axes.push_back(i);
    starts.push_back(0);
    ends.push_back(1);
  }
  std::string value = scope.Read(of);
  if (!axes.empty()) {
    value = parts.Add("slice", {{"Input", value}},
                      {{"axes", axes}, {"starts", starts}, {"ends", ends}});
  }
  value = parts.Add("cast", {{"X", value}}, {{"to", int64_t{VarType::FP32}}});
  value = parts.Add("fill_zeros_like", {{"X", value}});
  IntList dims(rank, 1);
  dims[place] = -1;
  return parts.Add("reshape2", {{"X", value}}, {{"shape", dims}});
}

// The place of the only dim that is a batch: -1: none, -2: there are several,
// or a multiple of it.
int PlaceOfBatch(const std::vector<Size>& shape) {
  int place = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].of.empty()) continue;
    if (place >= 0 || shape[i].number != 1) return -2;
    place = static_cast<int>(i);
  }
  return place;
}

IntList Numbers(const std::vector<Size>& shape) {
  IntList numbers;
  for (const Size& size : shape) {
    numbers.push_back(size.of.empty() ? size.number : -1);
  }
  return numbers;
}

void Fill(const OpDesc& op, const std::vector<Size>& shape, PaddleScope& scope,
          ImportedOp* result) {
  const int place = PlaceOfBatch(shape);
  const auto& out = OutputsOf(op, "Out");
  const bool known = std::all_of(shape.begin(), shape.end(),
                                 [](const Size& s) { return s.number > 0; });
  if (place < 0 || !known || out.size() != 1 ||
      !InputsOf(op, "ValueTensor").empty()) {
    return RefuseBatch(result);
  }
  Parts parts(scope.Write(out[0]), scope, result);
  const int rank = static_cast<int>(shape.size());
  std::string value = BatchOfZeros(parts, shape[place].of, place, rank, scope);
  value = parts.Add("scale", {{"X", value}}, {{"bias", ConstantOf(op)}});
  value = parts.Add("expand_v2", {{"X", value}}, {{"shape", Numbers(shape)}});
  const int64_t dtype = IntAttr(op, "dtype", VarType::FP32);
  if (dtype != VarType::FP32)
    parts.Add("cast", {{"X", value}}, {{"to", dtype}});
  parts.End();
}

// `value`, of `rank` dims, with its dim of 1 in `place` repeated as the batch
// of `of` is: a sum with zeros.
std::string ForEachSample(Parts& parts, const std::string& value, int64_t dtype,
                          const std::string& of, int place, int rank,
                          PaddleScope& scope) {
  const std::string zeros = BatchOfZeros(parts, of, place, rank, scope);
  const bool is_f32 = dtype == VarType::FP32;
  const std::string real = is_f32 ? value : parts.ToF32(value, dtype);
  const std::string sum = parts.Binary("elementwise_add", {real, zeros});
  return is_f32 ? sum : parts.Cast(sum, dtype);
}

// Without what it reads in these slots.
void ClearInputs(std::initializer_list<absl::string_view> slots, OpDesc* op) {
  for (OpDesc::Var& in : *op->mutable_inputs()) {
    for (const absl::string_view slot : slots) {
      if (in.parameter() == slot) in.clear_arguments();
    }
  }
}

// An op with its shape as numbers, by name.
void WithShape(const OpDesc& op, std::initializer_list<absl::string_view> slots,
               const IntList& shape, const Rule& rule, PaddleScope& scope,
               ImportedOp* result) {
  OpDesc copy = op;
  ClearInputs(slots, &copy);
  SetInts("shape", shape, &copy);
  ByName(copy, rule, scope, result);
}

}  // namespace

void FilledByShape(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                   ImportedOp* result) {
  const auto shape =
      SizesIn(op, "ShapeTensor", "ShapeTensorList", scope, result);
  if (!shape.has_value()) return;
  if (PlaceOfBatch(*shape) != -1) return Fill(op, *shape, scope, result);
  WithShape(op, {"ShapeTensor", "ShapeTensorList"}, Numbers(*shape), rule,
            scope, result);
}

void FilledAsBatch(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  const auto& like = InputsOf(op, "Input");
  const int64_t place = IntAttr(op, "output_dim_idx", 0);
  std::vector<Size> shape;
  for (const int64_t dim : IntsAttr(op, "shape")) shape.push_back({dim, ""});
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (like.size() != 1 || TensorOf(like[0], scope) == nullptr ||
      TensorOf(like[0], scope)->dims_size() == 0 || place < 0 ||
      place >= rank || IntAttr(op, "input_dim_idx", 0) != 0) {
    return RefuseBatch(result);
  }
  shape[place] = {1, like[0]};
  Fill(op, shape, scope, result);
}

// A batch is what is left, or, where something else is, stays in its place.
void Reshaped(const OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result) {
  const auto& x = InputsOf(op, "X");
  const auto found = SizesIn(op, "Shape", "ShapeTensor", scope, result);
  if (!found.has_value()) return;
  if (found->empty() || x.size() != 1) return ByName(op, rule, scope, result);
  const std::vector<Size>& sizes = *found;
  IntList shape = Numbers(sizes);
  // Beside another -1 the batch has to be X's own.
  if (std::count(shape.begin(), shape.end(), -1) > 1) {
    const int place = PlaceOfBatch(sizes);
    if (place != 0) return RefuseBatch(result);
    shape[0] = 0;
    if (x[0] != sizes[0].of) {
      result->equal_batches.push_back(
          {scope.Read(x[0]), scope.Read(sizes[0].of)});
    }
  }
  WithShape(op, {"Shape", "ShapeTensor"}, shape, rule, scope, result);
}

void Expanded(const OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result) {
  const auto& x = InputsOf(op, "X");
  const auto& out = OutputsOf(op, "Out");
  const auto found =
      SizesIn(op, "Shape", "expand_shapes_tensor", scope, result);
  if (!found.has_value()) return;
  if (found->empty() || x.size() != 1 || out.size() != 1) {
    return ByName(op, rule, scope, result);
  }
  const std::vector<Size>& sizes = *found;
  const VarType::TensorDesc* const tensor = TensorOf(x[0], scope);
  const int place = PlaceOfBatch(sizes);
  const int rank = static_cast<int>(sizes.size());
  const int own = tensor == nullptr ? -1 : place - rank + tensor->dims_size();
  IntList shape = Numbers(sizes);
  // A dim that is the batch already stays.
  const bool repeated =
      place >= 0 && tensor != nullptr && (own < 0 || tensor->dims(own) == 1);
  if (place == -2 || tensor == nullptr) return RefuseBatch(result);
  if (!repeated) {
    return WithShape(op, {"Shape", "expand_shapes_tensor"}, shape, rule, scope,
                     result);
  }
  shape[place] = 1;
  const std::string value = scope.Read(x[0]);
  Parts parts(scope.Write(out[0]), scope, result);
  const std::string one =
      parts.Add("expand_v2", {{"X", value}}, {{"shape", shape}});
  ForEachSample(parts, one, tensor->data_type(), sizes[place].of, place, rank,
                scope);
  parts.End();
}

// Bounds in numbers; the batch's own dim is up to its end.
void SlicedBySizes(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                   ImportedOp* result) {
  OpDesc copy = op;
  const IntList axes = IntsAttr(op, "axes");
  const auto& x = InputsOf(op, "Input");
  const auto bounds = [&](const char* whole, const char* list,
                          const char* attr) {
    const auto sizes = SizesIn(op, whole, list, scope, result);
    if (!sizes.has_value() || sizes->empty()) return;
    IntList numbers = Numbers(*sizes);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Size& size = (*sizes)[i];
      if (size.is_number()) continue;
      const bool end = absl::string_view(attr) == "ends" && size.number == 1 &&
                       i < axes.size() && axes[i] == 0 && x.size() == 1;
      if (!end) return RefuseBatch(result);
      numbers[i] = INT32_MAX;
      if (x[0] != size.of) {
        result->equal_batches.push_back(
            {scope.Read(x[0]), scope.Read(size.of)});
      }
    }
    ClearInputs({whole, list}, &copy);
    SetInts(attr, numbers, &copy);
  };
  bounds("StartsTensor", "StartsTensorList", "starts");
  bounds("EndsTensor", "EndsTensorList", "ends");
  bounds("StridesTensor", "StridesTensorList", "strides");
  if (result->refusals.empty()) ByName(copy, rule, scope, result);
}

namespace {

// In numbers first, then as the batch is.
void TiledAsBatch(const OpDesc& op, std::vector<Size> times, PaddleScope& scope,
                  ImportedOp* result) {
  const auto& x = InputsOf(op, "X");
  const auto& out = OutputsOf(op, "Out");
  const VarType::TensorDesc* const tensor =
      x.size() == 1 ? TensorOf(x[0], scope) : nullptr;
  if (tensor == nullptr || out.size() != 1) return RefuseBatch(result);
  IntList dims(tensor->dims().begin(), tensor->dims().end());
  const size_t rank = std::max(dims.size(), times.size());
  dims.insert(dims.begin(), rank - dims.size(), 1);
  times.insert(times.begin(), rank - times.size(), Size{1, ""});
  IntList numbers;
  int place = -1;
  for (size_t i = 0; i < rank; ++i) {
    numbers.push_back(times[i].number);
    if (times[i].is_number()) continue;
    // Two open dims cannot be told apart when the shape is written.
    if (place >= 0) return RefuseBatch(result);
    place = static_cast<int>(i);
  }
  IntList apart;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] <= 0 || times[i].number <= 0 ||
        std::max(dims[i], times[i].number) >= kMostPaddleSize) {
      result->refusals.push_back(
          {"beside the batch, expected dims and times of 1 or more"});
      return;
    }
    if (static_cast<int>(i) == place) apart.push_back(1);
    dims[i] *= times[i].number;
    apart.push_back(dims[i]);
  }
  const std::string& of = times[place].of;
  dims[place] = -1;
  Parts parts(scope.Write(out[0]), scope, result);
  const std::string once =
      parts.Add("tile", {{"X", scope.Read(x[0])}}, {{"repeat_times", numbers}});
  const std::string each =
      parts.Add("reshape2", {{"X", once}}, {{"shape", apart}});
  const std::string all =
      ForEachSample(parts, each, tensor->data_type(), of, place,
                    static_cast<int>(rank) + 1, scope);
  parts.Add("reshape2", {{"X", all}}, {{"shape", dims}});
  parts.End();
}

}  // namespace

void TiledBySizes(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                  ImportedOp* result) {
  const auto sizes =
      SizesIn(op, "RepeatTimes", "repeat_times_tensor", scope, result);
  if (!sizes.has_value()) return;
  if (PlaceOfBatch(*sizes) != -1) {
    return TiledAsBatch(op, *sizes, scope, result);
  }
  OpDesc copy = op;
  if (!sizes->empty()) {
    ClearInputs({"RepeatTimes", "repeat_times_tensor"}, &copy);
    SetInts("repeat_times", Numbers(*sizes), &copy);
  }
  ByName(copy, rule, scope, result);
}

namespace {

// What a bound of a range is; nullopt: it is not known.
std::optional<double> BoundOf(const OpDesc& op, const char* slot,
                              PaddleScope& scope) {
  const auto& names = InputsOf(op, slot);
  if (names.size() != 1) return std::nullopt;
  const OpDesc* const fill = scope.Writer(names[0]);
  if (fill != nullptr && fill->type() == "fill_constant") {
    return ConstantOf(*fill);
  }
  const std::optional<Size> size = SizeOf(names[0], scope);
  if (!size.has_value() || !size->is_number()) return std::nullopt;
  return static_cast<double>(size->number);
}

// The value whose first dim is the batch that ends the range; empty: it does
// not end there.
std::string BatchThatEnds(const OpDesc& op, PaddleScope& scope) {
  const auto& names = InputsOf(op, "End");
  if (names.size() != 1) return "";
  const std::optional<Size> size = SizeOf(names[0], scope);
  return size.has_value() && size->number == 1 ? size->of : "";
}

}  // namespace

// Bounds are values in Paddle: constants here, or 0, 1, ... below the batch.
void Range(const OpDesc& op, const Rule&, PaddleScope& scope,
           ImportedOp* result) {
  const auto& out = OutputsOf(op, "Out");
  const std::optional<double> start = BoundOf(op, "Start", scope);
  const std::optional<double> end = BoundOf(op, "End", scope);
  const std::optional<double> step = BoundOf(op, "Step", scope);
  const std::string batch = BatchThatEnds(op, scope);
  const bool numbers_batch = !batch.empty() && start == 0.0 && step == 1.0;
  const std::pair<const char*, bool> bounds[] = {
      {"Start", start.has_value()},
      {"End", end.has_value() || numbers_batch},
      {"Step", step.has_value()}};
  for (const auto& [slot, known] : bounds) {
    if (known && out.size() == 1) continue;
    result->refusals.push_back(
        {absl::StrCat("input ", slot), ": expected a constant"});
  }
  if (!result->refusals.empty()) return;
  const VarType::TensorDesc* const tensor =
      TensorOf(InputsOf(op, "Start")[0], scope);
  int64_t dtype = VarType::INT64;
  if (tensor != nullptr) dtype = tensor->data_type();
  Parts parts(scope.Write(out[0]), scope, result);
  if (numbers_batch) {
    const std::string ones =
        parts.Scaled(BatchOfZeros(parts, batch, 0, 1, scope), 1, 1);
    const std::string numbers = parts.Add(
        "cumsum", {{"X", ones}}, {{"axis", int64_t{0}}, {"exclusive", true}});
    if (dtype != VarType::FP32) parts.Cast(numbers, dtype);
  } else {
    parts.Add(
        "arange", {},
        {{"start", *start}, {"end", *end}, {"step", *step}, {"dtype", dtype}});
  }
  parts.End();
}

}  // namespace halftone
