// The draft of a plan: steps over nodes (pieces of storage to be placed).
// Private to runtime/plan.
#ifndef HALFTONE_RUNTIME_PLAN_DRAFT_H_
#define HALFTONE_RUNTIME_PLAN_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// A value's storage-to-be. Nodes that share storage point at one root.
struct Node {
  enum class Kind : uint8_t {
    kTemporary,
    kFeed,
    kCell,
    kConstant,
    kResult,  // lies in the result arena
    kGroup,   // a collective's members, side by side
  };
  Kind kind = Kind::kTemporary;
  std::string name;
  kernels::TensorDesc desc;
  int64_t bytes = 0;
  int32_t index = -1;  // kCell: CellId, kConstant: ConstantId
  int producer = -1;   // step that defines it; -1: there before the first
  int output = -1;     // its position among that step's outputs
  int last_use = -1;   // last step that reads it, through views too
  int root = -1;       // itself, or the node whose storage it lies in
  int64_t root_offset = 0;
  Slice slice;
  // Already promised a place (group member, result, committed in place).
  bool pinned = false;
};

using NodeNumbers = absl::InlinedVector<int, 4>;

struct DraftStep {
  Step step;
  NodeNumbers inputs, outputs;  // -1: no storage
  bool view = false;            // outputs[0] holds inputs[0]'s bytes
  // kAllReduce, kBroadcast, kAllGather: the group's node once it is formed.
  int group = -1;
  // kAllGather: `outputs` are the inputs as rank 0 gave them, and the group
  // holds the parts of all ranks.
  int rank = 0, world_size = 1;
};

struct Draft {
  int world_size = 1;
  std::vector<Node> nodes;
  std::vector<DraftStep> steps;
  std::vector<int> feeds;  // nodes, in the entry's order
  struct Commit {
    int cell, value;  // nodes
  };
  std::vector<Commit> commits;
  struct Result {
    std::string name;
    int value;  // node
  };
  std::vector<Result> results;
  std::vector<InlinedFusion> inlined;

  int AddNode(Node node);
  int Root(int node) const { return nodes[node].root; }
  // Fills producer and last_use from the steps, last_use through views.
  void ComputeLiveness();
};

// Turns an entry into steps: binds ops, chooses candidates, inlines fusions
// without a kernel, drops what is empty on this rank.
absl::StatusOr<Draft> MakeDraft(const PlanRequest& request,
                                const kernels::KernelRegistry& kernels,
                                const TuningTable& tuning);

// Decides who shares storage with whom and adds the copies that are needed:
// groups of collectives, results, commits in place, views.
void ShareStorage(Draft& draft);

// Gives every root its slice; returns the arenas' sizes.
std::array<int64_t, kArenas> PlaceNodes(Draft& draft, const StateLayout& state);

// Puts events between steps of different streams that touch one root.
void OrderStreams(Draft& draft);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_DRAFT_H_
