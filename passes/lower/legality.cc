#include "passes/lower/legality.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_key.h"
#include "passes/lower/kernel_key.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// As many are printed; a program that misses one kernel may miss it often.
constexpr size_t kMaxPrinted = 20;

class Checker {
 public:
  Checker(const Program& program, const KernelSet& kernels)
      : program_(program), kernels_(kernels), lookup_(kernels) {}

  void CheckOps(const Entry& entry, const Block& block);
  void CheckGradients(const Entry& train);
  absl::Status Finish() const;

 private:
  void Report(const Entry& entry, const Block& block, const Op& op, bool bug,
              absl::string_view problem);
  void CheckOp(const Entry& entry, const Block& block, const Op& op);
  void CheckKernel(const Entry& entry, const Block& block, const Op& op);
  // Of a fusion that the verifier has seen.
  void CheckPattern(const Entry& entry, const Block& block, const Op& op);

  const Program& program_;
  const KernelSet& kernels_;
  KernelLookup lookup_;
  absl::flat_hash_set<TypeMemo::Key> legal_;  // by TypeKey
  std::vector<std::string> problems_;
  bool bug_ = false;
};

void Checker::Report(const Entry& entry, const Block& block, const Op& op,
                     bool bug, absl::string_view problem) {
  std::string place;
  if (op.line > 0 && !program_.file.empty()) {
    place = absl::StrCat(", ", program_.file, ":", op.line);
  } else if (op.line > 0) {
    place = absl::StrCat(", line ", op.line);
  }
  problems_.push_back(absl::StrCat(entry.name(), ": ", block.name(op), " (",
                                   op.schema->name(), place, "): ", problem));
  bug_ |= bug;
}

void Checker::CheckKernel(const Entry& entry, const Block& block,
                          const Op& op) {
  if (op.schema->split_only()) {
    Report(entry, block, op, true,
           "has no kernel on any target and had to be split");
    return;
  }
  if (lookup_.Has(block, op)) return;
  if (problems_.size() >= kMaxPrinted) {  // counted, not printed
    Report(entry, block, op, false, "no kernel");
    return;
  }
  const std::vector<std::string> keys = kernels_.KeysOf(op.schema->name());
  const std::string there =
      keys.empty() ? "none of this op" : absl::StrJoin(keys, ", ");
  Report(entry, block, op, false,
         absl::StrCat("no kernel ", KernelKey(block, op), " on ",
                      kernels_.target().name, "; there is: ", there));
}

void Checker::CheckPattern(const Entry& entry, const Block& block,
                           const Op& op) {
  const std::string& name = AttrAs<std::string>(op, "pattern");
  const FusionPattern* pattern = FindFusionPattern(name);
  const TensorType& key =
      pattern->KeyType(*op.body, pattern->MatchBody(*op.body));
  if (kernels_.HasPattern(name, key)) return;
  Report(
      entry, block, op, false,
      absl::StrCat("no kernel for the pattern ", name, " of ", Name(key.dtype),
                   "@", Name(key.layout), " on ", kernels_.target().name));
}

void Checker::CheckOp(const Entry& entry, const Block& block, const Op& op) {
  if (op.body == nullptr) {
    CheckKernel(entry, block, op);
    return;
  }
  CheckPattern(entry, block, op);
  // The planner may inline it.
  CheckOps(entry, *op.body);
}

void Checker::CheckOps(const Entry& entry, const Block& block) {
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const TypeMemo::Key kind = KindOf(block, id);
    if (legal_.contains(kind)) continue;
    const size_t before = problems_.size();
    CheckOp(entry, block, block.op(id));
    if (problems_.size() == before) legal_.insert(kind);
  }
}

void Checker::CheckGradients(const Entry& train) {
  const Block& block = train.block();
  absl::flat_hash_map<CellId, OpId> updated;
  for (OpId id : GuardedOps(block)) {
    const Op& op = block.op(id);
    const int param = op.schema->FindInput("Param");
    const int grad = op.schema->FindInput("Grad");
    if (param < 0 || grad < 0) continue;
    for (size_t i = 0; i < op.inputs.slot(param).size(); ++i) {
      const CellId cell = block.value(op.inputs.slot(param)[i]).cell();
      if (!cell.valid()) continue;
      const std::string& name = program_.cell(cell).name;
      const auto [it, fresh] = updated.try_emplace(cell, id);
      if (!fresh) {
        Report(train, block, op, true,
               absl::StrCat("updates ", name, ", which ",
                            block.name(block.op(it->second)), " updates"));
      }
      const int n = OriginOf(block, op.inputs.slot(grad)[i]).reductions;
      const int expected = GradientReductions(program_);
      if (n == expected) continue;
      Report(train, block, op, true,
             absl::StrCat("the gradient of ", name, " passes ", n,
                          " reductions of=gradient; expected ",
                          expected == 0 ? "none" : "one"));
    }
  }
}

absl::Status Checker::Finish() const {
  if (problems_.empty()) return absl::OkStatus();
  std::vector<std::string> lines = problems_;
  if (lines.size() > kMaxPrinted) {
    lines.resize(kMaxPrinted);
    lines.push_back(
        absl::StrCat("and ", problems_.size() - kMaxPrinted, " more"));
  }
  const std::string message =
      absl::StrCat(problems_.size(), problems_.size() == 1 ? " op" : " ops",
                   " cannot run on ", kernels_.target().name, "\n  ",
                   absl::StrJoin(lines, "\n  "));
  return bug_ ? CompilerBug(message) : ModelError(message);
}

}  // namespace

absl::StatusOr<bool> Legality::Run(Program& program) {
  Checker checker(program, *kernels_);
  for (const auto& entry : program.entries()) {
    checker.CheckOps(*entry, entry->block());
    if (IsTrainEntry(entry->name())) checker.CheckGradients(*entry);
  }
  HT_RETURN_IF_ERROR(checker.Finish());
  return false;
}

}  // namespace passes
}  // namespace halftone
