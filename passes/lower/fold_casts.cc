#include "passes/lower/fold_casts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_rules.h"
#include "passes/lower/kernel_key.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// More than any op has; bounds the subsets that are tried.
constexpr unsigned kMaxFolds = 4;

// One type variable of an op and the low dtype that it could have.
struct Fold {
  int variable;
  DType dtype;
  bool input;      // all its inputs are widening casts
  OpId narrowing;  // of its one output, otherwise
};
using Folds = absl::InlinedVector<Fold, kMaxFolds>;

class Folder {
 public:
  Folder(Block& block, const KernelSet& kernels, HeldValues& held)
      : block_(block),
        kernels_(kernels),
        beside_cast_(block.op_limit()),
        queued_(block.op_limit()),
        held_(held),
        cast_(Ops().Find("cast")) {}

  bool Run();

 private:
  bool IsCast(OpId op) const {
    return op.valid() && block_.schema(op) == cast_;
  }
  // The low value that the value is the exact widening of; else invalid.
  ValueId Widened(ValueId value) const;
  void MarkBesideCasts();
  bool Visit(OpId id);
  void Queue(OpId id);
  void QueueNeighbours(const Op& op);
  // Takes the cast out if nothing reads it, and those that it alone read.
  void EraseUnread(OpId cast);
  bool DropRoundTrip(const Op& cast);
  bool ReadShapesThroughCasts(const Op& op);
  bool FoldNeighbours(const Op& op);
  Folds FindFolds(const Op& op) const;
  // Applies the folds of the bits if the target has the key that they make.
  bool ApplyIfSupported(const Op& op, const Folds& folds, unsigned subset);
  bool InputFold(const Op& op, int variable, Fold* fold) const;
  bool OutputFold(const Op& op, int variable, Fold* fold) const;
  void Apply(OpId op, const Fold& fold);
  void ReadThroughCasts(const Op& op, int variable);
  void TakeNarrowing(const Op& op, OpId narrowing);

  Block& block_;
  KernelLookup kernels_;
  // By op id: an op, a cast or not, that reads a cast or is read by one. Only
  // these have anything to fold.
  std::vector<bool> beside_cast_;
  // Ops to look at again: a neighbour has changed since.
  std::vector<OpId> queue_;
  std::vector<bool> queued_;  // by op id
  HeldValues& held_;
  const OpSchema* cast_;
};

bool Allows(const TypeVar& variable, DType dtype) {
  return std::find(variable.allowed.begin(), variable.allowed.end(), dtype) !=
         variable.allowed.end();
}

ValueId Folder::Widened(ValueId value) const {
  const OpId producer = block_.value(value).op();
  if (!IsCast(producer)) return ValueId();
  const ValueId source = block_.op(producer).in(0);
  return block_.dtype(value) == DType::kF32 && IsLow(block_.dtype(source))
             ? source
             : ValueId();
}

// cast(cast(x : f16 -> f32) -> f16) is x, bit for bit.
bool Folder::DropRoundTrip(const Op& cast) {
  const ValueId out = cast.out(0);
  const ValueId source = Widened(cast.in(0));
  if (!source.valid() || block_.dtype(out) != block_.dtype(source) ||
      IsDead(block_, cast, held_)) {
    return false;
  }
  ReplaceValue(block_, out, source, held_);
  for (const Use& use : block_.value(source).uses) Queue(use.op);
  EraseUnread(cast.id);
  return true;
}

// All inputs of the variable must change together, and no output may have it.
bool Folder::InputFold(const Op& op, int variable, Fold* fold) const {
  const OpSchema& schema = *op.schema;
  for (const Slot& slot : schema.outputs()) {
    if (slot.type_var == variable) return false;
  }
  DType dtype = DType::kInvalid;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    const Slot& slot = schema.inputs()[s];
    if (slot.type_var != variable || slot.shape_only()) continue;
    for (ValueId value : op.inputs.slot(s)) {
      const ValueId source = Widened(value);
      if (!source.valid()) return false;
      const DType low = block_.dtype(source);
      if (dtype != DType::kInvalid && dtype != low) return false;
      dtype = low;
    }
  }
  if (dtype == DType::kInvalid ||
      !Allows(schema.type_vars()[variable], dtype)) {
    return false;
  }
  *fold = {variable, dtype, true, OpId()};
  return true;
}

// The variable must be of one output alone, which only one narrowing reads.
bool Folder::OutputFold(const Op& op, int variable, Fold* fold) const {
  const OpSchema& schema = *op.schema;
  for (const Slot& slot : schema.inputs()) {
    if (slot.type_var == variable) return false;
  }
  ValueId output;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    if (schema.outputs()[s].type_var != variable) continue;
    for (ValueId value : op.outputs.slot(s)) {
      if (output.valid()) return false;
      output = value;
    }
  }
  if (!output.valid() || block_.dtype(output) != DType::kF32 ||
      held_.Has(output) || block_.value(output).uses.size() != 1) {
    return false;
  }
  const OpId reader = block_.value(output).uses[0].op;
  if (!IsCast(reader)) return false;
  const DType low = block_.dtype(block_.op(reader).out(0));
  if (!IsLow(low) || !Allows(schema.type_vars()[variable], low)) return false;
  *fold = {variable, low, false, reader};
  return true;
}

Folds Folder::FindFolds(const Op& op) const {
  Folds folds;
  const bool is_cast = op.schema == cast_;
  for (int v = 0; v < static_cast<int>(op.schema->type_vars().size()); ++v) {
    Fold fold;
    // A cast has no arithmetic of its own that another's rounding could join.
    if (InputFold(op, v, &fold) || (!is_cast && OutputFold(op, v, &fold))) {
      folds.push_back(fold);
    }
    if (folds.size() == kMaxFolds) break;
  }
  return folds;
}

void Folder::ReadThroughCasts(const Op& op, int variable) {
  std::vector<NameId> names;
  absl::InlinedVector<OpId, 4> casts;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    const Slot& slot = op.schema->inputs()[s];
    if (slot.type_var != variable || slot.shape_only()) continue;
    for (int i = op.inputs.begin(s); i < op.inputs.end(s); ++i) {
      const OpId cast = block_.value(op.inputs.all()[i]).op();
      casts.push_back(cast);
      AppendNames(block_.op(cast), &names);
      block_.SetInput(op.id, i, block_.op(cast).in(0));
    }
  }
  AddOrigins(block_.mutable_op(op.id), names);
  for (OpId cast : casts) EraseUnread(cast);
}

void Folder::TakeNarrowing(const Op& op, OpId narrowing) {
  const Op& cast = block_.op(narrowing);
  const ValueId output = cast.in(0);
  const ValueId narrow = cast.out(0);
  const std::string name(block_.name(narrow));
  block_.SetType(output, block_.type(narrow));
  const int attr = DTypeAttrOf(*op.schema);
  if (attr >= 0) {
    SetAttrOf(block_, op.id, op.schema->attrs()[attr].name,
              block_.dtype(narrow));
  }
  ReplaceValue(block_, narrow, output, held_);
  InheritOrigins(cast, block_.mutable_op(op.id));
  block_.EraseOp(narrowing);
  block_.RenameValue(output, name);
}

void Folder::Apply(OpId op, const Fold& fold) {
  if (fold.input) {
    ReadThroughCasts(block_.op(op), fold.variable);
  } else {
    TakeNarrowing(block_.op(op), fold.narrowing);
  }
}

// Slots of which only dims are read take what was cast.
bool Folder::ReadShapesThroughCasts(const Op& op) {
  bool changed = false;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    if (!op.schema->inputs()[s].shape_only()) continue;
    for (int i = op.inputs.begin(s); i < op.inputs.end(s); ++i) {
      const OpId producer = block_.value(op.inputs.all()[i]).op();
      if (!IsCast(producer)) continue;
      block_.SetInput(op.id, i, block_.op(producer).in(0));
      EraseUnread(producer);
      changed = true;
    }
  }
  return changed;
}

// Applies the largest set of folds whose key the target has.
bool Folder::Visit(OpId id) {
  const Op& op = block_.op(id);
  if (op.schema == cast_ && DropRoundTrip(op)) return true;
  if (op.schema->no_merge() || op.body != nullptr) return false;
  return ReadShapesThroughCasts(op) | FoldNeighbours(op);
}

bool Folder::ApplyIfSupported(const Op& op, const Folds& folds,
                              unsigned subset) {
  auto folded = TypeBinding(block_, op);
  for (size_t f = 0; f < folds.size(); ++f) {
    if (subset >> f & 1) folded[folds[f].variable] = folds[f].dtype;
  }
  if (!kernels_.Has(block_, op, folded)) return false;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (subset >> f & 1) Apply(op.id, folds[f]);
  }
  return true;
}

bool Folder::FoldNeighbours(const Op& op) {
  const Folds folds = FindFolds(op);
  const unsigned subsets = 1u << folds.size();
  for (int size = static_cast<int>(folds.size()); size > 0; --size) {
    for (unsigned subset = 1; subset < subsets; ++subset) {
      if (__builtin_popcount(subset) == size &&
          ApplyIfSupported(op, folds, subset)) {
        return true;
      }
    }
  }
  return false;
}

void Folder::MarkBesideCasts() {
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    if (block_.schema(id) != cast_) continue;
    const Op& op = block_.op(id);
    const OpId producer = block_.value(op.in(0)).op();
    if (producer.valid()) beside_cast_[producer.index()] = true;
    for (const Use& use : block_.value(op.out(0)).uses) {
      beside_cast_[use.op.index()] = true;
    }
  }
}

void Folder::EraseUnread(OpId id) {
  while (IsCast(id) && !block_.op(id).erased &&
         IsDead(block_, block_.op(id), held_)) {
    // One reader fewer may let it take the other's cast.
    const OpId producer = block_.value(block_.op(id).in(0)).op();
    block_.EraseOp(id);
    if (producer.valid()) Queue(producer);
    id = producer;
  }
}

void Folder::Queue(OpId id) {
  if (!beside_cast_[id.index()] || queued_[id.index()]) return;
  queued_[id.index()] = true;
  queue_.push_back(id);
}

void Folder::QueueNeighbours(const Op& op) {
  Queue(op.id);
  for (ValueId input : op.inputs.all()) {
    const OpId producer = block_.value(input).op();
    if (producer.valid()) Queue(producer);
  }
  for (ValueId output : op.outputs.all()) {
    for (const Use& use : block_.value(output).uses) Queue(use.op);
  }
}

bool Folder::Run() {
  MarkBesideCasts();
  bool changed = false;
  const auto visit = [&](OpId id) {
    if (block_.op(id).erased || !Visit(id)) return;
    changed = true;
    if (!block_.op(id).erased) QueueNeighbours(block_.op(id));
  };
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    if (beside_cast_[id.index()]) visit(id);
  }
  for (size_t i = 0; i < queue_.size(); ++i) {
    const OpId id = queue_[i];
    queued_[id.index()] = false;
    visit(id);
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> FoldCasts::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    HeldValues held(*entry);
    changed |= Folder(entry->block(), *kernels_, held).Run();
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
