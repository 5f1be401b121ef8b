#include "passes/differentiate/share_counts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/denominators.h"
#include "graph/schema/op_builder.h"
#include "passes/differentiate/local_count.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

class Sharer {
 public:
  Sharer(const Program& program, Block& block)
      : program_(program), block_(block) {}

  absl::Status Run();

 private:
  absl::Status Find();
  // Sums and what they are made of come first, for feeds are there.
  void MoveUp();
  absl::Status Reduce();
  absl::StatusOr<ValueId> Cast(ValueId value, DType to, absl::string_view name);
  // What `value` is on one device with the samples of all ranks.
  absl::StatusOr<ValueId> TotalOf(ValueId value);
  absl::Status CopyBelow(const Op& op);
  // What the value's readers are to divide by.
  absl::StatusOr<ValueId> Share(ValueId value, const Denominator& denominator);
  OpBuilder Make(absl::string_view op_type) {
    OpBuilder builder = MakeOp(block_, op_type, Role::kCommunicate);
    builder.At(Block::Before(rest_));
    return builder;
  }
  std::string Named(ValueId value, absl::string_view suffix) const {
    return absl::StrCat(block_.name(value), suffix);
  }

  const Program& program_;
  Block& block_;
  std::vector<std::pair<ValueId, Denominator>> found_;
  OpId rest_;  // what is made here stands before it
  ValueId samples_, all_samples_;
  // Of a sum, or of what is made of sums: that of all ranks. Of a sum in low
  // precision in f32, too.
  absl::flat_hash_map<ValueId, ValueId> total_, wide_total_;
};

absl::Status Sharer::Find() {
  const ValueId loss = block_.FindValue(program_.loss.var);
  for (const std::string& name : program_.loss.denominators) {
    const ValueId value = block_.FindValue(name);
    if (!loss.valid() || !value.valid()) {
      return ModelError(program_.file, ": loss: no value is called ",
                        loss.valid() ? name : program_.loss.var);
    }
    auto denominator = FindDenominator(block_, loss, value);
    if (!denominator.ok()) {
      return Annotate(denominator.status(),
                      absl::StrCat(program_.file, ": loss: denominator"));
    }
    found_.emplace_back(value, *std::move(denominator));
  }
  return absl::OkStatus();
}

void Sharer::MoveUp() {
  std::vector<bool> above(block_.op_limit());
  for (const auto& [value, denominator] : found_) {
    for (OpId id : denominator.above) above[id.index()] = true;
  }
  rest_ = block_.first();
  for (OpId id : block_.ops()) {
    if (!above[id.index()]) continue;
    if (id == rest_) {
      rest_ = block_.next(id);
    } else {
      block_.MoveOp(id, Block::Before(rest_));
    }
  }
}

absl::StatusOr<ValueId> Sharer::Cast(ValueId value, DType to,
                                     absl::string_view name) {
  if (block_.dtype(value) == to) return value;
  OpBuilder cast = Make("cast");
  cast.In("X", value).Attr("to", to).Out("Out", name);
  return BuildValue(block_, cast);
}

absl::Status Sharer::Reduce() {
  const ValueId feed = SamplesFeed(block_);
  if (!feed.valid()) {
    return ModelError(program_.file, ": loss: no feed has samples");
  }
  OpBuilder count = Make("element_count");
  count.In("X", feed).Attr("axis", int64_t{0}).Out("Out", "@samples.local");
  HT_ASSIGN_OR_RETURN(samples_, BuildValue(block_, count));
  std::vector<ValueId> sums, members = {samples_};
  OpBuilder reduction = Make("all_reduce");
  reduction.Name("counts").Attr("of", std::string("counts"));
  reduction.Out("Out", "@samples");
  for (const auto& [value, denominator] : found_) {
    for (OpId id : denominator.sums) {
      const ValueId sum = block_.op(id).out(0);
      if (std::find(sums.begin(), sums.end(), sum) != sums.end()) continue;
      sums.push_back(sum);
      HT_ASSIGN_OR_RETURN(const ValueId wide,
                          Cast(sum, DType::kF32, Named(sum, ".local")));
      members.push_back(wide);
      reduction.Out("Out", Named(sum, ".total"));
    }
  }
  reduction.In("X", members);
  HT_ASSIGN_OR_RETURN(const OpId made, reduction.Build());
  const auto outputs = block_.op(made).outputs.all();
  all_samples_ = outputs[0];
  for (size_t i = 0; i < sums.size(); ++i)
    wide_total_[sums[i]] = outputs[i + 1];
  return absl::OkStatus();
}

// The op once more, of totals.
absl::Status Sharer::CopyBelow(const Op& op) {
  SlotValues inputs;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    for (ValueId input : op.inputs.slot(s)) {
      HT_ASSIGN_OR_RETURN(const ValueId total, TotalOf(input));
      inputs.Add(total);
    }
    inputs.EndSlot();
  }
  NameTable& names = block_.program().names();
  const auto named = [&names, this](ValueId value) {
    return block_.UniqueValueName(names.Intern(Named(value, ".total")));
  };
  Block::Outputs outputs;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    for (ValueId output : op.outputs.slot(s)) {
      outputs.Add({named(output), block_.type_id(output)});
    }
    outputs.EndSlot();
  }
  const OpId id = block_.AddOp(op.schema, NameId(), std::move(inputs), outputs,
                               op.attrs, Block::Before(rest_));
  Op& copy = block_.mutable_op(id);
  copy.role = Role::kCommunicate;
  copy.decision = FixedBySchema(DType::kF32);
  const auto from = op.outputs.all(), to = copy.outputs.all();
  for (size_t i = 0; i < from.size(); ++i) total_[from[i]] = to[i];
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Sharer::TotalOf(ValueId value) {
  const auto sum = wide_total_.find(value);
  if (sum != wide_total_.end()) {
    return Cast(sum->second, block_.dtype(value), Named(value, ".total"));
  }
  const auto made = total_.find(value);
  return made == total_.end() ? value : made->second;
}

absl::StatusOr<ValueId> Sharer::Share(ValueId value,
                                      const Denominator& denominator) {
  for (OpId id : denominator.below) {
    const Op& op = block_.op(id);
    if (total_.contains(op.outputs.all()[0])) continue;
    HT_RETURN_IF_ERROR(CopyBelow(op));
  }
  const auto sum = wide_total_.find(value);
  ValueId total = sum == wide_total_.end() ? total_[value] : sum->second;
  HT_ASSIGN_OR_RETURN(total,
                      Cast(total, DType::kF32, Named(value, ".wide_total")));
  OpBuilder share = Make("count_share");
  share.In("Total", total).In("Count", samples_).In("AllCounts", all_samples_);
  share.Out("Out", Named(value, ".share"));
  HT_ASSIGN_OR_RETURN(const ValueId made, BuildValue(block_, share));
  return Cast(made, block_.dtype(value), Named(value, ".share"));
}

absl::Status Sharer::Run() {
  HT_RETURN_IF_ERROR(Find());
  MoveUp();
  HT_RETURN_IF_ERROR(Reduce());
  std::vector<ValueId> shares;
  for (const auto& [value, denominator] : found_) {
    HT_ASSIGN_OR_RETURN(const ValueId share, Share(value, denominator));
    shares.push_back(share);
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    for (const Use& use : found_[i].second.readers) {
      block_.SetInput(use.op, use.position, shares[i]);
    }
  }
  return absl::OkStatus();
}

bool IsShared(const Block& block) {
  return CountOfType(block, "count_share") > 0;
}

}  // namespace

absl::StatusOr<bool> ShareCounts::Run(Program& program) {
  if (program.loss.denominators.empty()) return false;
  bool changed = false;
  for (const auto& entry : program.entries()) {
    if (entry->name() != kTrainEntry && entry->name() != kEvalEntry) continue;
    if (IsShared(entry->block())) continue;
    HT_RETURN_IF_ERROR(Sharer(program, entry->block()).Run());
    changed = true;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
