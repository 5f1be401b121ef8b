// docs/strategy.md: what the fields say of themselves (proto/strategy.proto),
// and what levels and presets make of them.
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/strategy/fields.h"
#include "passes/options/options.h"
#include "tests/docs/docs.h"
#include "tools/report/strategy_report.h"

namespace halftone {
namespace docs {
namespace {

using google::protobuf::FieldDescriptor;
using tools::Bundles;
using Kind = StrategyField::Kind;

std::string DefaultOf(const StrategyField& field) {
  const Bundles& levels = tools::LevelBundles();
  if (tools::Differs(levels, field.path)) return "[by level](#levels)";
  const std::string value = ValueAt(levels.front().second, field.path);
  if (value.empty()) return field.facts->unset();
  const bool text =
      field.descriptor->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return Code(text ? absl::StrCat("\"", value, "\"") : value);
}

std::vector<std::string> RowOf(const StrategyField& field) {
  const proto::Flag& flag = field.facts->flag();
  std::string doc = field.facts->doc();
  if (flag.has_name()) {
    absl::StrAppend(&doc, " (`", flag.name(), flag.has_word() ? " " : "",
                    flag.word(), "`)");
  }
  return {Code(field.descriptor->name()), DefaultOf(field),
          absl::StrCat(field.descriptor->is_repeated() ? "list: " : "",
                       TakesText(*field.descriptor)),
          doc};
}

// The fields of a part, and then those below it.
std::string Sections() {
  std::string text;
  for (const StrategyField& part : StrategyFields()) {
    if (part.descriptor->message_type() == nullptr) continue;
    absl::StrAppend(&text, "\n## ", part.path,
                    part.descriptor->is_repeated() ? " (any number)" : "",
                    "\n\n", part.facts->doc(), "\n");
    std::vector<std::vector<std::string>> rows;
    for (const StrategyField& field : StrategyFields()) {
      if (field.descriptor->message_type() == nullptr &&
          field.path ==
              absl::StrCat(part.path, ".", field.descriptor->name())) {
        rows.push_back(RowOf(field));
      }
    }
    if (rows.empty()) continue;
    absl::StrAppend(
        &text, "\n",
        MarkdownTable({"field", "default", "takes", "meaning"}, rows));
  }
  return text;
}

std::string OpListsSection() {
  const auto fields = ReadFields(*proto::OpListsFile::descriptor());
  HT_CHECK(fields.ok(), "op lists");
  std::vector<std::vector<std::string>> rows;
  for (const StrategyField& field : *fields) {
    if (field.kind == Kind::kPart) continue;
    rows.push_back({Code(field.descriptor->name()), field.facts->doc()});
  }
  return absl::StrCat(
      "\n## Files of op lists\n\n`op_lists { ... }` in a file that "
      "`amp.op_lists` names. ",
      fields->front().facts->doc(), "\n\n",
      MarkdownTable({"field", "meaning"}, rows));
}

// The fields in which the bundles differ.
std::string BundleTable(const Bundles& bundles) {
  std::vector<std::string> head = {"field"};
  for (const auto& bundle : bundles) head.push_back(bundle.first);
  std::vector<std::vector<std::string>> rows;
  for (const std::string& path : passes::StrategyPaths()) {
    if (!tools::Differs(bundles, path)) continue;
    std::vector<std::string> row = {Code(path)};
    for (const auto& bundle : bundles) {
      row.push_back(ValueAt(bundle.second, path));
    }
    rows.push_back(row);
  }
  return MarkdownTable(head, rows);
}

std::string AloneSection() {
  std::string text =
      "\n## Without compiling again\n\nThese leave the graph alone, so that "
      "`run X.htc --set` takes them; others need\n`halftone compile`. Ranks "
      "that were started with other values of them than the rest\nare refused "
      "before the first step.\n\n";
  for (const std::string& path : passes::StrategyPaths()) {
    const StrategyField& field = *FindStrategyField(path);
    if (!field.leaves_graph_alone) continue;
    absl::StrAppend(&text, "- ", Code(path),
                    field.agrees_on_all_ranks ? "" : " (ranks may differ)",
                    "\n");
  }
  return text;
}

// What goes together, and what does not, as the check has it.
std::string CombinationsSection() {
  std::string text =
      "\n## Combinations\n\nA level is a bundle of properties, each of which "
      "may be set alone, by Apex's rules of what\ngoes together. O3 with "
      "`keep_batchnorm_fp32: true` is `half()` with FP32 batch norm.\n\n"
      "| properties | parameters | batch norm's slots |\n|---|---|---|\n"
      "| `master_weights: true`, `keep_batchnorm_fp32: true` | FP32, with low "
      "copies for the ops that read them low | FP32 |\n"
      "| `master_weights: true`, `keep_batchnorm_fp32: false` | the same | "
      "read the low copies |\n"
      "| `master_weights: false`, `keep_batchnorm_fp32: true` | low, but for "
      "those of these slots and of `fp32_scopes` | FP32 |\n"
      "| `master_weights: false`, `keep_batchnorm_fp32: false` | low, but for "
      "those of `fp32_scopes` | low, read in FP32 |\n\n"
      "At O0 everything is FP32 whatever these two say. Refused are:\n\n"
      "| level | with | why |\n|---|---|---|\n";
  for (const passes::LevelRule& rule : passes::LevelRules()) {
    absl::StrAppend(
        &text, "| ", rule.level, " | ",
        Code(absl::StrCat(rule.path, ": ", rule.refused ? "true" : "false")),
        " | ", rule.why, " |\n");
  }
  return text;
}

}  // namespace

std::string StrategyPage() {
  return absl::StrCat(
      "# The strategy\n\n", kDerived,
      "\nWhat changes a training's numbers besides the model: a file in "
      "protobuf's text\nform (`--strategy FILE`), any field of it on the "
      "command line (`--set\namp.level=O1`; for a list it adds a member), "
      "some by a flag of their own. Of several\n`--set` of one field the last "
      "holds; a field's flag holds against them all, wherever\nit stands. A "
      "number below an end that its range leaves out, as 1 in \"to below 1\", "
      "is below\nit in f32, too. `compile` keeps the resolved strategy in the "
      "`.htc` with each value's\norigin, which `halftone explain X.htc "
      "strategy` shows. `halftone explain strategy FIELD`\nsays of one field "
      "what stands here. Examples: `models/mnist_*.pbtxt`.\n",
      Sections(), OpListsSection(),
      "\n## Levels\n\nWhat a level and a dtype "
      "stand for, where nothing else is set.\n\n",
      BundleTable(tools::LevelBundles()), CombinationsSection(),
      "\n## Scalers\n\nWhat `amp.scaler` stands for, at O1.\n\n",
      BundleTable(tools::ScalerBundles()), AloneSection());
}

}  // namespace docs
}  // namespace halftone
