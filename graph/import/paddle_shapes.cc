// Ops of Paddle's whose shapes are values: dims of others, of which the batch's
// is known at run time alone.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
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

// Ops in each other that compute a dim; what goes deeper is not known.
constexpr int kMostNested = 8;
// Of dims that are computed: products of two fit.
constexpr int64_t kMostSize = int64_t{1} << 31;

// A number, or its product with the first dim of a variable.
struct Size {
  int64_t number = 0;
  std::string of;  // empty: a number alone
};

std::optional<Size> SizeOf(const std::string& name, PaddleScope& scope,
                           int depth = 0);

std::optional<Size> Known(double number) {
  const bool fits = std::abs(number) <= kMostSize;  // a NaN does not
  if (!fits || number != std::trunc(number)) return std::nullopt;
  return Size{static_cast<int64_t>(number), ""};
}

std::optional<Size> InputSize(const OpDesc& op, const char* slot,
                              PaddleScope& scope, int depth) {
  const auto& names = InputsOf(op, slot);
  if (names.size() != 1) return std::nullopt;
  return SizeOf(names[0], scope, depth + 1);
}

// A dim of what paddle.shape was asked for.
std::optional<Size> SlicedSize(const OpDesc& slice, PaddleScope& scope) {
  const auto& input = InputsOf(slice, "Input");
  const OpDesc* const shape = input.empty() ? nullptr : scope.Writer(input[0]);
  const IntList starts = IntsAttr(slice, "starts");
  const IntList ends = IntsAttr(slice, "ends");
  if (shape == nullptr || shape->type() != "shape" || starts.size() != 1 ||
      ends.size() != 1 || InputsOf(*shape, "Input").empty() ||
      !InputsOf(slice, "StartsTensor").empty() ||
      !InputsOf(slice, "StartsTensorList").empty()) {
    return std::nullopt;
  }
  const std::string& of = InputsOf(*shape, "Input")[0];
  const VarType::TensorDesc* const tensor = TensorOf(of, scope);
  const int rank = tensor == nullptr ? 0 : tensor->dims_size();
  const int64_t place = starts[0] < 0 ? starts[0] + rank : starts[0];
  const int64_t end =
      ends[0] < 0 ? ends[0] + rank : std::min<int64_t>(ends[0], rank);
  if (place < 0 || place >= rank || end != place + 1) return std::nullopt;
  if (tensor->dims(place) > 0) {
    return Known(static_cast<double>(tensor->dims(place)));
  }
  if (place > 0) return std::nullopt;
  return Size{1, of};
}

// Nullopt: it cannot be said.
std::optional<Size> SizeOf(const std::string& name, PaddleScope& scope,
                           int depth) {
  const OpDesc* const op = scope.Writer(name);
  if (op == nullptr || depth > kMostNested) return std::nullopt;
  if (op->type() == "fill_constant" && InputsOf(*op, "ValueTensor").empty()) {
    return Known(ConstantOf(*op));
  }
  if (op->type() == "slice") return SlicedSize(*op, scope);
  if (op->type() == "assign" || op->type() == "cast") {
    return InputSize(*op, "X", scope, depth);
  }
  const bool scaled = op->type() == "scale" && FloatAttr(*op, "bias", 0) == 0 &&
                      InputsOf(*op, "ScaleTensor").empty();
  if (op->type() != "elementwise_mul" && !scaled) return std::nullopt;
  const auto x = InputSize(*op, "X", scope, depth);
  const auto y = scaled ? Known(FloatAttr(*op, "scale", 1))
                        : InputSize(*op, "Y", scope, depth);
  if (!x.has_value() || !y.has_value() || (!x->of.empty() && !y->of.empty())) {
    return std::nullopt;
  }
  std::optional<Size> size = Known(static_cast<double>(x->number * y->number));
  if (size.has_value()) size->of = absl::StrCat(x->of, y->of);
  return size;
}

// The shape of an op that has it as variables, one a dim; false: refused.
bool FindShape(const OpDesc& op, const char* list, const char* whole,
               PaddleScope& scope, std::vector<Size>* shape,
               ImportedOp* result) {
  if (!InputsOf(op, whole).empty()) {
    result->refusals.push_back(
        {absl::StrCat("input ", whole), " is not taken"});
    return false;
  }
  for (const std::string& name : InputsOf(op, list)) {
    const std::optional<Size> size = SizeOf(name, scope);
    if (!size.has_value()) {
      result->refusals.push_back(
          {absl::StrCat("input ", list,
                        ": expected constants and dims of values"),
           absl::StrCat(", found ", name)});
      return false;
    }
    shape->push_back(*size);
  }
  return true;
}

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

// An op with its shape as numbers, by name.
void WithShape(const OpDesc& op, const char* list, const IntList& shape,
               const Rule& rule, PaddleScope& scope, ImportedOp* result) {
  OpDesc copy = op;
  for (OpDesc::Var& in : *copy.mutable_inputs()) {
    if (in.parameter() == list) in.clear_arguments();
  }
  SetInts("shape", shape, &copy);
  ByName(copy, rule, scope, result);
}

}  // namespace

void FilledByShape(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                   ImportedOp* result) {
  std::vector<Size> shape;
  if (!FindShape(op, "ShapeTensorList", "ShapeTensor", scope, &shape, result)) {
    return;
  }
  if (PlaceOfBatch(shape) != -1) return Fill(op, shape, scope, result);
  WithShape(op, "ShapeTensorList", Numbers(shape), rule, scope, result);
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
  std::vector<Size> sizes;
  if (InputsOf(op, "ShapeTensor").empty() || x.size() != 1) {
    return ByName(op, rule, scope, result);
  }
  if (!FindShape(op, "ShapeTensor", "Shape", scope, &sizes, result)) return;
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
  WithShape(op, "ShapeTensor", shape, rule, scope, result);
}

// A dim that is repeated as the batch is takes a sum with zeros.
void Expanded(const OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result) {
  const auto& x = InputsOf(op, "X");
  const auto& out = OutputsOf(op, "Out");
  std::vector<Size> sizes;
  if (InputsOf(op, "expand_shapes_tensor").empty() || x.size() != 1 ||
      out.size() != 1) {
    return ByName(op, rule, scope, result);
  }
  if (!FindShape(op, "expand_shapes_tensor", "Shape", scope, &sizes, result)) {
    return;
  }
  const VarType::TensorDesc* const tensor = TensorOf(x[0], scope);
  const int place = PlaceOfBatch(sizes);
  const int rank = static_cast<int>(sizes.size());
  const int own = tensor == nullptr ? -1 : place - rank + tensor->dims_size();
  IntList shape = Numbers(sizes);
  // A dim that is the batch already stays.
  const bool repeated =
      place >= 0 && tensor != nullptr && (own < 0 || tensor->dims(own) == 1);
  if (place == -2 || tensor == nullptr ||
      (repeated && !IsPaddleFloat(tensor->data_type()))) {
    return RefuseBatch(result);
  }
  if (!repeated) {
    return WithShape(op, "expand_shapes_tensor", shape, rule, scope, result);
  }
  shape[place] = 1;
  const std::string value = scope.Read(x[0]);
  Parts parts(scope.Write(out[0]), scope, result);
  std::string zeros = BatchOfZeros(parts, sizes[place].of, place, rank, scope);
  if (tensor->data_type() != VarType::FP32) {
    zeros = parts.Add("cast", {{"X", zeros}},
                      {{"to", int64_t{tensor->data_type()}}});
  }
  const std::string one =
      parts.Add("expand_v2", {{"X", value}}, {{"shape", shape}});
  parts.Add("elementwise_add", {{"X", one}, {"Y", zeros}});
  parts.End();
}

}  // namespace halftone
