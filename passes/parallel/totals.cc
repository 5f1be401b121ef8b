#include "passes/parallel/totals.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/differentiate/local_count.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Collects members of the reduction, each local value once.
class Totals {
 public:
  // `in_tree`: sums and statistics over the ranks are made in a binary tree.
  Totals(Program& program, Entry& entry, Block::Position position, bool in_tree)
      : program_(program),
        entry_(entry),
        block_(entry.block()),
        position_(position),
        in_tree_(in_tree) {}

  absl::Status AddLoss();
  // `name`: a mean over the loss's count; its sum becomes the result `result`.
  absl::Status AddMean(const std::string& name, ValueId count,
                       const std::string& result, absl::string_view local);
  absl::Status AddMetrics();
  absl::Status AddStop();
  absl::Status AddRanks();
  absl::Status AddBatchNorms(bool of_rank0);
  absl::Status TakeRank0(absl::Span<const OpId> norms);
  // The statistics of all ranks, from what the norms of a rank have: its own,
  // or, above 1, those of its group of so many ranks.
  absl::Status Combine(absl::Span<const OpId> norms, int64_t group_size);
  // One of mean, variance and count: the norms' into a slot, all ranks' out.
  void AddStatistic(absl::Span<const OpId> norms, int which,
                    absl::string_view in, absl::string_view out,
                    OpBuilder* builder);
  bool empty() const { return members_.empty(); }
  // Makes the reduction and its results.
  absl::Status Reduce();

 private:
  OpBuilder Make(absl::string_view op_type) {
    OpBuilder builder = MakeOp(block_, op_type, Role::kCommunicate);
    builder.At(position_);
    return builder;
  }
  // The index of the member whose reduced value is called `reduced`.
  int AddMember(ValueId local, absl::string_view reduced);
  void AddResult(absl::string_view name, int member) {
    results_.emplace_back(std::string(name), member);
  }
  // `value` as f32[].
  absl::StatusOr<ValueId> AsScalar(ValueId value, absl::string_view name);
  absl::StatusOr<ValueId> Find(absl::string_view name) const;
  // Whether an op makes it that gives 0 for nothing.
  bool IsMean(ValueId value) const {
    return DefinedBy(block_, value, "mean") != nullptr ||
           DefinedBy(block_, value, "reduce_mean") != nullptr;
  }

  Program& program_;
  Entry& entry_;
  Block& block_;
  Block::Position position_;
  bool in_tree_;
  std::vector<ValueId> members_;
  std::vector<std::string> names_;
  absl::flat_hash_map<ValueId, int> member_of_;
  std::vector<std::pair<std::string, int>> results_;
};

int Totals::AddMember(ValueId local, absl::string_view reduced) {
  const int next = static_cast<int>(members_.size());
  const auto [it, fresh] = member_of_.try_emplace(local, next);
  if (fresh) {
    members_.push_back(local);
    names_.emplace_back(reduced);
  }
  return it->second;
}

absl::StatusOr<ValueId> Totals::AsScalar(ValueId value,
                                         absl::string_view name) {
  if (block_.dtype(value) != DType::kF32) {
    OpBuilder cast = Make("cast");
    cast.In("X", value).Attr("to", DType::kF32).Out("Out", name);
    HT_ASSIGN_OR_RETURN(value, BuildValue(block_, cast));
  }
  if (block_.type(value).rank() != 0) {
    OpBuilder reshape = Make("reshape");
    reshape.In("X", value)
        .Attr("shape", std::vector<int64_t>{})
        .Out("Out", name);
    HT_ASSIGN_OR_RETURN(value, BuildValue(block_, reshape));
  }
  return value;
}

absl::StatusOr<ValueId> Totals::Find(absl::string_view name) const {
  const ValueId value = block_.FindValue(name);
  if (value.valid()) return value;
  return CompilerBug("entry ", entry_.name(), ": there is no value \"", name,
                     "\" for the totals");
}

absl::Status Totals::AddMean(const std::string& name, ValueId count,
                             const std::string& result,
                             absl::string_view local) {
  HT_ASSIGN_OR_RETURN(ValueId mean, Find(name));
  const bool is_mean = program_.loss.mask.empty() && IsMean(mean);
  HT_ASSIGN_OR_RETURN(mean, AsScalar(mean, absl::StrCat(local, ".local")));
  if (!is_mean) {
    // The sum of nothing is 0, though a model that divides by what it counts
    // has a NaN for its mean.
    OpBuilder kept = Make("keep_counted");
    kept.In("X", mean)
        .In("Count", count)
        .Out("Out", absl::StrCat(local, ".counted"));
    HT_ASSIGN_OR_RETURN(mean, BuildValue(block_, kept));
  }
  OpBuilder product = Make("elementwise_mul");
  product.In("X", mean)
      .In("Y", count)
      .Out("Out", absl::StrCat(result, ".local"));
  HT_ASSIGN_OR_RETURN(const ValueId sum, BuildValue(block_, product));
  AddResult(result, AddMember(sum, result));
  return absl::OkStatus();
}

absl::Status Totals::AddLoss() {
  if (program_.loss.var.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const ValueId count, LocalCount(program_, block_));
  HT_RETURN_IF_ERROR(AddMean(program_.loss.var, count, kLossSum, "@loss"));
  AddResult(kCount, AddMember(count, kCount));
  const std::vector<LossPart>& parts = program_.loss.parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string result = absl::StrCat(kLossPartPrefix, i);
    HT_RETURN_IF_ERROR(AddMean(parts[i].name, count, result, result));
  }
  return absl::OkStatus();
}

absl::Status Totals::AddMetrics() {
  // Metrics over the same value share its count.
  absl::flat_hash_map<ValueId, ValueId> counts;
  for (const MetricInfo& metric : program_.metrics) {
    const std::string name = absl::StrCat(kMetricPrefix, metric.name);
    HT_ASSIGN_OR_RETURN(ValueId var, Find(metric.var));
    HT_ASSIGN_OR_RETURN(var, AsScalar(var, absl::StrCat(name, ".local")));
    AddResult(name, AddMember(var, name));

    const std::string over_name = absl::StrCat(kOverPrefix, metric.name);
    HT_ASSIGN_OR_RETURN(const ValueId over, Find(metric.over));
    ValueId& count = counts[over];
    if (!count.valid() && metric.over == program_.loss.mask) {
      HT_ASSIGN_OR_RETURN(count, LocalCount(program_, block_));
    }
    if (!count.valid()) {
      OpBuilder elements = Make("element_count");
      elements.In("X", over).Out("Out", absl::StrCat(over_name, ".local"));
      HT_ASSIGN_OR_RETURN(count, BuildValue(block_, elements));
    }
    AddResult(over_name, AddMember(count, over_name));
  }
  return absl::OkStatus();
}

absl::Status Totals::AddStop() {
  HT_ASSIGN_OR_RETURN(const ValueId stop, WellKnownValue(&block_, kStop));
  AddResult(kStopped, AddMember(stop, kStopped));
  return absl::OkStatus();
}

absl::Status Totals::AddRanks() {
  HT_ASSIGN_OR_RETURN(const ValueId weight, RankWeight(block_));
  AddMember(weight, kRanks);
  return absl::OkStatus();
}

// One message for all norms: each rank's statistics, gathered and combined, or
// those of rank 0. Of norms that share them in groups another.
absl::Status Totals::AddBatchNorms(bool of_rank0) {
  std::map<int64_t, std::vector<OpId>> norms;  // by group size
  for (OpId id : OpsOfType(block_, "batch_norm")) norms[1].push_back(id);
  for (OpId id : OpsOfType(block_, "sync_batch_norm")) {
    const int64_t group = AttrAs<int64_t>(block_.op(id), "group_size");
    if (group > 0) norms[group].push_back(id);
  }
  for (auto& [group, members] : norms) {
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [this](OpId id) {
                                   const ValueId mean =
                                       InputOf(block_.op(id), "Mean");
                                   return !block_.value(mean).cell().valid();
                                 }),
                  members.end());
    if (members.empty()) continue;
    HT_RETURN_IF_ERROR(of_rank0 ? TakeRank0(members) : Combine(members, group));
  }
  return absl::OkStatus();
}

absl::Status Totals::TakeRank0(absl::Span<const OpId> norms) {
  OpBuilder broadcast = Make("broadcast");
  broadcast.Name("totals.norms");
  for (int i = 0; i < 2; ++i) AddStatistic(norms, i, "X", "Out", &broadcast);
  return broadcast.Build().status();
}

absl::Status Totals::Combine(absl::Span<const OpId> norms, int64_t group_size) {
  OpBuilder combine = Make("combine_stats");
  combine.Name("totals.norms").Unique().Attr("of", std::string("totals"));
  if (group_size > 1) combine.Attr("replicas", group_size);
  if (in_tree_) combine.Attr("order", std::string("tree"));
  static constexpr const char* kSlots[] = {"Mean", "Variance", "Count"};
  for (int i = 0; i < 3; ++i) {
    AddStatistic(norms, i, kSlots[i], kSlots[i], &combine);
  }
  return combine.Build().status();
}

void Totals::AddStatistic(absl::Span<const OpId> norms, int which,
                          absl::string_view in, absl::string_view out,
                          OpBuilder* builder) {
  static constexpr const char* kLocals[] = {"BatchMean", "BatchVariance",
                                            "BatchCount"};
  static constexpr const char* kGlobals[] = {".global_mean", ".global_variance",
                                             ".global_count"};
  std::vector<ValueId> values;
  for (OpId id : norms) {
    const Op& norm = block_.op(id);
    values.push_back(norm.out(norm.schema->FindOutput(kLocals[which])));
    builder->Out(out, absl::StrCat(block_.name(norm), kGlobals[which]));
  }
  builder->In(in, values);
}

absl::Status Totals::Reduce() {
  OpBuilder reduction = Make("all_reduce");
  reduction.Name("totals").In("X", members_).Attr("of", std::string("totals"));
  if (in_tree_) reduction.Attr("order", std::string("tree"));
  for (const std::string& name : names_) reduction.Out("Out", name);
  HT_ASSIGN_OR_RETURN(const OpId made, reduction.Build());
  const auto outputs = block_.op(made).outputs.all();
  for (const auto& [name, member] : results_) {
    entry_.results().push_back({name, outputs[member]});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> InsertTotals(Program& program, Entry& entry,
                                  const proto::Dist& dist) {
  Block& block = entry.block();
  if (!ReductionsOf(block, "totals").empty()) return false;
  const bool train = entry.name() == kTrainEntry;
  OpId backward = train ? block.first() : OpId();
  while (backward.valid() && block.op(backward).role != Role::kBackward) {
    backward = block.next(backward);
  }
  const Block::Position position{backward};
  Totals totals(program, entry, position, HasVirtualShards(dist));
  HT_RETURN_IF_ERROR(totals.AddLoss());
  HT_RETURN_IF_ERROR(totals.AddMetrics());
  if (train) HT_RETURN_IF_ERROR(totals.AddStop());
  if (train && MeansOverRanks(dist)) HT_RETURN_IF_ERROR(totals.AddRanks());
  if (totals.empty()) return false;
  HT_RETURN_IF_ERROR(totals.Reduce());
  if (train) {
    HT_RETURN_IF_ERROR(
        totals.AddBatchNorms(dist.batch_norm_statistics() == "rank0"));
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
