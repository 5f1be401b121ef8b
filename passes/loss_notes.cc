#include "passes/loss_notes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/well_known.h"
#include "graph/schema/denominators.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

class MeanFinder {
 public:
  MeanFinder(const Program& program, const Block& block)
      : loss_(program.loss),
        block_(block),
        var_(block.FindValue(loss_.var)),
        mask_(block.FindValue(loss_.mask)) {}

  LossNote Run();

 private:
  void Visit(const Op& op);
  void VisitQuotient(const Op& op);
  bool IsMean(const Op& op) const {
    return (op.schema->name() == "mean" || op.schema->name() == "reduce_mean");
  }
  bool HasSamples(ValueId value) const {
    return !block_.type(value).Elements().is_constant();
  }
  bool IsOfMask(const Denominator& denominator) const;
  void AddInputs(const Op& op) {
    for (ValueId input : op.inputs.all()) next_.push_back(input);
  }

  const LossInfo& loss_;
  const Block& block_;
  const ValueId var_, mask_;
  std::vector<ValueId> next_;
  // Ops whose means are not weighed as one device does; what they divide by.
  std::vector<std::string> ops_, denominators_;
  std::string of_mask_;  // what a mean under the mask divides by
  std::string over_;     // of a mean over elements
};

bool MeanFinder::IsOfMask(const Denominator& denominator) const {
  return std::any_of(
      denominator.sums.begin(), denominator.sums.end(),
      [this](OpId sum) { return block_.op(sum).in(0) == mask_; });
}

void MeanFinder::VisitQuotient(const Op& op) {
  const ValueId divisor = op.inputs.all()[1];
  const auto found = FindDenominator(block_, var_, divisor);
  if (!found.ok()) return next_.push_back(op.inputs.all()[0]);
  const std::string name(block_.name(divisor));
  if (mask_.valid() && IsOfMask(*found)) {
    of_mask_ = name;
  } else if (std::count(loss_.denominators.begin(), loss_.denominators.end(),
                        name) == 0) {
    ops_.emplace_back(block_.name(op));
    denominators_.push_back(name);
  }
}

void MeanFinder::Visit(const Op& op) {
  const absl::string_view type = op.schema->name();
  if (IsMean(op)) {
    const ValueId over = op.in(0);
    if (HasSamples(op.out(0)) || !HasSamples(over)) return;
    over_ = std::string(block_.name(over));
    if (mask_.valid()) ops_.emplace_back(block_.name(op));
  } else if (type == "elementwise_div") {
    VisitQuotient(op);
  } else if (type == "elementwise_add" || type == "elementwise_sub" ||
             type == "elementwise_mul" || type == "sum" || type == "scale" ||
             HandsOn(op)) {
    AddInputs(op);
  }
}

LossNote MeanFinder::Run() {
  std::vector<bool> seen(block_.op_limit());
  next_ = {var_};
  while (!next_.empty()) {
    const ValueId value = next_.back();
    next_.pop_back();
    const OpId id = block_.value(value).op();
    if (!id.valid() || seen[id.index()] || HasSamples(value)) continue;
    seen[id.index()] = true;
    Visit(block_.op(id));
  }
  // A mask that nothing divides by as a sum is a mean of some other form.
  if (ops_.empty() || (mask_.valid() && of_mask_.empty())) return {};
  if (!of_mask_.empty()) denominators_.push_back(of_mask_);
  std::sort(ops_.begin(), ops_.end());
  std::sort(denominators_.begin(), denominators_.end());
  std::string fields = absl::StrCat(
      "mean_over: \"", over_.empty() ? loss_.mean_over : over_, "\"");
  for (const std::string& one : loss_.denominators) {
    absl::StrAppend(&fields, " denominator: \"", one, "\"");
  }
  for (const std::string& one : denominators_) {
    absl::StrAppend(&fields, " denominator: \"", one, "\"");
  }
  return {absl::StrCat("the loss has a mean over another count than it is ",
                       "weighed by over ranks: ", absl::StrJoin(ops_, ", "),
                       "; several ranks give another loss than one; write ",
                       fields, mask_.valid() ? " and no mask" : ""),
          ops_};
}

}  // namespace

LossNote NoteOnMeans(const Program& program) {
  const Entry* const train = program.FindEntry(kTrainEntry);
  if (train == nullptr || program.loss.var.empty()) return {};
  return MeanFinder(program, train->block()).Run();
}

}  // namespace passes
}  // namespace halftone
