#include "tools/report/lint_report.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/table.h"
#include "graph/targets/reach.h"
#include "graph/targets/target.h"
#include "passes/options/options.h"
#include "passes/report.h"
#include "tools/common/json_text.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

// Whether the level's dtype is computed in f32 on the target.
bool ComputesInF32(const CompiledModel& model) {
  const Target* target = FindTarget(model.target);
  const proto::Amp& amp = model.strategy.amp();
  if (target == nullptr || passes::LevelOf(amp) == passes::Level::kO0) {
    return false;
  }
  const auto& fast = ReachOn(*target).fast_products;
  return std::find(fast.begin(), fast.end(), passes::LowOf(amp)) == fast.end();
}

// "P10" behind "P9".
bool Before(const proto::Note& a, const proto::Note& b) {
  if (a.code()[0] != b.code()[0]) return a.code()[0] < b.code()[0];
  if (a.code().size() != b.code().size()) {
    return a.code().size() < b.code().size();
  }
  return a.code() < b.code();
}

// Of the model's own ops, where they stand in its file.
std::map<std::string, int> LinesOf(const CompiledModel& model) {
  std::map<std::string, int> lines;
  for (const proto::OpRow* op : OwnOps(model)) {
    if (op->has_line()) lines[op->name()] = op->line();
  }
  return lines;
}

// 0: no op of it stands in a file.
int LineOf(const proto::Note& note, const std::map<std::string, int>& lines) {
  for (const std::string& op : note.op()) {
    const auto it = lines.find(op);
    if (it != lines.end()) return it->second;
  }
  return 0;
}

}  // namespace

std::vector<proto::Note> LintNotes(const CompiledModel& model) {
  std::vector<proto::Note> notes(model.report.note().begin(),
                                 model.report.note().end());
  if (ComputesInF32(model)) {
    const absl::string_view low = Name(passes::LowOf(model.strategy.amp()));
    proto::Note& note = notes.emplace_back();
    note.set_code("T1");
    note.set_text(absl::StrCat(model.target, " multiplies ", low,
                               " in f32: fewer bytes, no faster arithmetic"));
  }
  std::stable_sort(notes.begin(), notes.end(), Before);
  return notes;
}

std::string LintText(const ModelFacts& facts) {
  const CompiledModel& model = *facts.model;
  const std::vector<proto::Note> notes = LintNotes(model);
  if (notes.empty()) return "lint     nothing to say\n";
  const std::map<std::string, int> lines = LinesOf(model);
  Table table({"code", model.source.file, "what"});
  for (const proto::Note& note : notes) {
    const int line = LineOf(note, lines);
    table.Add(
        {note.code(), line > 0 ? absl::StrCat(":", line) : "", note.text()});
  }
  return absl::StrCat(table.Text(), "lint     ", notes.size(),
                      notes.size() == 1 ? " finding" : " findings",
                      "; what each means: halftone explain CODE\n");
}

std::string LintJson(const ModelFacts& facts) {
  const CompiledModel& model = *facts.model;
  const std::map<std::string, int> lines = LinesOf(model);
  Json json = {{"schema", 1},
               {"model", model.source.model->name()},
               {"findings", Json::array()},
               {"totals", TotalsJson(facts)}};
  for (const proto::Note& note : LintNotes(model)) {
    const int line = LineOf(note, lines);
    Json finding = {
        {"code", note.code()},
        {"text", note.text()},
        {"ops", std::vector<std::string>(note.op().begin(), note.op().end())}};
    if (line > 0) finding["line"] = line;
    finding["help"] = absl::StrCat("halftone explain ", note.code());
    json["findings"].push_back(std::move(finding));
  }
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
