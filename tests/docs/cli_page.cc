// docs/cli.md: what the binary says of its verbs and codes.
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/check.h"
#include "nlohmann/json.hpp"
#include "tests/docs/docs.h"
#include "tools/common/command_line.h"
#include "tools/report/explain_report.h"
#include "tools/verb.h"

namespace halftone {
namespace docs {
namespace {

// Without the spaces that CLI11 leaves behind, which git would point at.
std::string Help(const tools::Verb& verb, const std::string& before) {
  std::string help;
  for (absl::string_view line : absl::StrSplit(verb.HelpPage(before), '\n')) {
    absl::StrAppend(&help, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return absl::StrCat("```\n", absl::StripTrailingAsciiWhitespace(help),
                      "\n```\n");
}

void AddSections(const tools::Verb& above, const std::string& name, int depth,
                 std::string* page) {
  for (const tools::Verb& verb : above.verbs()) {
    const std::string full = absl::StrCat(name, " ", verb.name());
    absl::StrAppend(page, "\n", std::string(depth, '#'), " ", full, "\n\n",
                    Help(verb, name));
    AddSections(verb, full, depth + 1, page);
  }
}

std::string CodeTables() {
  const nlohmann::json codes =
      nlohmann::json::parse(tools::ExplainCodes(/*json=*/true));
  std::string text;
  const std::pair<const char*, const char*> kinds[] = {
      {"exit", "Exit codes"},
      {"reason", "Reasons of precisions and casts"},
      {"note", "Notes"},
      {"fusion", "Fusions"}};
  for (const auto& [kind, title] : kinds) {
    std::vector<std::vector<std::string>> rows;
    for (const nlohmann::json& code : codes.at("codes")) {
      if (code.at("kind") != kind) continue;
      rows.push_back({Code(code.at("code").get<std::string>()),
                      code.at("text").get<std::string>()});
    }
    HT_CHECK(!rows.empty(), kind);
    absl::StrAppend(&text, "\n## ", title, "\n\n",
                    MarkdownTable({"code", "meaning"}, rows));
  }
  return text;
}

}  // namespace

std::string CliPage() {
  tools::CommandLine line("halftone");
  const tools::Verb program = line.program();
  tools::Outcome outcome;
  tools::AddVerbs(program, &outcome);
  std::string page = absl::StrCat(
      "# The command line\n\n", kDerived,
      "\nData goes to stdout, progress and messages to stderr. A flag's value "
      "may follow a\nspace or `=`. `--set PATH=VALUE` takes any field of "
      "[strategy.md](strategy.md).\n\n",
      Help(program, ""));
  AddSections(program, "halftone", 2, &page);
  return page + CodeTables();
}

}  // namespace docs
}  // namespace halftone
