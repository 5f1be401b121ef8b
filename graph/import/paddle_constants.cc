// Values that a program of Paddle's has in it.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using paddle::OpDesc;
using paddle::VarType;

// Of other values: each is an op.
constexpr size_t kMostRuns = 64;
// Whole numbers up to it are doubles.
constexpr int64_t kExact = int64_t{1} << 53;

struct EqualRun {
  AttrValue value;  // int64_t or double
  int64_t count = 0;
};

// What an assign_value has, equal neighbours together.
std::vector<EqualRun> RunsOf(const OpDesc& op) {
  std::vector<EqualRun> runs;
  const auto add = [&runs](AttrValue value) {
    if (runs.empty() || runs.back().value != value) {
      runs.push_back({std::move(value)});
    }
    ++runs.back().count;
  };
  for (const char* const name : {"bool_values", "int32_values", "int64_values",
                                 "fp32_values", "fp64_values", "values"}) {
    const OpDesc::Attr* const attr = FindAttr(op, name);
    if (attr == nullptr) continue;
    for (const bool one : attr->bools()) add(int64_t{one});
    for (const int64_t one : attr->ints()) add(one);
    for (const int64_t one : attr->longs()) add(one);
    for (const float one : attr->floats()) add(Shortest(one));
    for (const double one : attr->float64s()) add(one);
    for (const OpDesc::Scalar& one : attr->scalars()) {
      if (one.has_r()) {
        add(one.r());
      } else {
        add(one.has_b() ? int64_t{one.b()} : one.i());
      }
    }
  }
  return runs;
}

// Whether they are whole numbers, each as much above the one before.
bool IsRange(const std::vector<EqualRun>& runs) {
  std::vector<int64_t> values;
  for (const EqualRun& run : runs) {
    const int64_t* const value = std::get_if<int64_t>(&run.value);
    if (value == nullptr || run.count > 1 || std::abs(*value) > kExact / 4) {
      return false;
    }
    values.push_back(*value);
  }
  for (size_t i = 2; i < values.size(); ++i) {
    if (values[i] - values[i - 1] != values[1] - values[0]) return false;
  }
  return values.size() > 2;
}

void AddSourceNode(const char* type, const std::string& out, int64_t dtype,
                   ImportedOp* result) {
  proto::OpNode node;
  node.set_type(type);
  proto::SlotVars& slot = *node.add_out();
  slot.set_slot("Out");
  slot.add_var(out);
  result->nodes.push_back(std::move(node));
  SetLast("dtype", dtype, result);
}

void AddFill(const EqualRun& run, std::vector<int64_t> dims, int64_t dtype,
             const std::string& out, ImportedOp* result) {
  AddSourceNode("fill_constant", out, dtype, result);
  SetLast("shape", std::move(dims), result);
  const int64_t* const whole = std::get_if<int64_t>(&run.value);
  if (whole == nullptr) {
    SetLast("value", run.value, result);
  } else if (*whole > -kExact && *whole < kExact) {
    SetLast("value", static_cast<double>(*whole), result);
  } else {
    SetLast("str_value", absl::StrCat(*whole), result);
  }
}

void AddRange(const std::vector<EqualRun>& runs, int64_t dtype,
              const std::string& out, ImportedOp* result) {
  AddSourceNode("arange", out, dtype, result);
  const int64_t start = std::get<int64_t>(runs[0].value);
  const int64_t step = std::get<int64_t>(runs[1].value) - start;
  const int64_t end = std::get<int64_t>(runs.back().value) + step;
  SetLast("start", static_cast<double>(start), result);
  SetLast("end", static_cast<double>(end), result);
  SetLast("step", static_cast<double>(step), result);
}

// The runs, one after the other.
void AddJoined(const std::vector<EqualRun>& runs, int64_t dtype,
               const std::string& out, PaddleScope& scope, ImportedOp* result) {
  proto::OpNode join;
  join.set_type("concat");
  join.add_in()->set_slot("X");
  for (const EqualRun& run : runs) {
    const std::string part = scope.Unused(absl::StrCat(out, ".part"));
    AddFill(run, {run.count}, dtype, part, result);
    join.mutable_in(0)->add_var(part);
  }
  join.add_out()->set_slot("Out");
  join.mutable_out(0)->add_var(out);
  result->nodes.push_back(std::move(join));
}

}  // namespace

// Equal values are a fill, an arithmetic progression is a range, others are
// fills joined.
std::optional<double> OneConstantOf(const OpDesc& op) {
  const std::vector<EqualRun> runs = RunsOf(op);
  if (runs.size() != 1) return std::nullopt;
  const int64_t* const whole = std::get_if<int64_t>(&runs[0].value);
  return whole != nullptr ? static_cast<double>(*whole)
                          : std::get<double>(runs[0].value);
}

void AssignValue(const OpDesc& op, const Rule&, PaddleScope& scope,
                 ImportedOp* result) {
  const auto& outputs = OutputsOf(op, "Out");
  const std::vector<EqualRun> runs = RunsOf(op);
  const std::vector<int64_t> dims = IntsAttr(op, "shape");
  int64_t left = 0;
  for (const EqualRun& run : runs) left += run.count;
  bool fits = left > 0;
  for (const int64_t dim : dims) {
    fits = fits && dim > 0 && left % dim == 0;
    if (fits) left /= dim;
  }
  if (outputs.size() != 1 || !fits || left != 1) {
    result->refusals.push_back(
        {"expected an output and as many values as its "
         "shape has elements"});
    return;
  }
  const bool range = IsRange(runs);
  if (!range && runs.size() > kMostRuns) {
    result->refusals.push_back(
        {"too many different values",
         absl::StrCat(": ", runs.size(), " where ", kMostRuns, " are taken")});
    return;
  }
  const int64_t dtype = IntAttr(op, "dtype", VarType::FP32);
  const std::string out = scope.Write(outputs[0]);
  if (runs.size() == 1) {
    AddFill(runs[0], dims, dtype, out, result);
    return;
  }
  const bool flat = dims.size() == 1;
  const std::string row =
      flat ? out : scope.Unused(absl::StrCat(out, ".values"));
  if (range) {
    AddRange(runs, dtype, row, result);
  } else {
    AddJoined(runs, dtype, row, scope, result);
  }
  if (flat) return;
  AddNode("reshape2", row, "", out, result);
  SetLast("shape", dims, result);
}

// Whether a place lies before the end that X tells: X > 0, 1, 2 and so on.
void SequenceMask(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  const auto& inputs = InputsOf(op, "X");
  const auto& outputs = OutputsOf(op, "Y");
  const int64_t most = IntAttr(op, "maxlen", -1);
  if (inputs.size() != 1 || outputs.size() != 1) {
    result->refusals.push_back({"expected one input and one output"});
    return;
  }
  if (most < 1 || !InputsOf(op, "MaxLenTensor").empty()) {
    result->refusals.push_back(
        {"expected a maxlen that is a number, since shapes are constant"});
    return;
  }
  const paddle::VarDesc* const var = scope.Variable(inputs[0]);
  const int64_t counts =
      var != nullptr && var->type().has_lod_tensor()
          ? int64_t{var->type().lod_tensor().tensor().data_type()}
          : int64_t{VarType::INT64};
  const std::string ends = scope.Read(inputs[0]);
  const std::string out = scope.Write(outputs[0]);
  const std::string places = scope.Unused(absl::StrCat(out, ".places"));
  const std::string column = scope.Unused(absl::StrCat(out, ".ends"));
  AddSourceNode("arange", places, counts, result);
  SetLast("end", static_cast<double>(most), result);
  AddNode("unsqueeze2", ends, "", column, result);
  SetLast("axes", std::vector<int64_t>{-1}, result);
  const int64_t dtype = IntAttr(op, "out_dtype", VarType::INT64);
  const bool cast = dtype != VarType::BOOL;
  const std::string mask =
      cast ? scope.Unused(absl::StrCat(out, ".mask")) : out;
  AddNode("greater_than", column, places, mask, result);
  if (!cast) return;
  AddNode("cast", mask, "", out, result);
  SetLast("to", dtype, result);
}

}  // namespace halftone
