#include "passes/differentiate/keep_argmax.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/reached.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Ops of pooling, by what they have.
bool IsPool(const OpSchema* schema) {
  return schema->FindOutput("Argmax") >= 0 && schema->FindAttr("ksize") >= 0;
}

bool WindowsOverlap(const Op& op) {
  const auto& kernel = AttrAs<std::vector<int64_t>>(op, "ksize");
  const auto& strides = AttrAs<std::vector<int64_t>>(op, "strides");
  for (size_t i = 0; i < kernel.size() && i < strides.size(); ++i) {
    if (strides[i] < kernel[i]) return true;
  }
  return false;
}

// Whether a pooled image is a relu's of a batch norm and the target pools it on
// its way: it is not there to be read again then.
bool IsPooledByItsNorm(const Block& block, const Op& pool,
                       const KernelSet& kernels) {
  const ValueId x = pool.in(0);
  const Op* relu = DefinedBy(block, x, "relu");
  if (pool.schema->name() != "pool2d" || relu == nullptr ||
      block.value(x).uses.size() != 1 ||
      block.value(relu->in(0)).uses.size() != 1 ||
      (DefinedBy(block, relu->in(0), "batch_norm") == nullptr &&
       DefinedBy(block, relu->in(0), "sync_batch_norm") == nullptr)) {
    return false;
  }
  TensorType type = block.type(x);
  if (kernels.prefers_channels_last()) type.layout = Layout::kChannelsLast;
  return type.rank() == 4 && kernels.HasPattern("norm_max_pool", type);
}

// Adds the output where the schema allows it.
bool AddArgmax(Block& block, OpId id) {
  const Op& op = block.op(id);
  TensorType type = block.type(op.out(0));
  type.dtype = DType::kU8;
  const ValueId argmax = block.AddOutput(
      id, op.schema->FindOutput("Argmax"),
      block.UniqueValueName(absl::StrCat(block.name(op), ".Argmax")), type);
  if (CheckTypes(block, op).ok()) return true;
  block.EraseValue(argmax);
  return false;
}

}  // namespace

absl::StatusOr<bool> KeepArgmax::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  Block& block = train->block();
  if (!block.HasOpOf(IsPool)) return false;
  const std::vector<bool> reached = ReachedByParameters(block);
  bool changed = false;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.role != Role::kForward || !IsPool(op.schema) ||
        op.outputs.has(op.schema->FindOutput("Argmax")) ||
        !reached[op.in(0).index()] ||
        !(WindowsOverlap(op) || IsPooledByItsNorm(block, op, *kernels_))) {
      continue;
    }
    const TensorType& x = block.type(op.in(0));
    const std::string gradient =
        absl::StrCat("max_pool", x.rank() - 2, "d_grad");
    if (!kernels_->Has(gradient, {x.dtype}, x.layout)) continue;
    changed |= AddArgmax(block, id);
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
