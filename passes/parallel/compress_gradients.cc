#include "passes/parallel/compress_gradients.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/place.h"
#include "graph/strategy/dgc_stages.h"
#include "passes/parallel/combine_verdicts.h"
#include "passes/rewrite/copy_block.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Paddle's, DGCMomentumOptimizer._is_use_dgc: of smaller ones not much is
// saved.
constexpr int64_t kLeastElements = 16384;

// In f32, as Paddle's op dgc counts.
int64_t KeptElements(int64_t elements, double sparsity) {
  const float share = 1 - static_cast<float>(sparsity);
  return std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<float>(elements) * share));
}

// Members of a list slot, those that are chosen and the others.
std::vector<ValueId> Chosen(absl::Span<const ValueId> values,
                            const std::vector<bool>& chosen, bool which) {
  std::vector<ValueId> taken;
  for (size_t i = 0; i < values.size(); ++i) {
    if (chosen[i] == which) taken.push_back(values[i]);
  }
  return taken;
}

class Compressor {
 public:
  Compressor(Program& program, Entry& entry, const proto::Dist& dist,
             double sparsity)
      : program_(program),
        entry_(entry),
        block_(entry.block()),
        held_(entry),
        dist_(dist),
        sparsity_(sparsity) {}

  absl::Status Run();

 private:
  // Of a parameter's gradient what this rank has made.
  absl::StatusOr<ValueId> TakeLocal(ValueId gradient);
  absl::StatusOr<ValueId> Residual(CellId parameter);
  // The op dgc of these members of the update; its Values and Indices.
  absl::StatusOr<OpId> Send(OpId update, const std::vector<bool>& chosen);
  absl::StatusOr<OpId> Sum(OpId update, OpId sent,
                           absl::Span<const ValueId> params);
  absl::Status Compress(OpId update);
  // `to` stands for a result of the update from now on, under its name.
  void ReplaceResult(ValueId result, ValueId to);

  Program& program_;
  Entry& entry_;
  Block& block_;
  HeldValues held_;
  const proto::Dist& dist_;
  double sparsity_;
  absl::flat_hash_map<ValueId, ValueId> locals_;  // by the reduced one
};

absl::StatusOr<ValueId> Compressor::TakeLocal(ValueId gradient) {
  const GradientOrigin origin = OriginOf(block_, gradient);
  if (!origin.local.valid()) {
    // Parameters may share a gradient: it was taken.
    const auto known = locals_.find(gradient);
    if (known != locals_.end()) return known->second;
    return CompilerBug("gradient ", block_.name(gradient),
                       " is not reduced: insert-allreduce must run before");
  }
  const Op& reduction = block_.op(origin.reduction);
  const int member = block_.value(origin.reduced).result;
  std::vector<ValueId> left(reduction.inputs.all().begin(),
                            reduction.inputs.all().end());
  left.erase(left.begin() + member);
  ReplaceValue(block_, origin.reduced, origin.local, held_);
  locals_[origin.local] = origin.local;
  if (left.empty()) {
    block_.EraseOp(origin.reduction);
  } else {
    block_.EraseValue(origin.reduced);
    block_.SetInputSlot(origin.reduction, 0, left);
  }
  return origin.local;
}

absl::StatusOr<ValueId> Compressor::Residual(CellId parameter) {
  const Cell& of = program_.cell(parameter);
  const std::string name = absl::StrCat(of.name, ".residual");
  const CellId known = program_.FindCell(name);
  if (known.valid() && program_.cell(known).kind == CellKind::kSlot &&
      program_.cell(known).of == parameter) {
    return block_.CellValue(known);  // of another stage
  }
  if (known.valid() || block_.FindValue(name).valid()) {
    return ModelError(PlaceOf(program_, of.line), "param ", of.name,
                      ": what is not sent of its gradient is called ", name,
                      ", and so is something in the model; rename that");
  }
  Cell cell;
  cell.name = name;
  cell.type = of.type;
  cell.kind = CellKind::kSlot;
  cell.spread = Spread::kPerRank;
  cell.of = parameter;
  return block_.CellValue(program_.AddCell(std::move(cell)).id);
}

absl::StatusOr<OpId> Compressor::Send(OpId update,
                                      const std::vector<bool>& chosen) {
  const Op& op = block_.op(update);
  const auto slot = [&](absl::string_view name) {
    return Chosen(op.inputs.slot(op.schema->FindInput(name)), chosen, true);
  };
  const std::vector<ValueId> params = slot("Param"), us = slot("Velocity");
  std::vector<ValueId> locals, residuals;
  std::vector<int64_t> keep;
  for (ValueId gradient : slot("Grad")) {
    HT_ASSIGN_OR_RETURN(locals.emplace_back(), TakeLocal(gradient));
  }
  const std::vector<OpId> scales = OpsOfType(block_, "gradient_inv_scale");
  if (scales.empty()) return CompilerBug("train has no inverse scale");
  OpBuilder dgc = MakeOp(block_, "dgc", Role::kOptimize);
  for (ValueId param : params) {
    const CellId cell = block_.value(param).cell();
    const std::string name = program_.cell(cell).name;
    HT_ASSIGN_OR_RETURN(residuals.emplace_back(), Residual(cell));
    keep.push_back(
        KeptElements(block_.type(param).Elements().coefficient(), sparsity_));
    dgc.Out("Values", absl::StrCat(name, ".sent"))
        .Out("Indices", absl::StrCat(name, ".places"))
        .Out("VelocityOut", absl::StrCat(name, ".velocity.kept"))
        .Out("ResidualOut", absl::StrCat(name, ".residual", kNextSuffix));
  }
  dgc.Name(absl::StrCat(block_.name(op), ".sent"))
      .At(Block::Before(update))
      .In("Weights", params)
      .In("Grad", locals)
      .In("Velocity", us)
      .In("Residual", residuals)
      .In("FoundInf", InputOf(op, "FoundInf"))
      .In("InvScale", block_.op(scales[0]).out(0))
      .Attr("keep", keep)
      .Attr("clip_norm", dist_.dgc().local_grad_clip_norm())
      .Attr("gradient_scale", std::string(ScalesBefore(dist_) ? "pre" : "none"))
      .Attr("predivide", dist_.gradient_predivide_factor());
  for (const char* attr : {"mu", "use_nesterov", "weight_decay"}) {
    dgc.Attr(attr, GetAttr(op, attr));
  }
  HT_ASSIGN_OR_RETURN(const OpId sent, dgc.Build());
  const Op& made = block_.op(sent);
  const auto next = made.outputs.slot(made.schema->FindOutput("ResidualOut"));
  for (size_t i = 0; i < residuals.size(); ++i) {
    entry_.commits().push_back({block_.value(residuals[i]).cell(), next[i]});
    program_.cell(block_.value(us[i]).cell()).spread = Spread::kPerRank;
  }
  return sent;
}

absl::StatusOr<OpId> Compressor::Sum(OpId update, OpId sent,
                                     absl::Span<const ValueId> params) {
  const Op& dgc = block_.op(sent);
  OpBuilder sum = MakeOp(block_, "dgc_sum", Role::kCommunicate);
  sum.Name(absl::StrCat(block_.name(block_.op(update)), ".sum"))
      .At(Block::Before(update))
      .In("Values", dgc.outputs.slot(dgc.schema->FindOutput("Values")))
      .In("Indices", dgc.outputs.slot(dgc.schema->FindOutput("Indices")))
      .In("Like", params);
  for (ValueId param : params) {
    sum.Out("Out", absl::StrCat(block_.name(param), ".sum"));
  }
  return sum.Build();
}

void Compressor::ReplaceResult(ValueId result, ValueId to) {
  ReplaceValue(block_, result, to, held_);
  const std::string name(block_.name(result));
  block_.EraseValue(result);
  block_.RenameValue(to, name);
}

absl::Status Compressor::Compress(OpId update) {
  const Op& op = block_.op(update);
  const int param = op.schema->FindInput("Param");
  std::vector<bool> chosen;
  for (ValueId value : op.inputs.slot(param)) {
    chosen.push_back(IsCompressedByDgc(block_.type(value)));
  }
  const std::vector<ValueId> params =
      Chosen(op.inputs.slot(param), chosen, true);
  if (params.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const OpId sent, Send(update, chosen));
  HT_ASSIGN_OR_RETURN(const OpId sum, Sum(update, sent, params));
  const auto outputs = [&](absl::string_view name) {
    return Chosen(op.outputs.slot(op.schema->FindOutput(name)), chosen, true);
  };
  const bool low = op.outputs.has(op.schema->FindOutput("LowOut"));
  const std::vector<ValueId> next = outputs("ParamOut"),
                             velocities = outputs("VelocityOut");
  const std::vector<ValueId> lows =
      low ? outputs("LowOut") : std::vector<ValueId>();
  OpBuilder sgd = MakeOp(block_, "sgd", Role::kOptimize);
  sgd.Name(absl::StrCat(block_.name(op), ".sgd"))
      .At(Block::Before(update))
      .In("Param", params)
      .In("Grad", block_.op(sum).outputs.all())
      .In("LearningRate", InputOf(op, "LearningRate"))
      .In("FoundInf", InputOf(op, "FoundInf"));
  for (ValueId value : next) sgd.Out("ParamOut", block_.name(value));
  for (ValueId value : lows) {
    sgd.Bind("L", block_.dtype(value)).Out("LowOut", block_.name(value));
  }
  HT_ASSIGN_OR_RETURN(const OpId made, sgd.Build());
  const auto made_of = [&](OpId id, absl::string_view name, size_t i) {
    const Op& from = block_.op(id);
    return from.outputs.slot(from.schema->FindOutput(name))[i];
  };
  for (size_t i = 0; i < params.size(); ++i) {
    ReplaceResult(next[i], made_of(made, "ParamOut", i));
    ReplaceResult(velocities[i], made_of(sent, "VelocityOut", i));
    if (low) ReplaceResult(lows[i], made_of(made, "LowOut", i));
  }
  InheritOrigins(op, block_.mutable_op(made));
  for (const char* name : {"Param", "Grad", "Velocity"}) {
    const int slot = op.schema->FindInput(name);
    block_.SetInputSlot(update, slot,
                        Chosen(op.inputs.slot(slot), chosen, false));
  }
  if (op.inputs.slot(param).empty()) block_.EraseOp(update);
  return absl::OkStatus();
}

absl::Status Compressor::Run() {
  for (OpId id : OpsOfType(block_, "momentum")) {
    HT_RETURN_IF_ERROR(Compress(id));
  }
  return CombineChecks(entry_, Norms::kOwn, held_);
}

// All of `from` in `to`, which is empty.
void Copy(const Entry& from, Entry& to) {
  const Block& block = from.block();
  BlockCopier copier(block, to.block());
  for (ValueId feed : block.Feeds()) copier.Map(feed);
  for (OpId id : block.ops()) copier.CopyOp(block.op(id));
  for (const CommitStatement& commit : from.commits()) {
    to.commits().push_back({commit.cell, copier.Map(commit.value)});
  }
  for (const Result& result : from.results()) {
    to.results().push_back({result.name, copier.Map(result.value)});
  }
}

bool Compresses(const Block& block) {
  for (OpId id : OpsOfType(block, "momentum")) {
    const Op& op = block.op(id);
    for (ValueId param : op.inputs.slot(op.schema->FindInput("Param"))) {
      if (IsCompressedByDgc(block.type(param))) return true;
    }
  }
  return false;
}

}  // namespace

bool IsCompressedByDgc(const TensorType& parameter) {
  return parameter.dtype == DType::kF32 &&
         parameter.Elements().coefficient() >= kLeastElements;
}

absl::StatusOr<bool> CompressGradients::Run(Program& program) {
  Entry* const train = program.FindEntry(kTrainEntry);
  if (train == nullptr || CountOfType(train->block(), "dgc") > 0 ||
      !Compresses(train->block())) {
    return false;
  }
  const std::vector<DgcStage> stages = DgcStages(dist_.dgc());
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    Copy(*train, program.AddEntry(TrainStageEntry(i, stages.size())));
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].sparsity < 0) continue;
    Entry& entry = *program.FindEntry(TrainStageEntry(i, stages.size()));
    HT_RETURN_IF_ERROR(
        Compressor(program, entry, dist_, stages[i].sparsity).Run());
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
