#include "tools/report/timeline_report.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"
#include "runtime/plan/rank_groups.h"
#include "runtime/report/report_text.h"
#include "tools/common/json_text.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {
namespace {

using runtime::Communication;
using runtime::ThreeDigits;
using runtime::Timeline;
using runtime::Topology;
using Json = nlohmann::ordered_json;

constexpr int kColumns = 80, kLabel = 13;
constexpr size_t kMostBuckets = 20;
constexpr int kMostRanks = 1024;
// Below this share of a step communication is no limit.
constexpr double kHidden = 0.05;

// What a step of so many ranks takes, each with as many samples.
struct Scaled {
  int ranks = 1;
  double ms = 0, exposed_ms = 0;
  double efficiency = 1;  // a step of one rank over this one
};

absl::StatusOr<std::vector<Scaled>> ScaledFor(const CompiledModel& model,
                                              const AskedTimeline& asked,
                                              int ranks_per_node) {
  const runtime::Plan& plan = asked.asked.plan;
  std::set<int> worlds = {asked.request.topology.ranks};
  for (int n = 1; n <= kMostRanks; n *= 2) worlds.insert(n);
  std::vector<Scaled> scaled;
  runtime::TimelineRequest request = asked.request;
  const Entry& entry = *model.program->FindEntry(plan.entry);
  for (int ranks : worlds) {
    if (ranks > 1 && !runtime::CheckRankGroups(entry, ranks).ok()) continue;
    request.topology.ranks = ranks;
    request.topology.per_machine = std::min(ranks, ranks_per_node);
    HT_ASSIGN_OR_RETURN(const runtime::Plan other,
                        PlanFor(model, plan.entry, plan.symbols[0], ranks));
    const Timeline timeline = runtime::TimelineOf(other, request);
    scaled.push_back({ranks, timeline.ms, timeline.exposed_ms});
    scaled.back().efficiency = scaled[0].ms / timeline.ms;
  }
  return scaled;
}

std::string Ms(double ms) { return absl::StrFormat("%.3f", ms); }
std::string MsText(double ms) { return absl::StrCat(ThreeDigits(ms), " ms"); }

const runtime::Step& StepOf(const AskedTimeline& asked,
                            const Communication& communication) {
  return asked.asked.plan.steps[communication.step];
}

std::string Beside(const Communication& communication) {
  if (communication.first.empty()) return "-";
  return communication.first == communication.last
             ? communication.first
             : absl::StrCat(communication.first, " .. ", communication.last);
}

std::string LinkText(const Link& link) {
  return absl::StrCat(link.name, " (", link.text,
                      "): ", ThreeDigits(link.bandwidth / 1e9), " GB/s, ",
                      ThreeDigits(1e6 * link.start), " us a call + ",
                      ThreeDigits(1e6 * link.latency), " us a hop");
}

// Those with most exposed, in the plan's order.
std::vector<const Communication*> Shown(const AskedTimeline& asked) {
  std::vector<const Communication*> shown;
  for (const Communication& c : asked.timeline.communications) {
    if (c.gradients) shown.push_back(&c);
  }
  if (shown.size() <= kMostBuckets) return shown;
  std::stable_sort(shown.begin(), shown.end(),
                   [](const Communication* a, const Communication* b) {
                     return a->exposed_ms > b->exposed_ms;
                   });
  shown.resize(kMostBuckets);
  std::sort(shown.begin(), shown.end(),
            [](const Communication* a, const Communication* b) {
              return a->step < b->step;
            });
  return shown;
}

std::string BucketsText(const AskedTimeline& asked, int columns) {
  const std::vector<const Communication*> shown = Shown(asked);
  Table table({"bucket", "bytes", "dtype", "ready", "start", "end", "exposed",
               "beside"});
  for (int column : {1, 3, 4, 5, 6}) table.RightAlign(column);
  for (const Communication* c : shown) {
    const runtime::Step& step = StepOf(asked, *c);
    table.Add({step.name, WithCommas(c->bytes), std::string(Name(step.dtype)),
               Ms(c->ready_ms), Ms(c->begin_ms), Ms(c->end_ms),
               Ms(c->exposed_ms), Beside(*c)});
  }
  int64_t bytes = 0;
  double exposed = 0;
  int others = 0;
  for (const Communication& c : asked.timeline.communications) {
    if (std::find(shown.begin(), shown.end(), &c) != shown.end()) continue;
    bytes += c.bytes;
    exposed += c.exposed_ms;
    ++others;
  }
  if (others > 0) {
    table.Add({absl::StrCat(others, " others"), WithCommas(bytes), "", "", "",
               "", Ms(exposed), "-"});
  }
  return table.Text(columns);
}

std::string ScalingText(const std::vector<Scaled>& scaled, int columns) {
  Table table({"ranks", "step ms", "exposed ms", "efficiency"});
  for (int column : {0, 1, 2, 3}) table.RightAlign(column);
  for (const Scaled& s : scaled) {
    table.Add({WithCommas(s.ranks), Ms(s.ms), Ms(s.exposed_ms),
               absl::StrFormat("%.1f %%", 100 * s.efficiency)});
  }
  return table.Text(columns);
}

// "computing", or the collective of which most is exposed, and why.
std::string Limit(const AskedTimeline& asked) {
  const Timeline& timeline = asked.timeline;
  if (timeline.exposed_ms < kHidden * timeline.ms) {
    return timeline.host_ms > timeline.compute_ms
               ? "the host, between steps"
               : "computing: communication is hidden, or short";
  }
  const Communication& worst = *std::max_element(
      timeline.communications.begin(), timeline.communications.end(),
      [](const Communication& a, const Communication& b) {
        return a.exposed_ms < b.exposed_ms;
      });
  const Topology& topology = asked.request.topology;
  const runtime::Step& step = StepOf(asked, worst);
  const double empty = runtime::CollectiveSeconds(step.kind, 0, topology);
  const bool waits = 1000 * empty > (worst.end_ms - worst.begin_ms) / 2;
  const Link& link =
      topology.machines() > 1 ? topology.between : topology.inside;
  return absl::StrCat(
      "communication, ", MsText(timeline.exposed_ms), " exposed: ", step.name,
      " most, by the ", waits ? "latency" : "bandwidth", " of ", link.name,
      asked.request.overlap
          ? ""
          : "; CPU ranks compute nothing while they communicate");
}

std::string SourceText(const AskedTimeline& asked,
                       const TimelineQuestion& question) {
  std::string text = question.profile.empty()
                         ? absl::StrCat(asked.request.roofline->device.name,
                                        asked.request.roofline->measured
                                            ? ", as halftone tune measured it"
                                            : ", by its data sheet")
                         : absl::StrCat("as measured: ", question.profile);
  if (asked.request.slower > 1) {
    absl::StrAppend(&text, ", times ", ThreeDigits(asked.request.slower), ": ",
                    ThreeDigits(question.cores_per_rank), " cores a rank");
  }
  return text;
}

std::string StepText(const Timeline& timeline) {
  std::string text = absl::StrCat(
      MsText(timeline.ms), " = computing ", ThreeDigits(timeline.compute_ms),
      " + exposed communication ", ThreeDigits(timeline.exposed_ms));
  if (timeline.host_ms > 0) {
    absl::StrAppend(&text, " + host ", ThreeDigits(timeline.host_ms));
  }
  if (timeline.communication_ms > 0) {
    absl::StrAppendFormat(
        &text, "; of %s communication %.0f %% hidden",
        MsText(timeline.communication_ms),
        100 *
            std::max(0.0, 1 - timeline.exposed_ms / timeline.communication_ms));
  }
  return text;
}

std::string BestText(const BestBuckets& found) {
  const auto lines = [](const BucketSizes& sizes) {
    return absl::StrCat(
        "  fuse_grad_size_in_MB: ", ExactDouble(sizes.fuse),
        "\n  first_bucket_size_in_MB: ", ExactDouble(sizes.first), "\n");
  };
  return absl::StrCat("\nbest buckets of ", found.tried,
                      " that differ: ", MsText(found.best.ms),
                      " a step, with the model's own ", MsText(found.now.ms),
                      "\ndist {\n", lines(found.best), "}\n");
}

Json ToJson(const Link& link) {
  return {{"name", link.name},
          {"bandwidth", link.bandwidth},
          {"start_us", 1e6 * link.start},
          {"latency_us", 1e6 * link.latency}};
}

Json ToJson(const AskedTimeline& asked, const Communication& c) {
  const runtime::Step& step = StepOf(asked, c);
  return {{"name", step.name},
          {"kind", std::string(Name(step.kind))},
          {"gradients", c.gradients},
          {"bytes", c.bytes},
          {"dtype", std::string(Name(step.dtype))},
          {"ready_ms", c.ready_ms},
          {"start_ms", c.begin_ms},
          {"end_ms", c.end_ms},
          {"exposed_ms", c.exposed_ms},
          {"beside", {{"first", c.first}, {"last", c.last}}}};
}

Json ToJson(const BestBuckets& found) {
  return {{"fuse_grad_size_in_MB", found.best.fuse},
          {"first_bucket_size_in_MB", found.best.first},
          {"step_ms", found.best.ms},
          {"tried", found.tried}};
}

Json ToJson(const AskedTimeline& asked, const std::vector<Scaled>& scaled,
            const std::optional<BestBuckets>& best) {
  const Timeline& timeline = asked.timeline;
  const Topology& topology = asked.request.topology;
  Json communications = Json::array(), scaling = Json::array();
  for (const Communication& c : timeline.communications) {
    communications.push_back(ToJson(asked, c));
  }
  for (const Scaled& s : scaled) {
    scaling.push_back({{"ranks", s.ranks},
                       {"step_ms", s.ms},
                       {"exposed_ms", s.exposed_ms},
                       {"efficiency", s.efficiency}});
  }
  Json json = {{"schema", 1},
               {"ranks", topology.ranks},
               {"ranks_per_node", topology.per_machine},
               {"batch", asked.asked.batch},
               {"samples_of_rank_0", asked.asked.plan.symbols[0]},
               {"link", ToJson(topology.inside)},
               {"between", ToJson(topology.between)},
               {"by_nodes", topology.by_nodes},
               {"overlap", asked.request.overlap},
               {"slower", asked.request.slower},
               {"step_ms", timeline.ms},
               {"compute_ms", timeline.compute_ms},
               {"communication_ms", timeline.communication_ms},
               {"exposed_ms", timeline.exposed_ms},
               {"host_ms", timeline.host_ms},
               {"communications", communications},
               {"scaling", scaling},
               {"limit", Limit(asked)}};
  if (best.has_value()) json["best_buckets"] = ToJson(*best);
  return json;
}

std::string HeadText(const CompiledModel& model, const AskedTimeline& asked,
                     const TimelineQuestion& question, int columns) {
  const Topology& topology = asked.request.topology;
  const auto line = [columns](const char* label, const std::string& text) {
    return Hanging(label, text, kLabel, columns);
  };
  std::string text =
      line("ranks",
           absl::StrCat(topology.ranks, " on ", model.target, ", ",
                        topology.per_machine, " a machine, batch ",
                        runtime::SplitText(asked.asked.batch, topology.ranks)));
  absl::StrAppend(&text, line("computing", SourceText(asked, question)),
                  line("link", LinkText(topology.inside)));
  if (topology.machines() > 1) {
    absl::StrAppend(&text, line("between", LinkText(topology.between)));
    if (topology.by_nodes) {
      absl::StrAppend(&text, line("sums",
                                  "inside each machine, then between "
                                  "them, then shared inside"));
    }
  }
  absl::StrAppend(&text, line("step", StepText(asked.timeline)));
  return text;
}

}  // namespace

absl::StatusOr<std::string> TimelineText(const CompiledModel& model,
                                         const TimelineQuestion& question,
                                         const runtime::TuningTable& tuning,
                                         bool json) {
  HT_ASSIGN_OR_RETURN(const AskedTimeline asked,
                      TimelineAsked(model, question, tuning));
  HT_ASSIGN_OR_RETURN(const std::vector<Scaled> scaled,
                      ScaledFor(model, asked, question.ranks_per_node));
  std::optional<BestBuckets> best;
  if (question.best_buckets) {
    HT_ASSIGN_OR_RETURN(best, FindBestBuckets(model, question, tuning));
  }
  if (json) return JsonText(ToJson(asked, scaled, best));
  const int terminal = ColumnsOf(stdout);
  const int columns = terminal > 0 ? terminal : kColumns;
  std::string text = HeadText(model, asked, question, columns);
  if (!asked.timeline.communications.empty()) {
    absl::StrAppend(&text, "\n", BucketsText(asked, columns));
  }
  absl::StrAppend(&text, "\n", ScalingText(scaled, columns), "\n",
                  Hanging("limit", Limit(asked), kLabel, columns));
  if (best.has_value()) absl::StrAppend(&text, BestText(*best));
  return text;
}

}  // namespace tools
}  // namespace halftone
