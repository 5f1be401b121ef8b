#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/fusions/fusion_pattern.h"
#include "nlohmann/json.hpp"
#include "passes/report.h"
#include "tools/common/json_text.h"
#include "tools/report/explain_report.h"
#include "tools/report/table.h"

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
    {"UNLISTED",
     "None of the lists that amp.op_lists gives names the op: it is black, as "
     "`unlisted` says (the default at O1)."},
    {"GRAY_ALL_LOW",
     "A gray op runs in low precision if all its float inputs outside slots "
     "that stay f32 are low."},
    {"GRAY_F32_INPUT",
     "A gray op with an f32 input runs in f32: the widest input wins. Under "
     "precision_rule any_low it is an input that comes from a black op."},
    {"GRAY_ANY_LOW",
     "precision_rule any_low: a gray op runs in low precision if one of its "
     "inputs is low and none comes from a black op; its f32 inputs are cast "
     "down."},
    {"NO_LOW_INPUT",
     "precision_rule any_low: no input of this gray or clear op comes from an "
     "op that is low, nor from a black one: it is left alone, in f32."},
    {"CLEAR_FOLLOWS",
     "A clear op does no arithmetic: it keeps what it is given and never "
     "starts a cast."},
    {"FOLLOWS_READERS",
     "All float inputs of this gray or clear op are parameters, constants or "
     "such ops themselves: it follows those that read it. f32 if one of them "
     "is, if nobody reads it, or if it is an output of the model."},
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

struct Code {
  std::string kind;  // "note", "reason", "exit", "fusion"
  std::string code;
  std::string text;
};

std::vector<Code> AllCodes() {
  std::vector<Code> codes;
  for (const passes::NoteDoc& note : passes::NoteDocs()) {
    codes.push_back({"note", std::string(note.code), std::string(note.text)});
  }
  for (const Doc& doc : kReasons) {
    codes.push_back({"reason", std::string(doc.code), std::string(doc.text)});
  }
  for (const Doc& doc : kExits) {
    codes.push_back({"exit", std::string(doc.code), std::string(doc.text)});
  }
  for (const FusionPattern& pattern : FusionPatterns()) {
    codes.push_back(
        {"fusion", pattern.name(),
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
    return Code{"exit", absl::StrCat(number),
                absl::StrCat("ended by signal ", number - 128)};
  }
  return UsageError("explain ", code, ": no such code",
                    is_number ? "; exit codes are E0 to E9 and E129 to E192"
                              : NearestHint(code, known),
                    " (all: halftone explain; of a model: halftone explain "
                    "MODEL NAME)");
}

nlohmann::ordered_json ToJson(const Code& code) {
  return {{"kind", code.kind}, {"code", code.code}, {"text", code.text}};
}

}  // namespace

absl::string_view RuleOf(absl::string_view reason) {
  for (const Doc& doc : kReasons) {
    if (doc.code == reason) return doc.text;
  }
  return "";
}

absl::StatusOr<std::string> ExplainCode(const std::string& code, bool json) {
  HT_ASSIGN_OR_RETURN(const Code found, FindCode(code));
  if (json) {
    nlohmann::ordered_json object = {{"schema", 1}};
    object.update(ToJson(found));
    return JsonText(object);
  }
  return absl::StrCat(found.kind == "exit" ? "exit code " : "", found.code,
                      ": ", found.text, "\n");
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

}  // namespace tools
}  // namespace halftone
