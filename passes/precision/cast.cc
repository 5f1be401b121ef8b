#include "passes/precision/cast.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/cast_names.h"
#include "graph/schema/op_builder.h"

namespace halftone {
namespace passes {
NameId CastName(Block& block, ValueId value, DType to) {
  return block.program().names().Append(block.value(value).name,
                                        absl::StrCat(".", CastSuffix(to)));
}

absl::StatusOr<ValueId> AddCast(Block& block, ValueId value, DType to,
                                Reason reason, NameId because_of,
                                Block::Position position) {
  Decision decision;
  decision.precision = to;
  decision.reason = reason;
  if (because_of.valid()) decision.because_of.push_back(because_of);
  HT_ASSIGN_OR_RETURN(const OpId cast,
                      OpBuilder(&block, "cast")
                          .In("X", value)
                          .Attr("to", to)
                          .Out("Out", CastName(block, value, to))
                          .Why(decision)
                          .At(position)
                          .Unique()
                          .Build());
  return block.op(cast).out(0);
}

}  // namespace passes
}  // namespace halftone
