#include "passes/lower/lay_out_filters.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/kernel_key.h"

namespace halftone {
namespace passes {
namespace {

// What an entry holds besides its ops.
struct Held {
  absl::flat_hash_map<ValueId, std::vector<CellId>> committed;
  absl::flat_hash_map<CellId, ValueId> commits;
  absl::flat_hash_set<ValueId> results;

  explicit Held(const Entry& entry) {
    for (const CommitStatement& commit : entry.commits()) {
      committed[commit.value].push_back(commit.cell);
      commits[commit.cell] = commit.value;
    }
    for (const Result& result : entry.results()) results.insert(result.value);
  }
};

// Whether the slot of a convolution or of one of its gradients is the filter's.
bool IsFilterSlot(const Op& op, const Slot& slot) {
  return op.schema->layout() == LayoutRule::kChannelsLastOk &&
         (slot.name == "Filter" || slot.name == "FilterGrad");
}

class FilterChooser {
 public:
  FilterChooser(Program& program, const KernelSet& kernels)
      : program_(program), kernels_(kernels), family_(program.num_cells()) {
    for (const auto& entry : program.entries()) held_.emplace_back(*entry);
    for (int i = 0; i < program.num_cells(); ++i) {
      const CellId of = program.cell(CellId(i)).of;
      if (of.valid()) family_[of.index()].push_back(CellId(i));
    }
  }

  bool Run();

 private:
  // A value of an entry.
  using Place = std::pair<int, ValueId>;

  Block& BlockOf(int entry) const { return program_.entries()[entry]->block(); }
  // Everything that must lie as the value does goes into values_ and cells_;
  // false if something there cannot be channels-last.
  bool Collect(Place seed);
  bool Visit(int entry, ValueId value);
  bool VisitCell(CellId cell);
  // The op's operands that lie as the one at flat position `i` of `values`,
  // which are its inputs or its outputs.
  bool VisitOp(int entry, const Op& op, bool output, int i);
  // What a multi-tensor op has of that member; the images of another op.
  void AddMembers(int entry, const Op& op, int member);
  void AddImages(int entry, const Op& op);
  void Add(int entry, ValueId value) {
    if (seen_.insert({entry, value}).second) values_.push_back({entry, value});
  }
  void Add(CellId cell) {
    if (seen_cells_.insert(cell).second) cells_.push_back(cell);
  }
  void LayOut();

  Program& program_;
  const KernelSet& kernels_;
  std::vector<Held> held_;                   // by entry
  std::vector<std::vector<CellId>> family_;  // by cell: those made of it
  absl::flat_hash_set<Place> seen_;
  absl::flat_hash_set<CellId> seen_cells_;
  std::vector<Place> values_;  // of one family
  std::vector<CellId> cells_;
};

bool FilterChooser::VisitCell(CellId cell) {
  if (program_.cell(cell).type.rank() != 4) return false;
  for (size_t e = 0; e < held_.size(); ++e) {
    const int entry = static_cast<int>(e);
    const ValueId value = BlockOf(entry).FindCellValue(cell);
    if (value.valid()) Add(entry, value);
    const auto commit = held_[e].commits.find(cell);
    if (commit != held_[e].commits.end()) Add(entry, commit->second);
  }
  if (program_.cell(cell).of.valid()) Add(program_.cell(cell).of);
  for (CellId other : family_[cell.index()]) {
    if (program_.cell(other).type.rank() == 4) Add(other);
  }
  return true;
}

bool FilterChooser::Visit(int entry, ValueId id) {
  const Block& block = BlockOf(entry);
  const Value& value = block.value(id);
  const TensorType& type = block.type(id);
  if (type.rank() != 4 || type.layout != Layout::kRowMajor) return false;
  if (held_[entry].results.contains(id)) return false;
  const auto committed = held_[entry].committed.find(id);
  if (committed != held_[entry].committed.end()) {
    for (CellId cell : committed->second) Add(cell);
  }
  if (value.cell().valid()) {
    Add(value.cell());
  } else if (!value.op().valid() ||
             !VisitOp(entry, block.op(value.op()), true, value.result)) {
    return false;
  }
  for (const Use& use : value.uses) {
    if (!VisitOp(entry, block.op(use.op), false, use.position)) return false;
  }
  return true;
}

void FilterChooser::AddMembers(int entry, const Op& op, int member) {
  for (const SlotValues* values : {&op.inputs, &op.outputs}) {
    const auto slots =
        values == &op.inputs ? op.schema->inputs() : op.schema->outputs();
    for (int s = 0; s < values->slots(); ++s) {
      const auto members = values->slot(s);
      if (!slots[s].list() || member >= static_cast<int>(members.size())) {
        continue;
      }
      Add(entry, members[member]);
    }
  }
}

void FilterChooser::AddImages(int entry, const Op& op) {
  for (const SlotValues* values : {&op.inputs, &op.outputs}) {
    for (ValueId value : values->all()) {
      if (BlockOf(entry).type(value).rank() == 4) Add(entry, value);
    }
  }
}

bool FilterChooser::VisitOp(int entry, const Op& op, bool output, int i) {
  const Block& block = BlockOf(entry);
  const SlotValues& values = output ? op.outputs : op.inputs;
  const int s = values.SlotOf(i);
  const Slot& slot = output ? op.schema->outputs()[s] : op.schema->inputs()[s];
  if (slot.shape_only()) return true;
  if (op.body != nullptr) return false;
  if (IsFilterSlot(op, slot)) {
    return LeadLayout(block, op) == Layout::kChannelsLast;
  }
  if (op.schema->layout() != LayoutRule::kAny) return false;
  if (!IsCollective(op) &&
      !kernels_.Has(op.schema->name(), TypeBinding(block, op),
                    Layout::kChannelsLast)) {
    return false;
  }
  bool makes_images = false, makes_lists = false;
  for (int o = 0; o < op.outputs.slots(); ++o) {
    makes_lists |= op.schema->outputs()[o].list() && op.outputs.has(o);
    for (ValueId made : op.outputs.slot(o)) {
      makes_images |= block.type(made).rank() == 4;
    }
  }
  // Numbers about its elements, in whatever order they lie.
  if (!makes_images && !output) return slot.list();
  if (op.schema->element_wise()) {
    AddImages(entry, op);
    return true;
  }
  if (makes_lists) AddMembers(entry, op, i - values.begin(s));
  return makes_lists;
}

bool FilterChooser::Collect(Place seed) {
  values_.clear();
  cells_.clear();
  seen_.clear();
  seen_cells_.clear();
  Add(seed.first, seed.second);
  for (size_t v = 0, c = 0; v < values_.size() || c < cells_.size();) {
    if (v < values_.size()) {
      const Place place = values_[v++];
      if (!Visit(place.first, place.second)) return false;
    } else if (!VisitCell(cells_[c++])) {
      return false;
    }
  }
  return !cells_.empty();
}

void FilterChooser::LayOut() {
  for (const Place& place : values_) {
    Block& block = BlockOf(place.first);
    TensorType type = block.type(place.second);
    type.layout = Layout::kChannelsLast;
    block.SetType(place.second, type);
  }
  for (CellId cell : cells_) {
    program_.cell(cell).type.layout = Layout::kChannelsLast;
  }
}

bool HasFilters(const Program& program) {
  for (const auto& entry : program.entries()) {
    for (const Block::SchemaCount& count : entry->block().counts()) {
      if (count.count > 0 && count.schema->FindInput("Filter") >= 0) {
        return true;
      }
    }
  }
  return false;
}

bool FilterChooser::Run() {
  bool changed = false;
  for (int entry = 0; entry < static_cast<int>(held_.size()); ++entry) {
    const Block& block = BlockOf(entry);
    for (const Block::SchemaCount& count : block.counts()) {
      const int slot = count.schema->FindInput("Filter");
      if (slot < 0 || count.count == 0) continue;
      for (OpId id : block.OpsOf(count.schema)) {
        if (!Collect({entry, block.op(id).in(slot)})) continue;
        LayOut();
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> LayOutFilters::Run(Program& program) {
  return kernels_->prefers_channels_last() && HasFilters(program) &&
         FilterChooser(program, *kernels_).Run();
}

}  // namespace passes
}  // namespace halftone
