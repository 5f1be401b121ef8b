#include "passes/parallel/combine_verdicts.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"

namespace halftone {
namespace passes {

absl::Status CombineChecks(Entry& train, Norms norms, HeldValues& held) {
  Block& block = train.block();
  // Those of parts of the loss read what this rank has of them, whole.
  const ValueId verdict = train.FindResult(kFoundInf);
  const Op* const found =
      verdict.valid() ? DefinedBy(block, verdict, "check_finite") : nullptr;
  if (found == nullptr) {
    return CompilerBug(
        "train has gradients and no check_finite: check-and-unscale must run "
        "before");
  }
  const Op& check = *found;
  const auto outputs = check.outputs.all();
  const std::vector<ValueId> own(outputs.begin(), outputs.end());
  int64_t members = 0;
  for (const char* slot : {"Low", "F32", "Stats"}) {
    members += check.inputs.slot(check.schema->FindInput(slot)).size();
  }
  OpBuilder combine = MakeOp(block, "combine_checks", Role::kLossScale);
  combine.Name(absl::StrCat(kFoundInf, ".combined"))
      .At(block.After(check.id))
      .In("FirstBad", own[1])
      .In("SquaredNorm", own[2])
      .Attr("members", members);
  const bool shards = norms == Norms::kOfShards;
  const int replaced = shards ? 3 : 2;
  std::vector<std::string> names;
  for (ValueId value : own) {
    names.emplace_back(block.name(value));
    if (static_cast<int>(names.size()) > replaced) break;
    block.RenameValue(value, block.UniqueValueName(absl::StrCat(
                                 names.back(), shards ? ".shard" : ".own")));
  }
  const char* const slots[] = {"FoundInf", "FirstBad", "SquaredNorm"};
  for (int i = 0; i < replaced; ++i) combine.Out(slots[i], names[i]);
  HT_ASSIGN_OR_RETURN(const OpId made, combine.Build());
  for (int i = 0; i < replaced; ++i) {
    ReplaceValue(block, own[i], block.op(made).outputs.all()[i], held);
  }
  block.SetInput(made, 0, own[1]);
  block.SetInput(made, 1, own[2]);
  return absl::OkStatus();
}

}  // namespace passes
}  // namespace halftone
