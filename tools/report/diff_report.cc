#include "tools/report/diff_report.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/message_differencer.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/model_reader.h"
#include "graph/strategy/fields.h"
#include "graph/text/text.h"
#include "nlohmann/json.hpp"
#include "passes/options/strategy_fields.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"
#include "tools/report/diff_lines.h"
#include "tools/report/inspect_report.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {
namespace {

constexpr size_t kMostLines = 6, kMostNames = 8, kMostParts = 20;

std::string Few(const std::vector<std::string>& names) {
  return runtime::JoinFew(names, kMostNames);
}

// In which entries an op, or what it makes, still is, in a fusion or not.
class EntriesOf {
 public:
  explicit EntriesOf(const Program& program) : program_(program) {
    for (const auto& entry : program.entries()) {
      const Block& block = entry->block();
      auto& names = inside_.emplace_back();
      for (OpId id = block.first(); id.valid(); id = block.next(id)) {
        if (block.op(id).body != nullptr) {
          AddNames(*block.op(id).body, &names);
        }
      }
    }
  }

  // "train, eval".
  std::string Of(const proto::OpRow& op) const {
    std::vector<std::string> names;
    size_t inside = 0;
    for (const auto& entry : program_.entries()) {
      const Block& block = entry->block();
      const auto& hidden = inside_[inside++];
      bool there =
          block.FindOp(op.name()).valid() || hidden.contains(op.name());
      for (const proto::SlotNames& slot : op.output()) {
        for (const std::string& value : slot.value()) {
          there =
              there || block.FindValue(value).valid() || hidden.contains(value);
        }
      }
      if (there) names.push_back(entry->name());
    }
    return absl::StrJoin(names, ", ");
  }

 private:
  using Names = absl::flat_hash_set<std::string>;

  static void AddNames(const Block& body, Names* names) {
    for (OpId id = body.first(); id.valid(); id = body.next(id)) {
      const Op& op = body.op(id);
      names->emplace(body.name(op));
      for (ValueId made : op.outputs.all()) names->emplace(body.name(made));
    }
  }

  const Program& program_;
  std::vector<Names> inside_;  // fusions, by entry
};

// "f16 WHITE_LIST -> f16 USER_WHITE"; the ops behind it only where the code
// stays.
std::string ReasonChange(const proto::OpRow& before,
                         const proto::OpRow& after) {
  const bool code = before.reason() != after.reason();
  return absl::StrCat(
      before.precision(), " ", code ? before.reason() : WhyText(before), " -> ",
      after.precision(), " ", code ? after.reason() : WhyText(after));
}

void ComparePrecisions(const ModelFacts& before, const ModelFacts& after,
                       Difference* difference) {
  std::map<std::string, const proto::OpRow*> old_ops, new_ops;
  const auto old_rows = OwnOps(*before.model), new_rows = OwnOps(*after.model);
  for (const proto::OpRow* op : old_rows) old_ops[op->name()] = op;
  for (const proto::OpRow* op : new_rows) new_ops[op->name()] = op;
  const EntriesOf entries(*after.model->program);
  // Ops with the same change of reason, in order of the first one.
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const proto::OpRow* op : new_rows) {
    const auto old = old_ops.find(op->name());
    if (old == old_ops.end()) {
      difference->precision.push_back(
          absl::StrCat("+ ", op->name(), " ", op->precision()));
    } else if (old->second->precision() != op->precision()) {
      difference->precision.push_back(
          absl::StrCat(op->name(), " ", old->second->precision(), "->",
                       op->precision(), " ", WhyText(*op)));
    } else if (WhyText(*old->second) != WhyText(*op)) {
      const std::string change = absl::StrCat(ReasonChange(*old->second, *op),
                                              " (", entries.Of(*op), ")");
      auto same =
          std::find_if(reasons.begin(), reasons.end(),
                       [&](const auto& r) { return r.first == change; });
      if (same == reasons.end()) {
        same = reasons.insert(reasons.end(), {change, {}});
      }
      same->second.push_back(op->name());
    }
  }
  for (const auto& [change, ops] : reasons) {
    difference->reasons.push_back(absl::StrCat(Few(ops), ": ", change));
  }
  for (const proto::OpRow* op : old_rows) {
    if (new_ops.count(op->name()) == 0) {
      difference->precision.push_back(absl::StrCat("- ", op->name()));
    }
  }
}

// Names of casts that are no cells, and of parameters with low cells.
struct CastNames {
  std::vector<std::string> casts;
  std::vector<std::string> cells;
};

CastNames NamesOf(const CompiledModel& model) {
  CastNames names;
  for (const proto::CastRow& cast : model.casts.all()) {
    if (cast.fate() != "cell") names.casts.push_back(cast.name());
  }
  for (const proto::ParamRow& param : model.report.param()) {
    if (param.has_low_cell()) names.cells.push_back(param.name());
  }
  return names;
}

std::vector<std::string> Without(const std::vector<std::string>& these,
                                 const std::vector<std::string>& those) {
  const std::set<std::string> left_out(those.begin(), those.end());
  std::vector<std::string> rest;
  for (const std::string& name : these) {
    if (left_out.count(name) == 0) rest.push_back(name);
  }
  return rest;
}

// "fc.w fc.b lose their f16 cells", "fc.b loses its f16 cell".
std::string CellsText(const std::vector<std::string>& names, const char* many,
                      const char* one, const std::string& low) {
  return names.size() == 1
             ? absl::StrCat(names[0], " ", one, " ", low, " cell")
             : absl::StrCat(Few(names), " ", many, " ", low, " cells");
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
  if (!gone.empty()) lines.push_back("- " + Few(gone));
  if (!come.empty()) lines.push_back("+ " + Few(come));
  if (before.standalone != after.standalone ||
      before.standalone_bytes != after.standalone_bytes) {
    lines.push_back(absl::StrCat(
        "standalone ", before.standalone, " -> ", after.standalone, ", ",
        Signed(after.standalone_bytes - before.standalone_bytes), " B/step"));
  }
  const auto lost = Without(old_names.cells, new_names.cells);
  const auto won = Without(new_names.cells, old_names.cells);
  if (!lost.empty()) {
    lines.push_back(CellsText(lost, "lose their", "loses its", before.low));
  }
  if (!won.empty()) {
    lines.push_back(CellsText(won, "get", "gets its", after.low));
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

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string SettingText(const Message& message, const FieldDescriptor& field) {
  if (!message.GetReflection()->HasField(message, &field)) return "unset";
  if (field.message_type() == nullptr) return ValueText(message, field);
  const std::string said =
      message.GetReflection()->GetMessage(message, &field).ShortDebugString();
  return said.empty() ? "{ }" : absl::StrCat("{ ", said, " }");
}

// "optimizer.clip: unset -> { global_norm: 1 }" for each field that one of them
// has, and whose absence says something; such fields are gone from both then.
void TakePresence(const std::string& path, Message* before, Message* after,
                  std::vector<std::string>* lines) {
  const auto& descriptor = *before->GetDescriptor();
  const auto& reflection = *before->GetReflection();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* const field = descriptor.field(i);
    if (field->is_repeated()) continue;
    const std::string name = absl::StrCat(path, field->name());
    const bool old_one = reflection.HasField(*before, field);
    const bool new_one = reflection.HasField(*after, field);
    const bool tells = field->containing_oneof() != nullptr ||
                       !halftone::FactsOf(*field).unset().empty();
    if (old_one != new_one && tells) {
      lines->push_back(absl::StrCat(name, ": ", SettingText(*before, *field),
                                    " -> ", SettingText(*after, *field)));
      reflection.ClearField(before, field);
      reflection.ClearField(after, field);
    } else if ((old_one || new_one) && field->message_type() != nullptr) {
      TakePresence(name + ".", reflection.MutableMessage(before, field),
                   reflection.MutableMessage(after, field), lines);
    }
  }
}

// "optimizer.momentum.momentum: 0.9 -> 0.8" for each field that differs.
std::vector<std::string> CompareSettings(const CompiledModel& before,
                                         const CompiledModel& after) {
  using google::protobuf::util::MessageDifferencer;
  proto::Strategy old_one = before.strategy, new_one = after.strategy;
  std::vector<std::string> lines;
  // A list file counts by what it says, not by where it lies.
  const bool same_lists =
      MessageDifferencer::Equivalent(before.op_lists, after.op_lists);
  if (!same_lists && old_one.amp().op_lists() == new_one.amp().op_lists()) {
    lines.push_back("amp.op_lists: another list of that name");
  }
  if (same_lists) {
    old_one.mutable_amp()->clear_op_lists();
    new_one.mutable_amp()->clear_op_lists();
  }
  passes::AsSets(&old_one);
  passes::AsSets(&new_one);
  TakePresence("", &old_one, &new_one, &lines);
  MessageDifferencer differ;
  // A field that an older compiler did not know has its default.
  differ.set_message_field_comparison(MessageDifferencer::EQUIVALENT);
  std::string text;
  differ.ReportDifferencesToString(&text);
  differ.Compare(old_one, new_one);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.emplace_back(absl::StripPrefix(line, "modified: "));
  }
  if (before.target != after.target) {
    lines.push_back(
        absl::StrCat("target: ", before.target, " -> ", after.target));
  }
  return lines;
}

void ForgetLines(Block* block) {
  for (OpId id = block->first(); id.valid(); id = block->next(id)) {
    Op& op = block->mutable_op(id);
    op.line = 0;
    if (op.body != nullptr) ForgetLines(op.body.get());
  }
}

// What a program says, wherever it was written.
std::unique_ptr<Program> WithoutLines(const Program& program) {
  std::unique_ptr<Program> copy = Clone(program);
  for (int i = 0; i < copy->num_cells(); ++i) copy->cell(CellId(i)).line = 0;
  for (const auto& entry : copy->entries()) ForgetLines(&entry->block());
  return copy;
}

// The program as its model's file says it: no pass has been there.
absl::StatusOr<std::unique_ptr<Program>> WrittenProgram(
    const CompiledModel& model) {
  HT_ASSIGN_OR_RETURN(const auto program, BuildProgram(model.WholeSource()));
  return WithoutLines(*program);
}

}  // namespace

absl::StatusOr<Difference> DifferenceOf(const CompiledModel& before,
                                        const CompiledModel& after) {
  HT_ASSIGN_OR_RETURN(const ModelFacts old_facts, FactsOf(before));
  HT_ASSIGN_OR_RETURN(const ModelFacts new_facts, FactsOf(after));
  const auto old_program = WithoutLines(*before.program);
  const auto new_program = WithoutLines(*after.program);
  const bool same_program = Print(*old_program) == Print(*new_program);
  Difference difference;
  difference.strategy = CompareSettings(before, after);
  difference.equal = same_program && difference.strategy.empty();
  if (same_program) return difference;
  ComparePrecisions(old_facts, new_facts, &difference);
  CompareCasts(old_facts, new_facts, &difference);
  CompareReductions(old_facts, new_facts, &difference);
  HT_ASSIGN_OR_RETURN(const auto old_written, WrittenProgram(before));
  HT_ASSIGN_OR_RETURN(const auto new_written, WrittenProgram(after));
  if (Print(*old_written) != Print(*new_written)) {
    difference.program = DifferentLines(*old_written, *new_written, kMostLines);
  } else if (difference.precision.empty() && difference.reasons.empty() &&
             difference.casts.empty() && difference.all_reduce.empty()) {
    difference.program = DifferentLines(*old_program, *new_program, kMostLines);
  }
  return difference;
}

std::string DiffText(const Difference& difference) {
  if (difference.equal) return "equal\n";
  std::string text;
  const auto add = [&text](const char* label, std::vector<std::string> parts,
                           const char* separator) {
    if (parts.empty()) return;
    if (parts.size() > kMostParts) {
      const size_t more = parts.size() - kMostParts;
      parts.resize(kMostParts);
      parts.push_back(absl::StrCat("and ", more, " more: --json"));
    }
    absl::StrAppend(&text, label, absl::StrJoin(parts, separator), "\n");
  };
  add("precision  ", difference.precision, ", ");
  add("reasons    ", difference.reasons, "\n           ");
  add("casts      ", difference.casts, "; ");
  add("all-reduce ", difference.all_reduce, ", ");
  add("strategy   ", difference.strategy, "\n           ");
  add("program    ", difference.program, "\n           ");
  return text;
}

std::string DiffJson(const Difference& difference) {
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"equal", difference.equal},
                                       {"precision", difference.precision},
                                       {"reasons", difference.reasons},
                                       {"casts", difference.casts},
                                       {"all_reduce", difference.all_reduce},
                                       {"strategy", difference.strategy},
                                       {"program", difference.program}};
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
