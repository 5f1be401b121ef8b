#include "graph/verify/verify.h"

#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/place.h"
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

void CheckBlock(const Program& program, const Block& block, const Entry* entry,
                Phase phase, Reporter& report, CheckedTypes& checked) {
  BlockScope scope{program, block, entry, phase, report, checked};
  scope.defined.resize(block.op_limit());
  const int before = report.count();
  for (const BlockRule& rule : BlockRules()) {
    if (phase >= rule.from) rule.check(scope);
  }
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& value = block.value(ValueId(i));
    if (value.erased) continue;
    for (const ValueRule& rule : ValueRules()) {
      if (phase >= rule.from) rule.check(scope, value);
    }
  }
  // Inference is for values within limits.
  if (report.count() > before) return;
  int left = block.op_limit();  // a damaged list of ops may be a ring
  for (OpId id = block.first(); id.valid() && left > 0; --left) {
    const Op& op = block.op(id);
    for (const OpRule& rule : OpRules()) {
      if (phase >= rule.from && !rule.check(scope, op)) break;
    }
    scope.defined[id.index()] = true;
    id = op.next;
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
  verify::CheckedTypes checked;
  for (const auto& entry : program.entries()) {
    report.SetEntry(entry.get());
    const int before = report.count();
    verify::CheckBlock(program, entry->block(), entry.get(), options.phase,
                       report, checked);
    // Rules of entries follow values to ops: only where those are sound.
    for (const verify::EntryRule& rule : verify::EntryRules()) {
      if (report.count() == before && options.phase >= rule.from) {
        rule.check(*entry, options.phase, report);
      }
    }
  }
  return report.ToStatus();
}

}  // namespace halftone
