#include "tools/report/explain_report.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "graph/ir/decision.h"
#include "passes/report.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"
#include "tools/report/cast_texts.h"
#include "tools/report/explain_subject.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

// No chain is longer in a report; one of a deep model may be.
constexpr size_t kMostSteps = 40;

// An op of a chain of reasons; `depth` ops stand between it and the asked one.
struct Step {
  const proto::OpRow* op;
  int depth;
};

// A way to turn a decision over.
struct Change {
  std::string flag, effect;
};

struct Explanation {
  const ModelFacts* facts;
  std::string name;
  Subject subject;                           // a feed, cell or pass-made op
  std::vector<const proto::CastRow*> asked;  // the casts of that name
  std::vector<Step> chain;                   // the op, then why
  std::vector<const proto::CastRow*> casts;  // the casts of that value
  std::vector<Change> changes;
  std::string changes_of;  // the op that these are for
};

const proto::OpRow* FindOp(const CompiledModel& model,
                           const std::string& name) {
  for (const proto::OpRow& op : model.ops.all()) {
    if (op.name() == name) return &op;
  }
  return nullptr;
}

// The op that makes the value; the op of that name goes first.
const proto::OpRow* FindProducer(const CompiledModel& model,
                                 const std::string& value) {
  for (const proto::OpRow& op : model.ops.all()) {
    for (const proto::SlotNames& slot : op.output()) {
      if (std::find(slot.value().begin(), slot.value().end(), value) !=
          slot.value().end()) {
        return &op;
      }
    }
  }
  return nullptr;
}

const proto::OpRow* FindEither(const CompiledModel& model,
                               const std::string& name) {
  const proto::OpRow* op = FindOp(model, name);
  return op != nullptr ? op : FindProducer(model, name);
}

// The op, then those it is because of, depth first, each once.
std::vector<Step> ChainOf(const CompiledModel& model, const proto::OpRow* op) {
  std::vector<Step> chain, stack = {{op, 0}};
  std::set<const proto::OpRow*> seen;
  while (!stack.empty() && chain.size() < kMostSteps) {
    const Step step = stack.back();
    stack.pop_back();
    if (!seen.insert(step.op).second) continue;
    chain.push_back(step);
    const auto& causes = step.op->because_of();
    for (auto cause = causes.rbegin(); cause != causes.rend(); ++cause) {
      const proto::OpRow* found = FindOp(model, *cause);
      if (found != nullptr) stack.push_back({found, step.depth + 1});
    }
  }
  return chain;
}

// Or a part of it, which stays f32 as well.
bool DefinesLoss(const CompiledModel& model, const proto::OpRow& op) {
  bool defines = FindProducer(model, model.program->loss.var) == &op;
  for (const LossPart& part : model.program->loss.parts) {
    defines |= FindProducer(model, part.name) == &op ||
               FindProducer(model, part.weighted) == &op;
  }
  return defines;
}

// The flag for all ops of its type. Empty: the model's file has no such op, so
// that a list cannot name it.
std::string FlagOfType(const CompiledModel& model, const proto::OpRow& op,
                       const std::string& flag) {
  const WrittenTypes types = WrittenTypesOf(model);
  const auto type = types.find(op.name());
  return type == types.end() ? "" : absl::StrCat(flag, " ", type->second);
}

// How to turn the decision of one of the model's own ops over.
std::vector<Change> ChangesOf(const CompiledModel& model,
                              const proto::OpRow& op) {
  const std::string& reason = op.reason();
  if (reason == "NO_FLOAT_INPUT" || reason == "NO_KERNEL" || reason == "LOSS" ||
      DefinesLoss(model, op)) {
    return {};
  }
  if (model.strategy.amp().level() == "O0") {
    return {{"--level O1", "mixed precision; at O0 all is f32"}};
  }
  if (reason == "USER_WHITE" || reason == "USER_BLACK" ||
      reason == "BLACK_VARNAME") {
    return {{"", "leave it off that list"}};
  }
  if (reason == "FP32_SCOPE") {
    return {{"", "leave it out of amp.fp32_scopes"}};
  }
  const bool is_f32 = op.precision() == "f32";
  const std::string flag = is_f32 ? "--white" : "--black";
  const std::string becomes = is_f32 ? "low" : "f32";
  std::vector<Change> changes = {
      {absl::StrCat(flag, "-op ", ShellWord(op.name())), "this op " + becomes}};
  const std::string of_type = FlagOfType(model, op, flag);
  if (!of_type.empty()) changes.push_back({of_type, "all such ops " + becomes});
  if (!is_f32 && op.output_size() > 0 && op.output(0).value_size() > 0) {
    changes.push_back({"--black-var " + ShellWord(op.output(0).value(0)),
                       "all ops that touch the value f32"});
  }
  return changes;
}

void AddCasts(const CompiledModel& model, Explanation* explanation) {
  for (const proto::CastRow& cast : model.casts.all()) {
    if (cast.name() == explanation->name ||
        (cast.has_op() && cast.op() == explanation->name)) {
      explanation->asked.push_back(&cast);
    }
    if (cast.value() == explanation->name) explanation->casts.push_back(&cast);
  }
}

Explanation Find(const ModelFacts& facts, const std::string& name) {
  const CompiledModel& model = *facts.model;
  Explanation found = {&facts, name};
  AddCasts(model, &found);
  const proto::OpRow* op = FindEither(model, name);
  if (!found.asked.empty()) {
    // A cast is there because of the first reader that asked, and a weight's
    // gradient is cast up because of the op that makes it.
    const proto::CastRow& cast = *found.asked[0];
    op = cast.for_op_size() > 0 ? FindOp(model, cast.for_op(0))
                                : FindProducer(model, cast.value());
  }
  found.subject = FeedSubject(model, name);
  if (found.subject.text.empty()) found.subject = CellSubject(model, name);
  if (found.subject.text.empty() && op == nullptr) {
    found.subject = ProgramSubject(model, name);
  }
  if (op != nullptr) found.chain = ChainOf(model, op);
  for (const Step& step : found.chain) {
    if (step.op->role() != "forward") continue;
    found.changes = ChangesOf(model, *step.op);
    found.changes_of = step.op->name();
    break;
  }
  return found;
}

std::vector<std::string> AllNames(const CompiledModel& model) {
  std::vector<std::string> names = SubjectNames(model);
  for (const proto::OpRow& op : model.ops.all()) {
    names.push_back(op.name());
    for (const proto::SlotNames& slot : op.output()) {
      names.insert(names.end(), slot.value().begin(), slot.value().end());
    }
  }
  for (const proto::CastRow& cast : model.casts.all()) {
    names.push_back(cast.name());
  }
  return names;
}

std::string CastLine(const proto::CastRow& cast, const ModelFacts& facts) {
  const int64_t samples = facts.samples;
  std::string text = absl::StrCat(
      "cast     ", cast.name(), " ", cast.from(), " -> ", cast.to(), " for ",
      ReadersText(cast), ", ", cast.reason(),
      cast.because_of_size() > 0
          ? absl::StrCat(" <- ", absl::StrJoin(cast.because_of(), " "))
          : "",
      "; ", WithCommas(passes::BytesPerStep(cast, samples)), " B/step at ",
      runtime::Count(samples, "sample"), "; ");
  if (cast.fate() == "cell") {
    if (cast.to() == "f32") {
      return text + "none in the step: the update reads it as it is\n";
    }
    return absl::StrCat(text, "a cell ",
                        facts.trains ? "that the update writes " : "",
                        "beside the FP32 copy\n");
  }
  if (cast.fate() == "standalone") return text + "runs on its own\n";
  return absl::StrCat(text, "folded", cast.into_size() > 0 ? " into " : "",
                      absl::StrJoin(cast.into(), " "), "\n");
}

std::string StepText(const CompiledModel& model, const Step& step) {
  const proto::OpRow& op = *step.op;
  const std::string indent(2 * step.depth, ' ');
  return absl::StrCat(
      indent, op.name(), ": ", op.type(), " (", op.op_class(), ") runs in ",
      op.precision(), ", ", WhyText(op),
      op.has_line() ? absl::StrCat("  ", model.source.file, ":", op.line())
                    : "",
      "\n", indent, "  ", RuleOf(op.reason()), "\n");
}

std::string ChangesText(const Explanation& explanation) {
  if (explanation.changes.empty()) return "";
  const bool of_another =
      explanation.chain[0].op->name() != explanation.changes_of;
  return absl::StrCat(
      "change   ",
      of_another ? absl::StrCat("with ", explanation.changes_of, ": ") : "",
      absl::StrJoin(explanation.changes, ", ",
                    [](std::string* out, const Change& change) {
                      absl::StrAppend(
                          out, change.flag,
                          change.flag.empty()
                              ? change.effect
                              : absl::StrCat(" (", change.effect, ")"));
                    }),
      "\n");
}

// The compiler's notes about what was asked.
std::vector<proto::Note> NotesOf(const Explanation& explanation) {
  std::vector<proto::Note> notes;
  for (const proto::Note& note : explanation.facts->model->report.note()) {
    if (std::find(note.op().begin(), note.op().end(), explanation.name) !=
        note.op().end()) {
      notes.push_back(note);
    }
  }
  return notes;
}

std::string Text(const Explanation& explanation) {
  const ModelFacts& facts = *explanation.facts;
  std::string text = explanation.subject.text;
  for (const proto::CastRow* cast : explanation.asked) {
    text += CastLine(*cast, facts);
  }
  for (const Step& step : explanation.chain) {
    text += StepText(*facts.model, step);
  }
  if (explanation.chain.size() == kMostSteps) text += "... and so on\n";
  for (const proto::CastRow* cast : explanation.casts) {
    text += CastLine(*cast, facts);
  }
  for (const proto::Note& note : NotesOf(explanation)) {
    absl::StrAppend(&text, "note     ", note.code(), ": ", note.text(),
                    "  halftone explain ", note.code(), "\n");
  }
  return text + ChangesText(explanation);
}

std::string ToJson(const Explanation& explanation) {
  const ModelFacts& facts = *explanation.facts;
  const CompiledModel& model = *facts.model;
  Json json = {{"schema", 1},
               {"name", explanation.name},
               {"model", model.source.model->name()},
               {"file", model.source.file}};
  if (!explanation.subject.json.is_null()) {
    json["subject"] = explanation.subject.json;
  }
  json["chain"] = Json::array();
  for (const Step& step : explanation.chain) {
    Json op = OpJson(*step.op);
    op["depth"] = step.depth;
    op["rule"] = std::string(RuleOf(step.op->reason()));
    json["chain"].push_back(op);
  }
  json["casts"] = Json::array();
  for (const auto* casts : {&explanation.asked, &explanation.casts}) {
    for (const proto::CastRow* cast : *casts) {
      json["casts"].push_back(CastJson(*cast, facts.samples));
    }
  }
  json["changes"] = Json::array();
  for (const Change& change : explanation.changes) {
    json["changes"].push_back({{"op", explanation.changes_of},
                               {"flag", change.flag},
                               {"effect", change.effect}});
  }
  json["notes"] = Json::array();
  for (const proto::Note& note : NotesOf(explanation)) {
    json["notes"].push_back({{"code", note.code()}, {"text", note.text()}});
  }
  return JsonText(json);
}

}  // namespace

absl::StatusOr<std::string> ExplainName(const CompiledModel& model,
                                        const std::string& name, bool json) {
  HT_ASSIGN_OR_RETURN(const ModelFacts facts, FactsOf(model));
  const Explanation found = Find(facts, name);
  if (found.chain.empty() && found.asked.empty() && found.casts.empty() &&
      found.subject.text.empty()) {
    return UsageError("explain ", name, ": ", model.source.file,
                      " has no op, value, cast, feed or cell of that name",
                      NearestHint(name, AllNames(model)));
  }
  return json ? ToJson(found) : Text(found);
}

}  // namespace tools
}  // namespace halftone
