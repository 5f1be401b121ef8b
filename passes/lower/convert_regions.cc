#include "passes/lower/convert_regions.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/channel_axes.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/kernel_key.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// [B, C, H, W]. Weights are 4-d, too, but of constant dims.
bool IsActivation(const TensorType& type) {
  return type.rank() == 4 && !type.dims[0].is_constant();
}

bool HasActivations(const Program& program) {
  const TypeTable& types = program.types();
  for (int32_t i = 0; i < types.size(); ++i) {
    if (IsActivation(types[TypeId(i)])) return true;
  }
  return false;
}

// Whether the op moves an image's channels behind its pixels
// (to: row_major, [N, H, W, C]), or from there before them (to: channels_last).
bool MovesChannels(const Op& op, Layout to) {
  static const OpSchema* const kTranspose = Ops().Find("transpose");
  if (op.schema != kTranspose) return false;
  std::vector<int64_t> axis = AttrAs<std::vector<int64_t>>(op, "axis");
  for (int64_t& a : axis) {
    if (a < 0) a += static_cast<int64_t>(axis.size());
  }
  return axis == ChannelAxes(to);
}

// Regions of ops that can be channels-last, as sets of the activations that
// they read and write.
class LayoutChooser {
 public:
  LayoutChooser(Entry& entry, const KernelSet& kernels)
      : entry_(entry),
        block_(entry.block()),
        kernels_(kernels),
        held_(entry),
        able_(block_.op_limit()),
        parent_(block_.value_limit()),
        gain_(block_.value_limit()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  absl::StatusOr<bool> Run();

 private:
  int Find(int v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  bool IsAble(OpId op) const { return op.valid() && able_[op.index()]; }
  // Whether the op, if it is able, has the value as its region lays it out:
  // activations, and whatever of rank 4 stands beside one in an op whose
  // operands share one layout.
  bool LaysOut(const Op& op, ValueId value) const {
    return IsActivation(block_.type(value)) ||
           (op.schema->layout() == LayoutRule::kAny &&
            block_.type(value).rank() == 4);
  }
  bool IsMadeInRegion(ValueId value) const {
    const OpId producer = block_.value(value).op();
    return IsAble(producer) && LaysOut(block_.op(producer), value);
  }
  bool IsReadInRegion(ValueId value, const Use& use) const {
    return IsAble(use.op) && LaysOut(block_.op(use.op), value);
  }
  // Whether the value was made, by a transpose, of one whose bytes its region
  // takes.
  bool IsMovedIn(ValueId value) const {
    const OpId producer = block_.value(value).op();
    return producer.valid() &&
           CanMove(block_.op(producer), Layout::kChannelsLast);
  }
  // Whether the op is a transpose that the kernel set can do without.
  bool CanMove(const Op& op, Layout to) const {
    return MovesChannels(op, to) &&
           kernels_.Has("move_channels", {block_.dtype(op.in(0))},
                        to == Layout::kRowMajor ? Layout::kChannelsLast
                                                : Layout::kRowMajor);
  }
  // Whether the reader takes the value as the region has it, or only its dims:
  // not of the operand whose layout a kernel is chosen by.
  bool TakesAnyLayout(ValueId value, const Use& use) const {
    if (IsReadInRegion(value, use)) return true;
    const Op& op = block_.op(use.op);
    if (CanMove(op, Layout::kRowMajor)) return true;
    return use.position > 0 &&
           op.schema->inputs()[op.inputs.SlotOf(use.position)].shape_only();
  }
  // What of the op's operands its region lays out.
  std::vector<ValueId> LaidOut(const Op& op) const;
  bool CanBeChannelsLast(const Op& op) const;
  // Whether the op narrows a value that comes from outside and that nothing
  // else reads. What it makes has fewer bytes to convert, and the op before it
  // can take it in.
  bool NarrowsAtBorder(const Op& op) const;
  // Whether the kernel set can convert activations like this one.
  bool CanConvert(ValueId value) const;
  // Whether the value, made in its region, has to be row-major, too.
  bool LeavesRegion(ValueId value) const;

  void FindRegions();
  void CountGains();
  // Whether the value's region is worth converting.
  bool IsChosen(ValueId value) { return gain_[Find(value.index())] > 0; }
  absl::Status Convert(ValueId value);
  absl::Status ConvertFor(ValueId value, const std::vector<Use>& uses,
                          bool inside);
  absl::StatusOr<ValueId> AddConversion(ValueId value, Layout to,
                                        const Op& neighbour);
  // Makes of a transpose at a region's border one that moves no byte.
  void MoveOut(OpId transpose);
  void HoldInstead();

  Entry& entry_;
  Block& block_;
  const KernelSet& kernels_;
  HeldValues held_;
  std::vector<bool> able_;        // by op
  std::vector<int> parent_;       // by value: union-find
  std::vector<int> gain_;         // by a region's root: see CountGains
  std::vector<ValueId> touched_;  // of able ops, in order of first meeting
  absl::flat_hash_map<ValueId, ValueId> row_major_;  // of held values
};

std::vector<ValueId> LayoutChooser::LaidOut(const Op& op) const {
  std::vector<ValueId> values;
  for (const SlotValues* slots : {&op.inputs, &op.outputs}) {
    for (ValueId value : slots->all()) {
      if (LaysOut(op, value)) values.push_back(value);
    }
  }
  return values;
}

bool LayoutChooser::CanConvert(ValueId value) const {
  const DType dtype = block_.dtype(value);
  return kernels_.Has("convert_layout", {dtype}, Layout::kRowMajor) &&
         kernels_.Has("convert_layout", {dtype}, Layout::kChannelsLast);
}

bool LayoutChooser::CanBeChannelsLast(const Op& op) const {
  const auto is_activation = [this](ValueId value) {
    return IsActivation(block_.type(value));
  };
  const auto inputs = op.inputs.all();
  if (op.schema->layout() == LayoutRule::kRowMajor || op.body != nullptr ||
      IsCollective(op) || inputs.empty() ||
      !(op.schema->element_wise()
            ? std::any_of(inputs.begin(), inputs.end(), is_activation)
            : is_activation(inputs[0]))) {
    return false;
  }
  const std::vector<ValueId> values = LaidOut(op);
  // The parts of what is split take either layout; legality asks for them.
  return (op.schema->split_only() ||
          kernels_.Has(op.schema->name(), TypeBinding(block_, op),
                       Layout::kChannelsLast)) &&
         std::all_of(values.begin(), values.end(),
                     [this](ValueId v) { return CanConvert(v); });
}

bool LayoutChooser::NarrowsAtBorder(const Op& op) const {
  static const OpSchema* const kCast = Ops().Find("cast");
  if (op.schema != kCast) return false;
  const Value& value = block_.value(op.in(0));
  return !IsAble(value.op()) && value.uses.size() == 1 &&
         !held_.Has(value.id) &&
         SizeOf(block_.dtype(op.out(0))) < SizeOf(block_.dtype(value.id));
}

void LayoutChooser::FindRegions() {
  std::vector<bool> met(block_.value_limit());
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    const Op& op = block_.op(id);
    if (!CanBeChannelsLast(op) || NarrowsAtBorder(op)) continue;
    able_[id.index()] = true;
    int root = -1;
    for (ValueId value : LaidOut(op)) {
      if (root >= 0) parent_[Find(value.index())] = root;
      root = Find(value.index());
      if (!met[value.index()]) touched_.push_back(value);
      met[value.index()] = true;
    }
  }
}

bool LayoutChooser::LeavesRegion(ValueId value) const {
  const auto& uses = block_.value(value).uses;
  return held_.Has(value) ||
         std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
           return !TakesAnyLayout(value, use);
         });
}

// Convolutions less conversions, plus one: above 0 where it is worth it.
void LayoutChooser::CountGains() {
  std::vector<bool> has_convolution(block_.value_limit());
  for (ValueId value : touched_) {
    const int root = Find(value.index());
    if (IsMadeInRegion(value) ? LeavesRegion(value) : !IsMovedIn(value)) {
      --gain_[root];
    }
    for (const Use& use : block_.value(value).uses) {
      const Op& op = block_.op(use.op);
      if (!IsAble(use.op) || use.position != 0 ||
          op.schema->amp() != AmpClass::kWhite) {
        continue;
      }
      ++gain_[root];
      has_convolution[root] = true;
    }
  }
  for (size_t root = 0; root < gain_.size(); ++root) {
    if (has_convolution[root]) ++gain_[root];
  }
}

absl::StatusOr<ValueId> LayoutChooser::AddConversion(ValueId value, Layout to,
                                                     const Op& neighbour) {
  const OpId producer = block_.value(value).op();
  const bool moved = to == Layout::kChannelsLast && IsMovedIn(value);
  OpBuilder builder(&block_, moved ? "move_channels" : "convert_layout");
  builder.In("X", moved ? block_.op(producer).in(0) : value)
      .Attr("to", std::string(Name(to)))
      .Out("Out", absl::StrCat(block_.name(value), ".", Name(to)))
      .At(producer.valid() ? block_.After(producer)
                           : Block::Before(block_.first()))
      .Role(neighbour.role)
      .Why(neighbour.decision)
      .Origin(neighbour.name)
      .Unique();
  return BuildValue(block_, builder);
}

void LayoutChooser::MoveOut(OpId transpose) {
  block_.mutable_op(transpose).attrs = Attrs();
  block_.SetSchema(transpose, Ops().Find("move_channels"));
  SetAttrOf(block_, transpose, "to", std::string(Name(Layout::kRowMajor)));
}

// Gives the readers on either side of the region's border what they take.
absl::Status LayoutChooser::Convert(ValueId value) {
  const bool inside = IsMadeInRegion(value);
  const std::vector<Use> uses(block_.value(value).uses.begin(),
                              block_.value(value).uses.end());
  if (inside) {
    TensorType type = block_.type(value);
    type.layout = Layout::kChannelsLast;
    block_.SetType(value, type);
  }
  if (!inside || LeavesRegion(value)) {
    HT_RETURN_IF_ERROR(ConvertFor(value, uses, inside));
  }
  for (const Use& use : uses) {
    if (inside && CanMove(block_.op(use.op), Layout::kRowMajor)) {
      MoveOut(use.op);
    }
  }
  return absl::OkStatus();
}

// The readers on the other side of the border.
absl::Status LayoutChooser::ConvertFor(ValueId value,
                                       const std::vector<Use>& uses,
                                       bool inside) {
  const OpId producer = block_.value(value).op();
  OpId neighbour = producer;
  for (const Use& use : uses) {
    if (!inside && IsReadInRegion(value, use)) neighbour = use.op;
  }
  HT_ASSIGN_OR_RETURN(
      const ValueId converted,
      AddConversion(value, inside ? Layout::kRowMajor : Layout::kChannelsLast,
                    block_.op(neighbour)));
  for (const Use& use : uses) {
    if (inside ? !TakesAnyLayout(value, use) : IsReadInRegion(value, use)) {
      block_.SetInput(use.op, use.position, converted);
    }
  }
  if (inside && held_.Has(value)) row_major_[value] = converted;
  if (!inside && IsMovedIn(value) &&
      IsDead(block_, block_.op(producer), held_)) {
    block_.EraseOp(producer);
  }
  return absl::OkStatus();
}

void LayoutChooser::HoldInstead() {
  const auto replace = [this](ValueId& value) {
    const auto it = row_major_.find(value);
    if (it != row_major_.end()) value = it->second;
  };
  for (CommitStatement& commit : entry_.commits()) replace(commit.value);
  for (Result& result : entry_.results()) replace(result.value);
}

absl::StatusOr<bool> LayoutChooser::Run() {
  for (const char* made : {"convert_layout", "pad_channels"}) {
    if (CountOfType(block_, made) > 0) return false;
  }
  FindRegions();
  CountGains();
  bool changed = false;
  for (ValueId value : touched_) {
    if (!IsChosen(value)) continue;
    HT_RETURN_IF_ERROR(Convert(value));
    changed = true;
  }
  HoldInstead();
  return changed;
}

}  // namespace

absl::StatusOr<bool> ConvertRegions::Run(Program& program) {
  if (!kernels_->prefers_channels_last() || !HasActivations(program)) {
    return false;
  }
  bool changed = false;
  for (const auto& entry : program.entries()) {
    HT_ASSIGN_OR_RETURN(const bool converted,
                        LayoutChooser(*entry, *kernels_).Run());
    changed |= converted;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
