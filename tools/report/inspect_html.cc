#include "tools/report/inspect_html.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/text.h"
#include "graph/ir/decision.h"
#include "passes/report.h"
#include "runtime/log/words.h"
#include "tools/report/cast_texts.h"
#include "tools/report/compile_report.h"
#include "tools/report/html.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

std::string Span(absl::string_view text, absl::string_view attributes = "") {
  return absl::StrCat("<span", attributes, ">", HtmlEscaped(text), "</span>");
}

const char* ColourOf(const std::string& precision) {
  for (const char* known : {"f16", "bf16", "f32"}) {
    if (precision == known) return known;
  }
  return "other";
}

// The rest of a name behind its scope.
std::string LeafOf(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

std::string OpRowHtml(const proto::OpRow& op) {
  return absl::StrCat(
      "<div class=\"op ", ColourOf(op.precision()), "\">",
      Span(LeafOf(op.name()),
           absl::StrCat(" class=\"n\" title=\"", HtmlEscaped(op.name()), "\"")),
      Span(op.type()), Span(op.precision()),
      Span(WhyText(op),
           absl::StrCat(" title=\"", HtmlEscaped(RuleOf(op.reason())), "\"")),
      Span(op.op_class()),
      Span(op.has_line() ? absl::StrCat(":", op.line()) : ""), "</div>\n");
}

// "12 ops, 11 low": what a folded scope holds.
std::string ScopeText(const std::string& scope, int ops, int low) {
  return absl::StrCat("<summary>", Span(scope, " class=\"n\""), " ",
                      runtime::Count(ops, "op"), ", ", low, " low</summary>\n");
}

// Ops as a tree: a <details> for each run of ops in a scope.
std::string Tree(const std::vector<const proto::OpRow*>& ops) {
  std::string html;
  std::vector<std::string> open;
  for (size_t i = 0; i < ops.size(); ++i) {
    std::vector<std::string> scopes = absl::StrSplit(ops[i]->name(), '/');
    scopes.pop_back();
    size_t same = 0;
    while (same < open.size() && same < scopes.size() &&
           open[same] == scopes[same]) {
      ++same;
    }
    for (; open.size() > same; open.pop_back()) html += "</details>\n";
    for (; open.size() < scopes.size();) {
      open.push_back(scopes[open.size()]);
      const std::string prefix = absl::StrJoin(open, "/") + "/";
      int count = 0, low = 0;
      for (size_t k = i; k < ops.size() && ops[k]->name().rfind(prefix, 0) == 0;
           ++k) {
        ++count;
        if (ops[k]->precision() != "f32") ++low;
      }
      html += "<details open>" + ScopeText(open.back(), count, low);
    }
    html += OpRowHtml(*ops[i]);
  }
  for (size_t i = 0; i < open.size(); ++i) html += "</details>\n";
  return html;
}

std::string CastsHtml(const ModelFacts& facts) {
  CastTexts texts(facts);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> classes;
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    rows.push_back(
        {cast.name(), cast.from(), cast.to(),
         cast.for_op_size() == 0 ? "the update"
                                 : absl::StrJoin(cast.for_op(), " "),
         absl::StrCat(cast.reason(), cast.because_of_size() > 0 ? " <- " : "",
                      absl::StrJoin(cast.because_of(), " ")),
         WithCommas(passes::BytesPerStep(cast, facts.samples)),
         texts.Fate(cast), texts.Without(cast)});
    classes.push_back(ColourOf(cast.to()));
  }
  return HtmlTable({"cast", "from", "to", "for", "reason", ">bytes/step",
                    "fate", "without it"},
                   rows, classes);
}

std::string ParamsHtml(const ModelFacts& facts) {
  std::vector<std::vector<std::string>> rows;
  for (const proto::ParamRow& param : facts.model->report.param()) {
    rows.push_back({param.name(),
                    absl::StrCat(param.dtype(), "[",
                                 absl::StrJoin(param.shape(), ","), "]"),
                    param.has_low_cell() ? param.low_cell() : "-",
                    param.has_gradient_dtype() ? param.gradient_dtype() : "-"});
  }
  return HtmlTable({"parameter", "type", "low cell", "gradient"}, rows);
}

std::string BucketsHtml(const ModelFacts& facts) {
  std::vector<std::vector<std::string>> rows;
  for (const proto::BucketRow& bucket : facts.model->report.bucket()) {
    rows.push_back({absl::StrCat(rows.size() + 1), bucket.dtype(),
                    WithCommas(bucket.bytes()),
                    absl::StrJoin(bucket.member(), " ")});
  }
  return HtmlTable({"all-reduce", "dtype", ">bytes", "gradients"}, rows);
}

std::string Section(const char* title, bool open, const std::string& content) {
  return absl::StrCat("<details", open ? " open" : "", "><summary><b>", title,
                      "</b></summary>\n", content, "</details>\n");
}

}  // namespace

std::string InspectHtml(const ModelFacts& facts) {
  const CompiledModel& model = *facts.model;
  std::vector<const proto::OpRow*> others;
  for (const proto::OpRow& op : model.ops.all()) {
    if (op.role() != "forward") others.push_back(&op);
  }
  const std::string head = absl::StrCat(
      "<div class=\"op head\">", Span("op"), Span("type"), Span("runs in"),
      Span("why"), Span("list"), Span("line"), "</div>\n");
  std::string html = absl::StrCat(
      "<p>", HtmlEscaped(model.source.file), ", ",
      HtmlEscaped(model.fingerprint), "; bytes at ",
      runtime::Count(facts.samples, "sample"), " on one rank</p>\n<pre>",
      HtmlEscaped(CompileText(facts, /*path=*/"", /*bytes=*/0)), "</pre>\n",
      "<p>", HtmlFilter(), " ",
      Span(facts.low, absl::StrCat(" class=\"", facts.low, "\"")), " ",
      Span("f32", " class=\"f32\""), "</p>\n");
  html += Section("ops", /*open=*/true, head + Tree(OwnOps(model)));
  html += Section("casts", /*open=*/true, CastsHtml(facts));
  html += Section("parameters", /*open=*/false, ParamsHtml(facts));
  html +=
      Section("all-reduces of gradients", /*open=*/false, BucketsHtml(facts));
  html += Section("backward ops", /*open=*/false, head + Tree(others));
  return HtmlPage(model.source.model.name(), html);
}

}  // namespace tools
}  // namespace halftone
