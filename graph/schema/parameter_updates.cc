#include "graph/schema/parameter_updates.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace {

bool HandsGradientOn(const Op& op) {
  static const OpSchema* const kOps[] = {
      Ops().Find("cast"), Ops().Find("unscale"), Ops().Find("clip_by_factor")};
  return op.schema->view() || std::find(std::begin(kOps), std::end(kOps),
                                        op.schema) != std::end(kOps);
}

bool IsWholeOrShard(const Op& op) {
  static const OpSchema* const kAllGather = Ops().Find("all_gather");
  static const OpSchema* const kTakeShard = Ops().Find("take_shard");
  return op.schema == kAllGather || op.schema == kTakeShard;
}

}  // namespace

bool IsReduction(const Op& op, absl::string_view of) {
  static const OpSchema* const kAllReduce = Ops().Find("all_reduce");
  static const OpSchema* const kReduceScatter = Ops().Find("reduce_scatter");
  return (op.schema == kAllReduce || op.schema == kReduceScatter) &&
         AttrAs<std::string>(op, "of") == of;
}

std::vector<OpId> ReductionsOf(const Block& block, absl::string_view of) {
  static const OpSchema* const kAllReduce = Ops().Find("all_reduce");
  static const OpSchema* const kReduceScatter = Ops().Find("reduce_scatter");
  std::vector<OpId> reductions;
  int left = block.CountOf(kAllReduce) + block.CountOf(kReduceScatter);
  for (OpId id = block.first(); left > 0; id = block.next(id)) {
    const OpSchema* const schema = block.schema(id);
    if (schema != kAllReduce && schema != kReduceScatter) continue;
    --left;
    if (IsReduction(block.op(id), of)) reductions.push_back(id);
  }
  return reductions;
}

ValueId WholeOrShard(const Block& block, ValueId value) {
  for (OpId id = block.value(value).op(); id.valid();
       id = block.value(value).op()) {
    const Op& op = block.op(id);
    if (!IsWholeOrShard(op)) break;
    value = op.inputs.all()[block.value(value).result];
  }
  return value;
}

GradientOrigin OriginOf(const Block& block, ValueId value) {
  static const OpSchema* const kDgcSum = Ops().Find("dgc_sum");
  GradientOrigin origin;
  for (OpId id = block.value(value).op(); id.valid();
       id = block.value(value).op()) {
    const Op& op = block.op(id);
    if (IsReduction(op, "gradient")) {
      ++origin.reductions;
      origin.reduction = id;
      origin.reduced = value;
      value = op.inputs.all()[block.value(value).result];
      origin.local = value;
    } else if (op.schema == kDgcSum) {
      // Of what ranks send of their gradients.
      ++origin.reductions;
      break;
    } else if (IsWholeOrShard(op)) {
      value = WholeOrShard(block, value);
    } else if (HandsGradientOn(op)) {
      value = op.inputs.all()[0];
    } else {
      break;
    }
  }
  return origin;
}

std::vector<OpId> GuardedOps(const Block& block) {
  int left = 0;
  for (const OpSchema* schema : Ops().All()) {
    if (schema->guarded()) left += block.CountOf(schema);
  }
  std::vector<OpId> ops;
  ops.reserve(left);
  for (OpId id = block.last(); id.valid() && left > 0;
       id = block.previous(id)) {
    if (!block.schema(id)->guarded()) continue;
    ops.push_back(id);
    --left;
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

std::vector<ParameterUpdate> ParameterUpdates(const Block& block) {
  std::vector<ParameterUpdate> updates;
  for (OpId id : GuardedOps(block)) {
    const Op& op = block.op(id);
    const int param = op.schema->FindInput("Param");
    const int grad = op.schema->FindInput("Grad");
    if (param < 0 || grad < 0) continue;
    const int inv_scale = op.schema->FindInput("InvScale");
    const bool unscales = inv_scale >= 0 && op.inputs.has(inv_scale);
    const auto params = op.inputs.slot(param), grads = op.inputs.slot(grad);
    for (size_t i = 0; i < std::min(params.size(), grads.size()); ++i) {
      const ValueId param = WholeOrShard(block, params[i]);
      updates.push_back({block.value(param).cell(), id, grads[i], unscales,
                         OriginOf(block, grads[i])});
    }
  }
  return updates;
}

}  // namespace halftone
