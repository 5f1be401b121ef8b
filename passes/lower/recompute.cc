#include "passes/lower/recompute.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/decision.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/forward_part.h"
#include "passes/lower/recompute_choice.h"
#include "passes/options/byte_text.h"
#include "passes/rewrite/copy_block.h"

namespace halftone {
namespace passes {
namespace {

// By op id: what is made before the last checkpoint and is none itself.
std::vector<bool> BetweenCheckpoints(
    const ForwardPart& forward,
    const google::protobuf::RepeatedPtrField<std::string>& globs) {
  const Block& block = forward.block();
  std::vector<bool> repeated(block.op_limit());
  std::vector<bool> kept(block.op_limit());
  int last = 0;
  for (int place = 0; place < forward.backward(); ++place) {
    const Op& op = block.op(forward.ops()[place]);
    if (op.role != Role::kForward || !IsNamedBy(globs, block, op)) continue;
    last = place;
    for (ValueId out : op.outputs.all()) {
      const OpId owner = forward.OwnerOf(out);
      if (owner.valid()) kept[owner.index()] = true;
    }
  }
  for (int place = 0; place < last; ++place) {
    const OpId id = forward.ops()[place];
    repeated[id.index()] = forward.IsRepeatable(id) && !kept[id.index()];
  }
  return repeated;
}

// Views go with what they show: on their own they free nothing.
void RepeatViews(const ForwardPart& forward, std::vector<bool>* repeated) {
  const Block& block = forward.block();
  for (int place = 0; place < forward.backward(); ++place) {
    const Op& op = block.op(forward.ops()[place]);
    if (!IsPlainView(block, op)) continue;
    const OpId shown = block.value(op.inputs.all()[0]).op();
    (*repeated)[op.id.index()] = forward.IsRepeatable(op.id) && shown.valid() &&
                                 (*repeated)[shown.index()];
  }
}

class Repeater {
 public:
  Repeater(Block& block, const ForwardPart& forward,
           const std::vector<bool>& repeated)
      : block_(block),
        forward_(forward),
        repeated_(repeated),
        copies_(block.op_limit()) {}

  bool Run() {
    bool changed = false;
    const auto& ops = forward_.ops();
    for (size_t at = forward_.backward(); at < ops.size(); ++at) {
      const auto inputs = block_.op(ops[at]).inputs.all();
      for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
        if (!IsRepeated(inputs[i]) || !ReadsContent(block_.op(ops[at]), i)) {
          continue;
        }
        Repeat(block_.value(inputs[i]).op(), ops[at]);
        block_.SetInput(ops[at], i, CopyOf(inputs[i]));
        changed = true;
      }
    }
    return changed;
  }

 private:
  bool IsRepeated(ValueId value) const {
    const OpId op = block_.value(value).op();
    return op.valid() && static_cast<size_t>(op.index()) < repeated_.size() &&
           repeated_[op.index()] && forward_.IsReplaceable(value);
  }
  // What stands for the value in backward.
  ValueId CopyOf(ValueId value) const {
    if (!IsRepeated(value)) return value;
    const Value& original = block_.value(value);
    const OpId copy = copies_[original.op().index()];
    return copy.valid() ? block_.op(copy).outputs.all()[original.result]
                        : ValueId();
  }
  // With all that it needs, before `reader`. A chain may be as long as the net.
  void Repeat(OpId wanted, OpId reader) {
    std::vector<OpId> stack = {wanted};
    while (!stack.empty()) {
      const OpId id = stack.back();
      const Op& op = block_.op(id);
      bool ready = true;
      for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
        const ValueId input = op.inputs.all()[i];
        if (CopyOf(input).valid() || !ReadsContent(op, i)) continue;
        stack.push_back(block_.value(input).op());
        ready = false;
      }
      if (!ready) continue;
      stack.pop_back();
      if (!copies_[id.index()].valid()) copies_[id.index()] = Copy(id, reader);
    }
  }
  NameId Again(NameId name) const {
    Program& program = block_.program();
    return program.InternName(absl::StrCat(program.name_of(name), ".again"));
  }
  OpId Copy(OpId id, OpId reader);

  Block& block_;
  const ForwardPart& forward_;
  const std::vector<bool>& repeated_;
  std::vector<OpId> copies_;  // by the original's op id
};

OpId Repeater::Copy(OpId id, OpId reader) {
  const Op& op = block_.op(id);
  SlotValues inputs;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    const bool reads = !op.schema->inputs()[s].shape_only();
    for (ValueId in : op.inputs.slot(s)) inputs.Add(reads ? CopyOf(in) : in);
    inputs.EndSlot();
  }
  Block::Outputs outputs;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    for (ValueId out : op.outputs.slot(s)) {
      const Value& value = block_.value(out);
      outputs.Add({block_.UniqueValueName(Again(value.name)), value.type});
    }
    outputs.EndSlot();
  }
  const OpId made = block_.AddOp(op.schema, Again(op.name), std::move(inputs),
                                 outputs, op.attrs, Block::Before(reader));
  Op& copy = block_.mutable_op(made);
  copy.role = Role::kBackward;
  copy.line = op.line;
  copy.decision.precision = op.decision.precision;
  copy.decision.reason = Reason::kRecomputed;
  copy.decision.because_of.push_back(op.name);
  copy.origins.push_back(op.name);
  if (op.body != nullptr) copy.body = CopyBody(*block_.op(id).body);
  return made;
}

bool HasCopies(const Block& block) {
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    if (block.op(id).decision.reason == Reason::kRecomputed) return true;
  }
  return false;
}

}  // namespace

bool Recompute::RunOn(Entry& entry) {
  if (HasCopies(entry.block())) return false;
  const ForwardPart forward(entry);
  const proto::Recompute& settings = strategy_.memory().recompute();
  std::vector<bool> repeated;
  if (settings.checkpoints_size() > 0) {
    repeated = BetweenCheckpoints(forward, settings.checkpoints());
  } else if (const auto within = BytesFromText(settings.within())) {
    repeated =
        ChooseRepeated(forward, target_, SamplesAtOnce(strategy_), *within);
  } else {
    return false;
  }
  RepeatViews(forward, &repeated);
  return Repeater(entry.block(), forward, repeated).Run();
}

absl::StatusOr<bool> Recompute::Run(Program& program) {
  bool changed = false;
  for (const char* name : {kTrainEntry, kAccumulateEntry}) {
    Entry* const entry = program.FindEntry(name);
    if (entry != nullptr) changed |= RunOn(*entry);
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
