#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_schema.h"
#include "runtime/plan/draft.h"

namespace halftone {
namespace runtime {
namespace {

DraftStep CopyStep(int from, int to, Role role) {
  DraftStep copy;
  copy.kind = Step::Kind::kCopy;
  copy.role = role;
  copy.inputs = {from};
  copy.outputs = {to};
  return copy;
}

// Forms the groups of collectives: members side by side, outputs in place of
// inputs. A member that cannot be produced in its place is copied there. What
// is gathered has such a place for every rank, of which this rank's stays as it
// is.
class GroupFormer {
 public:
  explicit GroupFormer(Draft& draft) : draft_(draft) {
    for (const Draft::Commit& commit : draft.commits) {
      wanted_elsewhere_.insert(commit.value);
    }
    for (const Draft::Result& result : draft.results) {
      wanted_elsewhere_.insert(result.value);
      result_values_.insert(result.value);
    }
  }

  void Run() {
    for (size_t s = 0; s < draft_.steps.size(); ++s) {
      DraftStep& step = draft_.steps[s];
      if (step.kind == Step::Kind::kReduceScatter ||
          step.kind == Step::Kind::kGatherShards) {
        FormOfShards(step, static_cast<int>(s));
      } else if (step.kind == Step::Kind::kAllReduce ||
                 step.kind == Step::Kind::kBroadcast ||
                 step.kind == Step::Kind::kAllGather) {
        Form(step, static_cast<int>(s));
      }
    }
    if (!copies_.empty()) InsertCopies();
  }

 private:
  // Of a member, before the collective that is step `before`.
  struct MemberCopy {
    int before;
    DraftStep step;
  };

  // From the back, within the room that the draft has for them.
  void InsertCopies() {
    int from = static_cast<int>(draft_.steps.size());
    draft_.steps.resize(draft_.steps.size() + copies_.size());
    auto to = draft_.steps.rbegin();
    for (auto copy = copies_.rbegin(); copy != copies_.rend(); ++copy) {
      while (from > copy->before) *to++ = std::move(draft_.steps[--from]);
      *to++ = std::move(copy->step);
    }
  }

  void Form(DraftStep& step, int number) {
    Node group;
    group.kind = Node::Kind::kGroup;
    group.name = draft_.NameOf(step);
    group.pinned = true;
    const int g = draft_.AddNode(group);
    const bool gathers = step.kind == Step::Kind::kAllGather;
    int64_t part = 0;
    for (int member : step.inputs) part += Aligned(draft_.nodes[member].bytes);
    const int64_t own = gathers ? draft_.rank * part : 0;
    int64_t offset = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      int member = step.inputs[i];
      if (!ProducedInPlace(member, number, gathers)) {
        member = step.inputs[i] = CopyOf(member, number, step.role);
      }
      Place(member, g, own + offset);
      Place(step.outputs[i], g, offset);
      offset += Aligned(draft_.nodes[member].bytes);
      if (result_values_.contains(step.outputs[i])) {
        draft_.nodes[g].kind = Node::Kind::kResult;
      }
    }
    draft_.nodes[g].bytes = (gathers ? draft_.world_size : 1) * part;
    step.group = g;
    step.count = part / SizeOf(step.dtype);
  }

  // Members as large as one shard per rank, so that each is a tensor of its
  // own for the communicator; this rank's shard lies inside of its member.
  void FormOfShards(DraftStep& step, int number) {
    const bool gathers = step.kind == Step::Kind::kGatherShards;
    Node group;
    group.kind = Node::Kind::kGroup;
    group.name = draft_.NameOf(step);
    group.pinned = true;
    group.by_liveness = gathers;
    const int g = draft_.AddNode(group);
    int64_t offset = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (!ProducedInPlace(step.inputs[i], number, gathers)) {
        step.inputs[i] = CopyOf(step.inputs[i], number, step.role);
      }
      const int shard = gathers ? step.inputs[i] : step.outputs[i];
      const int whole = gathers ? step.outputs[i] : step.inputs[i];
      const int64_t bytes = draft_.nodes[shard].bytes;
      Place(whole, g, offset);
      Place(shard, g, offset + draft_.rank * bytes);
      offset += Aligned(draft_.world_size * bytes);
      if (result_values_.contains(whole)) {
        draft_.nodes[g].kind = Node::Kind::kResult;
      }
    }
    draft_.nodes[g].bytes = offset;
    step.group = g;
    step.count = offset / SizeOf(step.dtype);
  }

  // What is copied into a group before the collective.
  int CopyOf(int member, int before, Role role) {
    Node place = draft_.nodes[member];
    place.kind = Node::Kind::kTemporary;
    draft_.made_names.push_back(absl::StrCat(place.name, ".member"));
    place.name = draft_.made_names.back();
    const int copy = draft_.AddNode(place);
    copies_.push_back({before, CopyStep(member, copy, role)});
    return copy;
  }

  // Whether the producer may write into the group: nobody reads the value
  // after the collective has overwritten it, or keeps it elsewhere.
  bool ProducedInPlace(int member, int collective, bool stays) const {
    const Node& node = draft_.nodes[member];
    return node.kind == Node::Kind::kTemporary && !node.pinned &&
           node.producer >= 0 && (stays || node.last_use <= collective) &&
           !wanted_elsewhere_.contains(member);
  }

  void Place(int node, int group, int64_t offset) {
    draft_.nodes[node].root = group;
    draft_.nodes[node].root_offset = offset;
    draft_.nodes[node].pinned = true;
  }

  Draft& draft_;
  absl::flat_hash_set<int> wanted_elsewhere_, result_values_;
  std::vector<MemberCopy> copies_;  // in order
};

// Results lie where they are computed if nobody else decides where that is;
// otherwise they are copied at the end, before any commit.
void PlaceResults(Draft& draft) {
  absl::flat_hash_set<int> committed;
  for (const Draft::Commit& commit : draft.commits) {
    committed.insert(commit.value);
  }
  for (Draft::Result& result : draft.results) {
    Node& node = draft.nodes[result.value];
    const Node& root = draft.nodes[node.root];
    if (root.kind == Node::Kind::kResult && node.root != result.value) {
      continue;  // a member of a totals group
    }
    if (node.kind == Node::Kind::kTemporary && !node.pinned &&
        node.producer >= 0 && !committed.contains(result.value)) {
      node.kind = Node::Kind::kResult;
      node.pinned = true;
      continue;
    }
    Node place;
    place.kind = Node::Kind::kResult;
    place.name = result.name;
    place.type = node.type;
    place.bytes = node.bytes;
    place.pinned = true;
    const int copy = draft.AddNode(place);
    draft.steps.push_back(CopyStep(result.value, copy, Role::kOptimize));
    result.value = copy;
  }
}

// Whether `step` may write the output at that position over the cell's old
// value.
bool MayOverwrite(const DraftStep& step, int output, int cell) {
  if (step.kind != Step::Kind::kKernel) return false;
  const Op& op = step.block->op(step.op);
  const int slot = op.outputs.SlotOf(output);
  const int alias = op.schema->outputs()[slot].may_alias - 1;
  if (alias < 0) return false;
  const int member = output - op.outputs.begin(slot);
  const int input = op.inputs.begin(alias) + member;
  return input < op.inputs.end(alias) && step.inputs[input] == cell;
}

// The node whose storage views give to this one.
int BehindViews(const Draft& draft, int node) {
  for (;;) {
    const int producer = draft.nodes[node].producer;
    if (producer < 0 || !draft.steps[producer].view) return node;
    node = draft.steps[producer].inputs[0];
  }
}

// Commits take place in the cell's storage where no reader of the old value
// comes later; else by a copy at the end.
void PlaceCommits(Draft& draft) {
  std::vector<Draft::Commit> copies;
  absl::flat_hash_set<int> read_at_end;  // by commits of other cells
  for (const Draft::Commit& commit : draft.commits) {
    if (commit.cell == commit.value) continue;
    read_at_end.insert(BehindViews(draft, commit.value));
  }
  for (const Draft::Commit& commit : draft.commits) {
    if (commit.cell == commit.value) continue;
    Node& value = draft.nodes[commit.value];
    const int last_read = draft.nodes[commit.cell].last_use;
    const int producer = value.producer;
    const bool free = value.kind == Node::Kind::kTemporary && !value.pinned &&
                      producer >= 0 && !read_at_end.contains(commit.cell);
    if (free &&
        (last_read < producer ||
         (last_read == producer &&
          MayOverwrite(draft.steps[producer], value.output, commit.cell)))) {
      value.root = commit.cell;
      value.pinned = true;
    } else {
      copies.push_back(commit);
    }
  }
  // A value that lies in another cell's storage goes by way of a temporary,
  // so that commits that exchange cells do not overwrite each other.
  for (Draft::Commit& commit : copies) {
    const int source = BehindViews(draft, commit.value);
    if (draft.nodes[draft.Root(source)].kind != Node::Kind::kCell) continue;
    Node place = draft.nodes[commit.value];
    place.kind = Node::Kind::kTemporary;
    place.root_offset = 0;
    const int copy = draft.AddNode(place);
    draft.steps.push_back(CopyStep(commit.value, copy, Role::kOptimize));
    commit.value = copy;
  }
  for (const Draft::Commit& commit : copies) {
    draft.steps.push_back(CopyStep(commit.value, commit.cell, Role::kOptimize));
  }
}

// The outputs of views lie in their inputs' storage, unless they were
// promised a place of their own.
void ShareViews(Draft& draft) {
  for (DraftStep& step : draft.steps) {
    if (!step.view) continue;
    Node& out = draft.nodes[step.outputs[0]];
    const Node& in = draft.nodes[step.inputs[0]];
    if (out.pinned || out.bytes != in.bytes) continue;
    out.root = in.root;
    out.root_offset = in.root_offset;
    out.pinned = true;
  }
}

// A view's step does nothing where both sides are the same storage.
void DropIdleSteps(Draft& draft) {
  auto idle = [&draft](const DraftStep& step) {
    if (!step.view && step.kind != Step::Kind::kCopy) return false;
    const Node& in = draft.nodes[step.inputs[0]];
    const Node& out = draft.nodes[step.outputs[0]];
    return in.root == out.root && in.root_offset == out.root_offset;
  };
  draft.steps.erase(
      std::remove_if(draft.steps.begin(), draft.steps.end(), idle),
      draft.steps.end());
}

}  // namespace

void ShareStorage(Draft& draft) {
  draft.ComputeLiveness();
  GroupFormer(draft).Run();
  draft.ComputeLiveness();
  PlaceResults(draft);
  draft.ComputeLiveness();
  PlaceCommits(draft);
  ShareViews(draft);
  DropIdleSteps(draft);
  draft.ComputeLiveness();
}

}  // namespace runtime
}  // namespace halftone
