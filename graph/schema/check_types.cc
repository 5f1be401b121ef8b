// TypeBinding and CheckTypes of op_builder.h: what stored types say of an op.
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/place.h"
#include "graph/schema/type_rules.h"

namespace halftone {
namespace {

std::vector<int> CountsOf(const SlotValues& values) {
  std::vector<int> counts;
  for (int s = 0; s < values.slots(); ++s) {
    counts.push_back(values.end(s) - values.begin(s));
  }
  return counts;
}

absl::Status Compare(const InferContext& context, const SlotTypes& stored) {
  for (size_t s = 0; s < stored.size(); ++s) {
    const Slot& slot = context.schema().outputs()[s];
    for (size_t i = 0; i < stored[s].size(); ++i) {
      TensorType expected = context.outputs()[s][i];
      const TensorType& found = *stored[s][i];
      if (!context.LayoutIsSet(s, i)) expected.layout = found.layout;
      if (found == expected) continue;
      return context.Error("slot ", slot.name, ": expected ",
                           context.Print(expected), ", found ",
                           context.Print(found));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStored(const Block& block, const Op& op) {
  const OpSchema& schema = *op.schema;
  HT_RETURN_IF_ERROR(CheckArity(schema.inputs(), CountsOf(op.inputs)));
  HT_RETURN_IF_ERROR(CheckArity(schema.outputs(), CountsOf(op.outputs)));
  HT_RETURN_IF_ERROR(CheckAttrs(schema, op.attrs));
  const SlotTypes inputs = TypesOf(block, op.inputs);
  const SlotTypes outputs = TypesOf(block, op.outputs);
  const absl::Span<const std::string> symbols = block.program().symbols();
  TypeBinder binder(schema, symbols);
  HT_RETURN_IF_ERROR(binder.BindInputs(inputs));
  HT_RETURN_IF_ERROR(binder.BindFromAttr(op.attrs));
  binder.BindStoredOutputs(outputs);
  binder.BindDefaults();
  InferContext context(schema, block.name(op), inputs, op.attrs,
                       CountsOf(op.outputs), symbols);
  for (size_t s = 0; s < outputs.size(); ++s) {
    if (!schema.outputs()[s].mixed()) continue;
    const TypeList types(outputs[s]);
    context.outputs()[s].assign(types.begin(), types.end());
  }
  HT_RETURN_IF_ERROR(binder.SetOutputDTypes(context));
  HT_RETURN_IF_ERROR(schema.RunInfer(context));
  HT_RETURN_IF_ERROR(CheckSizes(context));
  FollowShards(inputs, context);
  HT_RETURN_IF_ERROR(Compare(context, outputs));
  HT_RETURN_IF_ERROR(CheckShards(context, inputs));
  return CheckLayouts(context, inputs, outputs);
}

}  // namespace

absl::InlinedVector<DType, 4> TypeBinding(const Block& block, const Op& op) {
  const OpSchema& schema = *op.schema;
  absl::InlinedVector<DType, 4> binding(schema.type_vars().size(),
                                        DType::kInvalid);
  const auto bind = [&](absl::Span<const Slot> slots,
                        const SlotValues& values) {
    for (int s = 0; s < values.slots(); ++s) {
      const int var = slots[s].type_var;
      if (var < 0 || slots[s].shape_only() || slots[s].mixed()) continue;
      if (!values.has(s) || binding[var] != DType::kInvalid) continue;
      binding[var] = block.dtype(values.slot(s)[0]);
    }
  };
  bind(schema.inputs(), op.inputs);
  bind(schema.outputs(), op.outputs);
  return binding;
}

absl::Status CheckTypes(const Block& block, const Op& op) {
  const absl::Status status = CheckStored(block, op);
  if (status.ok()) return status;
  return AtOp(status, block.program(), op.line, block.name(op),
              op.schema->name());
}

}  // namespace halftone
