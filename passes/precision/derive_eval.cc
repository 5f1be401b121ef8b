#include "passes/precision/derive_eval.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "passes/precision/cast.h"

namespace halftone {
namespace passes {
namespace {

constexpr absl::string_view kIdentity = "identity";

class Cloner {
 public:
  Cloner(const Block& from, Block& to)
      : from_(from), to_(to), map_(from.value_limit()) {}

  // The model's feeds in their order; implicit ones come on demand.
  void CloneFeeds();
  absl::Status CloneOp(const Op& op);
  // The value in the clone; invalid if it exists in training only.
  ValueId Map(ValueId value);

 private:
  // Whether the loss or a metric is told by the value's name in every entry.
  bool IsNamed(absl::string_view value) const;
  absl::Status CloneAs(const Op& op, absl::string_view test_op);
  absl::Status ClonePlain(const Op& op);
  absl::StatusOr<ValueId> MapInput(const Op& op, ValueId input);

  const Block& from_;
  Block& to_;
  std::vector<ValueId> map_;  // by value id in `from`
};

void Cloner::CloneFeeds() {
  for (ValueId feed : from_.Feeds()) {
    if (!absl::StartsWith(from_.name(feed), "@")) Map(feed);
  }
}

ValueId Cloner::Map(ValueId value) {
  ValueId& mapped = map_[value.index()];
  if (mapped.valid()) return mapped;
  const Value& v = from_.value(value);
  switch (v.definition) {
    case Definition::kFeed:
      mapped = to_.AddFeed(from_.name(value), from_.type(value));
      break;
    case Definition::kConstant:
      mapped = to_.ConstantValue(ConstantId(v.index));
      break;
    case Definition::kCell:
      mapped = to_.CellValue(v.cell());
      break;
    case Definition::kOp:
      break;  // its op left it out
  }
  return mapped;
}

absl::StatusOr<ValueId> Cloner::MapInput(const Op& op, ValueId input) {
  const ValueId mapped = Map(input);
  if (mapped.valid()) return mapped;
  return ModelError(to_.program().file, ":", op.line, ": ", from_.name(op),
                    " (", op.schema->name(), ") reads ", from_.name(input),
                    ", which exists in training only: no evaluation can be "
                    "derived from the model");
}

absl::Status Cloner::ClonePlain(const Op& op) {
  for (ValueId input : op.inputs.all()) {
    HT_RETURN_IF_ERROR(MapInput(op, input).status());
  }
  const OpId id = to_.CopyOp(
      op, from_, [this](ValueId value) { return map_[value.index()]; });
  const Op& clone = to_.op(id);
  for (size_t i = 0; i < op.outputs.all().size(); ++i) {
    map_[op.outputs.all()[i].index()] = clone.outputs.all()[i];
  }
  return absl::OkStatus();
}

// Slots and attributes go by name.
absl::Status Cloner::CloneAs(const Op& op, absl::string_view test_op) {
  const OpSchema* schema = Ops().Find(test_op);
  if (schema == nullptr) {
    return CompilerBug(op.schema->name(), ": ToTest names ", test_op,
                       ", which is no op");
  }
  OpBuilder builder(&to_, test_op);
  builder.Name(from_.name(op)).AttrsOf(op).Role(op.role).Why(op.decision);
  builder.Line(op.line);
  for (NameId origin : op.origins) builder.Origin(origin);
  for (int s = 0; s < op.inputs.slots(); ++s) {
    const std::string& slot = op.schema->inputs()[s].name;
    if (schema->FindInput(slot) < 0) continue;
    for (ValueId input : op.inputs.slot(s)) {
      HT_ASSIGN_OR_RETURN(const ValueId mapped, MapInput(op, input));
      builder.In(slot, mapped);
    }
  }
  std::vector<ValueId> kept;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    const std::string& slot = op.schema->outputs()[s].name;
    if (schema->FindOutput(slot) < 0) continue;
    for (ValueId output : op.outputs.slot(s)) {
      builder.Out(slot, from_.name(output));
      kept.push_back(output);
    }
  }
  HT_ASSIGN_OR_RETURN(const OpId id, builder.Build());
  for (ValueId output : kept) {
    map_[output.index()] = to_.FindValue(from_.name(output));
  }
  return to_.op(id).outputs.all().size() == kept.size()
             ? absl::OkStatus()
             : CompilerBug(op.schema->name(), ": ToTest ", test_op,
                           " has outputs of other names");
}

bool Cloner::IsNamed(absl::string_view value) const {
  const Program& program = to_.program();
  const LossInfo& loss = program.loss;
  return value == loss.var || value == loss.mean_over || value == loss.mask ||
         std::count(loss.denominators.begin(), loss.denominators.end(),
                    value) != 0 ||
         std::any_of(loss.parts.begin(), loss.parts.end(),
                     [value](const LossPart& part) {
                       return value == part.name || value == part.weighted;
                     }) ||
         std::any_of(program.metrics.begin(), program.metrics.end(),
                     [value](const MetricInfo& metric) {
                       return value == metric.var || value == metric.over;
                     });
}

absl::Status Cloner::CloneOp(const Op& op) {
  const std::string& to_test = op.schema->to_test();
  if (to_test.empty()) return ClonePlain(op);
  if (to_test != kIdentity) return CloneAs(op, to_test);
  if (IsNamed(from_.name(op.out(0)))) return CloneAs(op, "assign");
  HT_ASSIGN_OR_RETURN(const ValueId mapped, MapInput(op, op.in(0)));
  map_[op.out(0).index()] = mapped;
  return absl::OkStatus();
}

// `value` in f32: itself, or an up-cast that is there, or a new one.
absl::StatusOr<ValueId> InF32(Block& block, ValueId value) {
  if (!IsLow(block.dtype(value))) return value;
  for (const Use& use : block.value(value).uses) {
    const Op& reader = block.op(use.op);
    if (reader.schema->name() == "cast" &&
        block.dtype(reader.out(0)) == DType::kF32) {
      return reader.out(0);
    }
  }
  const OpId producer = block.value(value).op();
  return AddCast(block, value, DType::kF32, Reason::kSchema,
                 producer.valid() ? block.op(producer).name : NameId(),
                 Block::End());
}

absl::Status AddOutputs(const Program& program, const Block& train,
                        Cloner& cloner, Entry& eval) {
  for (const std::string& output : program.outputs) {
    const ValueId value = train.FindValue(output);
    const ValueId mapped = value.valid() ? cloner.Map(value) : ValueId();
    if (!mapped.valid()) {
      return ModelError(program.file, ": output ", output,
                        ": evaluation has no such value: it exists in "
                        "training only");
    }
    HT_ASSIGN_OR_RETURN(const ValueId result, InF32(eval.block(), mapped));
    eval.results().push_back({output, result});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> DeriveEval::Run(Program& program) {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || program.FindEntry(kEvalEntry) != nullptr) {
    return false;
  }
  Entry& eval = program.AddEntry(kEvalEntry);
  Cloner cloner(train->block(), eval.block());
  cloner.CloneFeeds();
  for (OpId id = train->block().first(); id.valid();
       id = train->block().next(id)) {
    const Op& op = train->block().op(id);
    if (op.role != Role::kForward) continue;
    HT_RETURN_IF_ERROR(cloner.CloneOp(op));
  }
  HT_RETURN_IF_ERROR(AddOutputs(program, train->block(), cloner, eval));
  if (!keep_train_) program.RemoveEntry(kTrainEntry);
  return true;
}

}  // namespace passes
}  // namespace halftone
