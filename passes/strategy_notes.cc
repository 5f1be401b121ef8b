#include "passes/strategy_notes.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/strategy/fields.h"
#include "passes/idle_settings.h"

namespace halftone {
namespace passes {
namespace {

using google::protobuf::RepeatedPtrField;

proto::Note Note(const char* code, const std::string& text) {
  proto::Note note;
  note.set_code(code);
  note.set_text(text);
  return note;
}

absl::flat_hash_set<std::string> OpTypes(const Program& source) {
  absl::flat_hash_set<std::string> types;
  for (const auto& entry : source.entries()) {
    for (const Block::SchemaCount& op : entry->block().counts()) {
      if (op.count > 0) types.insert(op.schema->name());
    }
  }
  return types;
}

// A note for the members of a user list that the model has no op for.
void AddUnmatched(const Options& options, absl::string_view path,
                  const std::vector<std::string>& ops,
                  const absl::flat_hash_set<std::string>& types,
                  std::vector<proto::Note>* notes) {
  std::vector<std::string> missing;
  int first = -1;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (types.contains(ops[i])) continue;
    if (first < 0) first = static_cast<int>(i);
    missing.push_back(ops[i]);
  }
  if (missing.empty()) return;
  notes->push_back(Note(
      "P4", absl::StrCat(OriginOf(options, path, first), ": the model has no ",
                         absl::StrJoin(missing, ", "), ": no effect")));
}

// A note for the FP32 scopes in which the model has no op.
void AddEmptyScopes(const Program& source, const Options& options,
                    std::vector<proto::Note>* notes) {
  const auto& scopes = options.strategy.amp().fp32_scopes();
  for (int i = 0; i < scopes.size(); ++i) {
    bool matched = false;
    for (const auto& entry : source.entries()) {
      const Block& block = entry->block();
      for (OpId id = block.first(); id.valid() && !matched;
           id = block.next(id)) {
        matched = GlobMatch(scopes[i], block.name(block.op(id)));
      }
    }
    if (matched) continue;
    notes->push_back(Note(
        "P11",
        absl::StrCat(OriginOf(options, "amp.fp32_scopes", i),
                     ": no op's name matches \"", scopes[i], "\": no effect")));
  }
}

// The fields of the scaler that are not the preset's.
void AddScaler(const Options& options, std::vector<proto::Note>* notes) {
  constexpr absl::string_view kScaling = "amp.loss_scaling.";
  const std::string& scaler = options.strategy.amp().scaler();
  if (scaler.empty()) return;
  std::vector<std::string> fields;
  for (const auto& [path, origin] : options.origins) {
    absl::string_view field = path;
    if (!absl::ConsumePrefix(&field, kScaling) || IsDerivedOrigin(origin)) {
      continue;
    }
    fields.push_back(absl::StrCat(field, " (", origin, ")"));
  }
  if (fields.empty()) return;
  notes->push_back(
      Note("P5", absl::StrCat(OriginOf(options, "amp.scaler"), ": \"", scaler,
                              "\" but for ", absl::StrJoin(fields, ", "),
                              ": explicit fields win over the preset's")));
}

// Of ops and what they make.
std::vector<std::string> NamesIn(const Block& block) {
  std::vector<std::string> names;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    names.emplace_back(block.name(op));
    for (ValueId out : op.outputs.all()) names.emplace_back(block.name(out));
  }
  return names;
}

}  // namespace

absl::Status CheckGroups(const Program& source, const Options& options) {
  std::vector<std::string> parameters;
  for (int i = 0; i < source.num_cells(); ++i) {
    const Cell& cell = source.cell(CellId(i));
    if (cell.kind == CellKind::kParameter) parameters.emplace_back(cell.name);
  }
  const proto::Optimizer& optimizer = options.strategy.optimizer();
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const std::string& match = optimizer.group(i).match();
    if (std::any_of(parameters.begin(), parameters.end(),
                    [&match](const std::string& name) {
                      return GlobMatch(match, name);
                    })) {
      continue;
    }
    const std::string hint = NearestHint(match, parameters);
    return FieldError(
        options, "optimizer.group",
        absl::StrCat(
            "no parameter matches \"", match, "\"",
            hint.empty() ? "; halftone inspect MODEL --json lists them" : hint),
        i);
  }
  return absl::OkStatus();
}

absl::Status CheckMemoryGlobs(const Program& source, const Options& options) {
  const proto::Memory& memory = options.strategy.memory();
  const Entry* const train = source.FindEntry(kTrainEntry);
  if (train == nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  const auto check = [&](absl::string_view path,
                         const RepeatedPtrField<std::string>& globs) {
    if (!globs.empty() && names.empty()) names = NamesIn(train->block());
    for (int i = 0; i < globs.size(); ++i) {
      if (std::any_of(names.begin(), names.end(), [&](const auto& name) {
            return GlobMatch(globs[i], name);
          })) {
        continue;
      }
      const std::string hint = NearestHint(globs[i], names);
      return FieldError(
          options, path,
          absl::StrCat(
              "no op and no value that one makes matches \"", globs[i], "\"",
              hint.empty() ? "; halftone inspect MODEL --all lists them"
                           : hint),
          i);
    }
    return absl::OkStatus();
  };
  HT_RETURN_IF_ERROR(
      check("memory.recompute.checkpoints", memory.recompute().checkpoints()));
  return check("memory.compress.values", memory.compress().values());
}

std::vector<proto::Note> StrategyNotes(const Program& source,
                                       const Options& options) {
  std::vector<proto::Note> notes;
  const proto::Amp& amp = options.strategy.amp();
  if (LevelOf(amp) == Level::kO0 &&
      amp.custom_white_list_size() + amp.custom_white_opnames_size() > 0) {
    notes.push_back(Note("P2", "level O0: the white lists have no effect"));
  }
  if (source.loss.var.empty() && options.strategy.has_optimizer()) {
    notes.push_back(
        Note("P3", "the model has no loss: compiled for evaluation alone"));
  }
  const absl::flat_hash_set<std::string> types = OpTypes(source);
  AddUnmatched(options, "amp.custom_white_list",
               OpTypesOf(amp.custom_white_list()), types, &notes);
  AddUnmatched(options, "amp.custom_black_list",
               OpTypesOf(amp.custom_black_list()), types, &notes);
  AddEmptyScopes(source, options, &notes);
  AddScaler(options, &notes);
  if (amp.loss_scaling().per_loss() && source.loss.parts.size() < 2) {
    notes.push_back(Note(
        "P12", absl::StrCat(OriginOf(options, "amp.loss_scaling.per_loss"),
                            ": the model's loss has ",
                            source.loss.parts.empty() ? "no parts" : "one part",
                            ": one scaler")));
  }
  const std::vector<std::string> idle = IdleSettings(source, options);
  if (!idle.empty()) {
    notes.push_back(
        Note("P13", absl::StrCat("no effect: ", absl::StrJoin(idle, "; "))));
  }
  return notes;
}

}  // namespace passes
}  // namespace halftone
