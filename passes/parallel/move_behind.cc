#include "passes/parallel/move_behind.h"

#include <vector>

namespace halftone {
namespace passes {

OpId MoveReadersBehind(Block& block, absl::Span<const OpId> reductions) {
  if (reductions.empty()) return OpId();
  std::vector<bool> late(block.op_limit(), false);
  for (OpId id : reductions) late[id.index()] = true;
  std::vector<OpId> readers;
  bool ordered = true;  // nothing else stands behind a reader
  for (OpId id = reductions[0]; id.valid(); id = block.next(id)) {
    bool reads = false;
    for (ValueId in : block.op(id).inputs.all()) {
      const OpId producer = block.value(in).op();
      reads |= producer.valid() && late[producer.index()];
    }
    if (reads) {
      late[id.index()] = true;
      readers.push_back(id);
    } else if (!readers.empty()) {
      ordered = false;
    }
  }
  if (!ordered) {
    for (OpId id : readers) block.MoveOp(id, Block::End());
  }
  return readers.empty() ? OpId() : readers[0];
}

}  // namespace passes
}  // namespace halftone
