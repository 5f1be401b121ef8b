#include "tools/report/diff_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/text/text.h"
#include "nlohmann/json.hpp"
#include "tools/report/inspect_report.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {
namespace {

constexpr size_t kMostLines = 6;

void ComparePrecisions(const ModelFacts& before, const ModelFacts& after,
                       Difference* difference) {
  std::map<std::string, const proto::OpRow*> old_ops, new_ops;
  for (const proto::OpRow* op : before.ops) old_ops[op->name()] = op;
  for (const proto::OpRow* op : after.ops) new_ops[op->name()] = op;
  for (const proto::OpRow* op : after.ops) {
    const auto old = old_ops.find(op->name());
    if (old == old_ops.end()) {
      difference->precision.push_back(
          absl::StrCat("+ ", op->name(), " ", op->precision()));
    } else if (old->second->precision() != op->precision()) {
      difference->precision.push_back(
          absl::StrCat(op->name(), " ", old->second->precision(), "->",
                       op->precision(), " ", WhyText(*op)));
    }
  }
  for (const proto::OpRow* op : before.ops) {
    if (new_ops.count(op->name()) == 0) {
      difference->precision.push_back(absl::StrCat("- ", op->name()));
    }
  }
}

// Names of casts that are no cells, and of parameters with low cells.
struct CastNames {
  std::vector<std::string> casts;
  std::set<std::string> cells;
};

CastNames NamesOf(const CompiledModel& model) {
  CastNames names;
  for (const proto::CastRow& cast : model.report.cast()) {
    if (cast.fate() != "cell") names.casts.push_back(cast.name());
  }
  for (const proto::ParamRow& param : model.report.param()) {
    if (param.has_low_cell()) names.cells.insert(param.name());
  }
  return names;
}

template <typename A, typename B>
std::vector<std::string> Without(const A& these, const B& those) {
  std::vector<std::string> rest;
  for (const std::string& name : these) {
    if (std::find(those.begin(), those.end(), name) == those.end()) {
      rest.push_back(name);
    }
  }
  return rest;
}

std::string Signed(int64_t value) {
  return absl::StrCat(value < 0 ? "-" : "+", WithCommas(std::abs(value)));
}

void CompareCasts(const ModelFacts& before, const ModelFacts& after,
                  Difference* difference) {
  const int old_count = before.down + before.up;
  const int new_count = after.down + after.up;
  const CastNames old_names = NamesOf(*before.model);
  const CastNames new_names = NamesOf(*after.model);
  std::vector<std::string>& lines = difference->casts;
  if (old_count != new_count) {
    lines.push_back(absl::StrCat(old_count, " -> ", new_count, " inserted"));
  }
  const auto gone = Without(old_names.casts, new_names.casts);
  const auto come = Without(new_names.casts, old_names.casts);
  if (!gone.empty()) lines.push_back("- " + absl::StrJoin(gone, " "));
  if (!come.empty()) lines.push_back("+ " + absl::StrJoin(come, " "));
  if (before.standalone != after.standalone) {
    lines.push_back(absl::StrCat(
        "standalone ", before.standalone, " -> ", after.standalone, ", ",
        Signed(after.standalone_bytes - before.standalone_bytes), " B/step"));
  }
  const auto lost = Without(old_names.cells, new_names.cells);
  const auto won = Without(new_names.cells, old_names.cells);
  if (!lost.empty()) {
    lines.push_back(absl::StrCat(absl::StrJoin(lost, " "), " lose their ",
                                 before.low, " cells"));
  }
  if (!won.empty()) {
    lines.push_back(
        absl::StrCat(absl::StrJoin(won, " "), " get ", after.low, " cells"));
  }
}

void CompareReductions(const ModelFacts& before, const ModelFacts& after,
                       Difference* difference) {
  std::map<std::string, std::pair<int64_t, int64_t>> bytes;
  for (const auto& [dtype, n] : before.bucket_bytes) bytes[dtype].first = n;
  for (const auto& [dtype, n] : after.bucket_bytes) bytes[dtype].second = n;
  for (const auto& [dtype, change] : bytes) {
    if (change.first == change.second) continue;
    difference->all_reduce.push_back(
        absl::StrCat(dtype, " ", WithCommas(change.first), " -> ",
                     WithCommas(change.second), " B"));
  }
}

void ComparePrograms(const std::string& before, const std::string& after,
                     Difference* difference) {
  const std::vector<std::string> old_lines = absl::StrSplit(before, '\n');
  const std::vector<std::string> new_lines = absl::StrSplit(after, '\n');
  const std::set<std::string> old_set(old_lines.begin(), old_lines.end());
  const std::set<std::string> new_set(new_lines.begin(), new_lines.end());
  size_t changed = 0;
  const auto add = [&](const char* sign, const std::string& line) {
    if (++changed <= kMostLines) {
      difference->program.push_back(absl::StrCat(sign, line));
    }
  };
  for (const std::string& line : old_lines) {
    if (new_set.count(line) == 0) add("- ", line);
  }
  for (const std::string& line : new_lines) {
    if (old_set.count(line) == 0) add("+ ", line);
  }
  if (changed > kMostLines) {
    difference->program.push_back(
        absl::StrCat("and ", changed - kMostLines, " more lines"));
  }
  if (changed == 0) {
    difference->program.push_back("the same lines in another order");
  }
}

}  // namespace

absl::StatusOr<Difference> DifferenceOf(const CompiledModel& before,
                                        const CompiledModel& after) {
  HT_ASSIGN_OR_RETURN(const ModelFacts old_facts, FactsOf(before));
  HT_ASSIGN_OR_RETURN(const ModelFacts new_facts, FactsOf(after));
  Difference difference;
  const std::string old_text = Print(*before.program);
  const std::string new_text = Print(*after.program);
  difference.equal = old_text == new_text;
  if (difference.equal) return difference;
  ComparePrecisions(old_facts, new_facts, &difference);
  CompareCasts(old_facts, new_facts, &difference);
  CompareReductions(old_facts, new_facts, &difference);
  if (difference.precision.empty() && difference.casts.empty() &&
      difference.all_reduce.empty()) {
    ComparePrograms(old_text, new_text, &difference);
  }
  return difference;
}

std::string DiffText(const Difference& difference) {
  if (difference.equal) return "equal\n";
  std::string text;
  const auto add = [&text](const char* label, const auto& parts,
                           const char* separator) {
    if (parts.empty()) return;
    absl::StrAppend(&text, label, absl::StrJoin(parts, separator), "\n");
  };
  add("precision  ", difference.precision, ", ");
  add("casts      ", difference.casts, "; ");
  add("all-reduce ", difference.all_reduce, ", ");
  add("program    ", difference.program, "\n           ");
  return text;
}

std::string DiffJson(const Difference& difference) {
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"equal", difference.equal},
                                       {"precision", difference.precision},
                                       {"casts", difference.casts},
                                       {"all_reduce", difference.all_reduce},
                                       {"program", difference.program}};
  return json.dump(1) + "\n";
}

}  // namespace tools
}  // namespace halftone
