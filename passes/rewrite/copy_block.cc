#include "passes/rewrite/copy_block.h"

namespace halftone {
namespace passes {

BlockCopier::BlockCopier(const Block& from, Block& to)
    : from_(&from), to_(&to), map_(from.value_limit()) {}

ValueId BlockCopier::Map(ValueId value) {
  ValueId& mapped = map_[value.index()];
  if (mapped.valid()) return mapped;
  const Value& v = from_->value(value);
  if (v.definition == Definition::kFeed) {
    mapped = to_->AddFeed(v.name, v.type);
  } else if (v.definition == Definition::kConstant) {
    mapped = to_->ConstantValue(ConstantId(v.index));
  } else if (v.definition == Definition::kCell) {
    mapped = to_->CellValue(v.cell());
  }
  return mapped;
}

bool BlockCopier::CopyOp(const Op& op) {
  for (ValueId input : op.inputs.all()) {
    if (!Map(input).valid()) return false;
  }
  const OpId id = to_->CopyOp(
      op, *from_, [this](ValueId value) { return map_[value.index()]; });
  if (op.body != nullptr) to_->mutable_op(id).body = CopyBody(*op.body);
  const auto outputs = op.outputs.all();
  for (size_t i = 0; i < outputs.size(); ++i) {
    map_[outputs[i].index()] = to_->op(id).outputs.all()[i];
  }
  return true;
}

std::unique_ptr<Block> CopyBody(const Block& from) {
  auto to = std::make_unique<Block>(&from.program(), from.num_ops(),
                                    from.value_limit());
  BlockCopier copier(from, *to);
  for (ValueId feed : from.Feeds()) copier.Map(feed);
  for (OpId id = from.first(); id.valid(); id = from.next(id)) {
    copier.CopyOp(from.op(id));
  }
  for (ValueId result : from.body_results()) {
    to->body_results().push_back(copier.Map(result));
  }
  return to;
}

}  // namespace passes
}  // namespace halftone
