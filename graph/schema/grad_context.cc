#include "graph/schema/grad_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"

namespace halftone {
namespace {

// The flat position of a slot's i-th value.
int Flat(const SlotValues& values, int slot, const OpSchema& schema,
         absl::string_view name, int i) {
  HT_CHECK(slot >= 0,
           absl::StrCat(schema.name(), " has no slot ", name).c_str());
  HT_CHECK(i >= 0 && values.begin(slot) + i < values.end(slot),
           absl::StrCat(schema.name(), ": slot ", name, " is absent").c_str());
  return values.begin(slot) + i;
}

}  // namespace

GradContext::GradContext(Block* block, OpId op, Gradients out_grads,
                         Wanted wanted)
    : block_(block),
      op_(op),
      out_grads_(std::move(out_grads)),
      wanted_(std::move(wanted)),
      in_grads_(block->op(op).inputs.all().size()) {
  HT_CHECK(out_grads_.size() == block->op(op).outputs.all().size() &&
               wanted_.size() == in_grads_.size(),
           "one gradient per output, one flag per input");
}

bool GradContext::Has(absl::string_view input_slot) const {
  return InputCount(input_slot) > 0;
}

int GradContext::InputCount(absl::string_view slot) const {
  const int s = op().schema->FindInput(slot);
  HT_CHECK(s >= 0,
           absl::StrCat(op().schema->name(), " has no slot ", slot).c_str());
  return static_cast<int>(op().inputs.slot(s).size());
}

int GradContext::InputAt(absl::string_view slot, int i) const {
  const OpSchema& schema = *op().schema;
  return Flat(op().inputs, schema.FindInput(slot), schema, slot, i);
}

ValueId GradContext::Input(absl::string_view slot, int i) const {
  return op().inputs.all()[InputAt(slot, i)];
}

ValueId GradContext::Output(absl::string_view slot, int i) const {
  const OpSchema& schema = *op().schema;
  return op().outputs.all()[Flat(op().outputs, schema.FindOutput(slot), schema,
                                 slot, i)];
}

ValueId GradContext::OutGrad(absl::string_view slot, int i) const {
  const OpSchema& schema = *op().schema;
  const int s = schema.FindOutput(slot);
  // An optional output that is absent has no gradient either.
  if (s >= 0 && !op().outputs.has(s)) return ValueId();
  return out_grads_[Flat(op().outputs, s, schema, slot, i)];
}

bool GradContext::Wants(absl::string_view input_slot, int i) const {
  const OpSchema& schema = *op().schema;
  const int s = schema.FindInput(input_slot);
  if (s >= 0 && !op().inputs.has(s)) return false;
  return wanted_[Flat(op().inputs, s, schema, input_slot, i)];
}

const AttrValue& GradContext::Attr(absl::string_view name) const {
  return GetAttr(op(), name);
}

OpBuilder GradContext::Emit(absl::string_view op_type) {
  OpBuilder builder(block_, op_type);
  Decision decision;
  decision.precision = op().decision.precision;
  decision.reason = Reason::kGradientOf;
  decision.because_of.push_back(op().name);
  builder.Name(GradientName(block_->program().names(), op().name))
      .Role(Role::kBackward)
      .Why(decision)
      .Line(op().line)
      .Unique();
  return builder;
}

NameId GradContext::GradName(absl::string_view slot, int i) const {
  return GradName(Input(slot, i));
}

NameId GradContext::GradName(ValueId input) const {
  return block_->UniqueValueName(
      GradientName(block_->program().names(), block_->value(input).name));
}

absl::Status GradContext::SetGrad(absl::string_view slot, OpBuilder& builder,
                                  int i) {
  const int at = InputAt(slot, i);
  const ValueId input = op().inputs.all()[at];
  builder.FirstOut(GradName(input));
  HT_ASSIGN_OR_RETURN(const OpId made, builder.Build());
  const ValueId gradient = block_->op(made).outputs.all()[0];
  const TensorType& expected = type(input);
  const TensorType& found = type(gradient);
  if (&expected != &found && expected.dims != found.dims) {
    const auto& symbols = block_->program().symbols();
    return CompilerBug(block_->name(op()), " (", op().schema->name(),
                       "): gradient of slot ", slot, ": expected the dims of ",
                       ToString(expected, symbols), ", found ",
                       ToString(found, symbols));
  }
  in_grads_[at] = gradient;
  return absl::OkStatus();
}

void GradContext::SetGrad(absl::string_view slot, ValueId gradient, int i) {
  in_grads_[InputAt(slot, i)] = gradient;
}

}  // namespace halftone
