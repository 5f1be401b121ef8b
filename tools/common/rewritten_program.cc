#include "tools/common/rewritten_program.h"

#include "graph/base/error.h"
#include "graph/export/paddle_export.h"
#include "graph/ir/well_known.h"
#include "passes/compile.h"
#include "passes/named_passes.h"
#include "tools/common/model_flags.h"
#include "tools/common/program_input.h"

namespace halftone {
namespace tools {

absl::StatusOr<RewrittenProgram> RewrittenForPaddle(const std::string& path) {
  ModelFlags flags;
  flags.path = path;
  HT_ASSIGN_OR_RETURN(const ProgramInput input, ReadProgram(flags));
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::OptionsFor(*input.program, input.options));
  HT_RETURN_IF_ERROR(
      passes::RunNamed({"precision", "differentiate", "parallel", "update"},
                       {options, input.kernels, {}, {}}, {}, *input.program)
          .status());
  const Entry* entry = input.program->FindEntry(kTrainEntry);
  if (entry == nullptr) entry = input.program->FindEntry(kEvalEntry);
  if (entry == nullptr) return CompilerBug(path, ": no entry is left");
  const proto::paddle::ProgramDesc made =
      ToPaddleProgram(*input.program, *entry);
  RewrittenProgram rewritten;
  rewritten.bytes = made.SerializeAsString();
  for (const auto& op : made.blocks(0).ops()) {
    ++rewritten.ops;
    if (op.type() == "cast") ++rewritten.casts;
  }
  return rewritten;
}

}  // namespace tools
}  // namespace halftone
