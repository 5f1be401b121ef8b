#include "tools/report/inspect_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"
#include "graph/ir/well_known.h"
#include "passes/report.h"
#include "runtime/log/words.h"
#include "tools/report/cast_texts.h"

namespace halftone {
namespace tools {
namespace {

// "layer3/block1" of "layer3/block1/conv1"; empty at the top.
std::string ScopeOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

std::string LineText(const proto::OpRow& op) {
  return op.has_line() ? absl::StrCat(":", op.line()) : "";
}

void AddOpRow(const proto::OpRow& op, Table* table) {
  table->Add({op.name(), op.type(), op.precision(), WhyText(op), op.op_class(),
              LineText(op)});
}

// Neighbouring ops of one scope.
struct Scope {
  std::string name;
  std::vector<const proto::OpRow*> ops;
  int times = 1;
};

// What makes two scopes equal: all but names and lines.
std::string Signature(const Scope& scope) {
  return absl::StrJoin(
      scope.ops, ";", [&](std::string* out, const proto::OpRow* op) {
        absl::StrAppend(out, op->name().substr(scope.name.size()), ",",
                        op->type(), ",", op->precision(), ",", op->reason());
      });
}

std::vector<Scope> Fold(const std::vector<const proto::OpRow*>& ops) {
  std::vector<Scope> scopes;
  for (const proto::OpRow* op : ops) {
    const std::string name = ScopeOf(op->name());
    if (scopes.empty() || scopes.back().name != name || name.empty()) {
      scopes.push_back({name, {}, 1});
    }
    scopes.back().ops.push_back(op);
  }
  std::vector<Scope> folded;
  for (Scope& scope : scopes) {
    if (!folded.empty() && !scope.name.empty() &&
        Signature(folded.back()) == Signature(scope)) {
      ++folded.back().times;
    } else {
      folded.push_back(std::move(scope));
    }
  }
  return folded;
}

// "f16 11, f32 1" of what a scope's ops have in common.
template <typename Get>
std::string Tally(const Scope& scope, Get get) {
  std::vector<std::pair<std::string, int>> counts;
  for (const proto::OpRow* op : scope.ops) {
    auto it = std::find_if(counts.begin(), counts.end(),
                           [&](const auto& c) { return c.first == get(*op); });
    if (it == counts.end()) it = counts.insert(counts.end(), {get(*op), 0});
    ++it->second;
  }
  if (counts.size() == 1) return counts[0].first;
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& count) {
    absl::StrAppend(out, count.first, " ", count.second);
  });
}

void AddScope(const Scope& scope, Table* table) {
  if (scope.name.empty() || scope.ops.size() == 1) {
    for (const proto::OpRow* op : scope.ops) AddOpRow(*op, table);
    return;
  }
  const auto precision = [](const proto::OpRow& op) { return op.precision(); };
  const auto reason = [](const proto::OpRow& op) { return op.reason(); };
  const auto list = [](const proto::OpRow& op) { return op.op_class(); };
  table->Add({scope.times > 1 ? absl::StrCat(scope.name, " x", scope.times)
                              : scope.name,
              runtime::Count(scope.ops.size(), "op"), Tally(scope, precision),
              Tally(scope, reason), Tally(scope, list),
              LineText(*scope.ops[0])});
}

std::string OpsTable(const ModelFacts& facts, const InspectOptions& options) {
  std::vector<const proto::OpRow*> ops;
  for (const proto::OpRow* op : OwnOps(*facts.model)) {
    if (InScope(*op, options.scope)) ops.push_back(op);
  }
  Table table(
      {"op", "type", "runs in", "why", "list", facts.model->source.file});
  if (options.all || static_cast<int>(ops.size()) <= kMostRows) {
    for (const proto::OpRow* op : ops) AddOpRow(*op, &table);
  } else {
    for (const Scope& scope : Fold(ops)) AddScope(scope, &table);
  }
  return table.Text();
}

// Casts that became cells, in one line: "6 weights + 6 grads".
void AddCellLine(const ModelFacts& facts, Table* table) {
  int weights = 0, gradients = 0;
  int64_t bytes = 0;
  std::vector<std::string> readers;
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    if (cast.fate() != "cell") continue;
    ++(cast.to() == "f32" ? gradients : weights);
    bytes += passes::BytesPerStep(cast, facts.samples);
    for (const std::string& op : cast.for_op()) {
      if (cast.role() == "forward" &&
          std::find(readers.begin(), readers.end(), op) == readers.end()) {
        readers.push_back(op);
      }
    }
  }
  if (weights == 0) return;
  if (readers.size() > 4) {
    const size_t more = readers.size() - 3;
    readers.resize(3);
    readers.push_back(absl::StrCat("and ", more, " more"));
  }
  table->Add(
      {absl::StrCat(weights, " weights + ", gradients, " grads"), "both", "",
       absl::StrJoin(readers, " "), WithCommas(bytes),
       absl::StrCat(facts.low, " cells", gradients > 0 ? "; the update" : ""),
       "-"});
}

std::string CastsTable(const ModelFacts& facts, const InspectOptions& options) {
  Table table(
      {"cast", "from", "to", "for", "bytes/step", "fate", "without it"});
  CastTexts texts(facts);
  int left_out = 0, shown = 0;
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    if (cast.fate() == "cell" && !options.all && options.scope.empty()) {
      continue;
    }
    if (!InScope(cast, options.scope)) continue;
    if (!options.all && shown == kMostRows / 2) {
      ++left_out;
      continue;
    }
    ++shown;
    CastTexts::Row row = texts.Next(cast);
    table.Add({cast.name(), cast.from(), cast.to(), std::move(row.of),
               WithCommas(passes::BytesPerStep(cast, facts.samples)),
               std::move(row.fate), std::move(row.without)});
  }
  if (!options.all && options.scope.empty()) AddCellLine(facts, &table);
  table.RightAlign(4);
  std::string text = table.rows() > 0 ? table.Text() : "cast: none\n";
  if (left_out > 0) {
    absl::StrAppend(&text, "... and ", left_out, " more casts: --all\n");
  }
  return text;
}

// Why eval's ops and casts are shown, where nobody has asked for them.
std::string EvalText(const ModelFacts& facts) {
  if (facts.trains) return "; the eval entry";
  return absl::StrCat(
      "; the eval entry: nothing trains without ",
      facts.model->source.model->has_loss() ? "an optimizer" : "a loss",
      ", --entry train shows its forward part");
}

std::string StateLine(const ModelFacts& facts) {
  const StateBytes& state = facts.state;
  std::string text = absl::StrCat(WithCommas(state.total()), " B:");
  const char* separator = " ";
  const auto add = [&](const std::string& name, int64_t bytes) {
    if (bytes == 0) return;
    absl::StrAppend(&text, separator, name, " ", WithCommas(bytes));
    separator = ", ";
  };
  add("FP32 copies", state.copies);
  add("other parameters", state.parameters);
  add(absl::StrCat(facts.low, " cells"), state.low_cells);
  add(state.slot_names, state.slots);
  add("batch norm", state.statistics);
  add("scaler, clocks", state.others);
  if (!facts.bucket_bytes.empty()) {
    absl::StrAppend(&text, " | all-reduce");
    for (const auto& [dtype, bytes] : facts.bucket_bytes) {
      absl::StrAppend(&text, " ", dtype, " ", WithCommas(bytes));
    }
  }
  if (facts.peak_bytes >= 0) {
    absl::StrAppend(&text, " | peak ", HumanBytes(facts.peak_bytes));
  }
  text = Hanging("state ", text, 6, ColumnsOf(stdout));
  absl::StrAppend(&text, "(bytes per step and peak: ",
                  runtime::Count(facts.samples, "sample"), " on one rank",
                  facts.entry == kTrainEntry ? "" : EvalText(facts), ")\n");
  return text;
}

}  // namespace

bool InScope(const proto::OpRow& op, const std::string& scope) {
  return scope.empty() || GlobMatch(scope, op.name());
}

bool InScope(const proto::CastRow& cast, const std::string& scope) {
  return scope.empty() || GlobMatch(scope, cast.name()) ||
         GlobMatch(scope, cast.value());
}

absl::Status CheckScope(const ModelFacts& facts, const std::string& scope) {
  if (scope.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const proto::OpRow* op : OwnOps(*facts.model)) {
    if (InScope(*op, scope)) return absl::OkStatus();
    names.push_back(op->name());
  }
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    if (InScope(cast, scope)) return absl::OkStatus();
    names.push_back(cast.name());
  }
  return UsageError("--scope ", scope, ": matches no op, cast or cast value",
                    NearestHint(scope, names),
                    "; * stands for any characters: 'layer3/*'");
}

std::string WhyText(const proto::OpRow& op) {
  std::string text = op.reason();
  if (op.because_of_size() > 0) {
    absl::StrAppend(&text, " <- ", absl::StrJoin(op.because_of(), " "));
  }
  if (op.keep_f32_slot_size() > 0) {
    absl::StrAppend(&text, "; ",
                    runtime::Count(op.keep_f32_slot_size(), "slot"),
                    " KEEP_F32_SLOT");
  }
  return text;
}

absl::StatusOr<std::string> InspectText(const ModelFacts& facts,
                                        const InspectOptions& options) {
  HT_RETURN_IF_ERROR(CheckScope(facts, options.scope));
  std::string casts = CastsTable(facts, options);
  const size_t end = casts.size() - 1;
  if (facts.cell + facts.folded + facts.standalone > 0) {
    casts.insert(end, absl::StrCat("   standalone casts: ", facts.standalone));
  }
  return OpsTable(facts, options) + casts + StateLine(facts);
}

}  // namespace tools
}  // namespace halftone
