#include "tools/report/model_facts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/io/model_graph.h"
#include "graph/ir/decision.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/targets/target.h"
#include "kernels/bound_op.h"
#include "passes/report.h"
#include "runtime/gpu/targets.h"
#include "tools/common/planned_peak.h"

namespace halftone {
namespace tools {
namespace {

void CountCells(const Program& program, StateBytes* state) {
  std::vector<bool> has_low(program.num_cells(), false);
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind == CellKind::kDerived) has_low[cell.of.index()] = true;
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    const int64_t bytes = kernels::Bind(cell.type, SymbolValues{}).bytes();
    switch (cell.kind) {
      case CellKind::kParameter:
        (has_low[i] ? state->copies : state->parameters) += bytes;
        break;
      case CellKind::kStatistic:
        state->statistics += bytes;
        break;
      case CellKind::kAverage:
      case CellKind::kSlot: {
        state->slots += bytes;
        const std::string name = cell.name.substr(cell.name.rfind('.') + 1);
        if (state->slot_names.find(name) == std::string::npos) {
          absl::StrAppend(&state->slot_names,
                          state->slot_names.empty() ? "" : " + ", name);
        }
        break;
      }
      case CellKind::kDerived:
        state->low_cells += bytes;
        break;
      case CellKind::kScaler:
      case CellKind::kClock:
      case CellKind::kAccumulator:
        state->others += bytes;
        break;
    }
  }
}

void CountOps(const CompiledModel& model, ModelFacts* facts) {
  ForEachHead(model.ops, [facts](const OpHead& op) {
    if (op.role != Name(Role::kForward)) return;
    ++facts->ops;
    if (op.precision == facts->low) {
      ++facts->low_ops;
      return;
    }
    auto& groups = facts->f32_ops;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return g.reason == op.reason;
    });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {std::string(op.reason), 0, {}});
    }
    if (++group->count <= OpsOfReason::kMost)
      group->first.emplace_back(op.name);
  });
}

void CountCasts(const CastRows& casts, ModelFacts* facts) {
  casts.ForEach([facts](const proto::CastRow& cast) {
    ++(cast.to() == "f32" ? facts->up : facts->down);
    const int64_t bytes = passes::BytesPerStep(cast, facts->samples);
    facts->cast_bytes += bytes;
    if (cast.fate() == "standalone") {
      ++facts->standalone;
      facts->standalone_bytes += bytes;
    } else {
      ++(cast.fate() == "cell" ? facts->cell : facts->folded);
    }
  });
}

void CountReductions(const CompiledModel& model, ModelFacts* facts) {
  for (const proto::BucketRow& bucket : model.report.bucket()) {
    facts->bucket_bytes[bucket.dtype()] += bucket.bytes();
    facts->gradients += bucket.member_size();
  }
  const Entry* train = model.program->FindEntry(kTrainEntry);
  if (train == nullptr) return;
  const Block& block = train->block();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.schema->name() != "all_reduce" &&
        op.schema->name() != "reduce_scatter" &&
        op.schema->name() != "combine_stats") {
      continue;
    }
    const std::string of = AttrAs<std::string>(op, "of");
    if (of == "totals") ++facts->totals;
    if (of == "counts") ++facts->counts;
    if (of == "statistics") ++facts->statistics_reductions;
    if (of != "gradient") continue;
    for (ValueId value : op.inputs.all()) {
      facts->gradient_values += block.type(value).Elements().coefficient();
    }
  }
}

absl::StatusOr<int64_t> PeakFor(const CompiledModel& model,
                                const ModelFacts& facts) {
  if (facts.trains && facts.entry == kEvalEntry) {
    return PeakOf(*model.program, model.target, kEvalEntry, facts.samples);
  }
  HT_ASSIGN_OR_RETURN(
      const runtime::RunMemory memory,
      PlannedMemory(QuestionOf(model, facts.samples, /*ranks=*/1)));
  return memory.bytes();
}

bool RunsOnGpus(const std::string& target) {
  const Target* known = FindTarget(target);
  return known != nullptr && known->is_gpu();
}

}  // namespace

std::vector<const proto::OpRow*> OwnOps(const CompiledModel& model) {
  std::vector<const proto::OpRow*> ops;
  for (const proto::OpRow& op : model.ops.all()) {
    if (op.role() == Name(Role::kForward)) ops.push_back(&op);
  }
  return ops;
}

WrittenTypes WrittenTypesOf(const CompiledModel& model) {
  WrittenTypes types;
  const ModelFile source = model.WholeSource();
  for (const proto::OpNode& node : source.model->op()) {
    types[NameOf(node)] = node.type();
  }
  return types;
}

absl::StatusOr<runtime::Plan> PlanFor(const CompiledModel& model,
                                      const std::string& entry, int64_t samples,
                                      int ranks, int threads) {
  HT_ASSIGN_OR_RETURN(const auto* kernels, runtime::KernelsOf(model.target));
  return runtime::MakePlan(
      RequestFor(*model.program, model.target, entry, samples, ranks, threads),
      *kernels, runtime::LayOutState(*model.program, ranks),
      runtime::TuningTable());
}

absl::StatusOr<ModelFacts> FactsOf(const CompiledModel& model, int64_t samples,
                                   const std::string& entry) {
  ModelFacts facts;
  facts.model = &model;
  facts.low = model.strategy.amp().dtype() == "bf16" ? "bf16" : "f16";
  facts.trains = model.program->FindEntry(kTrainEntry) != nullptr;
  facts.entry = !entry.empty() ? entry
                : facts.trains ? kTrainEntry
                               : kEvalEntry;
  facts.samples = samples > 0 ? samples : BatchOf(model.strategy, 1);
  if (facts.samples <= 0) facts.samples = 1;
  CountOps(model, &facts);
  CountCasts(model.casts, &facts);
  CountReductions(model, &facts);
  CountCells(*model.program, &facts.state);
  const absl::StatusOr<int64_t> peak = PeakFor(model, facts);
  if (peak.ok()) {
    facts.peak_bytes = *peak;
  } else if (!RunsOnGpus(model.target)) {
    return peak.status();
  }  // Else a GPU's kernels are not all here: the model is no worse for it.
  return facts;
}

}  // namespace tools
}  // namespace halftone
