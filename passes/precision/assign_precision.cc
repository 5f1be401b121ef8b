#include "passes/precision/assign_precision.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "passes/precision/place_by_cost.h"
#include "passes/precision/policy.h"
#include "passes/precision/slots.h"

namespace halftone {
namespace passes {
namespace {

using Names = absl::InlinedVector<NameId, 4>;

// As many ops are named as the reason of another.
constexpr size_t kMostNamed = 8;

// What is known of a value when its readers are decided.
enum class State : uint8_t {
  kOther,  // not a float of ours
  kF32,
  kLow,
  kStored,  // a cell, a constant or made of constants: counts as low
  kFree,    // of a free op: agrees with the others
};

bool IsBlack(const Decision& decision, AmpClass amp_class) {
  switch (decision.reason) {
    case Reason::kNoFloatInput:
      return amp_class == AmpClass::kBlack;
    case Reason::kBlackList:
    case Reason::kUnlisted:
    case Reason::kUserBlack:
    case Reason::kBlackVarname:
    case Reason::kNoKernel:
    case Reason::kLoss:
      return true;
    default:
      return false;
  }
}

// One run over one block.
class Assigner {
 public:
  Assigner(const Program& program, const Block& block, PrecisionPolicy& policy)
      : program_(program),
        block_(block),
        policy_(policy),
        states_(block.value_limit(), State::kOther),
        is_output_(block.value_limit()),
        is_black_(block.op_limit()),
        makes_constant_(block.op_limit()),
        whole_(block.op_limit()),
        decisions_(block.op_limit()),
        classes_(block.op_limit(), AmpClass::kGray) {
    losses_.insert(block.FindValue(program.loss.var));
    for (const LossPart& part : program.loss.parts) {
      losses_.insert(block.FindValue(part.weighted));
    }
  }

  absl::StatusOr<std::vector<Decision>> Run();

 private:
  // The first op that reads a value of an op low, and the first that does not.
  struct Readers {
    OpId low, f32;
    bool is_output = false;  // the user reads it, too
  };

  void InitStates();
  void FindWholeNumbers();
  bool MakesConstant(const Op& op) const;
  absl::Status DecideForward(const Op& op);
  absl::Status DecideFree(const Op& op);
  bool HasFloatInput(const Op& op) const;
  void Follow(const Op& op);
  bool LeaveOpen(const Op& op);
  void FollowAllLow(const Op& op);
  void FollowAnyLow(const Op& op);
  void Decide(const Op& op, bool low, Reason reason);
  // A gray op for `reason`, a clear one for CLEAR_FOLLOWS.
  void DecideFollowing(const Op& op, bool low, Reason reason,
                       const Names& because_of);
  // Adds the op or feed that the value comes from.
  void AddSource(ValueId value, Names* names) const;
  absl::Status ApplyExceptions(const Op& op);
  void SetOutputStates(const Op& op, bool is_free);
  Readers ReadersOf(const Op& op);

  Decision& decision(const Op& op) { return decisions_[op.id.index()]; }

  const Program& program_;
  const Block& block_;
  PrecisionPolicy& policy_;
  // From which backward may start.
  absl::flat_hash_set<ValueId> losses_;
  SlotTable slots_;
  std::vector<State> states_;         // by value id
  std::vector<bool> is_output_;       // by value id: one of the model's outputs
  std::vector<bool> is_black_;        // by op id: a black producer for any_low
  std::vector<bool> makes_constant_;  // by op id
  // By op id: it computes floats from whole numbers, and for ops that make none
  // of them: places, lengths, comparisons. f16 holds such up to 2,048 alone.
  std::vector<bool> whole_;
  std::vector<Decision> decisions_;
  std::vector<AmpClass> classes_;
  std::vector<OpId> free_;  // in program order
  std::vector<OpId> open_;  // min_cost: a cut decides
};

void Assigner::InitStates() {
  for (int i = 0; i < block_.value_limit(); ++i) {
    const Value& value = block_.value(ValueId(i));
    if (value.erased || !IsAmpFloat(block_.dtype(value.id))) continue;
    switch (value.definition) {
      case Definition::kFeed:
        states_[i] =
            block_.dtype(value.id) == policy_.low() ? State::kLow : State::kF32;
        break;
      case Definition::kConstant:
      case Definition::kCell:
        states_[i] = State::kStored;
        break;
      case Definition::kOp:
        break;  // when the op is decided
    }
  }
  for (const std::string& output : program_.outputs) {
    const ValueId value = block_.FindValue(output);
    if (value.valid()) is_output_[value.index()] = true;
  }
}

void Assigner::FindWholeNumbers() {
  const auto is_float = [&](ValueId value) {
    return IsAmpFloat(block_.dtype(value));
  };
  std::vector<bool> source(block_.op_limit());  // floats of none
  std::vector<OpId> candidates;
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    const Op& op = block_.op(id);
    if (op.role != Role::kForward) continue;
    const auto inputs = op.inputs.all(), outputs = op.outputs.all();
    if (std::none_of(inputs.begin(), inputs.end(), is_float)) {
      source[id.index()] = true;
      continue;
    }
    const auto from_whole = [&](ValueId input) {
      const OpId maker = block_.value(input).op();
      return !is_float(input) || (maker.valid() && (source[maker.index()] ||
                                                    whole_[maker.index()]));
    };
    if (std::all_of(inputs.begin(), inputs.end(), from_whole) &&
        std::any_of(outputs.begin(), outputs.end(), is_float)) {
      whole_[id.index()] = true;
      candidates.push_back(id);
    }
  }
  for (auto id = candidates.rbegin(); id != candidates.rend(); ++id) {
    bool read = false, whole = true;
    for (const ValueId output : block_.op(*id).outputs.all()) {
      whole = whole && !is_output_[output.index()];
      for (const Use& use : block_.value(output).uses) {
        const auto made = block_.op(use.op).outputs.all();
        read = true;
        whole = whole && (whole_[use.op.index()] ||
                          std::none_of(made.begin(), made.end(), is_float));
      }
    }
    whole_[id->index()] = read && whole;
  }
}

// Whether the op makes the same values in every step: of nothing, or of
// constants that have no precision.
bool Assigner::MakesConstant(const Op& op) const {
  for (ValueId input : op.inputs.all()) {
    const Value& value = block_.value(input);
    const bool constant =
        value.definition == Definition::kConstant ||
        (value.op().valid() && makes_constant_[value.op().index()]);
    if (!constant || states_[input.index()] != State::kOther) return false;
  }
  return true;
}

bool Assigner::HasFloatInput(const Op& op) const {
  for (ValueId input : op.inputs.all()) {
    if (states_[input.index()] != State::kOther) return true;
  }
  return false;
}

void Assigner::Decide(const Op& op, bool low, Reason reason) {
  decision(op).precision = low ? policy_.low() : DType::kF32;
  decision(op).reason = reason;
  decision(op).because_of.clear();
}

void Assigner::DecideFollowing(const Op& op, bool low, Reason reason,
                               const Names& because_of) {
  const bool clear = classes_[op.id.index()] == AmpClass::kClear;
  Decide(op, low, clear ? Reason::kClearFollows : reason);
  auto& names = decision(op).because_of;
  for (NameId name : because_of) {
    if (names.size() == kMostNamed) break;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
}

void Assigner::AddSource(ValueId value, Names* names) const {
  const Value& source = block_.value(value);
  if (source.op().valid()) {
    names->push_back(block_.op(source.op()).name);
  } else if (source.definition == Definition::kFeed) {
    names->push_back(source.name);
  }
}

void Assigner::FollowAllLow(const Op& op) {
  const SchemaSlots& slots = slots_.Of(*op.schema);
  Names low, wide, kept;  // kept: of slots that are f32 at every level
  bool any = false, all_free = true, all_low = true;
  int slot = 0;
  for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
    const SlotKind kind = KindAt(slots, op, i, &slot);
    const ValueId input = op.inputs.all()[i];
    const State state = states_[input.index()];
    if (state == State::kOther) continue;
    if (kind != SlotKind::kEither) {
      if (kind == SlotKind::kKeepF32) AddSource(input, &kept);
      continue;
    }
    any = true;
    if (state == State::kStored || state == State::kFree) continue;
    all_free = false;
    if (state == State::kF32) all_low = false;
    AddSource(input, state == State::kLow ? &low : &wide);
  }
  if (any && all_free) {
    free_.push_back(op.id);
    return;
  }
  if (any && all_low) {
    DecideFollowing(op, true, Reason::kGrayAllLow, low);
  } else {
    DecideFollowing(op, false, Reason::kGrayF32Input, any ? wide : kept);
  }
}

void Assigner::FollowAnyLow(const Op& op) {
  const SchemaSlots& slots = slots_.Of(*op.schema);
  Names black, low;
  bool any_wide = false;
  int slot = 0;
  for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
    const bool own = KindAt(slots, op, i, &slot) == SlotKind::kEither;
    const ValueId input = op.inputs.all()[i];
    const State state = states_[input.index()];
    any_wide |= own && state == State::kF32;
    const OpId producer = block_.value(input).op();
    if (!producer.valid()) continue;
    // Paddle asks for the op, not for the dtype of what it makes.
    if (is_black_[producer.index()]) {
      black.push_back(block_.op(producer).name);
    } else if (own && state == State::kLow) {
      low.push_back(block_.op(producer).name);
    }
  }
  if (!black.empty()) {
    is_black_[op.id.index()] = true;
    DecideFollowing(op, false, Reason::kGrayF32Input, black);
  } else if (low.empty()) {
    Decide(op, false, Reason::kNoLowInput);
  } else {
    DecideFollowing(op, true,
                    any_wide ? Reason::kGrayAnyLow : Reason::kGrayAllLow, low);
  }
}

// Whether both precisions are possible, and which is better will be seen when
// all others are decided.
bool Assigner::LeaveOpen(const Op& op) {
  Decide(op, true, Reason::kMinCut);
  if (!ApplyExceptions(op).ok() || decision(op).reason != Reason::kMinCut) {
    return false;
  }
  open_.push_back(op.id);
  return true;
}

void Assigner::Follow(const Op& op) {
  if (policy_.rule() == PrecisionRule::kAnyLow) {
    FollowAnyLow(op);
  } else {
    FollowAllLow(op);
  }
}

// NO_KERNEL and then LOSS, where the op would be low.
absl::Status Assigner::ApplyExceptions(const Op& op) {
  if (!IsLow(decision(op).precision)) return absl::OkStatus();
  if (!policy_.HasLowKernel(op)) {
    if (decision(op).reason == Reason::kUserWhite) {
      return policy_.NoKernelError(block_, op);
    }
    Decide(op, false, Reason::kNoKernel);
  } else if (losses_.contains(op.out(0))) {
    Decide(op, false, Reason::kLoss);
  }
  return absl::OkStatus();
}

void Assigner::SetOutputStates(const Op& op, bool is_free) {
  const State state = is_free                          ? State::kFree
                      : makes_constant_[op.id.index()] ? State::kStored
                      : IsLow(decision(op).precision)  ? State::kLow
                                                       : State::kF32;
  const SchemaSlots& slots = slots_.Of(*op.schema);
  for (int s = 0; s < op.outputs.slots(); ++s) {
    for (ValueId output : op.outputs.slot(s)) {
      if (!IsAmpFloat(block_.dtype(output))) continue;
      states_[output.index()] =
          slots.outputs[s] == SlotKind::kEither ? state : State::kF32;
    }
  }
}

absl::Status Assigner::DecideForward(const Op& op) {
  const bool has_float_input = HasFloatInput(op);
  const DType out = op.outputs.all().empty()
                        ? DType::kInvalid
                        : block_.dtype(op.outputs.all()[0]);
  if (has_float_input && slots_.HasOwnDTypes(block_, op)) {
    // Its author chose the dtype.
    decision(op).precision = out;
    decision(op).reason = Reason::kSchema;
    SetOutputStates(op, false);
    if (out != policy_.low() && IsAmpFloat(out)) {
      states_[op.outputs.all()[0].index()] = State::kF32;
    }
    return absl::OkStatus();
  }
  const PolicyDecision decided = policy_.Of(op, has_float_input);
  classes_[op.id.index()] = decided.amp_class;
  const size_t free_before = free_.size();
  const bool follows = decided.kind == PolicyDecision::Kind::kFollows;
  const bool open = follows && policy_.rule() == PrecisionRule::kMinCost;
  const bool by_level = decided.kind == PolicyDecision::Kind::kLow &&
                        decided.reason == Reason::kLevel;
  if (whole_[op.id.index()] && (open || by_level)) {
    Decide(op, false, Reason::kFollowsReaders);
  } else if (follows) {
    if (open) {
      SetOutputStates(op, LeaveOpen(op));
      return absl::OkStatus();
    }
    Follow(op);
  } else {
    Decide(op, decided.kind == PolicyDecision::Kind::kLow, decided.reason);
  }
  HT_RETURN_IF_ERROR(ApplyExceptions(op));
  // What a user made f32 by name is no constant like others.
  const bool constant =
      decision(op).reason == Reason::kNoFloatInput && MakesConstant(op);
  makes_constant_[op.id.index()] = constant;
  if (constant && IsLow(out)) decision(op).precision = out;  // as written
  if (!constant && IsBlack(decision(op), decided.amp_class)) {
    is_black_[op.id.index()] = true;
  }
  SetOutputStates(op, free_.size() > free_before);
  return absl::OkStatus();
}

Assigner::Readers Assigner::ReadersOf(const Op& op) {
  Readers readers;
  for (ValueId output : op.outputs.all()) {
    if (!IsAmpFloat(block_.dtype(output))) continue;
    if (is_output_[output.index()]) readers.is_output = true;
    for (const Use& use : block_.value(output).uses) {
      const Op& reader = block_.op(use.op);
      const SlotKind kind =
          slots_.Of(*reader.schema).inputs[reader.inputs.SlotOf(use.position)];
      if (kind == SlotKind::kFixed) continue;  // reads its dims alone
      const bool low =
          kind == SlotKind::kEither && IsLow(decision(reader).precision);
      OpId& first = low ? readers.low : readers.f32;
      // Uses are in no order; ids of a source program are.
      if (!first.valid() || reader.id < first) first = reader.id;
    }
  }
  return readers;
}

absl::Status Assigner::DecideFree(const Op& op) {
  const Readers readers = ReadersOf(op);
  if (readers.f32.valid()) {
    Decide(op, false, Reason::kFollowsReaders);
    decision(op).because_of.push_back(block_.op(readers.f32).name);
  } else if (readers.low.valid() && !readers.is_output) {
    Decide(op, true, Reason::kFollowsReaders);
    decision(op).because_of.push_back(block_.op(readers.low).name);
  } else {
    Decide(op, false, Reason::kFollowsReaders);
  }
  return ApplyExceptions(op);
}

absl::StatusOr<std::vector<Decision>> Assigner::Run() {
  InitStates();
  FindWholeNumbers();
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    if (block_.op(id).role != Role::kForward) continue;
    HT_RETURN_IF_ERROR(DecideForward(block_.op(id)));
  }
  for (auto id = free_.rbegin(); id != free_.rend(); ++id) {
    HT_RETURN_IF_ERROR(DecideFree(block_.op(*id)));
  }
  PlaceByCost(program_, policy_.low(), open_, &decisions_);
  return std::move(decisions_);
}

}  // namespace

absl::StatusOr<std::vector<Decision>> AssignPrecision::Decide(
    const Program& program) const {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return std::vector<Decision>();
  PrecisionPolicy policy(options_, kernels_);
  HT_RETURN_IF_ERROR(policy.MatchNames(train->block()));
  return Assigner(program, train->block(), policy).Run();
}

absl::StatusOr<bool> AssignPrecision::Run(Program& program) {
  HT_ASSIGN_OR_RETURN(std::vector<Decision> decisions, Decide(program));
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  Block& block = train->block();
  bool changed = false;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.role != Role::kForward) continue;
    Decision& next = decisions[id.index()];
    if (op.decision.precision == next.precision &&
        op.decision.reason == next.reason &&
        op.decision.because_of == next.because_of) {
      continue;
    }
    block.mutable_op(id).decision = std::move(next);
    changed = true;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
