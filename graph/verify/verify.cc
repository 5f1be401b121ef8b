#include "graph/verify/verify.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/place.h"
#include "graph/verify/limits.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {

std::string Reporter::Label(const Block& block, const Op& op) {
  return absl::StrCat(block.name(op), " (",
                      op.schema == nullptr ? "?" : op.schema->name(), ")");
}

void Reporter::Add(int line, const std::string& message) {
  std::string entry;
  if (phase_ != Phase::kSource && entry_ != nullptr) {
    entry = absl::StrCat("entry ", entry_->name(), ": ");
  }
  messages_.push_back(absl::StrCat(PlaceOf(program_, line), entry, message));
}

void Reporter::Message(absl::string_view message) {
  if (Counts()) messages_.emplace_back(message);
}

absl::Status Reporter::ToStatus() const {
  if (count_ == 0) return absl::OkStatus();
  std::string text = absl::StrJoin(messages_, "\n");
  if (count_ > kMost) absl::StrAppend(&text, "\nand ", count_ - kMost, " more");
  return phase_ == Phase::kSource ? ModelError(text) : CompilerBug(text);
}

namespace {

// Whether the block's numbers of ops by schema are those of the list.
class SchemaCounts {
 public:
  explicit SchemaCounts(const Block& block)
      : block_(block), found_(block.counts().size()) {}

  void Add(const OpSchema* schema) {
    const auto counts = block_.counts();
    if (last_ >= counts.size() || counts[last_].schema != schema) {
      for (last_ = 0; last_ < counts.size(); ++last_) {
        if (counts[last_].schema == schema) break;
      }
    }
    // The block counts none: its sum is off, too.
    if (last_ < counts.size()) ++found_[last_];
  }
  void Check(Reporter& report) const {
    for (size_t i = 0; i < found_.size(); ++i) {
      const auto& [schema, count] = block_.counts()[i];
      if (count == found_[i]) continue;
      report.At(0, "expected ", count, " ops ", schema->name(),
                " in the list, found ", found_[i]);
    }
  }

 private:
  const Block& block_;
  absl::InlinedVector<int32_t, 4> found_;
  size_t last_ = 0;
};

void CheckAllValues(BlockScope& scope) {
  const Block& block = scope.block;
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& value = block.value(ValueId(i));
    if (!value.erased) CheckValue(scope, value);
  }
}

// Beside those of cells and constants: what no op defines, without a walk over
// all values.
void CheckFeeds(BlockScope& scope) {
  for (ValueId feed : scope.block.Feeds()) {
    if (IsLive(scope.block, feed)) CheckValue(scope, scope.block.value(feed));
  }
}

// Whether the values that an edited op makes are sound: inference is for those
// alone.
bool CheckOutputValues(BlockScope& scope, const Op& op) {
  const int before = scope.report.count();
  for (ValueId output : op.outputs.all()) {
    if (!IsLive(scope.block, output)) continue;
    CheckNameAndType(scope, scope.block.value(output));
  }
  return scope.report.count() == before;
}

// Each in its place in the list: both directions agree, so that it has no
// ring, and the count is right.
void CheckOps(BlockScope& scope) {
  const Block& block = scope.block;
  Reporter& report = scope.report;
  const int before = report.count();
  // Later all were asked: those that were not edited need no look.
  const bool ask_reasons = scope.memo.phase() < Phase::kBackward;
  SchemaCounts counts(block);
  OpId previous;
  int count = 0;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const bool edited = block.edit(id) > scope.since;
    if (block.previous(id) != previous ||
        (edited && (block.op(id).erased || block.op(id).id != id))) {
      report.AtOp(block, block.op(id), "the list of ops is broken here");
      break;
    }
    if (edited) {
      // Without a verification before, all values were looked at.
      if (scope.since > 0 && !CheckOutputValues(scope, block.op(id))) return;
      CheckOp(scope, block.op(id));
    } else if (ask_reasons && scope.memo.phase() < ReasonFrom(block.op(id))) {
      CheckReason(scope, block.op(id));
    }
    if (scope.since == 0) counts.Add(block.op(id).schema);
    scope.defined[id.index()] = true;
    previous = id;
    ++count;
  }
  if (report.count() > before) return;
  if (count != block.num_ops() || block.last() != previous) {
    report.At(0, "expected ", block.num_ops(), " ops in the list, found ",
              count);
  } else if (scope.since == 0) {
    counts.Check(report);
  }
  if (report.count() == before) CheckSplit(scope);
}

// In the order in which they lie: ops and values have them in another one.
void LookAtNames(const Program& program, VerifyMemo& memo) {
  int32_t good = memo.good_names();
  while (good < program.names().size() &&
         BadName(program.name_of(NameId(good))).empty()) {
    ++good;
  }
  memo.SetGoodNames(good);
}

}  // namespace

void CheckBlock(const Program& program, const Block& block, const Entry* entry,
                Phase phase, uint64_t since, Reporter& report,
                VerifyMemo& memo) {
  BlockScope scope{program, block, entry, phase, report, memo, since};
  scope.defined.resize(block.op_limit());
  const int before = report.count();
  CheckStructure(scope);
  if (since == 0) {
    CheckAllValues(scope);
  } else {
    CheckFeeds(scope);
  }
  // Inference is for values within limits.
  if (report.count() > before) return;
  CheckOps(scope);
  // Each read is among its value's uses, at a place of its own: that there
  // are no others is a matter of counting.
  if (report.count() == before && since == 0 && scope.reads != scope.uses) {
    ReportUses(scope);
  }
}

}  // namespace verify

absl::Status Verify(const Program& program, const VerifyOptions& options) {
  verify::Reporter report(program, options.phase);
  for (const verify::ProgramRule& rule : verify::ProgramRules()) {
    if (options.phase >= rule.from) {
      rule.check(program, options.phase, report);
    }
  }
  // What follows looks cells up.
  if (report.count() > 0) return report.ToStatus();
  VerifyMemo own;
  VerifyMemo& memo = options.memo != nullptr ? *options.memo : own;
  verify::LookAtNames(program, memo);
  for (const auto& entry : program.entries()) {
    report.SetEntry(entry.get());
    const int before = report.count();
    verify::CheckBlock(program, entry->block(), entry.get(), options.phase,
                       memo.verified(), report, memo);
    // Rules of entries follow values to ops: only where those are sound.
    for (const verify::EntryRule& rule : verify::EntryRules()) {
      if (report.count() == before && options.phase >= rule.from) {
        rule.check(*entry, options.phase, report);
      }
    }
  }
  if (report.count() == 0) {
    memo.SetVerified(program.edit(), options.phase);
  }
  return report.ToStatus();
}

}  // namespace halftone
