#include "runtime/train/non_finite.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

struct Found {
  const Block* block = nullptr;
  const Op* op = nullptr;
  int64_t position = std::numeric_limits<int64_t>::max() - 1;
};

// A linear search: it is made once, at the end of a run.
Found Find(const Entry& entry, absl::string_view name) {
  const Block& block = entry.block();
  int64_t position = 0;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (block.name(op) == name) return {&block, &op, position};
    ++position;
    if (op.body == nullptr) continue;
    const Block& body = *op.body;
    for (OpId inner = body.first(); inner.valid(); inner = body.next(inner)) {
      if (body.name(body.op(inner)) == name) {
        return {&body, &body.op(inner), position};
      }
      ++position;
    }
  }
  return {};
}

class Describer {
 public:
  Describer(const Entry& entry, const std::vector<std::string>& model_ops)
      : entry_(entry), model_ops_(model_ops) {}

  NonFiniteOp Describe(const Found& found, const std::string& input) const {
    NonFiniteOp op = DescribeOp(found, input.empty());
    if (!op.text.empty() && !input.empty()) {
      absl::StrAppend(&op.text, " (its input ", input, " is not finite)");
      // What is fed so is so in any precision.
      const ValueId value = entry_.block().FindValue(input);
      const bool cell =
          value.valid() && entry_.block().value(value).cell().valid();
      if (!cell) op.low_op.clear();
      const bool fed =
          value.valid() &&
          entry_.block().value(value).definition == Definition::kFeed;
      if (fed && input[0] != '@') op.feed = input;
    }
    return op;
  }

 private:
  // `loses`: a cast is named for what it loses.
  NonFiniteOp DescribeOp(const Found& found, bool loses) const {
    const Op& op = *found.op;
    const std::string name(found.block->name(op));
    if (op.role == Role::kForward) {
      const std::string model_op = ModelOp(op, name, 0);
      // What we count is no op of the model.
      if (model_op == name && name[0] == '@') return {};
      const bool reader =
          loses && model_op != name && op.schema->name() == "cast";
      const std::string what =
          reader
              ? absl::StrCat(model_op, " (its input ",
                             found.block->name(op.in(0)), " does not fit into ",
                             Name(found.block->dtype(op.out(0))), ")")
              : model_op;
      return {what, LowOp(model_op)};
    }
    if (op.role == Role::kBackward) {
      const std::string forward = ModelOp(op, name, 0);
      if (forward == name) return {name, ""};
      return {absl::StrCat(name, " (backward of ", forward, ")"),
              LowOp(forward)};
    }
    return {};
  }

  bool IsModelOp(const std::string& name) const {
    if (!model_ops_.empty()) {
      return std::find(model_ops_.begin(), model_ops_.end(), name) !=
             model_ops_.end();
    }
    const Found found = Find(entry_, name);
    return found.op != nullptr && found.op->role == Role::kForward &&
           found.op->line > 0;
  }

  // The model's op that this one is, was, or was made for; `name` if there is
  // none.
  std::string ModelOp(const Op& op, const std::string& name, int depth) const {
    if (op.role == Role::kForward && IsModelOp(name)) return name;
    const Program& program = entry_.block().program();
    std::vector<std::string> behind;
    for (NameId id : op.origins) behind.emplace_back(program.name_of(id));
    for (NameId id : op.decision.because_of) {
      behind.emplace_back(program.name_of(id));
    }
    for (const std::string& one : behind) {
      if (IsModelOp(one)) return one;
    }
    // A gradient's cast is that of a gradient.
    constexpr int kDeepest = 4;
    for (const std::string& one : behind) {
      const Found found = Find(entry_, one);
      if (found.op == nullptr || depth == kDeepest) continue;
      const std::string deeper = ModelOp(*found.op, one, depth + 1);
      if (deeper != one) return deeper;
    }
    return name;
  }

  std::string LowOp(const std::string& model_op) const {
    const Found found = Find(entry_, model_op);
    const bool low = found.op != nullptr && IsLow(found.op->decision.precision);
    return low ? model_op : "";
  }

  const Entry& entry_;
  const std::vector<std::string>& model_ops_;
};

}  // namespace

NonFiniteOp DescribeNonFinite(const Program& program, const NonFinite& found,
                              const std::vector<std::string>& model_ops) {
  const Entry* entry = program.FindEntry(kTrainEntry);
  // What is only compared need not train.
  if (entry == nullptr) entry = program.FindEntry(kEvalEntry);
  const Found op = Find(*entry, found.op);
  if (op.op == nullptr) return {found.op, ""};
  NonFiniteOp described =
      Describer(*entry, model_ops).Describe(op, found.input);
  if (!described.text.empty() && program.FindEntry(kAccumulateEntry)) {
    absl::StrAppend(&described.text, " in micro-batch ", found.micro_batch + 1);
  }
  return described;
}

int64_t PositionOf(const Entry& entry, const std::string& op) {
  return Find(entry, op).position;
}

absl::StatusOr<FirstOfRanks> FindFirst(const NonFinite& mine,
                                       const Program& program,
                                       Communicator& communicator) {
  const auto gather = [&communicator](const std::string& text) {
    return communicator.AllGather(text);
  };
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> ops, gather(mine.op));
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                      gather(mine.input));
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> batches,
                      gather(absl::StrCat(mine.micro_batch)));
  const Entry& entry = *program.FindEntry(kTrainEntry);
  FirstOfRanks first;
  std::pair<int64_t, int64_t> first_place;
  for (size_t r = 0; r < ops.size(); ++r) {
    NonFinite found = {ops[r], inputs[r]};
    if (!absl::SimpleAtoi(batches[r], &found.micro_batch)) {
      return CommunicationError("rank ", r, " names micro-batch \"", batches[r],
                                "\", expected a number");
    }
    if (found.op.empty()) continue;
    const auto place =
        std::make_pair(found.micro_batch, PositionOf(entry, found.op));
    if (first.rank >= 0 && place >= first_place) continue;
    first_place = place;
    first = {static_cast<int>(r), std::move(found)};
  }
  return first;
}

std::string WhatToTry(const TrainConfig& config, const StepRecord& record,
                      const NonFiniteOp& op) {
  if (!op.feed.empty()) {
    return absl::StrCat("; ", op.feed, " is data: mend the samples of --data ",
                        ShellWord(config.data),
                        " that are not finite, or leave them out");
  }
  std::vector<std::string> advice;
  const auto add = [&](const char* path, const std::string& value,
                       const std::string& text) {
    if (!config.accepts || config.accepts(path, value)) advice.push_back(text);
  };
  const proto::LearningRate& rate = config.strategy.lr();
  const proto::Amp& amp = config.strategy.amp();
  const std::string lr = ExactDouble(rate.base() / 10);
  const bool warms_up = rate.warmup_epochs() > 0 || rate.warmup_steps() > 0;
  add("lr.base", lr,
      absl::StrCat("a lower learning rate (--lr ", lr, ")",
                   warms_up ? "" : " or warm-up (--set lr.warmup_epochs=1)"));
  const size_t for_the_run = advice.size();
  if (!op.low_op.empty()) {
    add("amp.custom_black_opnames", op.low_op,
        absl::StrCat("that op in f32: --black-op ", ShellWord(op.low_op)));
  }
  if (amp.level() != "O0" && amp.dtype() == "fp16") {
    add("amp.dtype", "bf16", "the range of f32 in 16 bits: --dtype bf16");
  }
  if (amp.level() != "O0" && !amp.loss_scaling().use_dynamic_loss_scaling() &&
      record.scale_before > 1) {
    add("amp.loss_scaling.use_dynamic_loss_scaling", "true",
        "dynamic loss scaling: --loss-scale dynamic");
  }
  if (amp.level() != "O0") {
    add("amp.level", "O0",
        "all in f32, to see whether precision is to blame: --level O0");
  }
  if (advice.empty()) return "";
  std::string text = absl::StrCat("; try ", absl::StrJoin(advice, ", or "));
  if (advice.size() > for_the_run && !config.compiled_path.empty()) {
    absl::StrAppend(&text,
                    "; what changes precisions is given to halftone "
                    "compile ",
                    ShellWord(config.compiled_path), " ... -o new.htc");
  }
  return text;
}

}  // namespace runtime
}  // namespace halftone
