#include "tools/report/fail_on.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/report.h"
#include "tools/report/inspect_report.h"
#include "tools/report/lint_report.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kPerStep[] = "_per_step";

// The keys of TotalsJson; those per step under their short names, too.
std::vector<std::string> TotalNames() {
  ModelFacts facts;
  facts.peak_bytes = 0;  // has its key
  std::vector<std::string> names;
  const nlohmann::ordered_json totals = TotalsJson(facts);
  for (const auto& item : totals.items()) {
    names.push_back(item.key());
    absl::string_view stem = item.key();
    if (absl::ConsumeSuffix(&stem, kPerStep)) names.emplace_back(stem);
  }
  return names;
}

bool Holds(double found, const std::string& comparison, double number) {
  if (comparison == "<") return found < number;
  if (comparison == "<=") return found <= number;
  if (comparison == ">") return found > number;
  if (comparison == ">=") return found >= number;
  return (found == number) == (comparison == "==");
}

}  // namespace

absl::Status FailOn::AddCodes(absl::string_view glob, Condition condition) {
  std::vector<std::string> codes;
  bool matches = false;
  for (const passes::NoteDoc& doc : passes::NoteDocs()) {
    codes.emplace_back(doc.code);
    matches |= GlobMatch(glob, doc.code);
  }
  if (!matches) {
    return UsageError("--fail-on ", condition.text, ": no note's code matches ",
                      glob, NearestHint(glob, codes),
                      " (all: halftone explain --list)");
  }
  condition.code_glob = std::string(glob);
  conditions_.push_back(std::move(condition));
  return absl::OkStatus();
}

absl::Status FailOn::AddOne(absl::string_view text) {
  Condition condition;
  condition.text = std::string(text);
  absl::string_view glob = text;
  if (absl::ConsumePrefix(&glob, "lint:")) {
    return AddCodes(glob, std::move(condition));
  }
  const size_t begin = text.find_first_of("<>=!");
  const size_t end =
      begin == text.npos ? text.npos : text.find_first_not_of("<>=!", begin);
  if (begin == text.npos || end == text.npos) {
    return UsageError("--fail-on ", text,
                      ": expected a total with what it must not be "
                      "(standalone>0) or lint:CODES (lint:P*)");
  }
  condition.total =
      std::string(absl::StripAsciiWhitespace(text.substr(0, begin)));
  condition.comparison = std::string(text.substr(begin, end - begin));
  constexpr absl::string_view kComparisons[] = {"<",  "<=", ">",
                                                ">=", "==", "!="};
  if (!absl::c_linear_search(kComparisons, condition.comparison)) {
    return UsageError("--fail-on ", text, ": expected one of < <= > >= == !=, ",
                      "found ", condition.comparison);
  }
  const std::vector<std::string> names = TotalNames();
  if (!absl::c_linear_search(names, condition.total)) {
    return UsageError("--fail-on ", text, ": no total is called \"",
                      condition.total, "\"",
                      NearestHint(condition.total, names),
                      " (all: \"totals\" of halftone inspect --json)");
  }
  if (absl::c_linear_search(names, condition.total + kPerStep)) {
    condition.total += kPerStep;
  }
  if (!absl::SimpleAtod(text.substr(end), &condition.number) ||
      !std::isfinite(condition.number)) {
    return UsageError("--fail-on ", text, ": expected a number behind ",
                      condition.comparison, ", found \"", text.substr(end),
                      "\"");
  }
  conditions_.push_back(std::move(condition));
  return absl::OkStatus();
}

absl::Status FailOn::Add(absl::string_view conditions) {
  for (absl::string_view condition : absl::StrSplit(conditions, ',')) {
    HT_RETURN_IF_ERROR(AddOne(absl::StripAsciiWhitespace(condition)));
  }
  return absl::OkStatus();
}

std::vector<std::string> FailOn::Failures(const ModelFacts& facts) const {
  const nlohmann::ordered_json totals = TotalsJson(facts);
  std::vector<std::string> failures;
  for (const Condition& condition : conditions_) {
    if (condition.code_glob.empty()) {
      const auto it = totals.find(condition.total);
      if (it == totals.end()) {  // a peak that another machine would have
        failures.push_back(absl::StrCat(condition.text, ": not known for ",
                                        facts.model->target, " here"));
      } else if (Holds(it->get<double>(), condition.comparison,
                       condition.number)) {
        failures.push_back(
            absl::StrCat(condition.text, ": it is ", it->dump()));
      }
      continue;
    }
    for (const proto::Note& note : LintNotes(*facts.model)) {
      if (!GlobMatch(condition.code_glob, note.code())) continue;
      failures.push_back(
          absl::StrCat(condition.text, ": ", note.code(), ": ", note.text()));
    }
  }
  return failures;
}

void AddFailOnFlag(Verb verb, FailOn* fail_on) {
  verb.AddOption(
      "--fail-on",
      [fail_on](const std::string& conditions) {
        return fail_on->Add(conditions);
      },
      "exit with 3 where one of these holds:\n"
      "'standalone>0, cast_bytes>1e6, lint:P*'");
}

int ShowFailures(const FailOn& fail_on, const ModelFacts& facts) {
  const std::vector<std::string> failures = fail_on.Failures(facts);
  for (const std::string& failure : failures) {
    ShowReport(absl::StrCat("fail-on  ", failure, "\n"), stderr);
  }
  return static_cast<int>(failures.empty() ? ExitCode::kOk : ExitCode::kDiffer);
}

}  // namespace tools
}  // namespace halftone
