#include "passes/report.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/loss_notes.h"
#include "passes/rewrite/rewrite.h"
#include "passes/strategy_notes.h"

namespace halftone {
namespace passes {
namespace {

const Entry* MainEntry(const Program& program) {
  const Entry* train = program.FindEntry(kTrainEntry);
  return train != nullptr ? train : program.FindEntry(kEvalEntry);
}

// That of the name, if it is there.
const Entry* EntryOf(const Program& program, absl::string_view name) {
  const Entry* entry = name.empty() ? nullptr : program.FindEntry(name);
  return entry != nullptr ? entry : MainEntry(program);
}

std::string TextOf(absl::string_view text) { return std::string(text); }

// Into the memory that the field has.
void Assign(absl::string_view text, std::string* field) {
  field->assign(text.data(), text.size());
}

template <typename Rows>
void AddNames(const Program& program, const Decision& decision, Rows* rows) {
  for (NameId name : decision.because_of) {
    Assign(program.name_of(name), rows->Add());
  }
}

void AddSlots(const Block& block, absl::Span<const Slot> slots,
              const SlotValues& values,
              google::protobuf::RepeatedPtrField<proto::SlotNames>* rows) {
  for (int s = 0; s < values.slots(); ++s) {
    if (!values.has(s)) continue;
    proto::SlotNames& row = *rows->Add();
    row.set_slot(slots[s].name);
    for (ValueId value : values.slot(s)) {
      Assign(block.name(value), row.add_value());
    }
  }
}

// A cast that a pass made between precisions; not one that the model has.
bool IsInserted(const Block& block, const Op& op,
                const absl::flat_hash_map<std::string, AmpClass>& source_ops) {
  return op.schema->name() == "cast" &&
         (op.role == Role::kForward || op.role == Role::kBackward) &&
         IsFloat(block.dtype(op.in(0))) && IsFloat(block.dtype(op.out(0))) &&
         !source_ops.contains(block.name(op));
}

// The dtype in which a parameter's gradient is reduced: that before its
// up-cast.
DType ReducedDType(const Block& block, ValueId gradient) {
  const OpId id = block.value(gradient).op();
  if (id.valid() && block.op(id).schema->name() == "cast" &&
      IsLow(block.dtype(block.op(id).in(0)))) {
    return block.dtype(block.op(id).in(0));
  }
  return block.dtype(gradient);
}

// By the name of an op that is gone, one of `names`: the ops that took it over.
using Takers = absl::flat_hash_map<NameId, std::vector<OpId>>;

Takers FindTakers(const Block& block, absl::Span<const NameId> names) {
  Takers takers;
  // Most ops took none of these.
  std::vector<bool> wanted(block.program().names().size());
  for (NameId name : names) {
    if (name.valid()) wanted[name.index()] = true;
  }
  const auto took = [&](OpId id, NameId name) {
    if (wanted[name.index()]) takers[name].push_back(id);
  };
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    for (NameId origin : op.origins) took(id, origin);
    if (op.body == nullptr) continue;
    for (OpId inner : op.body->ops()) {
      took(id, op.body->op(inner).name);
      for (NameId origin : op.body->op(inner).origins) took(id, origin);
    }
  }
  return takers;
}

// By parameter: the name of the cell that holds its low copy.
using LowCells = absl::flat_hash_map<CellId, std::string>;

LowCells FindLowCells(const Program& program) {
  LowCells cells;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kDerived) continue;
    cells.try_emplace(cell.of, cell.name);
  }
  return cells;
}

void SetFate(const Block& block, const LowCells& low_cells,
             const Takers& takers, NameId op_name, CellId parameter,
             proto::CastRow* row) {
  const OpId left = op_name.valid() ? block.FindOp(op_name) : OpId();
  if (left.valid() && block.op(left).schema->name() == "cast") {
    row->set_fate("standalone");
    return;
  }
  // Its down-cast is the cell now, and the update took its gradient's up-cast.
  row->set_fate(low_cells.contains(parameter) ? "cell" : "folded");
  const auto it = takers.find(op_name);
  if (it == takers.end()) return;
  for (OpId id : it->second) {
    const std::string name = TextOf(block.name(block.op(id)));
    const auto& into = row->into();
    if (std::find(into.begin(), into.end(), name) == into.end()) {
      row->add_into(name);
    }
  }
}

void AddBuckets(const Block& block, proto::CompileReport* report) {
  for (OpId id : ReductionsOf(block, "gradient")) {
    const Op& op = block.op(id);
    proto::BucketRow& row = *report->add_bucket();
    int64_t bytes = 0;
    for (ValueId value : op.inputs.all()) {
      const TensorType& type = block.type(value);
      bytes += type.Elements().coefficient() * SizeOf(type.dtype);
      row.set_dtype(TextOf(Name(type.dtype)));
      row.add_member(TextOf(block.name(value)));
    }
    row.set_bytes(bytes);
  }
}

}  // namespace

int64_t BytesPerStep(const proto::CastRow& cast, int64_t samples) {
  int64_t elements = cast.elements();
  for (int i = 0; i < cast.batch_power(); ++i) elements *= samples;
  const DType from = *DTypeFromName(cast.from());
  const DType to = *DTypeFromName(cast.to());
  return elements * (SizeOf(from) + SizeOf(to));
}

ReportBuilder::ReportBuilder(const Program& source, const Options& options)
    : classes_(options) {
  if (const Entry* entry = MainEntry(source)) {
    const Block& block = entry->block();
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& op = block.op(id);
      source_ops_[TextOf(block.name(op))] = classes_.Of(op);
    }
  }
  for (const proto::Note& note : StrategyNotes(source, options)) {
    *report_.add_note() = note;
  }
  const LossNote means = NoteOnMeans(source);
  if (!means.text.empty()) AddNote("P9", means.text, means.ops);
  const proto::Amp& amp = options.strategy.amp();
  if (LevelOf(amp) != Level::kO0) low_ = LowOf(amp);
}

void ReportBuilder::AddOp(const Block& block, const Op& op) {
  proto::OpRow& row = row_;
  row.Clear();
  Assign(block.name(op), row.mutable_name());
  row.set_type(op.schema->name());
  Assign(Name(op.role), row.mutable_role());
  AddSlots(block, op.schema->inputs(), op.inputs, row.mutable_input());
  AddSlots(block, op.schema->outputs(), op.outputs, row.mutable_output());
  Assign(Name(op.decision.precision), row.mutable_precision());
  Assign(Name(op.decision.reason), row.mutable_reason());
  AddNames(block.program(), op.decision, row.mutable_because_of());
  // Of what the model wrote: a pass may have put another op in its place.
  const auto source = source_ops_.find(row.name());
  Assign(Name(source == source_ops_.end() ? classes_.Of(op) : source->second),
         row.mutable_op_class());
  if (op.line > 0) row.set_line(op.line);
  const bool low = IsLow(op.decision.precision);
  runs_low_ |= low && op.decision.precision == low_;
  for (int s = 0; low && s < op.inputs.slots(); ++s) {
    const Slot& slot = op.schema->inputs()[s];
    if (slot.keep_f32() && op.inputs.has(s)) row.add_keep_f32_slot(slot.name);
  }
  writer_.Add(row);
}

ReportBuilder::Cast ReportBuilder::CastOf(const Block& block, const Op& op,
                                          absl::Span<const int32_t> numbers) {
  const Value& made = block.value(op.out(0));
  Cast cast;
  cast.name = made.name;
  cast.op = op.name;
  cast.value = block.value(op.in(0)).name;
  cast.from = block.dtype(op.in(0));
  cast.to = block.dtype(op.out(0));
  cast.role = op.role;
  cast.decision = op.decision;
  cast.elements = block.type(op.in(0)).Elements();
  // A forward cast is for forward ops: backward ones read what they read.
  absl::InlinedVector<OpId, 4> readers;
  for (const Use& use : made.uses) {
    if (block.op(use.op).role == op.role) readers.push_back(use.op);
  }
  std::sort(readers.begin(), readers.end(), [&](OpId a, OpId b) {
    return numbers[a.index()] < numbers[b.index()];
  });
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  for (OpId reader : readers) cast.readers.push_back(block.op(reader).name);
  return cast;
}

// All but its fate.
void ReportBuilder::AddCast(const Cast& cast, proto::CastRow* row) const {
  row->Clear();
  Assign(inserted_->name_of(cast.name), row->mutable_name());
  if (cast.op != cast.name) {
    Assign(inserted_->name_of(cast.op), row->mutable_op());
  }
  Assign(inserted_->name_of(cast.value), row->mutable_value());
  Assign(Name(cast.from), row->mutable_from());
  Assign(Name(cast.to), row->mutable_to());
  Assign(Name(cast.role), row->mutable_role());
  Assign(Name(cast.decision.reason), row->mutable_reason());
  AddNames(*inserted_, cast.decision, row->mutable_because_of());
  row->set_elements(cast.elements.coefficient());
  row->set_batch_power(cast.elements.power(0));
  for (NameId reader : cast.readers) {
    Assign(inserted_->name_of(reader), row->add_for_op());
  }
}

void ReportBuilder::AddParameters(const Program& program, const Entry& entry) {
  const Block& block = entry.block();
  const bool train = entry.name() == kTrainEntry;
  std::vector<ValueId> gradients(program.num_cells());
  for (const GradientStatement& gradient : entry.gradients()) {
    gradients[gradient.parameter.index()] = gradient.value;
  }
  std::vector<std::string> left_out;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter) continue;
    proto::ParamRow& row = *report_.add_param();
    row.set_name(cell.name);
    row.set_dtype(TextOf(Name(cell.type.dtype)));
    for (const Dim& dim : cell.type.dims) row.add_shape(dim.coefficient());
    const ValueId gradient = gradients[i];
    if (train && gradient.valid()) {
      row.set_gradient_dtype(TextOf(Name(ReducedDType(block, gradient))));
    } else if (train && cell.trainable) {
      left_out.push_back(cell.name);
    }
  }
  AddLeftOutNote(left_out);
}

void ReportBuilder::AtInsertion(const Program& program,
                                absl::string_view name) {
  const Entry* entry = EntryOf(program, name);
  if (entry == nullptr) return;
  inserted_ = &program;
  const Block& block = entry->block();
  const std::vector<int32_t> numbers = block.Numbering();
  inserted_casts_.reserve(block.CountOf(Ops().Find("cast")));
  absl::flat_hash_map<ValueId, CellId> parameters;
  for (const GradientStatement& gradient : entry->gradients()) {
    parameters.emplace(gradient.value, gradient.parameter);
  }
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (IsInserted(block, op, source_ops_)) {
      Cast& cast = inserted_casts_.emplace_back(CastOf(block, op, numbers));
      const auto it = parameters.find(op.out(0));
      cast.parameter =
          it != parameters.end() ? it->second : block.value(op.in(0)).cell();
    } else {
      AddOp(block, op);
    }
  }
  ops_ = writer_.Finish();
  AddParameters(program, *entry);
  AddPrecisionNote();
  for (const NumberNote& note : NumberNotes(block)) AddNumberNote(note);
  shapes_.AtInsertion(block);
  islands_.AtInsertion(block);
}

void ReportBuilder::AddCasts(const Program& program, const Block& block) {
  // What they are called in the finished program.
  std::vector<NameId> ops;
  ops.reserve(inserted_casts_.size());
  for (const Cast& cast : inserted_casts_) {
    ops.push_back(inserted_ == &program
                      ? cast.op
                      : program.FindName(inserted_->name_of(cast.op)));
  }
  const Takers takers = FindTakers(block, ops);
  const LowCells low_cells = FindLowCells(program);
  CastRowWriter writer;
  proto::CastRow row;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Cast& cast = inserted_casts_[i];
    AddCast(cast, &row);
    SetFate(block, low_cells, takers, ops[i], cast.parameter, &row);
    standalone_ += row.fate() == "standalone" ? 1 : 0;
    writer.Add(row);
  }
  casts_ = writer.Finish();
  inserted_casts_ = {};
  for (proto::ParamRow& row : *report_.mutable_param()) {
    const auto it = low_cells.find(program.FindCell(row.name()));
    if (it != low_cells.end()) row.set_low_cell(it->second);
  }
}

void ReportBuilder::AtEnd(const Program& program, absl::string_view name) {
  const Entry* entry = EntryOf(program, name);
  if (entry == nullptr) return;
  const Block& block = entry->block();
  AddCasts(program, block);
  AddBuckets(block, &report_);
  shapes_.AtEnd(block);
  for (const ShapeNote& note : shapes_.Notes()) {
    AddNote(note.code, note.text, note.ops);
  }
  AddNumberNote(islands_.AtEnd(block));
  AddFusionNotes(block);
  AddRecomputeNote(block);
  AddCompressNote(block);
}

}  // namespace passes
}  // namespace halftone
