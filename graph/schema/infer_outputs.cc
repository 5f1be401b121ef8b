// The types of OpBuilder's outputs.
#include <utility>

#include "graph/base/error.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_draft.h"
#include "graph/schema/type_key.h"
#include "graph/schema/type_rules.h"

namespace halftone {
namespace {

// An op with more values than this is likely to be the only one of its kind.
constexpr size_t kMostRemembered = 16;

}  // namespace

absl::Status OpBuilder::FindOutputTypes(Draft& draft) const {
  if (draft.inputs.all().size() > kMostRemembered ||
      draft.outputs.all().size() > kMostRemembered) {
    return InferOutputTypes(draft);
  }
  TypeKey key(schema_);
  key.AddTypes(*block_, draft.inputs);
  key.AddCounts(draft.outputs);
  key.AddAttrs(*schema_, draft.attrs);
  for (const auto& [name, dtype] : bindings_) key.AddBinding(name, dtype);
  for (const auto& [slot, type] : mixed_types_) key.AddType(type);
  TypeMemo& memo = block_->program().inferred_types();
  if (const TypeMemo::Types* known = memo.Find(key.value())) {
    for (size_t i = 0; i < known->size(); ++i) {
      draft.outputs.at(i).type = (*known)[i];
    }
    return absl::OkStatus();
  }
  HT_RETURN_IF_ERROR(InferOutputTypes(draft));
  TypeMemo::Types types;
  for (const Block::OutputSpec& output : draft.outputs.all()) {
    types.push_back(output.type);
  }
  memo.Add(key.value(), types);
  return absl::OkStatus();
}

absl::Status OpBuilder::InferOutputTypes(Draft& draft) const {
  Program& program = block_->program();
  const SlotTypes inputs = TypesOf(*block_, draft.inputs);
  TypeBinder binder(*schema_, program.symbols());
  HT_RETURN_IF_ERROR(binder.BindInputs(inputs));
  for (const auto& [name, dtype] : bindings_) {
    HT_RETURN_IF_ERROR(binder.Bind(name, dtype));
  }
  HT_RETURN_IF_ERROR(binder.BindFromAttr(draft.attrs));
  binder.BindDefaults();

  std::vector<int> counts;
  for (int s = 0; s < draft.outputs.slots(); ++s) {
    counts.push_back(static_cast<int>(draft.outputs.slot(s).size()));
  }
  InferContext context(*schema_, program.name_of(draft.op_name), inputs,
                       draft.attrs, counts, program.symbols());
  HT_RETURN_IF_ERROR(SetMixedTypes(context));
  HT_RETURN_IF_ERROR(binder.SetOutputDTypes(context));
  HT_RETURN_IF_ERROR(schema_->RunInfer(context));
  HT_RETURN_IF_ERROR(CheckSizes(context));
  FollowLayouts(inputs, context);
  FollowShards(inputs, context);
  size_t i = 0;
  for (const std::vector<TensorType>& slot : context.outputs()) {
    for (const TensorType& type : slot) {
      draft.outputs.at(i++).type = program.Intern(type);
    }
  }
  return absl::OkStatus();
}

absl::Status OpBuilder::SetMixedTypes(InferContext& context) const {
  for (size_t s = 0; s < context.outputs().size(); ++s) {
    const Slot& slot = schema_->outputs()[s];
    if (!slot.mixed()) continue;
    size_t member = 0;
    std::vector<TensorType>& types = context.outputs()[s];
    for (const auto& [given, type] : mixed_types_) {
      if (given == static_cast<int>(s) && member < types.size()) {
        types[member++] = block_->program().type(type);
      }
    }
    if (member < types.size()) {
      return CompilerBug("slot ", slot.name, ": expected a type for each of ",
                         types.size(), " values, found ", member);
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone
