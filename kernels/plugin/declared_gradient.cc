#include "kernels/plugin/declared_gradient.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/program.h"
#include "graph/schema/op_registry.h"
#include "kernels/plugin/declared_attrs.h"

namespace halftone {
namespace kernels {
namespace {

// Source of halftone_op.h.
enum Source { kInputValue, kOutputValue, kOutputGradient, kTemporary };

const OpSchema* FindOp(absl::string_view name, absl::Span<const OpSchema> own) {
  for (const OpSchema& schema : own) {
    if (schema.name() == name) return &schema;
  }
  return Ops().Find(name);
}

// ---- Looking at a declaration.

class Checker {
 public:
  Checker(const OpSchema& schema, absl::Span<const OpSchema> own)
      : schema_(schema), own_(own) {}
  absl::Status Check(const HalftoneGradOp& step);

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return ModelError("op ", schema_.name(), ": gradient: ", parts...);
  }
  absl::Status CheckInput(const OpSchema& op, const HalftoneGradInput& input);
  absl::Status CheckOutput(const OpSchema& op,
                           const HalftoneGradOutput& output);
  absl::Status CheckAttrs(const OpSchema& op, const HalftoneGradOp& step);

  const OpSchema& schema_;
  absl::Span<const OpSchema> own_;
  std::set<std::string> temporaries_, made_;
};

absl::Status Checker::CheckInput(const OpSchema& op,
                                 const HalftoneGradInput& input) {
  if (op.FindInput(TextOrEmpty(input.slot)) < 0) {
    return Error(op.name(), " has no input slot ", TextOrEmpty(input.slot));
  }
  const std::string of(TextOrEmpty(input.of));
  const bool is_there =
      input.source == kInputValue ? schema_.FindInput(of) >= 0
      : input.source == kOutputValue || input.source == kOutputGradient
          ? schema_.FindOutput(of) >= 0
          : input.source == kTemporary && temporaries_.count(of) > 0;
  if (is_there) return absl::OkStatus();
  return Error("slot ", input.slot, " of ", op.name(), ": there is no ",
               input.source == kInputValue  ? "input "
               : input.source == kTemporary ? "temporary "
                                            : "output ",
               of, " before it");
}

absl::Status Checker::CheckOutput(const OpSchema& op,
                                  const HalftoneGradOutput& output) {
  if (op.FindOutput(TextOrEmpty(output.slot)) < 0) {
    return Error(op.name(), " has no output slot ", TextOrEmpty(output.slot));
  }
  if (output.gradient_of == nullptr) {
    temporaries_.insert(TextOrEmpty(output.temporary));
    return absl::OkStatus();
  }
  if (schema_.FindInput(output.gradient_of) < 0) {
    return Error("there is no input ", output.gradient_of);
  }
  if (!made_.insert(output.gradient_of).second) {
    return Error("that of ", output.gradient_of,
                 " is made twice; add up in an op of its own");
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckAttrs(const OpSchema& op,
                                 const HalftoneGradOp& step) {
  for (int i = 0; i < step.attr_count; ++i) {
    const HalftoneAttr& attr = step.attrs[i];
    if (op.FindAttr(TextOrEmpty(attr.name)) < 0) {
      return Error(op.name(), " has no attribute ", TextOrEmpty(attr.name));
    }
    if (attr.kind < 0 || attr.kind >= kMostAttrKinds ||
        (attr.kind == 3 && attr.s == nullptr)) {
      return Error("attribute ", attr.name, " of ", op.name(), ": no value");
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Check(const HalftoneGradOp& step) {
  const OpSchema* const op = FindOp(TextOrEmpty(step.op), own_);
  if (op == nullptr) {
    return Error("there is no op ", TextOrEmpty(step.op),
                 NearestHint(TextOrEmpty(step.op), Ops().Names()));
  }
  if (step.input_count < 0 || step.output_count < 1 || step.attr_count < 0 ||
      (step.input_count > 0 && step.inputs == nullptr) ||
      step.outputs == nullptr ||
      (step.attr_count > 0 && step.attrs == nullptr)) {
    return Error(op->name(), ": one of its lists is null, or it makes nothing");
  }
  for (int i = 0; i < step.input_count; ++i) {
    HT_RETURN_IF_ERROR(CheckInput(*op, step.inputs[i]));
  }
  for (int i = 0; i < step.output_count; ++i) {
    HT_RETURN_IF_ERROR(CheckOutput(*op, step.outputs[i]));
  }
  return CheckAttrs(*op, step);
}

// ---- Making the ops.

class Emitter {
 public:
  Emitter(const HalftoneOp& op, GradContext& g) : op_(op), g_(g) {}
  absl::Status Run();

 private:
  void FindNeeded();
  bool IsWanted(const HalftoneGradOutput& output) const;
  absl::Status Emit(const HalftoneGradOp& step);
  absl::Status AddInput(const HalftoneGradInput& input, const OpSchema& schema,
                        OpBuilder* builder);
  absl::Status AddOutGrads(const HalftoneGradInput& input, bool optional,
                           OpBuilder* builder);
  void NameOutput(const HalftoneGradOutput& output, OpBuilder* builder);
  absl::Status TakeOutput(const HalftoneGradOutput& output, OpId made);
  absl::Status CheckType(const char* slot, ValueId value,
                         ValueId gradient) const;

  const HalftoneOp& op_;
  GradContext& g_;
  std::set<int> needed_;  // steps
  std::map<std::string, std::vector<ValueId>> temporaries_;
};

bool Emitter::IsWanted(const HalftoneGradOutput& output) const {
  if (output.gradient_of == nullptr) return false;
  for (int i = 0; i < g_.InputCount(output.gradient_of); ++i) {
    if (g_.Wants(output.gradient_of, i)) return true;
  }
  return false;
}

void Emitter::FindNeeded() {
  std::set<std::string> read;  // temporaries, by steps that are needed
  for (int k = op_.gradient_count - 1; k >= 0; --k) {
    const HalftoneGradOp& step = op_.gradient[k];
    const bool needed =
        std::any_of(step.outputs, step.outputs + step.output_count,
                    [&](const HalftoneGradOutput& output) {
                      return IsWanted(output) ||
                             (output.gradient_of == nullptr &&
                              read.count(TextOrEmpty(output.temporary)) > 0);
                    });
    if (!needed) continue;
    needed_.insert(k);
    for (int i = 0; i < step.input_count; ++i) {
      const HalftoneGradInput& input = step.inputs[i];
      if (input.source == kTemporary) read.insert(input.of);
    }
  }
}

absl::Status Emitter::AddOutGrads(const HalftoneGradInput& input, bool optional,
                                  OpBuilder* builder) {
  const int slot = g_.op().schema->FindOutput(input.of);
  const int count = static_cast<int>(g_.op().outputs.slot(slot).size());
  bool flows = false;
  for (int i = 0; i < count; ++i) flows |= g_.OutGrad(input.of, i).valid();
  if (!flows && optional) return absl::OkStatus();
  for (int i = 0; i < count; ++i) {
    ValueId gradient = g_.OutGrad(input.of, i);
    if (!gradient.valid()) {
      OpBuilder zeros = g_.Emit("fill_zeros_like");
      zeros.In("X", g_.Output(input.of, i));
      HT_ASSIGN_OR_RETURN(const OpId made, zeros.Build());
      gradient = g_.block().op(made).outputs.all()[0];
    }
    builder->In(input.slot, gradient);
  }
  return absl::OkStatus();
}

absl::Status Emitter::AddInput(const HalftoneGradInput& input,
                               const OpSchema& schema, OpBuilder* builder) {
  if (input.source == kOutputGradient) {
    const Slot& slot = schema.inputs()[schema.FindInput(input.slot)];
    return AddOutGrads(input, slot.optional(), builder);
  }
  if (input.source == kTemporary) {
    builder->In(input.slot, temporaries_[input.of]);
    return absl::OkStatus();
  }
  const bool in = input.source == kInputValue;
  const SlotValues& values = in ? g_.op().inputs : g_.op().outputs;
  const int slot = in ? g_.op().schema->FindInput(input.of)
                      : g_.op().schema->FindOutput(input.of);
  for (ValueId value : values.slot(slot)) builder->In(input.slot, value);
  return absl::OkStatus();
}

void Emitter::NameOutput(const HalftoneGradOutput& output, OpBuilder* builder) {
  if (output.gradient_of == nullptr) {
    builder->Out(output.slot,
                 absl::StrCat(g_.block().name(g_.op()), ".", output.temporary));
    return;
  }
  if (!IsWanted(output)) return;
  for (int i = 0; i < g_.InputCount(output.gradient_of); ++i) {
    builder->Out(output.slot, g_.GradName(output.gradient_of, i));
  }
}

absl::Status Emitter::CheckType(const char* slot, ValueId value,
                                ValueId gradient) const {
  const TensorType& expected = g_.type(value);
  const TensorType& found = g_.type(gradient);
  if (expected.dims == found.dims && expected.dtype == found.dtype) {
    return absl::OkStatus();
  }
  const auto& symbols = g_.block().program().symbols();
  return ModelError(g_.block().name(g_.op()), " (", op_.name,
                    "): gradient of slot ", slot, ": expected ",
                    ToString(expected, symbols), ", as the value, found ",
                    ToString(found, symbols));
}

absl::Status Emitter::TakeOutput(const HalftoneGradOutput& output, OpId made) {
  const Op& op = g_.block().op(made);
  const auto values = op.outputs.slot(op.schema->FindOutput(output.slot));
  if (output.gradient_of == nullptr) {
    temporaries_[output.temporary].assign(values.begin(), values.end());
    return absl::OkStatus();
  }
  if (!IsWanted(output)) return absl::OkStatus();
  const int count = g_.InputCount(output.gradient_of);
  if (static_cast<int>(values.size()) != count) {
    return ModelError(g_.block().name(g_.op()), " (", op_.name,
                      "): gradient of slot ", output.gradient_of, ": expected ",
                      count, " values, found ", values.size());
  }
  for (int i = 0; i < count; ++i) {
    if (!g_.Wants(output.gradient_of, i)) continue;
    HT_RETURN_IF_ERROR(CheckType(output.gradient_of,
                                 g_.Input(output.gradient_of, i), values[i]));
    g_.SetGrad(output.gradient_of, values[i], i);
  }
  return absl::OkStatus();
}

absl::Status Emitter::Emit(const HalftoneGradOp& step) {
  const OpSchema& schema = *Ops().Find(step.op);
  OpBuilder builder = g_.Emit(step.op);
  if (step.same_attrs != 0) builder.AttrsOf(g_.op());
  for (int i = 0; i < step.attr_count; ++i) {
    builder.Attr(step.attrs[i].name, ValueOf(step.attrs[i]));
  }
  for (int i = 0; i < step.input_count; ++i) {
    HT_RETURN_IF_ERROR(AddInput(step.inputs[i], schema, &builder));
  }
  for (int i = 0; i < step.output_count; ++i) {
    NameOutput(step.outputs[i], &builder);
  }
  HT_ASSIGN_OR_RETURN(const OpId made, builder.Build());
  for (int i = 0; i < step.output_count; ++i) {
    HT_RETURN_IF_ERROR(TakeOutput(step.outputs[i], made));
  }
  return absl::OkStatus();
}

absl::Status Emitter::Run() {
  FindNeeded();
  for (int k : needed_) HT_RETURN_IF_ERROR(Emit(op_.gradient[k]));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGradient(const HalftoneOp& op, const OpSchema& schema,
                           absl::Span<const OpSchema> own) {
  Checker checker(schema, own);
  for (int k = 0; k < op.gradient_count; ++k) {
    HT_RETURN_IF_ERROR(checker.Check(op.gradient[k]));
  }
  return absl::OkStatus();
}

std::function<absl::Status(GradContext&)> GradientOf(const HalftoneOp& op) {
  return
      [declared = &op](GradContext& g) { return Emitter(*declared, g).Run(); };
}

}  // namespace kernels
}  // namespace halftone
