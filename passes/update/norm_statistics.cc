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

// The batch statistics of all ranks, from a norm's own.
struct Combined {
  ValueId mean, variance;  // invalid: there are none
};
Combined CombinedOf(const Block& block, const Op& norm) {
  int position = 0;
  ValueId batch_mean = Out(norm, "BatchMean");
  // Of virtual shards their own statistics are combined before.
  const Op* of_shards =
      ReaderOf(block, batch_mean, "tree_combine_stats", &position);
  if (of_shards != nullptr) batch_mean = Out(*of_shards, "Mean");
  const Op* combine = ReaderOf(block, batch_mean, "combine_stats", &position);
  if (combine == nullptr) {  // rank 0's, of all norms: means, then variances
    const auto of_rank0 = [&](absl::string_view slot) {
      const Op* op = ReaderOf(block, Out(norm, slot), "broadcast", &position);
      return op == nullptr ? ValueId() : op->outputs.all()[position];
    };
    return {of_rank0("BatchMean"), of_rank0("BatchVariance")};
  }
  const auto member = [&](absl::string_view slot) {
    const int s = combine->schema->FindOutput(slot);
    return combine->outputs.slot(s)[position];
  };
  return {member("Mean"), member("Variance")};
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
    const bool of_all =
        op.schema == synchronised && AttrAs<int64_t>(op, "group_size") == 0;
    const Combined source =
        of_all ? Combined{Out(op, "BatchMean"), Out(op, "BatchVariance")}
               : CombinedOf(block, op);
    NormStatistics norm;
    norm.norm = id;
    norm.mean = block.value(InputOf(op, "Mean")).cell();
    norm.variance = block.value(InputOf(op, "Variance")).cell();
    if (!source.mean.valid() || !norm.mean.valid() || !norm.variance.valid()) {
      continue;
    }
    norm.batch_mean = source.mean;
    norm.batch_variance = source.variance;
    found.push_back(norm);
  }
  return found;
}

}  // namespace passes
}  // namespace halftone
