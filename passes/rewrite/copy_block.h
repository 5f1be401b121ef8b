// Ops of one block in another of the same program.
#ifndef HALFTONE_PASSES_REWRITE_COPY_BLOCK_H_
#define HALFTONE_PASSES_REWRITE_COPY_BLOCK_H_

#include <memory>
#include <vector>

#include "graph/ir/block.h"

namespace halftone {
namespace passes {

// Copies ops one by one, under their names, to the end of `to`.
class BlockCopier {
 public:
  // Both outlive it.
  BlockCopier(const Block& from, Block& to);

  // The value's copy: feeds, constants and cells are made on first demand.
  // Invalid: an op makes it that was not copied.
  ValueId Map(ValueId value);
  // With its body. False, and no copy: something that it reads has none.
  bool CopyOp(const Op& op);

 private:
  const Block* from_;
  Block* to_;
  std::vector<ValueId> map_;  // by value id of `from`
};

// Of a fusion.
std::unique_ptr<Block> CopyBody(const Block& from);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_REWRITE_COPY_BLOCK_H_
