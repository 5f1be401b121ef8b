#include "runtime/plan/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/plan/draft.h"

namespace halftone {
namespace runtime {
namespace {

constexpr absl::string_view kArenaNames[kArenas] = {
    "state", "feed", "temporary", "communication", "result", "staging"};

Slice SliceOf(const Draft& draft, int node) {
  return node < 0 ? Slice{} : draft.nodes[node].slice();
}

std::vector<Slice> SlicesOf(const Draft& draft, absl::Span<const int> nodes) {
  std::vector<Slice> slices;
  slices.reserve(nodes.size());
  for (int n : nodes) slices.push_back(SliceOf(draft, n));
  return slices;
}

Step StepOf(const Draft& draft, const DraftStep& draft_step) {
  Step step;
  step.kind = draft_step.kind;
  step.stream = draft_step.stream;
  step.name = std::string(draft.NameOf(draft_step));
  step.role = draft_step.role;
  if (step.kind == Step::Kind::kKernel) {
    step.block = draft_step.block;
    step.op = draft_step.op;
    step.candidate = draft_step.candidate;
    step.workspace = {ArenaKind::kTemporary, draft_step.workspace_offset,
                      draft_step.workspace_bytes};
  }
  if (step.kind == Step::Kind::kReduceScatter ||
      step.kind == Step::Kind::kGatherShards) {
    const bool gathers = step.kind == Step::Kind::kGatherShards;
    for (int shard : gathers ? draft_step.inputs : draft_step.outputs) {
      Slice all = SliceOf(draft, shard);
      all.offset -= draft.rank * all.bytes;
      all.bytes *= draft.world_size;
      step.outputs.push_back(all);
    }
  } else if (draft_step.takes_shard) {
    step.outputs = SlicesOf(draft, draft_step.outputs);
    Slice part = SliceOf(draft, draft_step.inputs[0]);
    const int64_t begin = draft.rank * step.outputs[0].bytes;
    part.offset += begin;
    part.bytes = std::min(step.outputs[0].bytes, part.bytes - begin);
    step.inputs = {part};
  } else if (draft_step.group >= 0) {
    // The whole group, padding included, is one message.
    step.outputs = {SliceOf(draft, draft_step.group)};
  } else {
    step.inputs = SlicesOf(draft, draft_step.inputs);
    step.outputs = SlicesOf(draft, draft_step.outputs);
  }
  step.count = draft_step.count;
  step.dtype = draft_step.dtype;
  step.pre_scale = draft_step.pre_scale;
  step.root = draft_step.root;
  return step;
}

void FillValues(const Draft& draft, Plan& plan) {
  auto desc_of = [&plan](const Node& node) {
    return kernels::Bind(*node.type, plan.symbols);
  };
  for (int feed : draft.feeds) {
    const Node& node = draft.nodes[feed];
    plan.feeds.push_back({std::string(node.name), desc_of(node), node.slice()});
  }
  for (const bool fetched : {false, true}) {
    for (const Draft::Result& result : draft.results) {
      if (result.fetched != fetched) continue;
      const Node& node = draft.nodes[result.value];
      plan.results.push_back(
          {std::string(result.name), desc_of(node), node.slice(), fetched});
    }
  }
  plan.values.reserve(draft.nodes.size());
  for (const Node& node : draft.nodes) {
    if (node.producer < 0 && node.last_use < 0) continue;
    if (node.kind == Node::Kind::kGroup) continue;
    plan.values.push_back({std::string(node.name), desc_of(node), node.slice(),
                           std::max(node.producer, 0),
                           std::max(node.producer, node.last_use)});
  }
}

std::string PrintSlices(const std::vector<Slice>& slices) {
  return absl::StrJoin(slices, " ", [](std::string* out, const Slice& s) {
    if (s.bytes == 0) {
      out->append("-");
    } else {
      absl::StrAppend(out, Name(s.arena), "+", s.offset, ":", s.bytes);
    }
  });
}

PlanRequest OverRanks(PlanRequest request) {
  request.symbols.shards = request.bind.world_size;
  return request;
}

// Gives everything its place.
ArenaBytes Place(const PlanRequest& request, const StateLayout& state,
                 Draft& draft) {
  ShareStorage(draft);
  ArenaBytes bytes = PlaceNodes(draft, state);
  if (request.stage_feeds) {
    bytes[static_cast<int>(ArenaKind::kStaging)] =
        bytes[static_cast<int>(ArenaKind::kFeed)];
  }
  return bytes;
}

}  // namespace

int64_t TotalOf(const ArenaBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

absl::string_view Name(ArenaKind kind) {
  return kArenaNames[static_cast<int>(kind)];
}

absl::string_view Name(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::kKernel:
      return "kernel";
    case Step::Kind::kAllReduce:
      return "all_reduce";
    case Step::Kind::kBroadcast:
      return "broadcast";
    case Step::Kind::kAllGather:
      return "all_gather";
    case Step::Kind::kReduceScatter:
      return "reduce_scatter";
    case Step::Kind::kGatherShards:
      return "gather_shards";
    case Step::Kind::kCopy:
      return "copy";
    case Step::Kind::kZero:
      return "zero";
  }
  return "?";
}

bool IsCollective(Step::Kind kind) {
  return kind == Step::Kind::kAllReduce || kind == Step::Kind::kBroadcast ||
         kind == Step::Kind::kAllGather || kind == Step::Kind::kReduceScatter ||
         kind == Step::Kind::kGatherShards;
}

int64_t Plan::peak_bytes() const { return TotalOf(arena_bytes); }

absl::StatusOr<ArenaBytes> PlannedArenas(const PlanRequest& request,
                                         const kernels::KernelRegistry& kernels,
                                         const StateLayout& state,
                                         const TuningTable& tuning) {
  const PlanRequest bound = OverRanks(request);
  HT_ASSIGN_OR_RETURN(Draft draft, MakeDraft(bound, kernels, tuning));
  return Place(bound, state, draft);
}

absl::StatusOr<Plan> MakePlan(const PlanRequest& request,
                              const kernels::KernelRegistry& kernels,
                              const StateLayout& state,
                              const TuningTable& tuning) {
  const PlanRequest bound = OverRanks(request);
  HT_ASSIGN_OR_RETURN(Draft draft, MakeDraft(bound, kernels, tuning));
  Plan plan;
  plan.entry = bound.entry;
  plan.symbols = bound.symbols;
  plan.world_size = bound.bind.world_size;
  plan.arena_bytes = Place(bound, state, draft);
  FillValues(draft, plan);
  plan.steps.reserve(draft.steps.size());
  for (const DraftStep& step : draft.steps) {
    plan.steps.push_back(StepOf(draft, step));
  }
  OrderStreams(draft, plan.steps);
  plan.inlined = std::move(draft.inlined);
  return plan;
}

std::string Print(const Plan& plan) {
  std::string text = absl::StrCat("plan ", plan.entry, " B=", plan.symbols[0],
                                  " steps=", plan.steps.size(),
                                  " peak=", plan.peak_bytes(), "\n");
  for (int a = 0; a < kArenas; ++a) {
    absl::StrAppend(&text, "arena ", kArenaNames[a], " ", plan.arena_bytes[a],
                    "\n");
  }
  for (const Step& step : plan.steps) {
    absl::StrAppend(&text,
                    step.stream == StreamKind::kCompute ? "compute " : "comm ",
                    Name(step.kind), " ", step.name);
    if (step.candidate != nullptr) {
      absl::StrAppend(&text, " [", step.candidate->name, "]");
    }
    if (!step.inputs.empty()) {
      absl::StrAppend(&text, " in ", PrintSlices(step.inputs));
    }
    absl::StrAppend(&text, " out ", PrintSlices(step.outputs));
    if (step.workspace.bytes > 0) {
      absl::StrAppend(&text, " workspace ", step.workspace.bytes);
    }
    for (int event : step.waits) absl::StrAppend(&text, " wait e", event);
    if (step.records >= 0) absl::StrAppend(&text, " record e", step.records);
    text += '\n';
  }
  return text;
}

std::vector<std::string> LargestBuffers(const Plan& plan, int n) {
  std::vector<const PlannedValue*> values;
  for (const PlannedValue& value : plan.values) values.push_back(&value);
  std::stable_sort(values.begin(), values.end(),
                   [](const PlannedValue* a, const PlannedValue* b) {
                     return a->slice.bytes > b->slice.bytes;
                   });
  std::vector<std::string> lines;
  for (const PlannedValue* value : values) {
    if (static_cast<int>(lines.size()) == n) break;
    lines.push_back(absl::StrCat(value->name, " ",
                                 kernels::ToString(value->desc), " ",
                                 HumanBytes(value->slice.bytes)));
  }
  return lines;
}

uint64_t CollectiveHash(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    if (!IsCollective(step.kind)) continue;
    for (const Slice& member : step.outputs) {
      absl::StrAppend(&text, Name(step.kind), " ", member.bytes, " ",
                      Name(step.dtype), " ", step.root, "\n");
    }
  }
  return StableHash(text);
}

}  // namespace runtime
}  // namespace halftone
