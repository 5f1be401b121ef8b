#include "runtime/plan/plan.h"

#include <algorithm>
#include <array>
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
  return node < 0 ? Slice{} : draft.nodes[node].slice;
}

void FillSteps(Draft& draft, Plan& plan) {
  plan.steps.reserve(draft.steps.size());
  for (DraftStep& step : draft.steps) {
    step.step.inputs.reserve(step.inputs.size());
    for (int n : step.inputs) step.step.inputs.push_back(SliceOf(draft, n));
    if (step.group >= 0) {
      // The whole group, padding included, is one message.
      step.step.inputs.clear();
      step.step.outputs = {SliceOf(draft, step.group)};
    } else {
      for (int n : step.outputs) {
        step.step.outputs.push_back(SliceOf(draft, n));
      }
    }
    plan.steps.push_back(std::move(step.step));
  }
}

// The draft's names go with its values.
void FillValues(Draft& draft, Plan& plan) {
  for (int feed : draft.feeds) {
    const Node& node = draft.nodes[feed];
    plan.feeds.push_back({node.name, node.desc, node.slice});
  }
  for (const Draft::Result& result : draft.results) {
    const Node& node = draft.nodes[result.value];
    plan.results.push_back({result.name, node.desc, node.slice});
  }
  plan.values.reserve(draft.nodes.size());
  for (Node& node : draft.nodes) {
    if (node.producer < 0 && node.last_use < 0) continue;
    if (node.kind == Node::Kind::kGroup) continue;
    plan.values.push_back({std::move(node.name), node.desc, node.slice,
                           std::max(node.producer, 0),
                           std::max(node.producer, node.last_use)});
  }
  plan.inlined = std::move(draft.inlined);
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

using ArenaBytes = std::array<int64_t, kArenas>;

int64_t Sum(const ArenaBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
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
    case Step::Kind::kCopy:
      return "copy";
    case Step::Kind::kZero:
      return "zero";
  }
  return "?";
}

int64_t Plan::peak_bytes() const { return Sum(arena_bytes); }

absl::StatusOr<int64_t> PeakBytes(const PlanRequest& request,
                                  const kernels::KernelRegistry& kernels,
                                  const StateLayout& state,
                                  const TuningTable& tuning) {
  HT_ASSIGN_OR_RETURN(Draft draft, MakeDraft(request, kernels, tuning));
  return Sum(Place(request, state, draft));
}

absl::StatusOr<Plan> MakePlan(const PlanRequest& request,
                              const kernels::KernelRegistry& kernels,
                              const StateLayout& state,
                              const TuningTable& tuning) {
  HT_ASSIGN_OR_RETURN(Draft draft, MakeDraft(request, kernels, tuning));
  Plan plan;
  plan.entry = request.entry;
  plan.symbols = request.symbols;
  plan.world_size = request.bind.world_size;
  plan.arena_bytes = Place(request, state, draft);
  OrderStreams(draft);
  FillValues(draft, plan);
  FillSteps(draft, plan);
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
    if (step.kind != Step::Kind::kAllReduce &&
        step.kind != Step::Kind::kBroadcast &&
        step.kind != Step::Kind::kAllGather) {
      continue;
    }
    absl::StrAppend(&text, Name(step.kind), " ", step.outputs[0].bytes, " ",
                    Name(step.dtype), " ", step.root, "\n");
  }
  return StableHash(text);
}

}  // namespace runtime
}  // namespace halftone
