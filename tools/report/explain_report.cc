#include "tools/report/explain_report.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/report.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

struct Doc {
  absl::string_view code, text;
};

constexpr Doc kReasons[] = {
    {"WHITE_LIST",
     "White ops (convolutions, matrix products) run in low precision, float "
     "inputs cast down: they gain most and lose least."},
    {"BLACK_LIST",
     "Black ops run in f32, inputs cast up: they are sensitive to rounding, "
     "grow their input, or sum many terms."},
    {"GRAY_ALL_LOW",
     "A gray op runs in low precision if all its float inputs outside slots "
     "that stay f32 are low."},
    {"GRAY_F32_INPUT",
     "A gray op with an f32 input runs in f32: the widest input wins."},
    {"CLEAR_FOLLOWS",
     "A clear op does no arithmetic: it keeps what it is given and never "
     "starts a cast."},
    {"FOLLOWS_READERS",
     "All float inputs of this gray or clear op are parameters, constants or "
     "such ops themselves: it follows those that read it."},
    {"NO_FLOAT_INPUT", "An op without float input computes in f32."},
    {"USER_WHITE", "A white list of the strategy or a flag names it."},
    {"USER_BLACK", "A black list of the strategy or a flag names it."},
    {"BLACK_VARNAME",
     "It reads or writes a value that custom_black_varnames names."},
    {"NO_KERNEL",
     "It would be low, but the target has no low-precision kernel for it."},
    {"KEEP_F32_SLOT",
     "The slot stays f32 in an op that is low otherwise (batch-norm scale, "
     "bias, statistics)."},
    {"MIN_CUT", "precision_rule min_cost: a minimum cut over cast bytes."},
    {"LOSS", "The op that defines the loss is f32 at every level."},
    {"LEVEL", "The level's bundle decides (O2 and O3: gray ops are low)."},
    {"GRADIENT_OF", "A backward op runs as its forward op does."},
    {"SCHEMA",
     "Ops that communicate, scale the loss or update are fixed by their "
     "schema or their inputs."},
};

constexpr Doc kExits[] = {
    {"0", "ok"},
    {"1",
     "model, strategy or data error; an output that cannot be written; a "
     "compiled model of a newer version or other target"},
    {"2", "a wrong verb, flag or argument"},
    {"3", "a check failed, or the programs differ"},
    {"4", "a bug of the compiler; please report it with the model"},
    {"5", "the training diverged: the stop rule ended it"},
    {"6", "out of memory: a plan that does not fit, or a failed allocation"},
    {"7",
     "communication failure: a rank that never arrived, vanished, hung or "
     "runs another program; a port in use"},
    {"8",
     "a checkpoint that cannot be read, or the run's last one that cannot "
     "be written"},
    {"9", "a device or library that is not there"},
};

const proto::OpRow* FindOp(const CompiledModel& model,
                           const std::string& name) {
  for (const proto::OpRow& op : model.report.op()) {
    if (op.name() == name) return &op;
  }
  return nullptr;
}

// The op that makes the value; the op of that name goes first.
const proto::OpRow* FindProducer(const CompiledModel& model,
                                 const std::string& value) {
  for (const proto::OpRow& op : model.report.op()) {
    for (const proto::SlotNames& slot : op.output()) {
      if (std::find(slot.value().begin(), slot.value().end(), value) !=
          slot.value().end()) {
        return &op;
      }
    }
  }
  return nullptr;
}

std::string OpLine(const CompiledModel& model, const proto::OpRow& op) {
  return absl::StrCat(
      op.name(), ": ", op.type(), " (", op.op_class(), ") runs in ",
      op.precision(), ", ", WhyText(op),
      op.has_line() ? absl::StrCat("  ", model.source.file, ":", op.line())
                    : "");
}

// The op, then those it is because of, each once.
void AddChain(const CompiledModel& model, const proto::OpRow& op, int depth,
              std::set<std::string>* seen, std::string* text) {
  if (!seen->insert(op.name()).second) return;
  absl::StrAppend(text, std::string(2 * depth, ' '), OpLine(model, op), "\n",
                  std::string(2 * depth, ' '), "  ", RuleOf(op.reason()), "\n");
  for (const std::string& name : op.because_of()) {
    const proto::OpRow* cause = FindOp(model, name);
    if (cause != nullptr) AddChain(model, *cause, depth + 1, seen, text);
  }
}

bool DefinesLoss(const CompiledModel& model, const proto::OpRow& op) {
  return op.role() == "forward" &&
         FindProducer(model, model.source.model.loss().var()) == &op;
}

// How to turn the decision over.
std::string ChangeText(const CompiledModel& model, const proto::OpRow& op) {
  if (op.role() != "forward") {
    return absl::StrCat("change   the forward op it belongs to\n");
  }
  const std::string& reason = op.reason();
  if (reason == "NO_FLOAT_INPUT" || DefinesLoss(model, op)) return "";
  if (reason == "USER_WHITE" || reason == "USER_BLACK" ||
      reason == "BLACK_VARNAME") {
    return "change   leave it off that list\n";
  }
  return op.precision() == "f32"
             ? absl::StrCat("change   --white-op ", op.name(),
                            " (this op) or --white ", op.type(),
                            " (all such ops): low\n")
             : absl::StrCat("change   --black-op ", op.name(),
                            " (this op), --black ", op.type(),
                            " (all such ops) or --black-var: f32\n");
}

std::string CastLine(const proto::CastRow& cast, int64_t samples) {
  std::string text = absl::StrCat(
      "cast     ", cast.name(), " ", cast.from(), " -> ", cast.to(), " for ",
      absl::StrJoin(cast.for_op(), " "), ", ", cast.reason(),
      cast.because_of_size() > 0
          ? absl::StrCat(" <- ", absl::StrJoin(cast.because_of(), " "))
          : "",
      "; ", WithCommas(BytesPerStep(cast, samples)), " B/step at ", samples,
      " samples; ");
  if (cast.fate() == "cell") {
    return text + "a cell that the update writes beside the FP32 copy\n";
  }
  if (cast.fate() == "standalone") return text + "runs on its own\n";
  return absl::StrCat(text, "folded into ", absl::StrJoin(cast.into(), " "),
                      "\n");
}

std::vector<std::string> AllNames(const CompiledModel& model) {
  std::vector<std::string> names;
  for (const proto::OpRow& op : model.report.op()) {
    names.push_back(op.name());
    for (const proto::SlotNames& slot : op.output()) {
      names.insert(names.end(), slot.value().begin(), slot.value().end());
    }
  }
  for (const proto::CastRow& cast : model.report.cast()) {
    names.push_back(cast.name());
  }
  return names;
}

}  // namespace

absl::string_view RuleOf(absl::string_view reason) {
  for (const Doc& doc : kReasons) {
    if (doc.code == reason) return doc.text;
  }
  return "";
}

absl::StatusOr<std::string> ExplainCode(const std::string& code) {
  std::vector<std::string> known;
  for (const passes::NoteDoc& note : passes::NoteDocs()) {
    if (note.code == code) return absl::StrCat(code, ": ", note.text, "\n");
    known.emplace_back(note.code);
  }
  for (const Doc& reason : kReasons) {
    if (reason.code == code) return absl::StrCat(code, ": ", reason.text, "\n");
    known.emplace_back(reason.code);
  }
  for (const Doc& exit : kExits) {
    if (absl::StripPrefix(code, "E") == exit.code) {
      return absl::StrCat("exit code ", exit.code, ": ", exit.text, "\n");
    }
    known.push_back(absl::StrCat("E", exit.code));
  }
  int number = 0;
  if (absl::SimpleAtoi(absl::StripPrefix(code, "E"), &number) && number > 128 &&
      number < 193) {
    return absl::StrCat("exit code ", number, ": ended by signal ",
                        number - 128, "\n");
  }
  return UsageError("explain ", code, ": no such code",
                    NearestHint(code, known),
                    "; of a model: halftone explain MODEL NAME");
}

absl::StatusOr<std::string> ExplainName(const CompiledModel& model,
                                        const std::string& name) {
  HT_ASSIGN_OR_RETURN(const ModelFacts facts, FactsOf(model));
  const proto::OpRow* op = FindOp(model, name);
  if (op == nullptr) op = FindProducer(model, name);
  std::string text;
  std::string casts;
  for (const proto::CastRow& cast : model.report.cast()) {
    if (cast.name() == name) {
      text += CastLine(cast, facts.samples);
      // A cast is there because of the first reader that asked.
      if (cast.for_op_size() > 0) op = FindOp(model, cast.for_op(0));
    } else if (cast.value() == name) {
      casts += CastLine(cast, facts.samples);
    }
  }
  if (op == nullptr && text.empty() && casts.empty()) {
    return UsageError("explain ", name, ": ", model.source.file,
                      " has no op, value or cast of that name",
                      NearestHint(name, AllNames(model)));
  }
  if (op != nullptr) {
    std::set<std::string> seen;
    AddChain(model, *op, 0, &seen, &text);
  }
  text += casts;
  if (op != nullptr) text += ChangeText(model, *op);
  return text;
}

}  // namespace tools
}  // namespace halftone
