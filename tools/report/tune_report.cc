#include "tools/report/tune_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/ir/well_known.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"
#include "runtime/train/bindings.h"
#include "tools/common/json_text.h"
#include "tools/common/planned_peak.h"
#include "tools/report/model_facts.h"
#include "tools/report/roofline_report.h"

namespace halftone {
namespace tools {
namespace {

using runtime::Count;
using runtime::ThreeDigits;
using runtime::TimedCandidate;
using runtime::TunedOp;
using Json = nlohmann::ordered_json;

std::string TimesText(const TunedOp& op) {
  return absl::StrJoin(
      op.candidates, ", ", [](std::string* out, const TimedCandidate& timed) {
        absl::StrAppend(
            out, timed.name, " ",
            timed.failure.empty() ? ThreeDigits(timed.microseconds) : "-");
      });
}

struct Sums {
  double by_default = 0, chosen = 0;  // microseconds, all uses
  int changed = 0;
};
Sums SumsOf(const runtime::Tuned& tuned) {
  Sums sums;
  for (const TunedOp& op : tuned.ops) {
    const bool runs = op.candidates[0].failure.empty();
    sums.by_default +=
        op.uses * (runs ? op.default_microseconds() : op.microseconds());
    sums.chosen += op.uses * op.microseconds();
    if (op.chosen != 0) ++sums.changed;
  }
  return sums;
}

}  // namespace

absl::StatusOr<std::vector<runtime::TuneBinding>> TuneBindings(
    const CompiledModel& model, int64_t batch, int ranks) {
  if (batch == 0) batch = BatchOf(model.strategy, ranks);
  if (batch == 0) {
    return UsageError(
        "tune: the strategy names no batch; say one with --batch");
  }
  runtime::SamplerOptions sampler;
  sampler.world_size = ranks;
  sampler.shards = model.strategy.dist().virtual_shards();
  const runtime::StepCut cut(sampler, batch,
                             model.strategy.dist().gradient_merge().k_steps());
  std::vector<runtime::TuneBinding> bindings;
  const auto add = [&](const char* entry, const std::set<int64_t>& samples) {
    if (model.program->FindEntry(entry) == nullptr) return;
    for (auto s = samples.rbegin(); s != samples.rend() && *s > 0; ++s) {
      runtime::TuneBinding binding;
      binding.entry = entry;
      binding.symbols[0] = *s;
      bindings.push_back(std::move(binding));
    }
  };
  // The first ranks, and their first parts, may have one sample more than the
  // last ones.
  const int64_t last = cut.parts() - 1;
  const auto part = [&](int rank, int64_t number) {
    return cut.At(rank, number).count;
  };
  add(kTrainEntry, {part(0, last), part(ranks - 1, last)});
  if (last > 0) {
    add(kAccumulateEntry,
        {part(0, 0), part(0, last), part(ranks - 1, 0), part(ranks - 1, last)});
  }
  add(kEvalEntry, {runtime::PartOf(batch, ranks, 0).count,
                   runtime::PartOf(batch, ranks, ranks - 1).count});
  return bindings;
}

std::string TuneText(const runtime::Tuned& tuned, int runs,
                     const std::string& path) {
  Table table({"op", "type", "uses", "candidates, us", "chosen"});
  for (const TunedOp& op : tuned.ops) {
    table.Add({op.first, op.type, absl::StrCat(op.uses), TimesText(op),
               op.candidates[op.chosen].name});
  }
  const Sums sums = SumsOf(tuned);
  const runtime::TuningTable::Rates& rates = tuned.table.rates;
  const std::string reached =
      rates.memory > 0
          ? absl::StrCat("reached  ",
                         RatesText(static_cast<double>(rates.memory),
                                   static_cast<double>(rates.f32),
                                   static_cast<double>(rates.low)),
                         "; plan --roofline predicts by it\n")
          : "";
  return absl::StrCat(
      tuned.ops.empty() ? "" : table.Text(), "timed    ",
      Count(tuned.ops.size(), "shape"),
      " of ops with several kernels, median of ", Count(runs, "run"),
      ", caches flushed before each; ", tuned.table.device_description,
      "\nchosen   ", sums.changed, " other than the default; all uses ",
      ThreeDigits(sums.by_default), " -> ", ThreeDigits(sums.chosen), " us\n",
      reached, path, "  ", tuned.table.Hash(), "\n");
}

std::string TuneJson(const runtime::Tuned& tuned, int runs,
                     const std::string& path) {
  Json ops = Json::array();
  for (const TunedOp& op : tuned.ops) {
    Json candidates = Json::array();
    for (const TimedCandidate& timed : op.candidates) {
      Json one = {{"name", timed.name}};
      if (timed.failure.empty()) {
        one["microseconds"] = timed.microseconds;
      } else {
        one["failure"] = timed.failure;
      }
      candidates.push_back(std::move(one));
    }
    ops.push_back({{"op", op.first},
                   {"type", op.type},
                   {"key", op.key},
                   {"uses", op.uses},
                   {"chosen", op.candidates[op.chosen].name},
                   {"candidates", std::move(candidates)}});
  }
  const Sums sums = SumsOf(tuned);
  const runtime::TuningTable::Rates& rates = tuned.table.rates;
  const Json json = {
      {"schema", 1},
      {"device", tuned.table.device_description},
      {"runs", runs},
      {"table", path},
      {"hash", tuned.table.Hash()},
      {"default_microseconds", sums.by_default},
      {"chosen_microseconds", sums.chosen},
      {"rates",
       {{"memory", rates.memory}, {"low", rates.low}, {"f32", rates.f32}}},
      {"ops", std::move(ops)}};
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
