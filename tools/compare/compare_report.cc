#include "tools/compare/compare_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"
#include "tools/report/html.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;
using runtime::ComparedValue;
using runtime::Comparison;
using runtime::ThreeDigits;
using runtime::ValueErrors;

bool OfPrograms(const Comparison& comparison) {
  return !comparison.entry.empty();
}

// Beyond three digits there is nothing to be seen.
std::string Share(const ValueErrors& errors, int64_t count) {
  if (count == 0) return "-";
  return absl::StrCat(ThreeDigits(100 * errors.share(count)), " %");
}

std::string Ulps(double ulps) { return WithCommas(static_cast<int64_t>(ulps)); }

// 1 - 3e-9 is no 1.
std::string Cosine(const ValueErrors& errors) {
  const double cosine = errors.cosine();
  return cosine > 0.999 && cosine < 1
             ? absl::StrCat("1-", ThreeDigits(1 - cosine))
             : ThreeDigits(cosine);
}

std::string Error(const ValueErrors& errors) {
  return errors.elements == 0 ? "-" : ThreeDigits(errors.relative_error());
}

std::vector<std::string> Head(const CompareFacts& facts) {
  std::vector<std::string> head = {"value", "in"};
  if (OfPrograms(facts.comparison)) head.push_back("made by");
  for (const char* column :
       {">error", ">max abs", ">mean abs", ">max rel", ">cosine", ">ulps",
        ">not finite", ">overflow", ">underflow"}) {
    head.emplace_back(column);
  }
  if (OfPrograms(facts.comparison)) head.emplace_back(">chained");
  if (OfPrograms(facts.comparison)) head.emplace_back("what would mend it");
  return head;
}

std::vector<std::string> Row(const CompareFacts& facts, int position) {
  const ComparedValue& value = facts.comparison.values[position];
  const ValueErrors& errors = ErrorsThatCount(value);
  const bool programs = OfPrograms(facts.comparison);
  std::vector<std::string> row = {value.value.name,
                                  std::string(Name(value.value.dtype))};
  if (programs) {
    row.push_back(
        value.value.fusion.empty()
            ? value.value.op
            : absl::StrCat(value.value.op, " in ", value.value.fusion));
  }
  for (std::string cell :
       {Error(errors), ThreeDigits(errors.max_abs_error),
        ThreeDigits(errors.mean_abs_error()), ThreeDigits(errors.max_rel_error),
        Cosine(errors), Ulps(errors.max_ulps), Share(errors, errors.non_finite),
        Share(errors, errors.overflow), Share(errors, errors.underflow)}) {
    row.push_back(std::move(cell));
  }
  if (programs) {
    row.push_back(Error(value.chained));
    row.push_back(facts.remedies[position]);
  }
  return row;
}

std::string TableText(const CompareFacts& facts, size_t rows) {
  std::vector<std::string> head = Head(facts);
  std::vector<int> right;
  for (size_t i = 0; i < head.size(); ++i) {
    if (head[i][0] != '>') continue;
    head[i].erase(0, 1);
    right.push_back(static_cast<int>(i));
  }
  Table table(std::move(head));
  for (const int column : right) table.RightAlign(column);
  for (size_t i = 0; i < std::min(rows, facts.order.size()); ++i) {
    table.Add(Row(facts, facts.order[i]));
  }
  return table.Text();
}

std::string Summary(const CompareFacts& facts) {
  const Comparison& comparison = facts.comparison;
  std::string text =
      absl::StrCat("compare   ", facts.compared, " against ", facts.reference);
  if (OfPrograms(comparison)) {
    absl::StrAppend(
        &text, ": ", comparison.entry, ", ",
        runtime::Count(comparison.batches, "batch"), " of ", comparison.batch,
        ", each from the same parameters; gradients without their loss scale, ",
        ThreeDigits(comparison.loss_scaling));
  }
  const auto hidden = std::count_if(
      comparison.values.begin(), comparison.values.end(),
      [](const ComparedValue& value) { return !value.value.fusion.empty(); });
  absl::StrAppend(&text, "\nvalues    ", comparison.values.size(), " compared");
  if (hidden > 0) {
    absl::StrAppend(&text, ", of them ", hidden,
                    " of fusions' bodies, which run beside them");
  }
  if (!comparison.unmatched.empty()) {
    absl::StrAppend(&text, "; ", comparison.unmatched.size(),
                    " without counterpart: ",
                    PrintableName(runtime::JoinFew(comparison.unmatched, 5)));
  }
  return text + "\n";
}

// Of what the values' errors are; --only may have left the ops alone out.
const char* HowMeasured(const Comparison& comparison) {
  if (!OfPrograms(comparison)) return "";
  const bool alone = std::any_of(
      comparison.values.begin(), comparison.values.end(),
      [](const ComparedValue& value) { return value.isolated.elements > 0; });
  return alone ? " of the op alone, fed with the reference's values"
               : " of the chain, each program on its own";
}

std::string Verdict(const CompareFacts& facts) {
  if (!facts.has_tolerance) return "";
  const int64_t exceeding = facts.exceeding();
  const std::string bound =
      absl::StrCat(facts.bound.measure, " ", ExactDouble(facts.bound.most));
  return exceeding == 0
             ? absl::StrCat("tolerance all values are within ", bound, "\n")
             : absl::StrCat("tolerance ", runtime::Count(exceeding, "value"),
                            " above ", bound, "\n");
}

Json Number(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

Json ErrorsJson(const ValueErrors& errors) {
  return {{"elements", errors.elements},
          {"error", Number(errors.relative_error())},
          {"max_abs", errors.max_abs_error},
          {"mean_abs", errors.mean_abs_error()},
          {"max_rel", errors.max_rel_error},
          {"cosine", Number(errors.cosine())},
          {"ulps", errors.max_ulps},
          {"max_reference", errors.max_reference},
          {"non_finite", errors.share(errors.non_finite)},
          {"overflow", errors.share(errors.overflow)},
          {"underflow", errors.share(errors.underflow)}};
}

Json ValueJson(const ComparedValue& value) {
  Json json = {{"name", value.value.name}, {"dtype", Name(value.value.dtype)}};
  if (!value.value.op.empty()) {
    json["op"] = value.value.op;
    json["role"] = value.value.backward ? "backward" : "forward";
  }
  if (!value.value.fusion.empty()) json["fusion"] = value.value.fusion;
  if (value.isolated.elements > 0)
    json["isolated"] = ErrorsJson(value.isolated);
  if (value.chained.elements > 0) json["chained"] = ErrorsJson(value.chained);
  return json;
}

}  // namespace

std::string CompareText(const CompareFacts& facts) {
  const size_t shown = facts.all ? facts.order.size() : kWorstValues;
  std::string text = Summary(facts);
  if (shown < facts.order.size()) {
    absl::StrAppend(&text, "worst     ", shown, " by ", facts.bound.measure,
                    HowMeasured(facts.comparison), "; all: --all\n");
  }
  return absl::StrCat(text, TableText(facts, shown), Verdict(facts));
}

std::string CompareJson(const CompareFacts& facts) {
  const Comparison& comparison = facts.comparison;
  Json json = {{"schema", 1},
               {"compared", facts.compared},
               {"reference", facts.reference}};
  if (OfPrograms(comparison)) {
    json["fingerprints"] = {{"compared", facts.compared_fingerprint},
                            {"reference", facts.reference_fingerprint}};
    json["entry"] = comparison.entry;
    json["batches"] = comparison.batches;
    json["batch"] = comparison.batch;
    json["loss_scaling"] = comparison.loss_scaling;
    json["ms"] = {{"reference", comparison.reference_ms},
                  {"isolated", comparison.isolated_ms},
                  {"chained", comparison.chained_ms}};
  }
  json["values"] = Json::array();
  for (const ComparedValue& value : comparison.values) {
    json["values"].push_back(ValueJson(value));
  }
  json["worst"] = Json::array();
  for (size_t i = 0; i < facts.order.size() && i < kWorstValues; ++i) {
    const int position = facts.order[i];
    Json worst = {{"name", comparison.values[position].value.name}};
    if (!facts.remedies[position].empty()) {
      worst["remedy"] = facts.remedies[position];
    }
    json["worst"].push_back(std::move(worst));
  }
  json["unmatched"] = comparison.unmatched;
  if (facts.has_tolerance) {
    json["tolerance"] = {{"measure", facts.bound.measure},
                         {"most", facts.bound.most},
                         {"exceeding", facts.exceeding()}};
  }
  return JsonText(json);
}

std::string CompareHtml(const CompareFacts& facts) {
  std::vector<std::vector<std::string>> worst, all;
  std::vector<std::string> colours;
  for (size_t i = 0; i < facts.order.size() && i < kWorstValues; ++i) {
    worst.push_back(Row(facts, facts.order[i]));
  }
  for (size_t i = 0; i < facts.comparison.values.size(); ++i) {
    if (ErrorsThatCount(facts.comparison.values[i]).elements == 0) continue;
    all.push_back(Row(facts, static_cast<int>(i)));
    colours.emplace_back(Name(facts.comparison.values[i].value.dtype));
  }
  return HtmlPage(
      absl::StrCat(facts.compared, " against ", facts.reference),
      absl::StrCat("<pre>", HtmlEscaped(Summary(facts)),
                   HtmlEscaped(Verdict(facts)), "</pre>\n<h2>worst by ",
                   HtmlEscaped(facts.bound.measure), "</h2>\n",
                   HtmlTable(Head(facts), worst), "<h2>all, in the program's ",
                   "order</h2>\n<p>", HtmlFilter(), "</p>\n",
                   HtmlTable(Head(facts), all, colours)));
}

}  // namespace tools
}  // namespace halftone
