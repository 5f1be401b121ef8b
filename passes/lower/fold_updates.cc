#include "passes/lower/fold_updates.h"

#include <vector>

#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/kernel_key.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// What stands between a reduced gradient and the update.
struct Chain {
  ValueId gradient;
  ValueId inv_scale, clip_factor;  // invalid: no such step
  std::vector<NameId> names;       // of the ops passed
};

Chain Follow(const Block& block, ValueId value) {
  static const OpSchema* const kClip = Ops().Find("clip_by_factor");
  static const OpSchema* const kUnscale = Ops().Find("unscale");
  static const OpSchema* const kCast = Ops().Find("cast");
  Chain chain;
  chain.gradient = value;
  const auto step = [&](const OpSchema* schema) -> const Op* {
    const Op* op = DefinedBy(block, chain.gradient, schema);
    if (op == nullptr) return nullptr;
    chain.gradient = op->in(0);
    AppendNames(*op, &chain.names);
    return op;
  };
  if (const Op* clip = step(kClip)) chain.clip_factor = clip->in(1);
  const Op* unscale = step(kUnscale);
  if (unscale == nullptr) return Chain();
  chain.inv_scale = unscale->in(1);
  // Only a widening: a narrowing rounds.
  const Op* cast = DefinedBy(block, chain.gradient, kCast);
  if (cast != nullptr && IsLow(block.dtype(cast->in(0)))) step(kCast);
  return chain;
}

bool FoldUpdate(Block& block, KernelLookup& kernels, const Op& update) {
  const OpSchema& schema = *update.schema;
  const int grad = schema.FindInput("Grad");
  const int inv_scale = schema.FindInput("InvScale");
  const int clip_factor = schema.FindInput("ClipFactor");
  if (update.inputs.has(inv_scale) || update.inputs.has(clip_factor)) {
    return false;
  }
  std::vector<Chain> chains;
  for (ValueId value : update.inputs.slot(grad)) {
    chains.push_back(Follow(block, value));
    const Chain& chain = chains.back();
    if (!chain.inv_scale.valid() || chain.inv_scale != chains[0].inv_scale ||
        chain.clip_factor != chains[0].clip_factor ||
        block.dtype(chain.gradient) != block.dtype(chains[0].gradient)) {
      return false;
    }
  }
  if (chains.empty()) return false;
  auto binding = TypeBinding(block, update);
  const int variable = schema.inputs()[grad].type_var;
  binding[variable] = block.dtype(chains[0].gradient);
  if (!kernels.Has(block, update, binding)) return false;

  std::vector<ValueId> gradients;
  std::vector<NameId> names;
  for (const Chain& chain : chains) {
    gradients.push_back(chain.gradient);
    names.insert(names.end(), chain.names.begin(), chain.names.end());
  }
  block.SetInputSlot(update.id, grad, gradients);
  block.SetInputSlot(update.id, inv_scale, {chains[0].inv_scale});
  if (chains[0].clip_factor.valid()) {
    block.SetInputSlot(update.id, clip_factor, {chains[0].clip_factor});
  }
  AddOrigins(block.mutable_op(update.id), names);
  return true;
}

bool FoldAll(Block& block, KernelLookup& kernels) {
  bool changed = false;
  for (OpId id : GuardedOps(block)) {
    const Op& op = block.op(id);
    if (op.role != Role::kOptimize || op.schema->FindInput("Grad") < 0 ||
        op.schema->FindInput("InvScale") < 0) {
      continue;
    }
    if (FoldUpdate(block, kernels, op)) changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> FoldUpdates::Run(Program& program) {
  KernelLookup lookup(*kernels_);
  bool changed = false;
  for (const auto& entry : program.entries()) {
    changed |= FoldAll(entry->block(), lookup);
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
