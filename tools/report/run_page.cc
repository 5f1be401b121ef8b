#include "tools/report/run_page.h"

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/json/json_of_number.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"
#include "tools/report/chart.h"
#include "tools/report/html.h"
#include "tools/report/run_verdict.h"

namespace halftone {
namespace tools {
namespace {

using SortedJson = nlohmann::json;

// ---- The table.

struct Fact {
  const char* name;
  const char* field;  // of summary.json
  std::string (*text)(const SortedJson& value);
};

std::string Plain(const SortedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return WithCommas(value.get<int64_t>());
  if (value.is_number()) return runtime::ThreeDigits(value.get<double>());
  return value.dump();
}

std::string Bytes(const SortedJson& value) {
  return value.is_number() ? HumanBytes(value.get<int64_t>()) : Plain(value);
}

// "top1 97.5 % (350/359), ...".
std::string Metrics(const SortedJson& value) {
  std::vector<std::string> metrics;
  if (!value.is_object()) return Plain(value);
  for (const auto& item : value.items()) {
    const SortedJson& metric = item.value();
    if (!metric.is_object() || !metric.contains("value")) continue;
    metrics.push_back(absl::StrCat(item.key(), " ", Plain(metric["value"])));
  }
  return runtime::JoinFew(metrics, 8, ", ");
}

constexpr Fact kFacts[] = {
    {"exit code", "exit", Plain},
    {"level", "level", Plain},
    {"dtype", "dtype", Plain},
    {"program", "fingerprint", Plain},
    {"data", "data", Plain},
    {"ranks", "ranks", Plain},
    {"batch", "batch_size", Plain},
    {"seed", "seed", Plain},
    {"epochs", "epochs", Plain},
    {"steps", "steps_attempted", Plain},
    {"applied", "steps_applied", Plain},
    {"skipped", "steps_skipped", Plain},
    {"first loss", "loss_first", Plain},
    {"last loss", "loss_last", Plain},
    {"eval loss", "eval_loss", Plain},
    {"metrics", "metrics", Metrics},
    {"best epoch", "best_epoch", Plain},
    {"loss scale at the end", "loss_scaling", Plain},
    {"samples per second", "samples_per_second", Plain},
    {"step, median, ms", "step_ms_median", Plain},
    {"step, 95 %, ms", "step_ms_p95", Plain},
    {"peak memory of a rank", "peak_bytes", Bytes},
    {"planned", "planned_bytes", Bytes},
    {"optimizer's state", "optimizer_bytes", Bytes},
};

std::string FactOf(const RunHistory& run, const Fact& fact) {
  if (!run.summary.is_object()) return "";
  const auto it = run.summary.find(fact.field);
  return it == run.summary.end() || it->is_null() ? "" : fact.text(*it);
}

std::vector<std::string> NamesOf(absl::Span<const RunHistory> runs) {
  std::vector<std::string> names;
  for (const RunHistory& run : runs) names.push_back(run.directory);
  return names;
}

// Rows that no run has are left out.
std::string FactsHtml(absl::Span<const RunHistory> runs) {
  std::vector<std::string> head = {""};
  for (const std::string& name : NamesOf(runs)) head.push_back(">" + name);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, auto&& text_of) {
    std::vector<std::string> row = {name};
    bool any = false;
    for (const RunHistory& run : runs) {
      row.push_back(text_of(run));
      any |= !row.back().empty();
    }
    if (any) rows.push_back(std::move(row));
  };
  add("state", [](const RunHistory& run) -> std::string {
    if (run.summary.is_object()) return "ended";
    return run.failure.is_object() ? "failed" : "goes on, or was killed";
  });
  add("went",
      [runs](const RunHistory& run) { return Text(VerdictOf(run, runs)); });
  add("last step in the log",
      [](const RunHistory& run) { return WithCommas(run.last_step); });
  for (const Fact& fact : kFacts) {
    add(fact.name,
        [&fact](const RunHistory& run) { return FactOf(run, fact); });
  }
  return HtmlTable(std::move(head), rows);
}

// ---- The charts.

const ThinnedSeries* Find(const RunHistory& run, const std::string& name) {
  const auto it = run.series.find(name);
  return it == run.series.end() ? nullptr : &it->second;
}

// Names of series that begin so, of all runs.
std::set<std::string> SeriesNames(absl::Span<const RunHistory> runs,
                                  absl::string_view prefix) {
  std::set<std::string> names;
  for (const RunHistory& run : runs) {
    for (const auto& [name, series] : run.series) {
      if (absl::StartsWith(name, prefix)) names.insert(name);
    }
  }
  return names;
}

// A curve of each run and series that is there.
std::vector<Curve> CurvesOf(absl::Span<const RunHistory> runs,
                            const std::vector<std::string>& names) {
  std::vector<Curve> curves;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (size_t n = 0; n < names.size(); ++n) {
      const ThinnedSeries* series = Find(runs[r], names[n]);
      if (series == nullptr) continue;
      std::string label = names.size() == 1
                              ? runs[r].directory
                              : absl::StrCat(runs[r].directory, " ", names[n]);
      curves.push_back({std::move(label), static_cast<int>(r), series, n > 0});
    }
  }
  return curves;
}

std::string ChartsHtml(absl::Span<const RunHistory> runs) {
  std::string html = ChartHtml("loss", CurvesOf(runs, {"loss", "eval loss"}));
  for (const std::string& part : SeriesNames(runs, "loss of ")) {
    html += ChartHtml(part, CurvesOf(runs, {part}));
  }
  for (const std::string& metric : SeriesNames(runs, "eval ")) {
    if (metric != "eval loss")
      html += ChartHtml(metric, CurvesOf(runs, {metric}));
  }
  html += ChartHtml("learning rate", CurvesOf(runs, {"lr"}));
  // Skipped steps of one run; those of several would hide one another.
  html += ChartHtml(
      runs.size() == 1 ? "loss scale, with skipped steps" : "loss scale",
      CurvesOf(runs, {"loss_scaling"}),
      runs.size() == 1 ? &runs[0].skipped : nullptr);
  html += ChartHtml("gradient norm", CurvesOf(runs, {"grad_norm"}));
  html += ChartHtml("share of gradients' elements that f16 makes 0",
                    CurvesOf(runs, {"gradients flushed"}));
  html += ChartHtml("step, ms", CurvesOf(runs, {"ms.step"}));
  for (const RunHistory& run : runs) {
    std::vector<Curve> parts;
    for (const auto& [name, series] : run.series) {
      if (!absl::StartsWith(name, "ms.") || name == "ms.step") continue;
      parts.push_back(
          {name.substr(3), static_cast<int>(parts.size()), &series});
    }
    html +=
        ChartHtml(absl::StrCat("parts of a step, ms: ", run.directory), parts);
  }
  return html;
}

// ---- What some runs have.

// The objects of a list as a table, a column for each of `fields`.
std::string ListHtml(const SortedJson& list,
                     const std::vector<std::string>& fields) {
  std::vector<std::vector<std::string>> rows;
  for (const SortedJson& item : list) {
    if (!item.is_object()) continue;
    std::vector<std::string> row;
    for (const std::string& field : fields) {
      const auto it = item.find(field);
      row.push_back(it == item.end() || it->is_null() ? "" : Plain(*it));
    }
    rows.push_back(std::move(row));
  }
  return rows.empty() ? "" : HtmlTable(fields, rows);
}

std::string SectionOf(const RunHistory& run, absl::string_view what, bool open,
                      const std::string& content) {
  if (content.empty()) return "";
  return HtmlSection(absl::StrCat(what, ": ", run.directory), open, content);
}

std::string PartsHtml(const RunHistory& run) {
  std::string html;
  const SortedJson& summary = run.summary;
  if (run.failure.is_object()) {
    html += SectionOf(
        run, "failure", /*open=*/true,
        absl::StrCat("<pre>",
                     HtmlEscaped(run.failure.dump(
                         1, ' ', false, SortedJson::error_handler_t::replace)),
                     "</pre>\n"));
  }
  if (!summary.is_object()) return html;
  if (summary.contains("profile") && summary["profile"].is_object()) {
    const SortedJson dearest =
        summary["profile"].value("dearest", SortedJson::array());
    std::set<std::string> fields;
    for (const SortedJson& op : dearest) {
      for (const auto& item : op.items()) fields.insert(item.key());
    }
    fields.erase("name");
    std::vector<std::string> columns = {"name"};
    columns.insert(columns.end(), fields.begin(), fields.end());
    html += SectionOf(run, "ops that take longest", /*open=*/true,
                      ListHtml(dearest, columns));
  }
  if (summary.contains("scale_events")) {
    html += SectionOf(run, "changes of the loss scale", /*open=*/false,
                      ListHtml(summary["scale_events"],
                               {"step", "epoch", "skipped", "scale_before",
                                "loss_scaling", "first_bad"}));
  }
  if (summary.contains("strategy") && summary["strategy"].is_string()) {
    html += SectionOf(
        run, "strategy", /*open=*/false,
        absl::StrCat("<pre>",
                     HtmlEscaped(summary["strategy"].get<std::string>()),
                     "</pre>\n"));
  }
  return html;
}

}  // namespace

std::string RunPage(absl::Span<const RunHistory> runs) {
  std::string html = absl::StrCat(FactsHtml(runs), ChartsHtml(runs));
  for (const RunHistory& run : runs) html += PartsHtml(run);
  return HtmlPage(runtime::JoinFew(NamesOf(runs), 3, ", "), html, kChartStyle,
                  kChartScript);
}

std::string RunPageJson(absl::Span<const RunHistory> runs) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"runs", nlohmann::ordered_json::array()}};
  for (const RunHistory& run : runs) {
    nlohmann::ordered_json last = nlohmann::ordered_json::object();
    for (const auto& [name, series] : run.series) {
      last[name] = JsonOfNumber(series.last());
    }
    const RunVerdict verdict = VerdictOf(run, runs);
    nlohmann::ordered_json one = {
        {"directory", run.directory}, {"went", verdict.went},
        {"why", verdict.why},         {"last_step", run.last_step},
        {"last", std::move(last)},    {"summary", run.summary},
        {"failure", run.failure}};
    json["runs"].push_back(std::move(one));
  }
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
