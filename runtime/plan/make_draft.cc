#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_schema.h"
#include "kernels/common/gather.h"
#include "kernels/common/settings.h"
#include "runtime/plan/draft.h"
#include "runtime/plan/kernel_choice.h"
#include "runtime/plan/rank_groups.h"

namespace halftone {
namespace runtime {
namespace {

class Drafter {
 public:
  Drafter(const PlanRequest& request, const kernels::KernelRegistry& kernels,
          const TuningTable& tuning)
      : request_(request), chooser_(request, kernels, tuning) {
    draft_.rank = request.bind.rank;
    draft_.world_size = request.bind.world_size;
  }

  absl::StatusOr<Draft> Run() {
    const Entry* entry = request_.program->FindEntry(request_.entry);
    HT_CHECK(entry != nullptr, "no such entry");
    const Block& block = entry->block();
    // One rank stands for any number: what a model needs is first told so.
    if (draft_.world_size > 1) {
      HT_RETURN_IF_ERROR(CheckRankGroups(*entry, draft_.world_size));
    }
    HT_RETURN_IF_ERROR(CheckSizes(block));
    Scope scope{&block, std::vector<int>(block.value_limit(), -1)};
    for (ValueId feed : block.Feeds()) {
      draft_.feeds.push_back(NodeOf(scope, feed));
    }
    // With room for the copies of results and of what is committed: they are
    // few, but growing would take the steps twice.
    const size_t copies = entry->commits().size() + entry->results().size();
    draft_.steps.reserve(block.num_ops() + copies);
    draft_.nodes.reserve(block.num_values() + 2 * copies);
    HT_RETURN_IF_ERROR(DraftOps(scope));
    FlushSums();
    for (const CommitStatement& commit : entry->commits()) {
      draft_.commits.push_back(
          {CellNode(commit.cell), NodeOf(scope, commit.value)});
    }
    for (const Result& result : entry->results()) {
      draft_.results.push_back({result.name, NodeOf(scope, result.value)});
    }
    HT_RETURN_IF_ERROR(AddValues(scope));
    HT_RETURN_IF_ERROR(CheckSum());
    return std::move(draft_);
  }

 private:
  // A block with the nodes of its values, by value number.
  struct Scope {
    const Block* block;
    std::vector<int> nodes;
  };

  // Beyond any memory, sizes and indices need not fit into 64 bits either.
  absl::Status CheckSizes(const Block& block) const {
    const TypeTable& types = request_.program->types();
    std::vector<bool> too_large(types.size());
    for (int i = 0; i < types.size(); ++i) {
      constexpr int64_t kMostElements = int64_t{1} << 50;
      too_large[i] = types[TypeId(i)].Elements().Evaluate(request_.symbols) >
                     kMostElements;
    }
    // Almost always none is: which values have it need not be asked.
    return absl::c_linear_search(too_large, true) ? CheckTypes(block, too_large)
                                                  : absl::OkStatus();
  }

  absl::Status CheckTypes(const Block& block,
                          const std::vector<bool>& too_large) const {
    for (int i = 0; i < block.value_limit(); ++i) {
      const Value& value = block.value(ValueId(i));
      if (value.erased || !too_large[value.type.index()]) continue;
      return OutOfMemoryError(
          block.name(value.id), " : ",
          ToString(block.type(value.id), request_.program->symbols()),
          " has more than 2^50 elements on this rank, more than any device "
          "holds; use a smaller batch");
    }
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Block* body = block.op(id).body.get();
      if (body != nullptr) HT_RETURN_IF_ERROR(CheckTypes(*body, too_large));
    }
    return absl::OkStatus();
  }

  // Sums of bytes fit into 64 bits, whatever is placed where.
  absl::Status CheckSum() const {
    constexpr double kMostBytes = int64_t{1} << 56;
    double sum = 0;
    for (const Node& node : draft_.nodes)
      sum += static_cast<double>(node.bytes);
    for (const DraftStep& step : draft_.steps) {
      sum += static_cast<double>(step.workspace_bytes);
      if (!IsCollective(step.kind)) continue;
      // A group may hold the parts of all ranks.
      for (int n : step.inputs) {
        sum += static_cast<double>(draft_.nodes[n].bytes) * draft_.world_size;
      }
    }
    if (sum <= kMostBytes) return absl::OkStatus();
    return OutOfMemoryError(
        "entry ", request_.entry, ": its values and workspaces are more than ",
        "2^56 bytes on this rank, more than any device holds; use a smaller ",
        "batch");
  }

  int CellNode(CellId id) {
    const Cell& cell = request_.program->cell(id);
    return StateNode(Node::Kind::kCell, id.index(), cell.name, cell.type);
  }

  int ConstantNode(ConstantId id) {
    const Constant& constant = request_.program->constant(id);
    return StateNode(Node::Kind::kConstant, id.index(), constant.name,
                     constant.type);
  }

  // What lies in the state arena has one node, whatever reads it.
  int StateNode(Node::Kind kind, int32_t index, absl::string_view name,
                const TensorType& type) {
    const auto [it, fresh] = state_nodes_.try_emplace({kind, index}, -1);
    if (fresh) {
      Node node = NewNode(kind, name, type);
      node.index = index;
      it->second = draft_.AddNode(node);
    }
    return it->second;
  }

  Node NewNode(Node::Kind kind, absl::string_view name,
               const TensorType& type) const {
    Node node;
    node.kind = kind;
    node.name = name;
    node.type = &type;
    node.bytes = kernels::Bind(type, request_.symbols).bytes();
    return node;
  }

  int NodeOf(Scope& scope, ValueId id) {
    int& slot = scope.nodes[id.index()];
    if (slot >= 0) return slot;
    const Value& value = scope.block->value(id);
    if (value.definition == Definition::kCell) {
      return slot = CellNode(CellId(value.index));
    }
    if (value.definition == Definition::kConstant) {
      return slot = ConstantNode(ConstantId(value.index));
    }
    const Node::Kind kind = value.definition == Definition::kFeed
                                ? Node::Kind::kFeed
                                : Node::Kind::kTemporary;
    return slot = draft_.AddNode(
               NewNode(kind, scope.block->name(id), scope.block->type(id)));
  }

  absl::Status DraftOps(Scope& scope) {
    const Block& block = *scope.block;
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& op = block.op(id);
      const std::string& type = op.schema->name();
      if (ReadsSum(scope, op)) FlushSums();
      if (type == "all_reduce" && request_.bind.world_size > 1 &&
          AttrAs<std::string>(op, "order") != "any") {
        HT_RETURN_IF_ERROR(DraftOrderedSum(scope, op));
      } else if (type == "all_reduce" || type == "broadcast" ||
                 type == "reduce_scatter" || type == "all_gather") {
        DraftCollective(scope, op);
      } else if (type == "take_shard") {
        DraftTake(scope, op);
      } else {
        HT_RETURN_IF_ERROR(DraftKernel(scope, op));
      }
    }
    return absl::OkStatus();
  }

  void DraftCollective(Scope& scope, const Op& op) {
    DraftStep step = StepOf(scope, op);
    const std::string& type = op.schema->name();
    if (type == "all_gather") {
      step.kind = Step::Kind::kGatherShards;
    } else if (type != "broadcast") {
      step.kind = type == "all_reduce" ? Step::Kind::kAllReduce
                                       : Step::Kind::kReduceScatter;
      step.stream =
          BesideComputing(op) ? StreamKind::kCommunicate : StreamKind::kCompute;
      if (AttrAs<std::string>(op, "gradient_scale") == "pre") {
        step.pre_scale = kernels::ReductionScale(
            AttrAs<double>(op, "predivide"), request_.bind.world_size);
      }
    } else {
      step.kind = Step::Kind::kBroadcast;
      step.root = static_cast<int>(AttrAs<int64_t>(op, "root"));
    }
    if (step.inputs.empty()) return;
    // Totals are results, which lie side by side anyhow.
    if (request_.bind.world_size == 1 && step.pre_scale == 1 &&
        (step.kind == Step::Kind::kBroadcast ||
         (step.kind == Step::Kind::kAllReduce &&
          AttrAs<std::string>(op, "of") == "gradient"))) {
      return DraftViews(step);
    }
    step.dtype = DTypeOf(step.inputs[0]);
    draft_.steps.push_back(std::move(step));
  }

  // What one rank reduces stays as it is, and each member where it is: side by
  // side, the first to be made would keep room for all.
  void DraftViews(const DraftStep& collective) {
    for (size_t i = 0; i < collective.inputs.size(); ++i) {
      DraftStep& same = draft_.steps.emplace_back();
      same.kind = Step::Kind::kCopy;
      same.view = true;
      same.role = collective.role;
      same.inputs = {collective.inputs[i]};
      same.outputs = {collective.outputs[i]};
    }
  }

  // Whether a reduction has the stream that communicates.
  bool BesideComputing(const Op& op) const {
    return AttrAs<std::string>(op, "of") == "gradient" &&
           !AttrAs<bool>(op, "delayed") && request_.bind.world_size > 1;
  }

  // Gathers at once, beside what is computed; adds when somebody reads it, so
  // that computing does not wait for what comes from the other ranks.
  absl::Status DraftOrderedSum(Scope& scope, const Op& op) {
    DraftStep sum = StepOf(scope, op);
    HT_ASSIGN_OR_RETURN(const KernelChoice choice,
                        chooser_.ChoiceFor(*scope.block, op));
    HT_CHECK(choice.candidate != nullptr, "the sum's kernel is deterministic");
    GatherInputs(&sum);
    if (BesideComputing(op)) {
      draft_.steps.back().stream = StreamKind::kCommunicate;
    }
    sum.candidate = choice.candidate;
    sum.workspace_bytes = choice.workspace_bytes;
    summed_.insert(sum.outputs.begin(), sum.outputs.end());
    sums_.push_back(std::move(sum));
    return absl::OkStatus();
  }

  bool ReadsSum(const Scope& scope, const Op& op) const {
    if (sums_.empty()) return false;
    const auto inputs = op.inputs.all();
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId value) {
      const int node = scope.nodes[value.index()];
      return node >= 0 && summed_.contains(node);
    });
  }

  void FlushSums() {
    for (DraftStep& sum : sums_) draft_.steps.push_back(std::move(sum));
    sums_.clear();
    summed_.clear();
  }

  // Where the last shard is not full, the rest of it is 0.
  void DraftTake(Scope& scope, const Op& op) {
    const DraftStep members = StepOf(scope, op);
    for (size_t i = 0; i < members.inputs.size(); ++i) {
      DraftStep take = members;
      take.inputs = {members.inputs[i]};
      take.outputs = {members.outputs[i]};
      const int64_t bytes = draft_.nodes[take.outputs[0]].bytes;
      const int64_t left =
          draft_.nodes[take.inputs[0]].bytes - draft_.rank * bytes;
      if (left < bytes) ZeroOutputs(take);
      if (left <= 0) continue;
      take.kind = Step::Kind::kCopy;
      take.takes_shard = true;
      draft_.steps.push_back(std::move(take));
    }
  }

  DType DTypeOf(int node) const { return draft_.nodes[node].type->dtype; }

  // Puts the ranks' inputs of a kernel before it.
  void GatherInputs(DraftStep* kernel) {
    DraftStep gather;
    gather.kind = Step::Kind::kAllGather;
    gather.block = kernel->block;
    gather.op = kernel->op;
    gather.role = kernel->role;
    for (int& input : kernel->inputs) {
      if (input < 0) continue;  // its dims alone are read
      gather.inputs.push_back(input);
      const Node& own = draft_.nodes[input];
      draft_.made_names.push_back(absl::StrCat(own.name, ".gathered"));
      gather.outputs.push_back(
          input = draft_.AddNode(NewNode(Node::Kind::kTemporary,
                                         draft_.made_names.back(), *own.type)));
    }
    gather.dtype = DTypeOf(gather.inputs[0]);
    draft_.steps.push_back(std::move(gather));
  }

  DraftStep StepOf(Scope& scope, const Op& op) {
    DraftStep step;
    step.block = scope.block;
    step.op = op.id;
    step.role = op.role;
    for (int s = 0; s < op.inputs.slots(); ++s) {
      const bool shape_only = op.schema->inputs()[s].shape_only();
      for (ValueId v : op.inputs.slot(s)) {
        step.inputs.push_back(shape_only ? -1 : NodeOf(scope, v));
      }
    }
    for (ValueId v : op.outputs.all()) {
      step.outputs.push_back(NodeOf(scope, v));
    }
    return step;
  }

  absl::Status DraftKernel(Scope& scope, const Op& op) {
    DraftStep draft = StepOf(scope, op);
    if (Empty(draft)) return absl::OkStatus();
    if (ReadsEmpty(draft)) {
      ZeroOutputs(draft);
      return absl::OkStatus();
    }
    HT_ASSIGN_OR_RETURN(const KernelChoice choice,
                        chooser_.ChoiceFor(*scope.block, op));
    if (choice.candidate == nullptr) {
      if (op.body != nullptr) {
        draft_.inlined.push_back({std::string(scope.block->name(op)),
                                  AttrAs<std::string>(op, "pattern"),
                                  choice.refusal, op.body.get()});
        return InlineBody(draft, op);
      }
      return DeviceError(scope.block->name(op), " (", op.schema->name(),
                         "): every ", request_.bind.target,
                         " kernel of this op is not deterministic; allow "
                         "such kernels with --no-deterministic");
    }
    if (kernels::GathersRanks(*op.schema)) GatherInputs(&draft);
    draft.candidate = choice.candidate;
    draft.view = choice.view;
    draft.workspace_bytes = choice.workspace_bytes;
    draft_.steps.push_back(std::move(draft));
    return absl::OkStatus();
  }

  bool Empty(const DraftStep& draft) const {
    return !draft.outputs.empty() &&
           std::all_of(draft.outputs.begin(), draft.outputs.end(),
                       [this](int n) { return draft_.nodes[n].bytes == 0; });
  }
  bool ReadsEmpty(const DraftStep& draft) const {
    return std::any_of(draft.inputs.begin(), draft.inputs.end(), [this](int n) {
      return n >= 0 && draft_.nodes[n].bytes == 0;
    });
  }

  void ZeroOutputs(const DraftStep& draft) {
    for (int node : draft.outputs) {
      if (draft_.nodes[node].bytes == 0) continue;
      DraftStep zero;
      zero.kind = Step::Kind::kZero;
      zero.block = draft.block;
      zero.op = draft.op;
      zero.role = draft.role;
      zero.outputs = {node};
      draft_.steps.push_back(std::move(zero));
    }
  }

  // Plans the ops that a fusion stands for, in the fusion's place.
  absl::Status InlineBody(const DraftStep& draft, const Op& fusion) {
    const Block& body = *fusion.body;
    Scope scope{&body, std::vector<int>(body.value_limit(), -1)};
    const std::vector<ValueId> feeds = body.Feeds();
    for (size_t i = 0; i < feeds.size(); ++i) {
      scope.nodes[feeds[i].index()] = draft.inputs[i];
    }
    for (size_t i = 0; i < body.body_results().size(); ++i) {
      int& slot = scope.nodes[body.body_results()[i].index()];
      HT_CHECK(slot < 0, "a fusion's result is an argument or twice a result");
      slot = draft.outputs[i];
    }
    return DraftOps(scope);
  }

  // What is kept and what is fetched, unless they are results by themselves. A
  // glob may have named as many as there are values.
  absl::Status AddValues(Scope& scope) {
    if (request_.kept.empty() && request_.fetches.empty()) {
      return absl::OkStatus();
    }
    absl::flat_hash_set<absl::string_view> seen;
    const absl::flat_hash_set<absl::string_view> fetches(
        request_.fetches.begin(), request_.fetches.end());
    for (Draft::Result& result : draft_.results) {
      result.fetched = fetches.contains(result.name) &&
                       !absl::c_linear_search(request_.kept, result.name);
      seen.insert(result.name);
    }
    for (const std::string& name : request_.kept) {
      HT_RETURN_IF_ERROR(AddValue(scope, name, /*fetched=*/false, &seen));
    }
    for (const std::string& name : request_.fetches) {
      HT_RETURN_IF_ERROR(AddValue(scope, name, /*fetched=*/true, &seen));
    }
    return absl::OkStatus();
  }

  absl::Status AddValue(Scope& scope, const std::string& name, bool fetched,
                        absl::flat_hash_set<absl::string_view>* seen) {
    if (!seen->insert(name).second) return absl::OkStatus();
    const ValueId value = scope.block->FindValue(name);
    if (value.valid() && scope.block->type(value).sharded) {
      return UsageError("--fetch ", name,
                        ": each rank has a shard of it; "
                        "leave dist.sharding out, or fetch another value");
    }
    if (value.valid()) {
      draft_.results.push_back({name, NodeOf(scope, value), fetched});
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    for (int i = 0; i < scope.block->value_limit(); ++i) {
      const Value& v = scope.block->value(ValueId(i));
      if (!v.erased) names.emplace_back(scope.block->name(v.id));
    }
    return UsageError("--fetch ", name, ": entry ", request_.entry,
                      " computes no value of that name (it may have been "
                      "folded into a neighbour)",
                      NearestHint(name, names));
  }

  const PlanRequest& request_;
  KernelChooser chooser_;
  Draft draft_;
  absl::flat_hash_map<std::pair<Node::Kind, int32_t>, int> state_nodes_;
  // Sums of what is being gathered, and the nodes that they make.
  std::vector<DraftStep> sums_;
  absl::flat_hash_set<int> summed_;
};

}  // namespace

int Draft::AddNode(Node node) {
  const int number = static_cast<int>(nodes.size());
  node.root = number;
  nodes.push_back(node);
  return number;
}

absl::string_view Draft::NameOf(const DraftStep& step) const {
  if (step.block == nullptr) return nodes[step.outputs[0]].name;
  return step.block->name(step.block->op(step.op));
}

void Draft::ComputeLiveness() {
  for (Node& node : nodes) node.producer = node.last_use = -1;
  for (int s = static_cast<int>(steps.size()) - 1; s >= 0; --s) {
    const DraftStep& step = steps[s];
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      nodes[step.outputs[i]].producer = s;
      nodes[step.outputs[i]].output = static_cast<int>(i);
    }
    for (int n : step.inputs) {
      if (n >= 0) nodes[n].last_use = std::max(nodes[n].last_use, s);
    }
    if (step.view) {
      Node& in = nodes[step.inputs[0]];
      in.last_use = std::max(in.last_use, nodes[step.outputs[0]].last_use);
    }
  }
}

absl::StatusOr<Draft> MakeDraft(const PlanRequest& request,
                                const kernels::KernelRegistry& kernels,
                                const TuningTable& tuning) {
  return Drafter(request, kernels, tuning).Run();
}

}  // namespace runtime
}  // namespace halftone
