// Ops of Paddle's that are several of ours.
#include "graph/import/paddle_parts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/import/paddle_rules.h"
#include "graph/schema/op_registry.h"

namespace halftone {

using paddle::OpDesc;
using paddle::VarType;

namespace {

// Through f32, exact up to 2^24.
void ReduceAsFloats(const char* type, const OpDesc& op, PaddleScope& scope,
                    ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const VarType::TensorDesc* const out =
      TensorOf(OutputsOf(op, "Out")[0], scope);
  Parts parts = in.Write();
  const std::string reduced =
      parts.Add(type, {{"X", parts.ToF32(in[0].value, in[0].dtype)}},
                {{"dim", IntsAttr(op, "dim")},
                 {"keep_dim", BoolAttr(op, "keep_dim", false)},
                 {"reduce_all", BoolAttr(op, "reduce_all", false)}});
  parts.Cast(reduced, out == nullptr ? in[0].dtype : int64_t{out->data_type()});
  parts.End();
}

}  // namespace

std::string Parts::Add(const char* type, Slots in, Attrs attrs) {
  proto::OpNode node;
  node.set_type(type);
  for (const auto& [slot, value] : in) {
    const int last = node.in_size() - 1;
    const bool more = last >= 0 && node.in(last).slot() == slot;
    proto::SlotVars& vars = more ? *node.mutable_in(last) : *node.add_in();
    vars.set_slot(slot);
    vars.add_var(value);
  }
  result_.nodes.push_back(std::move(node));
  for (const auto& [name, value] : attrs) SetLast(name, value, &result_);
  return AlsoIn(Ops().Find(type)->outputs()[0].name.c_str());
}

std::string Parts::AlsoIn(const char* slot) {
  proto::OpNode& node = result_.nodes.back();
  proto::SlotVars& out = *node.add_out();
  out.set_slot(slot);
  out.add_var(scope_.Unused(absl::StrCat(out_, ".", node.type())));
  return out.var(0);
}

std::string Parts::Reshaped(const std::string& value, const Dims& dims) {
  std::vector<int64_t> shape;
  for (const Dim& dim : dims) {
    shape.push_back(dim.is_constant() ? dim.coefficient() : -1);
  }
  if (std::count(shape.begin(), shape.end(), -1) > 1) {
    result_.refusals.push_back({"expected one dim at most that is not known"});
  }
  return Add("reshape2", {{"X", value}}, {{"shape", shape}});
}

std::string Parts::Cast(const std::string& value, int64_t to) {
  return Add("cast", {{"X", value}}, {{"to", to}});
}

std::string Parts::ToF32(const std::string& value, int64_t from) {
  const bool wide = from == VarType::INT32 || from == VarType::INT64;
  result_.through_f32 = result_.through_f32 || wide;
  return Cast(value, VarType::FP32);
}

std::string Parts::Slice(const std::string& x, int64_t axis, int64_t first,
                         int64_t end) {
  return Add("slice", {{"Input", x}},
             {{"axes", std::vector<int64_t>{axis}},
              {"starts", std::vector<int64_t>{first}},
              {"ends", std::vector<int64_t>{end}}});
}

std::string Parts::Counted(int64_t first, int64_t count) {
  const double start = static_cast<double>(first);
  return Add("arange", {},
             {{"start", start}, {"end", start + static_cast<double>(count)}});
}

std::string Parts::ByDiagonal(const char* compare, int64_t rows,
                              int64_t columns, int64_t diagonal) {
  const std::string ends = Add("unsqueeze2", {{"X", Counted(diagonal, rows)}},
                               {{"axes", std::vector<int64_t>{1}}});
  return Binary(compare, {Counted(0, columns), ends});
}

void Parts::EndAs(const std::string& out) {
  if (result_.nodes.empty()) return;
  result_.nodes.back().mutable_out(0)->set_var(0, out);
}

void Parts::EndWith(const std::string& value) {
  const bool made =
      !result_.nodes.empty() && result_.nodes.back().out(0).var(0) == value;
  if (!made) Of("assign", value);
  End();
}

int64_t SizeAttr(const OpDesc& op, absl::string_view name, int64_t otherwise) {
  return std::clamp(IntAttr(op, name, otherwise), -kMostPaddleSize,
                    kMostPaddleSize);
}

std::vector<int64_t> SizesAttr(const OpDesc& op, absl::string_view name) {
  std::vector<int64_t> sizes = IntsAttr(op, name);
  for (int64_t& size : sizes) {
    size = std::clamp(size, -kMostPaddleSize, kMostPaddleSize);
  }
  return sizes;
}

const VarType::TensorDesc* TensorOf(const std::string& name,
                                    PaddleScope& scope) {
  const paddle::VarDesc* const var = scope.Variable(name);
  const bool dense = var != nullptr && var->type().has_lod_tensor();
  return dense ? &var->type().lod_tensor().tensor() : nullptr;
}

bool ReadsFloats(const OpDesc& op, PaddleScope& scope) {
  const auto& inputs = InputsOf(op, "X");
  const VarType::TensorDesc* const x =
      inputs.empty() ? nullptr : TensorOf(inputs[0], scope);
  return x == nullptr || IsOurFloat(x->data_type());
}

bool IsOurFloat(int64_t dtype) {
  return IsPaddleFloat(dtype) && dtype != VarType::FP64;
}

namespace {

bool Describe(const std::string& name, PaddleScope& scope,
              PaddleOperand* operand) {
  const VarType::TensorDesc* const tensor = TensorOf(name, scope);
  if (tensor == nullptr) return false;
  operand->variable = name;
  for (const int64_t dim : tensor->dims()) {
    operand->dims.push_back(std::min(dim, kMostPaddleSize));
  }
  operand->dtype = tensor->data_type();
  return true;
}

}  // namespace

PaddleReader::PaddleReader(const OpDesc& op,
                           std::initializer_list<const char*> slots,
                           PaddleScope& scope, ImportedOp* result,
                           const char* out)
    : scope_(scope), result_(*result) {
  const auto refuse = [&](const char* what, absl::string_view slot) {
    result->refusals.push_back({absl::StrCat("expected ", what, slot)});
    ok_ = false;
  };
  for (absl::string_view slot : slots) {
    const bool list = absl::ConsumeSuffix(&slot, "*");
    const auto& names = InputsOf(op, slot);
    bool tensors = list ? !names.empty() : names.size() == 1;
    for (const std::string& name : names) {
      operands_.emplace_back();
      tensors = tensors && Describe(name, scope, &operands_.back());
    }
    if (!tensors) {
      refuse(list ? "tensors as input " : "one tensor as input ", slot);
    }
  }
  const auto& outputs = OutputsOf(op, out);
  if (outputs.size() != 1) refuse("one output ", out);
  if (!ok_) return;
  out_ = outputs[0];
  for (PaddleOperand& operand : operands_) {
    operand.value = scope.Read(operand.variable);
  }
}

int AxisOf(const PaddleOperand& x, int64_t axis, ImportedOp* result) {
  const int64_t own = axis < 0 ? axis + x.rank() : axis;
  if (own >= 0 && own < x.rank()) return static_cast<int>(own);
  RefuseDimsOf(x, "expected an axis that is there", result);
  return -1;
}

Dims DimsOf(const std::vector<int64_t>& dims) {
  Dims ours;
  for (const int64_t dim : dims) {
    ours.push_back(dim < 0 ? Dim::Symbol(0) : Dim(dim));
  }
  return ours;
}

void RefuseDimsOf(const PaddleOperand& x, const char* why, ImportedOp* result) {
  result->refusals.push_back(
      {why, absl::StrCat(", found [", absl::StrJoin(x.dims, ", "), "]")});
}

std::vector<int64_t> AxesOf(int rank, std::initializer_list<int> without) {
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    if (std::find(without.begin(), without.end(), i) == without.end()) {
      axes.push_back(i);
    }
  }
  return axes;
}

void AddNode(const char* type, const std::string& x, const std::string& y,
             const std::string& out, ImportedOp* result) {
  proto::OpNode node;
  node.set_type(type);
  const auto add = [](const char* slot, const std::string& var,
                      proto::SlotVars* vars) {
    vars->set_slot(slot);
    vars->add_var(var);
  };
  add("X", x, node.add_in());
  if (!y.empty()) add("Y", y, node.add_in());
  add("Out", out, node.add_out());
  result->nodes.push_back(std::move(node));
}

// One number everywhere.
void FillLike(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  int64_t dtype = IntAttr(op, "dtype", -1);
  if (dtype < 0) dtype = in[0].dtype;
  Parts parts = in.Write();
  // Zeros and sums are of floats, none of which has 64 bits.
  const bool real = IsOurFloat(in[0].dtype);
  const int64_t now = real ? in[0].dtype : int64_t{VarType::FP32};
  const std::string x = real ? in[0].value : parts.Cast(in[0].value, now);
  const std::string made = parts.Scaled(parts.Of("fill_zeros_like", x), 1,
                                        FloatAttr(op, "value", 0));
  if (dtype != now) parts.Cast(made, dtype);
  parts.End();
}

void CountElements(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  PaddleReader in(op, {"Input"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  parts.Cast(parts.Of("element_count", in[0].value), VarType::INT64);
  parts.End();
}

// Ours is of floats: whole numbers go through f32, exact up to 2^24. Paddle
// cuts off what its factors have behind the point.
void Scaled(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  if (ReadsFloats(op, scope) || !InputsOf(op, "ScaleTensor").empty()) {
    return ByName(op, rule, scope, result);
  }
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  Parts parts = in.Write();
  const double scale = std::trunc(FloatAttr(op, "scale", 1));
  const double bias = std::trunc(FloatAttr(op, "bias", 0));
  // Paddle puts one behind each output that it saves.
  if (scale == 1 && bias == 0 && in[0].dtype != VarType::FP64) {
    parts.Of("assign", in[0].value);
    return parts.End();
  }
  const std::string scaled =
      parts.Add("scale", {{"X", parts.ToF32(in[0].value, in[0].dtype)}},
                {{"scale", scale},
                 {"bias", bias},
                 {"bias_after_scale", BoolAttr(op, "bias_after_scale", true)}});
  parts.Cast(scaled, in[0].dtype);
  parts.End();
}

// The least or the greatest of what is 0 or 1.
void ReduceLogical(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  ReduceAsFloats(op.type() == "reduce_all" ? "reduce_min" : "reduce_max", op,
                 scope, result);
}

// Of whole numbers, too.
void Summed(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  if (ReadsFloats(op, scope)) return ByName(op, rule, scope, result);
  ReduceAsFloats("reduce_sum", op, scope, result);
}

// What only checks is left out.
void Nothing(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*) {}

}  // namespace halftone
