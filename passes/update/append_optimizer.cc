#include "passes/update/append_optimizer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/place.h"
#include "passes/parallel/gradients.h"
#include "passes/rewrite/rewrite.h"
#include "passes/update/rate_policy.h"
#include "passes/update/running_statistics.h"
#include "passes/update/update_groups.h"

namespace halftone {
namespace passes {
namespace {

class Appender {
 public:
  Appender(Program& program, Entry& train, const proto::Clip& clip,
           ValueId found_inf)
      : clip_(clip),
        program_(program),
        train_(train),
        block_(train.block()),
        found_inf_(found_inf) {}

  absl::Status LearningRate(const proto::LearningRate& lr);
  absl::Status Update(const UpdateGroup& group, int index);
  absl::Status Clocks();

 private:
  void Commit(CellId cell, ValueId value) {
    train_.commits().push_back({cell, value});
  }
  absl::StatusOr<ValueId> ScaledLearningRate(double scale);
  absl::StatusOr<ValueId> ValueOf(const ParameterGradient& gradient) const;
  absl::StatusOr<CellId> SlotCell(CellId parameter,
                                  const UpdateMethod::Slot& state);
  absl::Status Clock(absl::string_view cell, absl::string_view op_type);
  void ClipEach(const UpdateGroup& group, OpBuilder& op) const;

  const proto::Clip& clip_;
  Program& program_;
  Entry& train_;
  Block& block_;
  ValueId found_inf_;
  ValueId lr_;
  std::map<double, ValueId> scaled_lr_;
};

absl::Status Appender::LearningRate(const proto::LearningRate& lr) {
  HT_ASSIGN_OR_RETURN(const ValueId applied, WellKnownValue(&block_, kApplied));
  HT_ASSIGN_OR_RETURN(const ValueId schedule,
                      WellKnownValue(&block_, kSchedule));
  OpBuilder op = MakeOp(block_, "learning_rate", Role::kOptimize);
  op.In("Applied", applied).In("Schedule", schedule).Out("Out", kLearningRate);
  const RateAttrs attrs = RatePolicyOf(lr);
  if (CountsEpochs(attrs)) {
    HT_ASSIGN_OR_RETURN(const ValueId epoch,
                        WellKnownValue(&block_, kStepsPerEpoch));
    op.In("StepsPerEpoch", epoch);
  }
  for (const auto& [name, value] : attrs) op.Attr(name, value);
  HT_ASSIGN_OR_RETURN(lr_, BuildValue(block_, op));
  train_.results().push_back({kLearningRate, lr_});
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Appender::ScaledLearningRate(double scale) {
  if (scale == 1) return lr_;
  ValueId& scaled = scaled_lr_[scale];
  if (!scaled.valid()) {
    OpBuilder op = MakeOp(block_, "scale", Role::kOptimize);
    op.In("X", lr_)
        .Attr("scale", scale)
        .Out("Out", absl::StrCat(kLearningRate, ".scaled"));
    HT_ASSIGN_OR_RETURN(scaled, BuildValue(block_, op));
  }
  return scaled;
}

absl::StatusOr<ValueId> Appender::ValueOf(
    const ParameterGradient& gradient) const {
  if (gradient.value != gradient.wide) return gradient.value;
  return CompilerBug("gradient ", block_.name(gradient.value),
                     " is not unscaled: check-and-unscale must run before");
}

absl::StatusOr<CellId> Appender::SlotCell(CellId parameter,
                                          const UpdateMethod::Slot& state) {
  const std::string& suffix = state.suffix;
  const Cell& p = program_.cell(parameter);
  const NameId name = program_.names().Append(program_.cell_name(parameter),
                                              absl::StrCat(".", suffix));
  if (program_.FindCell(name).valid() || block_.FindValue(name).valid()) {
    return ModelError(PlaceOf(program_, p.line), "param ", p.name,
                      ": the optimizer's ", suffix, " is called ",
                      program_.name_of(name),
                      ", and so is something in the model; rename that");
  }
  Cell slot;
  slot.type = p.type;
  slot.type.dtype = DType::kF32;
  slot.kind = CellKind::kSlot;
  slot.init.kind = Initializer::Kind::kConstant;
  slot.init.a = state.initial;
  slot.commit = Commit::kApplied;
  slot.of = parameter;
  return program_.AddCell(name, std::move(slot)).id;
}

// By value, or by norm: the squares of all gradients' norms are check_finite's,
// those of Low before those of F32.
void Appender::ClipEach(const UpdateGroup& group, OpBuilder& op) const {
  if (clip_.has_value()) op.Attr("clip_value", clip_.value());
  if (!clip_.has_norm()) return;
  const Op& check = block_.op(block_.value(found_inf_).op());
  std::vector<ValueId> checked;
  for (const char* slot : {"Low", "F32"}) {
    const auto values = check.inputs.slot(check.schema->FindInput(slot));
    checked.insert(checked.end(), values.begin(), values.end());
  }
  std::vector<int64_t> places;
  for (const ParameterGradient& member : group.members) {
    places.push_back(std::find(checked.begin(), checked.end(), member.reduced) -
                     checked.begin());
  }
  op.In("SquaredNorm",
        check.outputs.slot(check.schema->FindOutput("SquaredNorm"))[0])
      .Attr("clip_norm", clip_.norm())
      .Attr("norm_of", places);
}

absl::Status Appender::Update(const UpdateGroup& group, int index) {
  const UpdateMethod& method = group.method;
  HT_ASSIGN_OR_RETURN(const ValueId lr, ScaledLearningRate(group.lr_scale));
  OpBuilder op = MakeOp(block_, method.op, Role::kOptimize);
  op.Name(absl::StrCat(method.op, ".", index))
      .In("LearningRate", lr)
      .In("FoundInf", found_inf_)
      .Attr("weight_decay", method.weight_decay);
  for (const auto& [name, value] : method.attrs) op.Attr(name, value);
  ClipEach(group, op);
  if (method.reads_applied) {
    HT_ASSIGN_OR_RETURN(const ValueId applied,
                        WellKnownValue(&block_, kApplied));
    op.In("Applied", applied);
  }
  // In the order of the outputs: all parameters, then slot by slot.
  std::vector<CellId> cells;
  for (const ParameterGradient& member : group.members) {
    const Cell& cell = program_.cell(member.parameter);
    HT_ASSIGN_OR_RETURN(const ValueId gradient, ValueOf(member));
    op.In("Param", block_.CellValue(cell.id)).In("Grad", gradient);
    op.Out("ParamOut",
           program_.names().Append(program_.cell_name(cell.id), kNextSuffix));
    cells.push_back(cell.id);
  }
  for (const UpdateMethod::Slot& slot : method.slots) {
    const std::string next = absl::StrCat(slot.slot, "Out");
    for (const ParameterGradient& member : group.members) {
      HT_ASSIGN_OR_RETURN(const CellId cell, SlotCell(member.parameter, slot));
      op.In(slot.slot, block_.CellValue(cell));
      op.Out(next,
             program_.names().Append(program_.cell_name(cell), kNextSuffix));
      cells.push_back(cell);
    }
  }
  HT_ASSIGN_OR_RETURN(const OpId made, op.Build());
  for (size_t i = 0; i < cells.size(); ++i) {
    Commit(cells[i], block_.op(made).outputs.all()[i]);
  }
  return absl::OkStatus();
}

absl::Status Appender::Clock(absl::string_view cell,
                             absl::string_view op_type) {
  HT_ASSIGN_OR_RETURN(const ValueId now, WellKnownValue(&block_, cell));
  const std::string name = absl::StrCat(cell, kNextSuffix);
  OpBuilder tick = MakeOp(block_, op_type, Role::kOptimize);
  tick.In("X", now).Out("Out", name);
  if (op_type == "tick_applied") tick.In("FoundInf", found_inf_);
  HT_ASSIGN_OR_RETURN(const ValueId next, BuildValue(block_, tick));
  Commit(block_.value(now).cell(), next);
  train_.results().push_back({name, next});
  return absl::OkStatus();
}

absl::Status Appender::Clocks() {
  HT_RETURN_IF_ERROR(Clock(kApplied, "tick_applied"));
  return Clock(kAttempted, "tick");
}

}  // namespace

absl::StatusOr<bool> AppendOptimizer::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || train->FindResult(kLearningRate).valid()) {
    return false;
  }
  Block& block = train->block();
  const std::vector<ParameterGradient> gradients = FindGradients(*train);
  if (gradients.empty()) return false;
  const ValueId found_inf = train->FindResult(kFoundInf);
  if (!found_inf.valid()) {
    return CompilerBug("train has gradients and no result ", kFoundInf,
                       ": check-and-unscale must run before");
  }
  HT_ASSIGN_OR_RETURN(const std::vector<UpdateGroup> groups,
                      GroupUpdates(program, block, optimizer_, gradients));
  Appender appender(program, *train, optimizer_.clip(), found_inf);
  HT_RETURN_IF_ERROR(appender.LearningRate(lr_));
  int index = 0;
  for (const UpdateGroup& group : groups) {
    HT_RETURN_IF_ERROR(appender.Update(group, index++));
  }
  HT_RETURN_IF_ERROR(UpdateRunningStatistics(*train, found_inf));
  HT_RETURN_IF_ERROR(appender.Clocks());
  // From here on the updates' slots say so.
  train->gradients().clear();
  return true;
}

}  // namespace passes
}  // namespace halftone
