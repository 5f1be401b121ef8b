#include "passes/precision/cast.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"

namespace halftone {
namespace passes {

std::string CastName(absl::string_view value, DType to) {
  switch (to) {
    case DType::kF16:
      return absl::StrCat(value, ".cast_fp16");
    case DType::kF32:
      return absl::StrCat(value, ".cast_fp32");
    default:
      return absl::StrCat(value, ".cast_", Name(to));
  }
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
                          .Out("Out", CastName(block.name(value), to))
                          .Why(decision)
                          .At(position)
                          .Unique()
                          .Build());
  return block.op(cast).out(0);
}

}  // namespace passes
}  // namespace halftone
