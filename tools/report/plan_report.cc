#include "tools/report/plan_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "nlohmann/json.hpp"
#include "passes/options/byte_text.h"
#include "passes/options/options.h"
#include "runtime/device/host_info.h"
#include "runtime/log/words.h"
#include "runtime/report/report_text.h"
#include "tools/common/json_text.h"
#include "tools/common/model_flags.h"
#include "tools/common/planned_peak.h"
#include "tools/report/inspect_report.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {
namespace {

using runtime::ArenaKind;
using runtime::Name;
using runtime::Plan;
using runtime::RunMemory;
using runtime::ThreadsOf;
using runtime::TotalOf;
using Json = nlohmann::ordered_json;

const char* MainEntry(const CompiledModel& model) {
  return model.program->FindEntry(kTrainEntry) != nullptr ? kTrainEntry
                                                          : kEvalEntry;
}

absl::StatusOr<std::string> EntryFor(const CompiledModel& model,
                                     const PlanQuestion& question) {
  if (question.entry.empty()) return std::string(MainEntry(model));
  std::vector<std::string> names;
  for (const auto& entry : model.program->entries()) {
    if (entry->name() == question.entry) return question.entry;
    names.push_back(entry->name());
  }
  return UsageError("--entry ", question.entry, ": the model has no such entry",
                    NearestHint(question.entry, names), "; it has ",
                    absl::StrJoin(names, ", "));
}

absl::StatusOr<int64_t> BatchFor(const CompiledModel& model,
                                 const PlanQuestion& question) {
  if (question.batch > 0) return question.batch;
  const int64_t batch = BatchOf(model.strategy, question.ranks);
  if (batch > 0) return batch;
  return UsageError("plan: the strategy names no batch; say one with --batch");
}

// What is odd about the split; empty: nothing.
std::string Remark(int64_t batch, int ranks) {
  if (batch >= ranks) return "";
  return absl::StrCat(ranks - batch, " of ", ranks,
                      " ranks have no sample and only take part in the "
                      "all-reduces; raise --batch to ",
                      ranks, " or more, or lower --ranks");
}

Json ToJson(const runtime::Slice& slice) {
  return {{"arena", std::string(Name(slice.arena))},
          {"offset", slice.offset},
          {"bytes", slice.bytes}};
}

Json ToJson(const runtime::Step& step) {
  Json json = {{"name", step.name}, {"kind", std::string(Name(step.kind))}};
  if (step.candidate != nullptr) json["kernel"] = step.candidate->name;
  for (const auto& [key, slices] : {std::pair("inputs", &step.inputs),
                                    std::pair("outputs", &step.outputs)}) {
    json[key] = Json::array();
    for (const runtime::Slice& slice : *slices) {
      json[key].push_back(ToJson(slice));
    }
  }
  json["workspace_bytes"] = step.workspace.bytes;
  return json;
}

// "conv1.stats.fused (conv_stats)", "act.fused (matmul_gelu: why not)".
std::vector<std::string> Inlined(const Plan& plan) {
  std::vector<std::string> inlined;
  for (const runtime::InlinedFusion& fusion : plan.inlined) {
    inlined.push_back(absl::StrCat(fusion.name, " (", fusion.pattern,
                                   fusion.refusal.empty() ? "" : ": ",
                                   fusion.refusal, ")"));
  }
  return inlined;
}

int CountFusions(const Block& block) {
  int fusions = 0;
  for (OpId id : block.ops()) fusions += block.op(id).body != nullptr;
  return fusions;
}

// "3 of 168 fusions op by op, ...: a (conv_stats), b (conv_stats) and 1 more".
std::string InlinedText(const CompiledModel& model, const Plan& plan) {
  constexpr size_t kMost = 4;
  const std::vector<std::string> names = Inlined(plan);
  const std::vector<std::string> first(
      names.begin(), names.begin() + std::min(names.size(), kMost));
  return absl::StrCat(
      names.size(), " of ",
      CountFusions(model.program->FindEntry(plan.entry)->block()),
      " fusions op by op, because no ", model.target,
      " kernel takes their shapes: ", absl::StrJoin(first, ", "),
      names.size() > kMost
          ? absl::StrCat(" and ", names.size() - kMost, " more")
          : "");
}

// What is shown of memory: a run's, or that of the one entry asked for.
absl::StatusOr<RunMemory> MemoryAsked(const CompiledModel& model,
                                      const PlanQuestion& question,
                                      const AskedPlan& asked) {
  if (question.entry.empty()) {
    return PlannedMemory(
        QuestionOf(model, asked.batch, question.ranks, question.threads));
  }
  RunMemory alone;
  alone.arenas = asked.plan.arena_bytes;
  return alone;
}

// Whether the gradients' buckets are reduced in it: eval has none.
bool ReducesGradients(const CompiledModel& model, const Plan& plan) {
  return plan.entry == kTrainEntry && model.report.bucket_size() > 0;
}

// What a collective does but for sums; "?": it is none that is shown.
absl::string_view HowOf(runtime::Step::Kind kind) {
  switch (kind) {
    case runtime::Step::Kind::kAllReduce:
      return "";
    case runtime::Step::Kind::kReduceScatter:
      return " scattered";
    case runtime::Step::Kind::kAllGather:
    case runtime::Step::Kind::kGatherShards:
      return " gathered";
    default:
      return "?";
  }
}

// What a collective sends, of one rank where it gathers.
int64_t BytesOf(const runtime::Step& step) {
  return step.count * SizeOf(step.dtype);
}

// All that the text has in its line of all-reduces, in the plan's order.
Json CollectivesJson(const Plan& plan) {
  Json json = Json::array();
  for (const runtime::Step& step : plan.steps) {
    if (HowOf(step.kind) == "?") continue;
    json.push_back({{"name", step.name},
                    {"kind", std::string(Name(step.kind))},
                    {"dtype", std::string(Name(step.dtype))},
                    {"bytes", BytesOf(step)}});
  }
  return json;
}

Json ToJson(const CompiledModel& model, const PlanQuestion& question,
            const AskedPlan& asked, const RunMemory& memory) {
  const Plan& plan = asked.plan;
  const int64_t batch = asked.batch;
  const int ranks = question.ranks;
  Json arenas, all_reduces = Json::array(), notes = Json::array();
  for (int a = 0; a < runtime::kArenas; ++a) {
    arenas[std::string(Name(static_cast<ArenaKind>(a)))] = memory.arenas[a];
  }
  Json entries = Json::array();
  for (const runtime::BoundEntry& bound : memory.entries) {
    entries.push_back({{"entry", bound.entry},
                       {"samples", bound.samples},
                       {"peak_bytes", TotalOf(bound.bytes)}});
  }
  for (const runtime::Step& step : plan.steps) {
    if (step.kind != runtime::Step::Kind::kAllReduce) continue;
    all_reduces.push_back({{"name", step.name},
                           {"dtype", std::string(Name(step.dtype))},
                           {"bytes", step.outputs[0].bytes}});
  }
  if (const std::string remark = Remark(batch, ranks); !remark.empty()) {
    notes.push_back(remark);
  }
  return {
      {"schema", 1},
      {"entry", plan.entry},
      {"ranks", ranks},
      {"batch", batch},
      {"threads", ThreadsOf(QuestionOf(model, batch, ranks, question.threads))},
      {"samples_of_rank_0", plan.symbols[0]},
      {"peak_bytes", memory.bytes()},
      {"arenas", arenas},
      {"entries", entries},
      {"optimizer_bytes",
       OptimizerBytes(*model.program,
                      runtime::LayOutState(*model.program, ranks))},
      {"buckets", ReducesGradients(model, plan) ? BucketsJson(model.report)
                                                : Json::array()},
      {"all_reduces", all_reduces},
      {"collectives", CollectivesJson(plan)},
      {"steps", plan.steps.size()},
      {"inlined_fusions", Inlined(plan)},
      {"notes", notes}};
}

// "10 in 2 buckets: f16 57,876 B (6), f32 384 B (4)".
std::string Buckets(const CompiledModel& model) {
  int gradients = 0;
  for (const proto::BucketRow& bucket : model.report.bucket()) {
    gradients += bucket.member_size();
  }
  const int buckets = model.report.bucket_size();
  return absl::StrCat(
      gradients, " in ", runtime::Count(buckets, "bucket"), ": ",
      absl::StrJoin(model.report.bucket(), ", ",
                    [](std::string* out, const proto::BucketRow& bucket) {
                      absl::StrAppend(out, bucket.dtype(), " ",
                                      WithCommas(bucket.bytes()), " B (",
                                      bucket.member_size(), ")");
                    }));
}

// What ranks share of it; empty: it is not sharded.
std::string OptimizerText(const CompiledModel& model, int ranks) {
  const Program& program = *model.program;
  if (!passes::ShardsOptimizer(model.strategy.dist())) return "";
  const int64_t own =
      OptimizerBytes(program, runtime::LayOutState(program, ranks));
  return absl::StrCat(
      "optimizer    ", HumanBytes(own), " on each rank, of ",
      HumanBytes(OptimizerBytes(program, runtime::LayOutState(program))),
      " without dist.sharding\n");
}

// The entries whose plans make up the peak, which share most of it, but for
// those of the startup; empty: there is one.
std::string EntriesText(const RunMemory& memory, const Plan& plan) {
  std::vector<std::string> names, texts;
  std::vector<int64_t> bytes;
  for (const runtime::BoundEntry& bound : memory.entries) {
    if (bound.entry == kInitEntry || bound.entry == kDeriveEntry) continue;
    const auto known = std::find(names.begin(), names.end(), bound.entry);
    if (known == names.end()) {
      names.push_back(bound.entry);
      bytes.push_back(TotalOf(bound.bytes));
    } else {
      int64_t& most = bytes[known - names.begin()];
      most = std::max(most, TotalOf(bound.bytes));
    }
  }
  if (names.size() < 2) return "";
  for (size_t i = 0; i < names.size(); ++i) {
    texts.push_back(absl::StrCat(names[i], " ", HumanBytes(bytes[i])));
  }
  return absl::StrCat("entries      ", absl::StrJoin(texts, ", "),
                      " share the peak; ", plan.entry,
                      " is shown below, others with --entry\n");
}

// " with 2 threads"; empty on GPUs.
std::string WithThreads(const CompiledModel& model,
                        const PlanQuestion& question) {
  return ThreadsText(" with ", QuestionOf(model, /*batch=*/0, question.ranks,
                                          question.threads));
}

std::string PeakText(const CompiledModel& model, const PlanQuestion& question,
                     const RunMemory& memory) {
  std::string text = absl::StrCat("peak         ", HumanBytes(memory.bytes()),
                                  " on rank 0", WithThreads(model, question));
  if (!question.entry.empty()) {
    absl::StrAppend(&text, " for ", question.entry, " alone");
  }
  for (int a = 0; a < runtime::kArenas; ++a) {
    const bool staging = static_cast<ArenaKind>(a) == ArenaKind::kStaging;
    if (staging && memory.arenas[a] == 0) continue;  // a CPU has none
    absl::StrAppend(&text, a == 0 ? " = " : " + ",
                    Name(static_cast<ArenaKind>(a)), " ",
                    HumanBytes(memory.arenas[a]));
  }
  return text + "\n";
}

// A line per collective, equal ones together.
std::string Collectives(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const runtime::Step& step : plan.steps) {
    const absl::string_view what = HowOf(step.kind);
    if (what == "?") continue;
    ++counts[absl::StrCat(Name(step.dtype), " ", WithCommas(BytesOf(step)),
                          " B", what)];
  }
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& c) {
    absl::StrAppend(out, c.second > 1 ? absl::StrCat(c.second, " x ") : "",
                    c.first);
  });
}

// Compiled again so that so many samples of a rank fit; an error where they
// cannot.
absl::StatusOr<CompiledModel> FittedTo(const CompiledModel& model,
                                       int64_t samples, int64_t limit,
                                       int threads) {
  const char* batch = model.strategy.train().batch_size() > 0
                          ? "train.batch_size"
                          : "train.batch_size_per_rank";
  return RecompileWith(
      model,
      {{batch, absl::StrCat(samples), "--max-batch"},
       {"train.memory_budget", absl::StrCat(limit), "--max-batch"}},
      /*taps=*/{}, threads);
}

}  // namespace

absl::StatusOr<int64_t> ParseBytes(const std::string& flag,
                                   const std::string& text) {
  const std::optional<int64_t> bytes = passes::BytesFromText(text);
  if (bytes) return *bytes;
  return UsageError(flag, " ", text, ": expected bytes such as 8GiB or 512MB");
}

absl::StatusOr<AskedPlan> PlanAsked(const CompiledModel& model,
                                    const PlanQuestion& question) {
  const int ranks = question.ranks;
  HT_ASSIGN_OR_RETURN(const int64_t batch, BatchFor(model, question));
  HT_ASSIGN_OR_RETURN(const std::string entry, EntryFor(model, question));
  const runtime::RunQuestion run =
      QuestionOf(model, batch, ranks, question.threads);
  HT_ASSIGN_OR_RETURN(const std::vector<runtime::BoundEntry> bound,
                      runtime::EntriesOfRun(run));
  int64_t samples = -1;
  for (const runtime::BoundEntry& of_run : bound) {
    if (of_run.entry == entry) samples = std::max(samples, of_run.samples);
  }
  // No run has it so: average on one rank.
  if (samples < 0) samples = (batch + ranks - 1) / ranks;
  HT_ASSIGN_OR_RETURN(Plan plan,
                      PlanFor(model, entry, samples, ranks, ThreadsOf(run)));
  return AskedPlan{batch, std::move(plan)};
}

absl::StatusOr<std::string> PlanText(const CompiledModel& model,
                                     const PlanQuestion& question, bool json) {
  HT_ASSIGN_OR_RETURN(const AskedPlan asked, PlanAsked(model, question));
  HT_ASSIGN_OR_RETURN(const RunMemory memory,
                      MemoryAsked(model, question, asked));
  const Plan& plan = asked.plan;
  if (json) return JsonText(ToJson(model, question, asked, memory));
  std::string text = absl::StrCat(
      "ranks        ", question.ranks, " on ", model.target, ", batch ",
      runtime::SplitText(asked.batch, question.ranks), "\n",
      PeakText(model, question, memory), EntriesText(memory, plan));
  absl::StrAppend(&text, "largest      ",
                  absl::StrJoin(runtime::LargestBuffers(plan, 4), ", "), "\n");
  text += OptimizerText(model, question.ranks);
  if (ReducesGradients(model, plan)) {
    absl::StrAppend(&text, "gradients    ", Buckets(model), "\n");
  }
  absl::StrAppend(&text, "all-reduces  ", Collectives(plan), "\nsteps        ",
                  plan.steps.size(), "; each: halftone plan --steps\n");
  if (!plan.inlined.empty()) {
    absl::StrAppend(&text, "inlined      ", InlinedText(model, plan), "\n");
  }
  const std::string remark = Remark(asked.batch, question.ranks);
  if (!remark.empty()) absl::StrAppend(&text, "note         ", remark, "\n");
  return text;
}

absl::StatusOr<std::string> StepsText(const CompiledModel& model,
                                      const PlanQuestion& question, bool json) {
  HT_ASSIGN_OR_RETURN(const AskedPlan asked, PlanAsked(model, question));
  const Plan& plan = asked.plan;
  if (!json) return runtime::Print(plan);
  HT_ASSIGN_OR_RETURN(const RunMemory memory,
                      MemoryAsked(model, question, asked));
  Json object = ToJson(model, question, asked, memory);
  object["step_list"] = Json::array();
  for (const runtime::Step& step : plan.steps) {
    object["step_list"].push_back(ToJson(step));
  }
  return JsonText(object);
}

absl::StatusOr<std::string> MaxBatchText(const CompiledModel& model,
                                         const PlanQuestion& question,
                                         const std::string& memory, bool json) {
  const int ranks = question.ranks;
  const std::string& budget = model.strategy.train().memory_budget();
  int64_t limit = runtime::FreeHostBytes() / ranks;
  if (!memory.empty()) {
    HT_ASSIGN_OR_RETURN(limit, ParseBytes("--memory", memory));
  } else if (!budget.empty()) {
    HT_ASSIGN_OR_RETURN(limit, ParseBytes("train.memory_budget", budget));
  }
  // Samples per rank: the largest that fits lies in [fits, too_many).
  int64_t fits = 0, too_many = 1, peak = 0;
  const auto try_samples = [&](int64_t samples) -> absl::StatusOr<bool> {
    absl::StatusOr<CompiledModel> fitted;
    if (!budget.empty()) {
      fitted = FittedTo(model, samples, limit, question.threads);
      if (!fitted.ok() && samples > 1) return false;
      HT_RETURN_IF_ERROR(fitted.status());
    }
    const CompiledModel& planned = budget.empty() ? model : *fitted;
    HT_ASSIGN_OR_RETURN(const RunMemory memory,
                        PlannedMemory(QuestionOf(planned, samples * ranks,
                                                 ranks, question.threads)));
    if (memory.bytes() > limit) return false;
    fits = samples;
    peak = memory.bytes();
    return true;
  };
  for (bool more = true; more && too_many < (int64_t{1} << 24);) {
    HT_ASSIGN_OR_RETURN(more, try_samples(too_many));
    if (more) too_many *= 2;
  }
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    HT_ASSIGN_OR_RETURN(const bool good, try_samples(middle));
    if (!good) too_many = middle;
  }
  if (fits == 0) {
    return OutOfMemoryError("not even one sample per rank fits ",
                            HumanBytes(limit));
  }
  if (json) {
    const int threads =
        ThreadsOf(QuestionOf(model, fits * ranks, ranks, question.threads));
    const nlohmann::ordered_json object = {
        {"schema", 1},        {"ranks", ranks},
        {"threads", threads}, {"max_batch", fits * ranks},
        {"peak_bytes", peak}, {"memory", limit}};
    return JsonText(object);
  }
  return absl::StrCat("max batch    ", runtime::SplitText(fits * ranks, ranks),
                      ": ", HumanBytes(peak), " of ", HumanBytes(limit),
                      " per rank", WithThreads(model, question), "\n");
}

}  // namespace tools
}  // namespace halftone
