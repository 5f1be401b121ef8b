#include "passes/update/append_optimizer.h"

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
#include "passes/update/running_statistics.h"
#include "passes/update/update_groups.h"

namespace halftone {
namespace passes {
namespace {

class Appender {
 public:
  Appender(Program& program, Entry& train, ValueId found_inf)
      : program_(program),
        train_(train),
        block_(train.block()),
        found_inf_(found_inf) {}

  absl::Status LearningRate(const proto::LearningRate& lr);
  absl::Status Update(const UpdateMethod& method, const UpdateGroup& group,
                      int index);
  absl::Status Clocks();

 private:
  void Commit(CellId cell, ValueId value) {
    train_.commits().push_back({cell, value});
  }
  absl::StatusOr<ValueId> ScaledLearningRate(double scale);
  absl::StatusOr<ValueId> ValueOf(const ParameterGradient& gradient) const;
  absl::StatusOr<CellId> SlotCell(CellId parameter, absl::string_view suffix);
  absl::Status Clock(absl::string_view cell, absl::string_view op_type);

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
  std::string policy = "constant";
  if (lr.has_cosine()) {
    policy = "cosine";
    op.Attr("min_ratio", lr.cosine().min_ratio());
  } else if (lr.has_linear()) {
    policy = "linear";
    op.Attr("min_ratio", lr.linear().min_ratio());
  } else if (lr.has_piecewise()) {
    policy = "piecewise";
    const proto::Piecewise& p = lr.piecewise();
    op.Attr("boundaries",
            std::vector<double>(p.boundary().begin(), p.boundary().end()))
        .Attr("values",
              std::vector<double>(p.factor().begin(), p.factor().end()));
  }
  op.Attr("policy", policy);
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
                                          absl::string_view suffix) {
  const Cell& p = program_.cell(parameter);
  Cell slot;
  slot.name = absl::StrCat(p.name, ".", suffix);
  if (program_.FindCell(slot.name).valid() ||
      block_.FindValue(slot.name).valid()) {
    return ModelError(PlaceOf(program_, p.line), "param ", p.name,
                      ": the optimizer's ", suffix, " is called ", slot.name,
                      ", and so is something in the model; rename that");
  }
  slot.type = p.type;
  slot.type.dtype = DType::kF32;
  slot.kind = CellKind::kSlot;
  slot.init.kind = Initializer::Kind::kConstant;
  slot.commit = Commit::kApplied;
  slot.of = parameter;
  return program_.AddCell(std::move(slot)).id;
}

absl::Status Appender::Update(const UpdateMethod& method,
                              const UpdateGroup& group, int index) {
  HT_ASSIGN_OR_RETURN(const ValueId lr, ScaledLearningRate(group.lr_scale));
  OpBuilder op = MakeOp(block_, method.op, Role::kOptimize);
  op.Name(absl::StrCat(method.op, ".", index))
      .In("LearningRate", lr)
      .In("FoundInf", found_inf_)
      .Attr("weight_decay", group.weight_decay);
  for (const auto& [name, value] : method.attrs) op.Attr(name, value);
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
    op.Out("ParamOut", absl::StrCat(cell.name, kNextSuffix));
    cells.push_back(cell.id);
  }
  for (const UpdateMethod::Slot& slot : method.slots) {
    for (const ParameterGradient& member : group.members) {
      HT_ASSIGN_OR_RETURN(const CellId cell,
                          SlotCell(member.parameter, slot.suffix));
      op.In(slot.slot, block_.CellValue(cell));
      op.Out(absl::StrCat(slot.slot, "Out"),
             absl::StrCat(program_.cell(cell).name, kNextSuffix));
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
  HT_ASSIGN_OR_RETURN(const UpdateMethod method, MethodOf(optimizer_));
  const ValueId found_inf = train->FindResult(kFoundInf);
  if (!found_inf.valid()) {
    return CompilerBug("train has gradients and no result ", kFoundInf,
                       ": check-and-unscale must run before");
  }
  Appender appender(program, *train, found_inf);
  HT_RETURN_IF_ERROR(appender.LearningRate(lr_));
  int index = 0;
  for (const UpdateGroup& group :
       GroupUpdates(program, block, optimizer_, method, gradients)) {
    HT_RETURN_IF_ERROR(appender.Update(method, group, index++));
  }
  HT_RETURN_IF_ERROR(UpdateRunningStatistics(*train, found_inf));
  HT_RETURN_IF_ERROR(appender.Clocks());
  // From here on the updates' slots say so.
  train->gradients().clear();
  return true;
}

}  // namespace passes
}  // namespace halftone
