#include "passes/parallel/shard_optimizer.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "passes/parallel/combine_verdicts.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

class Sharder {
 public:
  Sharder(Program& program, Entry& train)
      : program_(program), train_(train), block_(train.block()), held_(train) {}

  absl::Status Run();

 private:
  // The reductions give shards; what is made of them element by element is
  // sharded, too. Whether there are such.
  bool Scatter();
  void Follow(const Op& op);
  absl::Status ShardUpdate(OpId update);
  // Has the update read shards; says which of its members are cells that stay
  // whole.
  absl::StatusOr<std::vector<int>> TakeShards(OpId update);
  // The named input of the update: of its values those that are whole, by their
  // places, are taken as shards.
  absl::Status Take(OpId update, const char* input, const char* op_suffix,
                    const std::vector<int>& whole);
  absl::Status ShardAverages(OpId ema);
  absl::Status GatherForEval(absl::Span<const CellId> averages);
  absl::Status GatherResults();

  // Whether anything but updates reads the parameter.
  bool IsRead(CellId parameter) const;
  void ShardCell(CellId cell);
  void ShardValue(Block& block, ValueId value);
  // Gathers those values behind the op; commits hold what is gathered, under
  // the values' names.
  absl::Status Gather(OpId update, const std::vector<ValueId>& shards);

  Program& program_;
  Entry& train_;
  Block& block_;
  HeldValues held_;
};

void Sharder::ShardValue(Block& block, ValueId value) {
  TensorType type = block.type(value);
  type.sharded = true;
  block.SetType(value, type);
}

void Sharder::ShardCell(CellId cell) {
  program_.cell(cell).type.sharded = true;
  program_.cell(cell).spread = Spread::kSharded;
  for (const auto& entry : program_.entries()) {
    const ValueId value = entry->block().FindCellValue(cell);
    if (value.valid()) ShardValue(entry->block(), value);
  }
}

bool Sharder::Scatter() {
  const OpSchema* const scatter = Ops().Find("reduce_scatter");
  bool scattered = false;
  for (OpId id : OpsOfType(block_, "all_reduce")) {
    const Op& op = block_.op(id);
    if (!IsReduction(op, "gradient")) continue;
    // Where sums have an order every rank adds whole gradients: updates take
    // their shards of what is made of those.
    if (AttrAs<std::string>(op, "order") != "any") continue;
    block_.SetSchema(id, scatter);
    for (ValueId reduced : block_.op(id).outputs.all()) {
      ShardValue(block_, reduced);
    }
    scattered = true;
  }
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    Follow(block_.op(id));
  }
  return scattered;
}

void Sharder::Follow(const Op& op) {
  const std::string& type = op.schema->name();
  if (type != "cast" && type != "unscale" && type != "clip_by_factor") return;
  if (block_.type(op.in(0)).sharded) ShardValue(block_, op.out(0));
}

bool Sharder::IsRead(CellId parameter) const {
  for (const auto& entry : program_.entries()) {
    const Block& block = entry->block();
    const ValueId value = block.FindCellValue(parameter);
    if (!value.valid()) continue;
    if (HeldValues(*entry).Has(value)) return true;
    for (const Use& use : block.value(value).uses) {
      if (!block.op(use.op).schema->guarded()) return true;
    }
  }
  return false;
}

absl::Status Sharder::Gather(OpId update, const std::vector<ValueId>& shards) {
  if (shards.empty()) return absl::OkStatus();
  OpBuilder gather = MakeOp(block_, "all_gather", Role::kCommunicate);
  gather.Name(absl::StrCat(block_.name(block_.op(update)), ".gathered"))
      .At(block_.After(update))
      .In("X", shards);
  for (ValueId shard : shards) {
    const std::string name(block_.name(shard));
    block_.RenameValue(shard,
                       block_.UniqueValueName(absl::StrCat(name, ".shard")));
    gather.Out("Out", name);
  }
  HT_ASSIGN_OR_RETURN(const OpId made, gather.Build());
  absl::flat_hash_map<ValueId, ValueId> whole;
  for (size_t i = 0; i < shards.size(); ++i) {
    whole[shards[i]] = block_.op(made).outputs.all()[i];
  }
  for (CommitStatement& commit : train_.commits()) {
    const auto found = whole.find(commit.value);
    if (found != whole.end()) commit.value = found->second;
  }
  for (Result& result : train_.results()) {
    const auto found = whole.find(result.value);
    if (found != whole.end()) result.value = found->second;
  }
  return absl::OkStatus();
}

absl::Status Sharder::Take(OpId update, const char* input,
                           const char* op_suffix,
                           const std::vector<int>& whole) {
  if (whole.empty()) return absl::OkStatus();
  const int slot = block_.op(update).schema->FindInput(input);
  const auto all = block_.op(update).inputs.slot(slot);
  std::vector<ValueId> values(all.begin(), all.end());
  OpBuilder take = MakeOp(block_, "take_shard", Role::kCommunicate);
  take.Name(absl::StrCat(block_.name(block_.op(update)), op_suffix))
      .At(Block::Before(update));
  for (const int i : whole) {
    take.In("X", {values[i]})
        .Out("Out", block_.UniqueValueName(
                        absl::StrCat(block_.name(values[i]), ".shard")));
  }
  HT_ASSIGN_OR_RETURN(const OpId taken, take.Build());
  for (size_t i = 0; i < whole.size(); ++i) {
    values[whole[i]] = block_.op(taken).outputs.all()[i];
  }
  block_.SetInputSlot(update, slot, values);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> Sharder::TakeShards(OpId update) {
  const OpSchema& schema = *block_.op(update).schema;
  const auto gradients =
      block_.op(update).inputs.slot(schema.FindInput("Grad"));
  std::vector<int> summed;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!block_.type(gradients[i]).sharded) {
      summed.push_back(static_cast<int>(i));
    }
  }
  HT_RETURN_IF_ERROR(Take(update, "Grad", ".gradient_shards", summed));
  const auto params = block_.op(update).inputs.slot(schema.FindInput("Param"));
  std::vector<int> whole;
  for (size_t i = 0; i < params.size(); ++i) {
    const CellId cell = block_.value(params[i]).cell();
    if (IsRead(cell)) {
      whole.push_back(static_cast<int>(i));
    } else {
      ShardCell(cell);
    }
  }
  HT_RETURN_IF_ERROR(Take(update, "Param", ".shards", whole));
  return whole;
}

absl::Status Sharder::ShardUpdate(OpId update) {
  HT_ASSIGN_OR_RETURN(const std::vector<int> whole, TakeShards(update));
  std::vector<ValueId> gathered, low;
  const Op& op = block_.op(update);
  const int param = op.schema->FindInput("Param");
  for (int s = 0; s < op.outputs.slots(); ++s) {
    const auto outputs = op.outputs.slot(s);
    const Slot& slot = op.schema->outputs()[s];
    for (size_t i = 0; i < outputs.size(); ++i) {
      ShardValue(block_, outputs[i]);
      if (slot.name == "LowOut") low.push_back(outputs[i]);
      if (slot.name == "LowOut" || slot.may_alias - 1 == param) continue;
      const ValueId state = op.inputs.slot(slot.may_alias - 1)[i];
      ShardCell(block_.value(state).cell());
    }
  }
  const auto next = op.outputs.slot(op.schema->FindOutput("ParamOut"));
  for (int member : whole) gathered.push_back(next[member]);
  HT_RETURN_IF_ERROR(Gather(update, low));
  return Gather(update, gathered);
}

absl::Status Sharder::ShardAverages(OpId ema) {
  const Op& op = block_.op(ema);
  std::vector<CellId> averages;
  const auto values = op.inputs.slot(op.schema->FindInput("Average"));
  for (ValueId average : std::vector<ValueId>(values.begin(), values.end())) {
    averages.push_back(block_.value(average).cell());
    ShardCell(averages.back());
  }
  for (ValueId next : op.outputs.all()) ShardValue(block_, next);
  return GatherForEval(averages);
}

absl::Status Sharder::GatherForEval(absl::Span<const CellId> averages) {
  Entry* const eval = program_.FindEntry(kEvalEntry);
  if (eval == nullptr) return absl::OkStatus();
  Block& block = eval->block();
  HeldValues held(*eval);
  std::vector<ValueId> shards;
  for (CellId average : averages) {
    const ValueId value = block.FindCellValue(average);
    if (value.valid()) shards.push_back(value);
  }
  if (shards.empty()) return absl::OkStatus();
  OpBuilder gather = MakeOp(block, "all_gather", Role::kCommunicate);
  gather.Name("ema.gathered").At(Block::Before(block.first())).In("X", shards);
  for (ValueId shard : shards) {
    gather.Out("Out", block.UniqueValueName(
                          absl::StrCat(block.name(shard), ".gathered")));
  }
  HT_ASSIGN_OR_RETURN(const OpId made, gather.Build());
  for (size_t i = 0; i < shards.size(); ++i) {
    ReplaceValue(block, shards[i], block.op(made).outputs.all()[i], held);
  }
  block.SetInputSlot(made, 0, shards);
  return absl::OkStatus();
}

absl::Status Sharder::GatherResults() {
  for (Result& result : train_.results()) {
    if (!block_.type(result.value).sharded) continue;
    OpBuilder gather = MakeOp(block_, "all_gather", Role::kCommunicate);
    gather.In("X", {result.value})
        .Out("Out", block_.UniqueValueName(
                        absl::StrCat(block_.name(result.value), ".gathered")));
    HT_ASSIGN_OR_RETURN(result.value, BuildValue(block_, gather));
  }
  return absl::OkStatus();
}

absl::Status Sharder::Run() {
  if (Scatter()) {
    HT_RETURN_IF_ERROR(CombineChecks(train_, Norms::kOfShards, held_));
  }
  for (OpId id : GuardedOps(block_)) {
    const OpSchema& schema = *block_.op(id).schema;
    if (schema.name() == "ema") {
      HT_RETURN_IF_ERROR(ShardAverages(id));
    } else if (schema.FindInput("Param") >= 0) {
      HT_RETURN_IF_ERROR(ShardUpdate(id));
    }
  }
  return GatherResults();
}

}  // namespace

absl::StatusOr<bool> ShardOptimizer::Run(Program& program) {
  Entry* const train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  bool reduces = false;
  for (OpId id : OpsOfType(train->block(), "all_reduce")) {
    reduces |= IsReduction(train->block().op(id), "gradient");
  }
  if (!reduces) return false;
  HT_RETURN_IF_ERROR(Sharder(program, *train).Run());
  return true;
}

}  // namespace passes
}  // namespace halftone
