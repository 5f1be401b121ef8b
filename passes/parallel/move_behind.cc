#include "passes/parallel/move_behind.h"

#include <vector>

namespace halftone {
namespace passes {

OpId MoveReadersBehind(Block& block, absl::Span<const OpId> reductions) {
  if (reductions.empty()) return OpId();
  std::vector<bool> late(block.op_limit());
  std::vector<OpId> found(reductions.begin(), reductions.end());
  for (size_t i = 0; i < found.size(); ++i) {
    for (ValueId value : block.op(found[i]).outputs.all()) {
      for (const Use& use : block.value(value).uses) {
        if (late[use.op.index()]) continue;
        late[use.op.index()] = true;
        found.push_back(use.op);
      }
    }
  }
  std::vector<OpId> readers;
  bool ordered = true;  // nothing else stands behind a reader
  for (OpId id = reductions[0]; id.valid(); id = block.next(id)) {
    if (late[id.index()]) {
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
