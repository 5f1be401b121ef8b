#include "tools/report/diff_html.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/report.h"
#include "tools/report/cast_texts.h"
#include "tools/report/graph_data.h"
#include "tools/report/graph_page.h"
#include "tools/report/html.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {
namespace {

// A table of more rows takes a browser seconds.
constexpr size_t kMostDiffRows = 2000;

std::string NameOf(const CompiledModel& model) {
  return absl::StrCat(model.source.file, " (", model.strategy.amp().level(),
                      ", ", model.fingerprint, ")");
}

// A box in the colours of the drawing.
std::string Key(const char* style, absl::string_view text, int count) {
  return absl::StrCat("<span class=\"box key ", style, "\">", text, " ",
                      WithCommas(count), "</span>");
}

std::string Legend(const GraphData& graph) {
  std::map<GraphChange, int> ops, casts;
  for (const GraphOp& op : graph.ops) ++ops[op.change];
  for (const GraphCast& cast : graph.casts) ++casts[cast.change];
  return absl::StrCat(
      kPrecisionLegend, " <button id=\"next\">next difference</button><br>\n",
      Key("changed", "~ another precision", ops[GraphChange::kPrecision]),
      Key("rechosen", "~ another type or reason", ops[GraphChange::kReason]),
      Key("added", "+ only after", ops[GraphChange::kAdded]),
      Key("removed", "- only before", ops[GraphChange::kRemoved]),
      Key("other", "casts only after (blue)", casts[GraphChange::kAdded]),
      Key("other", "casts only before (red, dashed)",
          casts[GraphChange::kRemoved]));
}

std::string CastsHtml(const GraphData& graph, int64_t samples) {
  std::vector<std::vector<std::string>> rows;
  for (const GraphCast& cast : graph.casts) {
    if (cast.change == GraphChange::kNone) continue;
    const proto::CastRow& row = *cast.row;
    rows.push_back({cast.change == GraphChange::kAdded ? "+" : "-", row.name(),
                    row.from(), row.to(), ReadersText(row),
                    WithCommas(passes::BytesPerStep(row, samples)),
                    row.fate()});
    if (rows.size() == kMostDiffRows) break;
  }
  if (rows.empty()) return "";
  return HtmlSection(
      "casts of one of them alone", /*open=*/true,
      HtmlTable({"", "cast", "from", "to", "for", ">bytes/step", "fate"},
                rows));
}

absl::Status CheckCommon(const GraphData& merged, const CompiledModel& before,
                         const CompiledModel& after) {
  std::string only_before, only_after;
  for (const GraphOp& op : merged.ops) {
    if (op.change == GraphChange::kAdded) {
      if (only_after.empty()) only_after = op.row->name();
    } else if (op.change == GraphChange::kRemoved) {
      if (only_before.empty()) only_before = op.row->name();
    } else {
      return absl::OkStatus();
    }
  }
  return MakeError(ExitCode::kDiffer,
                   absl::StrCat("diff --html: ", before.source.file,
                                " (first op: ", only_before, ") and ",
                                after.source.file, " (first op: ", only_after,
                                ") have no op in common, by name; nothing can "
                                "be laid over each other"));
}

}  // namespace

absl::StatusOr<std::string> DiffHtml(const CompiledModel& before,
                                     const CompiledModel& after,
                                     const Difference& difference) {
  HT_ASSIGN_OR_RETURN(const ModelFacts old_facts, FactsOf(before));
  HT_ASSIGN_OR_RETURN(const ModelFacts new_facts, FactsOf(after));
  const GraphData merged = MergedGraph(GraphOf(old_facts), GraphOf(new_facts));
  HT_RETURN_IF_ERROR(CheckCommon(merged, before, after));
  const std::string html = absl::StrCat(
      "<p>before: ", HtmlEscaped(NameOf(before)),
      "<br>after: ", HtmlEscaped(NameOf(after)), "</p>\n<pre>",
      HtmlEscaped(DiffText(difference)), "</pre>\n",
      GraphHtml(GraphDiffJson(merged, old_facts, new_facts), Legend(merged)),
      "<p>", HtmlFilter(), " rows below</p>\n",
      CastsHtml(merged, new_facts.samples));
  return HtmlPage(
      absl::StrCat(before.source.model->name(), " before and after"), html,
      kGraphStyle, kGraphScript);
}

}  // namespace tools
}  // namespace halftone
