// The draft of a plan: steps over nodes (pieces of storage to be placed).
// Private to runtime/plan.
#ifndef HALFTONE_RUNTIME_PLAN_DRAFT_H_
#define HALFTONE_RUNTIME_PLAN_DRAFT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// A value's storage-to-be. Nodes that share storage point at one root. There
// are as many as values: names and types are the program's.
struct Node {
  enum class Kind : uint8_t {
    kTemporary,
    kFeed,
    kCell,
    kConstant,
    kResult,  // lies in the result arena
    kGroup,   // a collective's members, side by side
  };
  // A group that only the compute stream touches.
  bool by_liveness = false;
  Kind kind = Kind::kTemporary;
  // Already promised a place (group member, result, committed in place).
  bool pinned = false;
  ArenaKind arena = ArenaKind::kTemporary;
  int32_t index = -1;      // kCell: CellId, kConstant: ConstantId
  int producer = -1;       // step that defines it; -1: there before the first
  int output = -1;         // its position among that step's outputs
  int last_use = -1;       // last step that reads it, through views too
  int root = -1;           // itself, or the node whose storage it lies in
  absl::string_view name;  // the program's, the request's or the draft's
  const TensorType* type = nullptr;  // null: kGroup
  int64_t bytes = 0;
  int64_t offset = 0;  // in the arena
  int64_t root_offset = 0;

  Slice slice() const { return {arena, offset, bytes}; }
};

using NodeNumbers = absl::InlinedVector<int, 4>;

// What of a Step is known before it has its place, as small as it can be.
struct DraftStep {
  Step::Kind kind = Step::Kind::kKernel;
  StreamKind stream = StreamKind::kCompute;
  Role role = Role::kForward;
  DType dtype{};             // of a collective
  bool view = false;         // outputs[0] holds inputs[0]'s bytes
  bool takes_shard = false;  // a copy of this rank's part of inputs[0]
  OpId op;
  // Of a collective: the group's node once it is formed.
  int group = -1;
  int root = 0;
  float pre_scale = 1;
  // The op's, which the step is called by; null: a copy, called by what it
  // writes.
  const Block* block = nullptr;
  const kernels::Candidate* candidate = nullptr;
  // -1: no storage. kAllGather: `outputs` are the inputs as rank 0 gave them,
  // and the group holds the parts of all ranks.
  NodeNumbers inputs, outputs;
  int64_t workspace_bytes = 0, workspace_offset = 0;
  int64_t count = 0;
};

struct Draft {
  int rank = 0, world_size = 1;
  std::vector<Node> nodes;
  std::vector<DraftStep> steps;
  std::vector<int> feeds;  // nodes, in the entry's order
  struct Commit {
    int cell, value;  // nodes
  };
  std::vector<Commit> commits;
  struct Result {
    absl::string_view name;
    int value;  // node
    bool fetched = false;
  };
  std::vector<Result> results;
  std::vector<InlinedFusion> inlined;

  std::deque<std::string> made_names;  // of nodes that are no value's

  int AddNode(Node node);
  int Root(int node) const { return nodes[node].root; }
  absl::string_view NameOf(const DraftStep& step) const;
  // Fills producer and last_use from the steps, last_use through views.
  void ComputeLiveness();
};

// Turns an entry into steps: binds ops, chooses candidates, inlines fusions
// without a kernel, drops what is empty on this rank. The request and its
// program outlive the draft.
absl::StatusOr<Draft> MakeDraft(const PlanRequest& request,
                                const kernels::KernelRegistry& kernels,
                                const TuningTable& tuning);

// Decides who shares storage with whom and adds the copies that are needed:
// groups of collectives, results, commits in place, views.
void ShareStorage(Draft& draft);

// Gives every root its slice; returns the arenas' sizes.
std::array<int64_t, kArenas> PlaceNodes(Draft& draft, const StateLayout& state);

// Puts events between steps of different streams that touch one root; `steps`
// are the draft's.
void OrderStreams(const Draft& draft, std::vector<Step>& steps);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_DRAFT_H_
