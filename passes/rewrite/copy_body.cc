#include "passes/rewrite/copy_body.h"

#include <vector>

namespace halftone {
namespace passes {

std::unique_ptr<Block> CopyBody(const Block& from) {
  auto to = std::make_unique<Block>(&from.program());
  std::vector<ValueId> copies(from.value_limit());
  for (ValueId feed : from.Feeds()) {
    copies[feed.index()] =
        to->AddFeed(from.value(feed).name, from.value(feed).type);
  }
  // Bodies are closed: nothing but feeds comes from outside.
  const auto copy_of = [&](ValueId value) { return copies[value.index()]; };
  for (OpId id = from.first(); id.valid(); id = from.next(id)) {
    const Op& made = to->op(to->CopyOp(from.op(id), from, copy_of));
    for (size_t i = 0; i < made.outputs.all().size(); ++i) {
      copies[from.op(id).outputs.all()[i].index()] = made.outputs.all()[i];
    }
  }
  for (ValueId result : from.body_results()) {
    to->body_results().push_back(copy_of(result));
  }
  return to;
}

}  // namespace passes
}  // namespace halftone
