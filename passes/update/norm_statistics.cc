#include "passes/update/norm_statistics.h"

#include "graph/schema/op_registry.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

ValueId Out(const Op& op, absl::string_view slot) {
  return op.out(op.schema->FindOutput(slot));
}

// The op of that type that reads the value, and where; null if none does.
const Op* ReaderOf(const Block& block, ValueId value, absl::string_view op_type,
                   int* position) {
  const OpSchema* schema = Ops().Find(op_type);
  for (const Use& use : block.value(value).uses) {
    if (block.op(use.op).schema != schema) continue;
    *position = use.position;
    return &block.op(use.op);
  }
  return nullptr;
}

// Follows a norm's batch mean through its local sums and the totals.
const Op* FinalizeOf(const Block& block, const Op& norm) {
  int position = 0;
  const Op* sums =
      ReaderOf(block, Out(norm, "BatchMean"), "bn_local_sums", &position);
  if (sums == nullptr) return nullptr;
  const Op* totals =
      ReaderOf(block, Out(*sums, "Sum"), "all_reduce", &position);
  if (totals == nullptr) return nullptr;
  return ReaderOf(block, totals->outputs.all()[position], "bn_finalize",
                  &position);
}

}  // namespace

std::vector<NormStatistics> FindNormStatistics(const Block& block) {
  const OpSchema* local = Ops().Find("batch_norm");
  const OpSchema* synchronised = Ops().Find("sync_batch_norm");
  std::vector<NormStatistics> found;
  if (block.CountOf(local) + block.CountOf(synchronised) == 0) return found;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.schema != local && op.schema != synchronised) continue;
    const Op* source = op.schema == local ? FinalizeOf(block, op) : &op;
    NormStatistics norm;
    norm.norm = id;
    norm.mean = block.value(InputOf(op, "Mean")).cell();
    norm.variance = block.value(InputOf(op, "Variance")).cell();
    if (source == nullptr || !norm.mean.valid() || !norm.variance.valid()) {
      continue;
    }
    norm.batch_mean = Out(*source, "BatchMean");
    norm.batch_variance = Out(*source, "BatchVariance");
    found.push_back(norm);
  }
  return found;
}

}  // namespace passes
}  // namespace halftone
