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
#include "tools/report/graph_data.h"
#include "tools/report/graph_page.h"
#include "tools/report/html.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

// A table of more rows takes a browser seconds.
constexpr int kMostTableRows = 2000;

const char* ColourOf(const std::string& precision) {
  for (const char* known : {"f16", "bf16", "f32"}) {
    if (precision == known) return known;
  }
  return "other";
}

std::string CastsHtml(const ModelFacts& facts) {
  CastTexts texts(facts);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> classes;
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    const CastTexts::Row row = texts.Next(cast);
    rows.push_back(
        {cast.name(), cast.from(), cast.to(), ReadersText(cast),
         absl::StrCat(cast.reason(), cast.because_of_size() > 0 ? " <- " : "",
                      absl::StrJoin(cast.because_of(), " ")),
         WithCommas(passes::BytesPerStep(cast, facts.samples)), row.fate,
         row.without});
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

}  // namespace

std::string InspectHtml(const ModelFacts& facts) {
  const CompiledModel& model = *facts.model;
  std::string html = absl::StrCat(
      "<p>", HtmlEscaped(model.source.file), ", ",
      HtmlEscaped(model.fingerprint), "; bytes at ",
      runtime::Count(facts.samples, "sample"), " on one rank</p>\n<pre>",
      HtmlEscaped(CompileText(facts, /*path=*/"", /*bytes=*/0)), "</pre>\n");
  html += GraphHtml(GraphJson(facts), kPrecisionLegend) + "<p>" + HtmlFilter() +
          " rows below</p>\n";
  const int casts = model.casts.size();
  html += casts > kMostTableRows
              ? absl::StrCat("<p>", WithCommas(casts),
                             " casts: as marks above, and by halftone inspect "
                             "--all</p>\n")
              : HtmlSection("casts", /*open=*/true, CastsHtml(facts));
  html += HtmlSection("parameters", /*open=*/false, ParamsHtml(facts));
  html += HtmlSection("all-reduces of gradients", /*open=*/false,
                      BucketsHtml(facts));
  return HtmlPage(model.source.model->name(), html, kGraphStyle, kGraphScript);
}

}  // namespace tools
}  // namespace halftone
