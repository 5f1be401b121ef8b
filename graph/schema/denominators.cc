#include "graph/schema/denominators.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace {

// By op id.
using Marks = std::vector<bool>;

class Finder {
 public:
  Finder(const Block& block, ValueId value) : block_(block), value_(value) {}

  absl::StatusOr<Denominator> Run(ValueId loss) {
    HT_RETURN_IF_ERROR(CheckType());
    HT_RETURN_IF_ERROR(WalkBack());
    HT_RETURN_IF_ERROR(FindReaders(MakersOf(loss), value_));
    if (found_.readers.empty()) {
      return Error(" is nothing that the loss divides by; leave it out");
    }
    for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
      if (sums_[id.index()]) found_.sums.push_back(id);
      if (above_[id.index()]) found_.above.push_back(id);
      if (below_[id.index()]) found_.below.push_back(id);
    }
    return std::move(found_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return ModelError(block_.name(value_), parts...);
  }
  std::string Print(ValueId value) const {
    return ToString(block_.type(value), block_.program().symbols());
  }
  bool HasSamples(ValueId value) const {
    return !block_.type(value).Elements().is_constant();
  }
  // A value to go back from; whether a sum of it has been met.
  struct Step {
    ValueId value;
    bool above_sum;
  };
  absl::Status CheckType() const;
  absl::Status CheckCell(ValueId value) const;
  absl::Status WalkBack();
  absl::Status AddMaker(Step step, std::vector<Step>* next);
  absl::Status FindReaders(const Marks& makes_loss, ValueId value);
  Marks MakersOf(ValueId value) const;

  const Block& block_;
  const ValueId value_;
  Marks sums_ = Marks(block_.op_limit());
  Marks above_ = sums_, below_ = sums_;
  Denominator found_;
};

absl::Status Finder::CheckType() const {
  const TensorType& type = block_.type(value_);
  if (IsFloat(type.dtype) && type.Elements() == Dim(1)) {
    return absl::OkStatus();
  }
  return Error(": expected floats of one element, found ", Print(value_),
               "; name the sum that the loss divides by");
}

absl::Status Finder::CheckCell(ValueId value) const {
  const CellId cell = block_.value(value).cell();
  if (!cell.valid()) return absl::OkStatus();
  const CellKind kind = block_.program().cell(cell).kind;
  if (kind != CellKind::kParameter && kind != CellKind::kStatistic) {
    return absl::OkStatus();
  }
  return Error(" is made of ", block_.name(value), ", a ",
               kind == CellKind::kParameter ? "parameter" : "statistic",
               "; expected what is made of feeds alone");
}

// Takes the op that makes the value, and gives what that reads.
absl::Status Finder::AddMaker(Step step, std::vector<Step>* next) {
  HT_RETURN_IF_ERROR(CheckCell(step.value));
  const OpId id = block_.value(step.value).op();
  if (!id.valid()) return absl::OkStatus();
  const Op& op = block_.op(id);
  const auto inputs = op.inputs.all();
  const bool reduces =
      !HasSamples(step.value) &&
      std::any_of(inputs.begin(), inputs.end(),
                  [this](ValueId in) { return HasSamples(in); });
  if (reduces && (step.above_sum || op.schema->name() != "reduce_sum")) {
    return Error(" is made by ", block_.name(op), " (", op.schema->name(), ")",
                 step.above_sum ? " and then a sum" : "",
                 ": what ranks have of it does not add up to that of one "
                 "device; expected reduce_sum of what each sample has");
  }
  const bool above = step.above_sum || reduces;
  Marks& marks = above ? above_ : below_;
  if (marks[id.index()]) return absl::OkStatus();
  marks[id.index()] = true;
  if (reduces) sums_[id.index()] = true;
  for (ValueId input : inputs) next->push_back({input, above});
  return absl::OkStatus();
}

absl::Status Finder::WalkBack() {
  std::vector<Step> next = {{value_, false}};
  while (!next.empty()) {
    const Step step = next.back();
    next.pop_back();
    HT_RETURN_IF_ERROR(AddMaker(step, &next));
  }
  if (std::find(sums_.begin(), sums_.end(), true) != sums_.end()) {
    return absl::OkStatus();
  }
  return Error(
      " is made of no sum over samples, so it is the same on all ranks; leave "
      "it out");
}

Marks Finder::MakersOf(ValueId value) const {
  Marks makers(block_.op_limit());
  std::vector<ValueId> next = {value};
  while (!next.empty()) {
    const OpId id = block_.value(next.back()).op();
    next.pop_back();
    if (!id.valid() || makers[id.index()]) continue;
    makers[id.index()] = true;
    const auto inputs = block_.op(id).inputs.all();
    next.insert(next.end(), inputs.begin(), inputs.end());
  }
  return makers;
}

absl::Status Finder::FindReaders(const Marks& makes_loss, ValueId value) {
  for (const Use& use : block_.value(value).uses) {
    if (!makes_loss[use.op.index()]) continue;
    const Op& op = block_.op(use.op);
    if (value == value_) found_.readers.push_back(use);
    if (HandsOn(op)) {
      HT_RETURN_IF_ERROR(FindReaders(makes_loss, op.outputs.all()[0]));
      continue;
    }
    const absl::string_view type = op.schema->name();
    if (type == "reciprocal") continue;
    if (type == "elementwise_div" && use.position == 1) continue;
    return Error(" is read by ", block_.name(op), " (", type,
                 "); expected divisions by it alone: name what the loss is "
                 "divided by in the end");
  }
  return absl::OkStatus();
}

}  // namespace

bool HandsOn(const Op& op) {
  return op.schema->view() || op.schema->name() == "cast";
}

bool CountsSamples(const Block& block, ValueId value) {
  const Dim elements = block.type(value).Elements();
  Dim each;
  return elements.is_constant() ||
         (elements.DivideBy(Dim::Symbol(0), &each) && each.is_constant());
}

absl::StatusOr<Denominator> FindDenominator(const Block& block, ValueId loss,
                                            ValueId value) {
  return Finder(block, value).Run(loss);
}

}  // namespace halftone
