#include "tools/compare/replay_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/shell_word.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "graph/ir/train_entries.h"
#include "runtime/log/words.h"
#include "runtime/train/non_finite.h"
#include "tools/common/json_text.h"
#include "tools/compare/compared_models.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;
using runtime::ThreeDigits;
using runtime::ValueRange;

// As of a run that diverges.
constexpr double kLowerRate = 10;

runtime::NonFiniteOp Describe(const ReplayFacts& facts) {
  return runtime::DescribeNonFinite(
      *facts.model->program, facts.replayed->found, facts.config->model_ops());
}

// Whether ranks other than 0 ran with cells that were not theirs.
bool LacksOthers(const ReplayFacts& facts) {
  return facts.capsule->schema == 1 && facts.capsule->world_size > 1 &&
         facts.model->program->FindEntry(kAverageEntry) != nullptr;
}

bool Accepts(const ReplayFacts& facts, const std::string& path,
             const std::string& value) {
  return facts.config->accepts && facts.config->accepts(path, value);
}

// No update comes before the first step.
bool UpdatesRuin(const ReplayFacts& facts) {
  return facts.capsule->step > 1 && !facts.replayed->ruined.empty();
}

// "" if no setting brings the scale that the step is finite with. A dynamic
// scale that began at or below it has grown, and would again.
std::string ScaleRemedy(const ReplayFacts& facts) {
  const double clean = facts.replayed->clean_loss_scaling;
  if (clean == 0) return "";
  const proto::LossScaling& scaling =
      facts.model->strategy.amp().loss_scaling();
  std::string field = "init_loss_scaling";
  if (scaling.use_dynamic_loss_scaling()) {
    if (clean < scaling.min_loss_scaling()) field = "min_loss_scaling";
    if (clean >= scaling.init_loss_scaling()) field = "max_loss_scaling";
  }
  const std::string path = absl::StrCat("amp.loss_scaling.", field);
  const std::string scale = ExactDouble(clean);
  if (!Accepts(facts, path, scale)) return "";
  const char* const whose =
      facts.replayed->parts.empty() ? "" : " for each part of the loss";
  if (field == "init_loss_scaling") {
    return absl::StrCat("--loss-scale ", scale, " (with it", whose,
                        " the step is finite)");
  }
  return absl::StrCat("--set ", path, "=", scale, " (with a scale of ", scale,
                      whose, " the step is finite)");
}

// "conv1.w (up to 1e+28) fc.w (not finite) before the step: ...".
std::string RuinedText(const ReplayFacts& facts) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (const ValueRange& range : facts.replayed->ruined) {
    names.push_back(
        absl::StrCat(PrintableName(range.name), " (",
                     range.non_finite > 0
                         ? "not finite"
                         : absl::StrCat("up to ", ThreeDigits(range.largest())),
                     ")"));
  }
  return absl::StrCat(runtime::JoinFew(names, kMost), " before the step: ",
                      UpdatesRuin(facts)
                          ? "the updates are to blame, not a precision"
                          : "the run began with that");
}

// What would have kept ruined parameters.
std::vector<std::string> RateRemedies(const ReplayFacts& facts) {
  const std::string lr =
      ThreeDigits(facts.model->strategy.lr().base() / kLowerRate);
  if (!Accepts(facts, "lr.base", lr)) return {};
  return {absl::StrCat("a lower learning rate (--lr ", lr, ")")};
}

// What would have kept the step, as flags.
std::vector<std::string> RemediesOf(const ReplayFacts& facts) {
  if (UpdatesRuin(facts)) return RateRemedies(facts);
  const runtime::NonFiniteOp op = Describe(facts);
  if (!op.feed.empty()) {
    return {absl::StrCat("samples of which ", PrintableName(op.feed),
                         " is finite")};
  }
  std::vector<std::string> remedies;
  const std::string scale = ScaleRemedy(facts);
  if (!scale.empty()) remedies.push_back(scale);
  const std::string& low_op = op.low_op;
  if (!low_op.empty() && Accepts(facts, "amp.custom_black_opnames", low_op)) {
    remedies.push_back(absl::StrCat("--black-op ", ShellWord(low_op)));
  }
  const proto::Amp& amp = facts.model->strategy.amp();
  // What f32 cannot hold, bf16 cannot either.
  const auto is_f16 = [](const ValueRange& range) {
    return range.dtype == DType::kF16;
  };
  const std::vector<ValueRange>& outputs = facts.replayed->outputs;
  if (amp.level() != "O0" && amp.dtype() == "fp16" &&
      std::any_of(outputs.begin(), outputs.end(), is_f16) &&
      Accepts(facts, "amp.dtype", "bf16")) {
    remedies.push_back("--dtype bf16");
  }
  return remedies;
}

std::string Percent(int64_t part, int64_t whole) {
  if (part == 0) return "-";
  return absl::StrCat(ThreeDigits(100.0 * part / whole), " %");
}

void AddRows(const char* what, const std::vector<ValueRange>& ranges,
             Table* table) {
  for (const ValueRange& range : ranges) {
    table->Add({range.name, what, std::string(Name(range.dtype)),
                ThreeDigits(range.min), ThreeDigits(range.max),
                Percent(range.above_f16, range.elements),
                Percent(range.non_finite, range.elements)});
  }
}

Json RangesJson(const std::vector<ValueRange>& ranges) {
  Json json = Json::array();
  for (const ValueRange& range : ranges) {
    json.push_back({{"name", range.name},
                    {"dtype", Name(range.dtype)},
                    {"elements", range.elements},
                    {"min", range.min},
                    {"max", range.max},
                    {"above_f16", range.above_f16},
                    {"non_finite", range.non_finite}});
  }
  return json;
}

// "8", or "of main 8 (not finite), of aux 256".
std::string ScaleText(const runtime::Replayed& replayed) {
  if (replayed.parts.empty()) return ThreeDigits(replayed.loss_scaling);
  std::vector<std::string> parts;
  for (const runtime::ReplayedPart& part : replayed.parts) {
    parts.push_back(absl::StrCat("of ", PrintableName(part.name), " ",
                                 ThreeDigits(part.loss_scaling),
                                 part.not_finite ? " (not finite)" : ""));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string ReplayText(const ReplayFacts& facts) {
  const runtime::Replayed& replayed = *facts.replayed;
  const runtime::CapsuleFacts& capsule = *facts.capsule;
  std::string text =
      absl::StrCat("replay    ", facts.path, ": step ", capsule.step, " of ",
                   ShortName(*facts.model), ", ",
                   runtime::Count(capsule.world_size, "rank"), ", loss scale ",
                   ScaleText(replayed), "; ", PrintableName(capsule.why), "\n");
  if (LacksOthers(facts)) {
    absl::StrAppend(
        &text,
        "note      ranks had parameters of their own, and a capsule "
        "of schema 1 has rank 0's alone: the others' numbers here "
        "are not the run's\n");
  }
  if (replayed.found.op.empty()) {
    return absl::StrCat(text, "result    ",
                        replayed.rejected ? "rejected, but each op's result is "
                                            "finite"
                                          : "finite here",
                        "\n");
  }
  const std::string described = Describe(facts).text;
  absl::StrAppend(
      &text, "first     ", described.empty() ? replayed.found.op : described,
      capsule.world_size > 1 ? absl::StrCat(" on rank ", replayed.rank) : "",
      replayed.found.op == capsule.found.op
          ? ", as the run named"
          : absl::StrCat("; the run named ",
                         capsule.found.op.empty()
                             ? "none"
                             : PrintableName(capsule.found.op)),
      "\n");
  Table table({"value", "of it", "in", "min", "max", "above f16's largest",
               "not finite"});
  for (int column = 3; column < 7; ++column) table.RightAlign(column);
  AddRows("input", replayed.inputs, &table);
  AddRows("output", replayed.outputs, &table);
  absl::StrAppend(&text, table.Text());
  if (!replayed.ruined.empty()) {
    absl::StrAppend(&text, "ruined    ", RuinedText(facts), "\n");
  }
  const std::vector<std::string> remedies = RemediesOf(facts);
  if (!remedies.empty()) {
    absl::StrAppend(&text, "try       ", absl::StrJoin(remedies, ", or "),
                    "\n");
  }
  return text;
}

std::string ReplayJson(const ReplayFacts& facts) {
  const runtime::Replayed& replayed = *facts.replayed;
  Json json = {{"schema", 1},
               {"step", facts.capsule->step},
               {"why", facts.capsule->why},
               {"ranks", facts.capsule->world_size},
               {"loss_scaling", replayed.loss_scaling},
               {"rejected", replayed.rejected},
               {"op", replayed.found.op},
               {"run_named", facts.capsule->found.op},
               {"rank", replayed.rank},
               {"inputs", RangesJson(replayed.inputs)},
               {"outputs", RangesJson(replayed.outputs)},
               {"clean_loss_scaling", replayed.clean_loss_scaling}};
  if (!replayed.ruined.empty()) json["ruined"] = RangesJson(replayed.ruined);
  for (const runtime::ReplayedPart& part : replayed.parts) {
    json["losses"][part.name] = {{"loss_scaling", part.loss_scaling},
                                 {"not_finite", part.not_finite}};
  }
  if (!replayed.found.input.empty()) json["input"] = replayed.found.input;
  if (facts.model->program->FindEntry(kAccumulateEntry) != nullptr) {
    json["micro_batch"] = replayed.found.micro_batch + 1;
  }
  json["remedies"] = replayed.found.op.empty() ? std::vector<std::string>()
                                               : RemediesOf(facts);
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
