#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/ir/decision.h"
#include "nlohmann/json.hpp"
#include "passes/report.h"
#include "tools/common/json_text.h"
#include "tools/report/explain_report.h"

namespace halftone {
namespace tools {
namespace {

struct Code {
  std::string kind;  // "note", "reason", "exit", "fusion"
  std::string code;
  std::string title;  // a few words, where the text is long
  std::string text;
};

std::vector<Code> AllCodes() {
  std::vector<Code> codes;
  for (const passes::NoteDoc& note : passes::NoteDocs()) {
    codes.push_back({"note", std::string(note.code), std::string(note.title),
                     std::string(note.text)});
  }
  for (const ReasonDoc& reason : ReasonDocs()) {
    codes.push_back(
        {"reason", std::string(reason.code), "", std::string(reason.rule)});
  }
  for (const ExitCodeDoc& exit : ExitCodeDocs()) {
    codes.push_back({"exit", absl::StrCat(static_cast<int>(exit.code)), "",
                     std::string(exit.text)});
  }
  for (const FusionPattern& pattern : FusionPatterns()) {
    codes.push_back(
        {"fusion", pattern.name(), "",
         absl::StrCat(pattern.formula(),
                      ", in one kernel where the target has "
                      "it.",
                      pattern.rounds().empty() ? "" : " It rounds ",
                      pattern.rounds(), pattern.rounds().empty() ? "" : ".")});
  }
  return codes;
}

// As it is typed: "E7".
std::string Typed(const Code& code) {
  return absl::StrCat(code.kind == "exit" ? "E" : "", code.code);
}

const std::string& Title(const Code& code) {
  return code.title.empty() ? code.text : code.title;
}

absl::StatusOr<Code> FindCode(const std::string& code) {
  std::vector<std::string> known;
  for (const Code& one : AllCodes()) {
    known.push_back(Typed(one));
    if (code == known.back() || code == one.code) return one;
  }
  const absl::string_view number_text = absl::StripPrefix(code, "E");
  int number = 0;
  const bool is_number = absl::SimpleAtoi(number_text, &number);
  if (is_number && number > 128 && number < 193) {
    return Code{"exit", absl::StrCat(number), "",
                absl::StrCat("ended by signal ", number - 128)};
  }
  return UsageError("explain ", code, ": no such code",
                    is_number ? "; exit codes are E0 to E9 and E129 to E192"
                              : NearestHint(code, known),
                    " (all: halftone explain --list; of a model: halftone "
                    "explain MODEL NAME)");
}

nlohmann::ordered_json ToJson(const Code& code) {
  return {{"kind", code.kind},
          {"code", code.code},
          {"title", Title(code)},
          {"text", code.text}};
}

}  // namespace

absl::StatusOr<std::string> ExplainCode(const std::string& code, bool json) {
  HT_ASSIGN_OR_RETURN(const Code found, FindCode(code));
  if (json) {
    nlohmann::ordered_json object = {{"schema", 1}};
    object.update(ToJson(found));
    return JsonText(object);
  }
  return absl::StrCat(found.kind == "exit" ? "exit code " : "", found.code,
                      ": ", found.title, found.title.empty() ? "" : "\n     ",
                      found.text, "\n");
}

std::string ExplainCodes(bool json) {
  if (json) {
    nlohmann::ordered_json object = {
        {"schema", 1}, {"codes", nlohmann::ordered_json::array()}};
    for (const Code& code : AllCodes()) object["codes"].push_back(ToJson(code));
    return JsonText(object);
  }
  Table table({"code", "", "meaning"});
  for (const Code& code : AllCodes()) {
    table.Add({Typed(code), code.kind, code.text});
  }
  return table.Text();
}

std::string ListSubjects(bool json) {
  std::vector<Code> subjects = AllCodes();
  subjects.push_back({"fields", "strategy",
                      "each field of a strategy: `strategy FIELD` for one",
                      ""});
  if (json) {
    nlohmann::ordered_json object = {
        {"schema", 1}, {"subjects", nlohmann::ordered_json::array()}};
    for (const Code& code : subjects) {
      object["subjects"].push_back({{"subject", Typed(code)},
                                    {"kind", code.kind},
                                    {"title", Title(code)}});
    }
    return JsonText(object);
  }
  Table table({"subject", "", "title"});
  for (const Code& code : subjects) {
    table.Add({Typed(code), code.kind, Title(code)});
  }
  return absl::StrCat(table.Text(),
                      "a page of each: halftone explain SUBJECT\n");
}

}  // namespace tools
}  // namespace halftone
