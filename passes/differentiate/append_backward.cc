#include "passes/differentiate/append_backward.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/place.h"
#include "passes/differentiate/combine_losses.h"
#include "passes/differentiate/local_count.h"
#include "passes/differentiate/mask_totals.h"
#include "passes/rewrite/reached.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

class Differentiator {
 public:
  Differentiator(const Program& program, Block& block)
      : program_(program),
        block_(block),
        limit_(block_.value_limit()),
        contributions_(limit_),
        gradients_(program.num_cells()),
        cast_(Ops().Find("cast")) {}

  absl::Status Run(ValueId loss, ValueId seed);
  // Of parameters, by cell id; invalid where there is none.
  std::vector<ValueId>& gradients() { return gradients_; }
  // Gives all that backward has made another name: they are of a part of the
  // loss, and the next part's are to be called so.
  void RenameAs(const LossPart& part);

 private:
  struct FirstRead {
    OpId op;
    ValueId parameter;
  };

  // Marks the values that a parameter reaches, and finds its first reader.
  absl::Status MarkNeeded();
  absl::Status CheckNames(ValueId parameter) const;
  absl::Status Differentiate(OpId id);
  absl::StatusOr<ValueId> Gradient(ValueId value, NameId because_of);
  absl::StatusOr<ValueId> Sum(ValueId value, NameId because_of);
  absl::StatusOr<ValueId> KeepCounted(ValueId value, NameId because_of);
  // Takes the gradient's name from the contribution that has it.
  void FreeName(ValueId value);
  absl::Status FinishParameter(const FirstRead& read);
  OpBuilder Emit(absl::string_view op, ValueId value, NameId because_of);
  NameId GradName(ValueId value) const {
    return GradientName(block_.program().names(), block_.value(value).name);
  }

  const Program& program_;
  Block& block_;
  const int limit_;           // ids of backward values are above it
  std::vector<bool> needed_;  // by value id
  // By value id: a rank that counts nothing makes its gradient 0 here.
  std::vector<bool> keep_counted_;
  // By value id: the gradients of its readers, in the order of the sweep.
  std::vector<absl::InlinedVector<ValueId, 1>> contributions_;
  std::vector<FirstRead> first_reads_;  // of parameters, in program order
  std::vector<ValueId> gradients_;      // of parameters, by cell id
  const OpSchema* const cast_;
};

// Whoever asks for the gradient by its name means this one.
absl::Status Differentiator::CheckNames(ValueId parameter) const {
  const ValueId taken = block_.FindValue(GradName(parameter));
  if (!taken.valid()) return absl::OkStatus();
  const OpId op = block_.value(taken).op();
  return ModelError(PlaceOf(program_, op.valid() ? block_.op(op).line : 0),
                    block_.name(taken),
                    " is the name of a parameter's gradient; rename ",
                    "the model's value");
}

absl::Status Differentiator::MarkNeeded() {
  needed_ = ReachedByParameters(block_);
  std::vector<bool> met(limit_);
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    const Op& op = block_.op(id);
    if (op.role != Role::kForward || !op.schema->has_grad()) continue;
    for (ValueId input : op.inputs.all()) {
      if (met[input.index()] || !IsTrainable(block_, input)) continue;
      met[input.index()] = true;
      first_reads_.push_back({id, input});
      HT_RETURN_IF_ERROR(CheckNames(input));
    }
  }
  return absl::OkStatus();
}

OpBuilder Differentiator::Emit(absl::string_view op, ValueId value,
                               NameId because_of) {
  Decision decision;
  decision.precision = block_.dtype(value);
  decision.reason = Reason::kGradientOf;
  decision.because_of.push_back(because_of);
  OpBuilder builder(&block_, op);
  builder.Out("Out", GradName(value))
      .Role(Role::kBackward)
      .Why(decision)
      .Unique();
  return builder;
}

void Differentiator::FreeName(ValueId value) {
  const NameId name = GradName(value);
  for (ValueId part : contributions_[value.index()]) {
    if (block_.value(part).name != name) continue;
    block_.RenameValue(part, block_.UniqueValueName(name));
  }
}

// One n-ary sum.
absl::StatusOr<ValueId> Differentiator::Sum(ValueId value, NameId because_of) {
  FreeName(value);
  HT_ASSIGN_OR_RETURN(const OpId sum,
                      Emit("sum", value, because_of)
                          .In("X", contributions_[value.index()])
                          .Build());
  return block_.op(sum).out(0);
}

absl::StatusOr<ValueId> Differentiator::KeepCounted(ValueId value,
                                                    NameId because_of) {
  FreeName(value);
  HT_ASSIGN_OR_RETURN(const ValueId count, LocalCount(program_, block_));
  HT_ASSIGN_OR_RETURN(const OpId kept,
                      Emit("keep_counted", value, because_of)
                          .In("X", contributions_[value.index()][0])
                          .In("Count", count)
                          .Build());
  return block_.op(kept).out(0);
}

absl::StatusOr<ValueId> Differentiator::Gradient(ValueId value,
                                                 NameId because_of) {
  auto& parts = contributions_[value.index()];
  if (parts.empty()) return ValueId();
  for (ValueId part : parts) {
    if (block_.dtype(part) == block_.dtype(value)) continue;
    return CompilerBug("gradient ", block_.name(part), " is ",
                       Name(block_.dtype(part)), ", but ", block_.name(value),
                       " is ", Name(block_.dtype(value)));
  }
  if (parts.size() > 1) {
    HT_ASSIGN_OR_RETURN(const ValueId sum, Sum(value, because_of));
    parts.assign(1, sum);
  }
  if (keep_counted_[value.index()]) {
    HT_ASSIGN_OR_RETURN(const ValueId kept, KeepCounted(value, because_of));
    parts.assign(1, kept);
  }
  return parts[0];
}

// All its readers are behind the sweep.
absl::Status Differentiator::FinishParameter(const FirstRead& read) {
  const NameId because_of = block_.op(read.op).name;
  HT_ASSIGN_OR_RETURN(ValueId gradient, Gradient(read.parameter, because_of));
  if (!gradient.valid()) return absl::OkStatus();
  if (block_.value(gradient).name != GradName(read.parameter)) {
    // An op handed another value's gradient on as it was.
    HT_ASSIGN_OR_RETURN(
        const OpId own,
        Emit("assign", read.parameter, because_of).In("X", gradient).Build());
    gradient = block_.op(own).out(0);
  }
  gradients_[block_.value(read.parameter).cell().index()] = gradient;
  return absl::OkStatus();
}

absl::Status Differentiator::Differentiate(OpId id) {
  const Op& op = block_.op(id);
  const auto inputs = op.inputs.all();
  const auto outputs = op.outputs.all();
  GradContext::Gradients out_grads(outputs.size());
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HT_ASSIGN_OR_RETURN(out_grads[i], Gradient(outputs[i], op.name));
    any = any || out_grads[i].valid();
  }
  GradContext::Wanted wanted(inputs.size());
  bool want_any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    wanted[i] = needed_[inputs[i].index()];
    want_any = want_any || wanted[i];
  }
  if (!any || !want_any || !op.schema->has_grad()) return absl::OkStatus();

  const int first_new = block_.op_limit();
  GradContext context(&block_, id, std::move(out_grads), std::move(wanted));
  HT_RETURN_IF_ERROR(op.schema->RunGrad(context));
  for (int i = first_new; i < block_.op_limit(); ++i) {
    const Op& made = block_.op(OpId(i));
    // A cast runs in the dtype that it makes.
    if (made.schema == cast_) {
      block_.mutable_op(made.id).decision.precision = block_.dtype(made.out(0));
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId gradient = context.in_grads()[i];
    if (gradient.valid()) contributions_[inputs[i].index()].push_back(gradient);
  }
  return absl::OkStatus();
}

absl::Status Differentiator::Run(ValueId loss, ValueId seed) {
  HT_RETURN_IF_ERROR(MarkNeeded());
  if (!needed_[loss.index()]) {
    for (const LossPart& part : program_.loss.parts) {
      if (block_.name(loss) != part.weighted) continue;
      return ModelError(program_.file, ": amp.loss_scaling.per_loss: part ",
                        part.name, " of the loss depends on no trainable ",
                        "parameter, so that it has nothing to scale; leave ",
                        "per_loss or the part out");
    }
    return ModelError(program_.file, ": loss ", block_.name(loss),
                      " depends on no trainable parameter: there is nothing "
                      "to train");
  }
  keep_counted_ = LeavesMaskTotals(program_, block_, needed_);
  contributions_[loss.index()].push_back(seed);
  const std::vector<OpId> ops = block_.ops();
  for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
    if (block_.op(*id).role != Role::kForward) continue;
    HT_RETURN_IF_ERROR(Differentiate(*id));
    while (!first_reads_.empty() && first_reads_.back().op == *id) {
      HT_RETURN_IF_ERROR(FinishParameter(first_reads_.back()));
      first_reads_.pop_back();
    }
  }
  return absl::OkStatus();
}

void Differentiator::RenameAs(const LossPart& part) {
  for (int i = limit_; i < block_.value_limit(); ++i) {
    const Value& value = block_.value(ValueId(i));
    if (value.erased || !value.op().valid()) continue;
    block_.RenameValue(
        value.id, block_.UniqueValueName(
                      absl::StrCat(block_.name(value.id), ".of.", part.name)));
  }
}

absl::Status DifferentiateLoss(const Program& program, Entry& train,
                               ValueId loss, OpId seed) {
  Differentiator backward(program, train.block());
  HT_RETURN_IF_ERROR(backward.Run(loss, train.block().op(seed).out(0)));
  for (int i = 0; i < program.num_cells(); ++i) {
    const ValueId gradient = backward.gradients()[i];
    if (gradient.valid()) train.gradients().push_back({CellId(i), gradient});
  }
  return absl::OkStatus();
}

// A backward for each part, one after the other, from the seeds in their order.
absl::Status DifferentiateParts(const Program& program, Entry& train,
                                absl::Span<const OpId> seeds) {
  Block& block = train.block();
  std::vector<PartGradients> gradients;
  for (size_t i = 0; i < seeds.size(); ++i) {
    const LossPart& part = program.loss.parts[i];
    Differentiator backward(program, block);
    HT_RETURN_IF_ERROR(backward.Run(block.FindValue(part.weighted),
                                    block.op(seeds[i]).out(0)));
    backward.RenameAs(part);
    HT_RETURN_IF_ERROR(
        CheckPart(program, block, static_cast<int>(i), backward.gradients()));
    gradients.push_back(std::move(backward.gradients()));
  }
  return CombineParts(program, train, gradients);
}

// All of them at once.
absl::Status RefuseUnused(const Program& program, const Entry& train) {
  std::vector<bool> used(program.num_cells());
  for (const GradientStatement& gradient : train.gradients()) {
    used[gradient.parameter.index()] = true;
  }
  std::vector<std::string> unused;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter || !cell.trainable || used[i]) {
      continue;
    }
    unused.push_back(cell.name);
  }
  if (unused.empty()) return absl::OkStatus();
  return ModelError(program.file,
                    ": dist.find_unused_parameters: false: the loss does not "
                    "depend on ",
                    absl::StrJoin(unused, ", "),
                    ": mark them trainable: false, or leave "
                    "find_unused_parameters out");
}

}  // namespace

absl::StatusOr<bool> AppendBackward::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || !train->gradients().empty()) return false;
  Block& block = train->block();
  const ValueId loss = block.FindValue(program.loss.var);
  const std::vector<OpId> seeds = OpsOfType(block, "gradient_seed");
  if (!loss.valid() || seeds.empty()) {
    // Passes run by name alone: a compile has them in order.
    return UsageError("there is no gradient seed: scale-loss comes first");
  }
  if (HasScalers(block)) {
    HT_RETURN_IF_ERROR(DifferentiateParts(program, *train, seeds));
  } else {
    HT_RETURN_IF_ERROR(DifferentiateLoss(program, *train, loss, seeds[0]));
  }
  if (refuse_unused_) HT_RETURN_IF_ERROR(RefuseUnused(program, *train));
  return true;
}

}  // namespace passes
}  // namespace halftone
