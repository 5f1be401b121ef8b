// The verifier's rules: one small function each, in tables by what they look
// at. verify.cc walks the program and calls them.
#ifndef HALFTONE_GRAPH_VERIFY_RULES_H_
#define HALFTONE_GRAPH_VERIFY_RULES_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "graph/schema/op_registry.h"
#include "graph/verify/reporter.h"
#include "graph/verify/verify.h"

namespace halftone {
namespace verify {

// The block of an entry, or the body of a fusion.
struct BlockScope {
  const Program& program;
  const Block& block;
  const Entry* entry;  // null in a body
  Phase phase;
  Reporter& report;
  VerifyMemo& memo;
  // Ops whose edit() is not above were right as they are; 0: none were.
  uint64_t since = 0;

  // Reads as the ops and as the values count them.
  int64_t reads = 0, uses = 0;
  // By op id: the walk has passed it.
  absl::InlinedVector<bool, 32> defined = {};
  // By value id: the op that last listed it in a contiguous slot.
  std::vector<OpId> member_of = {};

  std::string Print(const TensorType& type) const {
    return ToString(type, program.symbols());
  }
};

struct ProgramRule {
  Phase from;
  void (*check)(const Program&, Phase, Reporter&);
};
struct EntryRule {
  Phase from;
  void (*check)(const Entry&, Phase, Reporter&);
};

absl::Span<const ProgramRule> ProgramRules();  // program_rules.cc
absl::Span<const EntryRule> EntryRules();      // entry_rules.cc

// "an op's name is empty" and the like.
void CheckNewName(BlockScope& scope, NameId name, absl::string_view whose,
                  int line);  // block_rules.cc
inline void CheckName(BlockScope& scope, NameId name, absl::string_view whose,
                      int line) {
  if (!scope.memo.IsGood(name)) CheckNewName(scope, name, whose, line);
}
// The rules of blocks, values and ops, called for each of a million: in
// functions rather than in tables.
void CheckStructure(BlockScope& scope);  // block_rules.cc
// All rules of values, and those that CheckOp leaves out (block_rules.cc).
void CheckValue(BlockScope& scope, const Value& value);
void CheckNameAndType(BlockScope& scope, const Value& value);
void CheckOp(BlockScope& scope, const Op& op);  // op_rules.cc
// The phase from which an op has a reason: forward ops are decided first.
inline Phase ReasonFrom(const Op& op) {
  return op.role == Role::kForward ? Phase::kPrecision : Phase::kBackward;
}
void CheckReason(BlockScope& scope, const Op& op);  // op_rules.cc
void CheckSplit(BlockScope& scope);                 // block_rules.cc
// Runs them all (verify.cc).
void CheckBlock(const Program& program, const Block& block, const Entry* entry,
                Phase phase, uint64_t since, Reporter& report,
                VerifyMemo& memo);

// Names the uses that do not read their value (block_rules.cc).
void ReportUses(BlockScope& scope);

// Rules of entries that need a file of their own.
void CheckGuards(const Entry& entry, Phase phase, Reporter& report);
void CheckGradients(const Entry& entry, Phase phase, Reporter& report);
void CheckReductions(const Entry& entry, Phase phase, Reporter& report);
void CheckUpdates(const Entry& entry, Phase phase, Reporter& report);

// Whether the id is one of the block's live values.
inline bool IsLive(const Block& block, ValueId id) {
  return id.valid() && id.index() < block.value_limit() &&
         !block.value(id).erased;
}

}  // namespace verify
}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_RULES_H_
