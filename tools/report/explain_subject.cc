#include "tools/report/explain_subject.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/ir/decision.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/parameter_updates.h"
#include "graph/text/spelling.h"
#include "graph/text/text.h"
#include "kernels/bound_op.h"
#include "runtime/log/words.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

const Entry& MainEntry(const Program& program) {
  const Entry* train = program.FindEntry(kTrainEntry);
  return train != nullptr ? *train : *program.FindEntry(kEvalEntry);
}

std::string Place(const CompiledModel& model, int line) {
  return line > 0 ? absl::StrCat("  ", model.source.file, ":", line) : "";
}

// The model's own ops that read any of the values, as insertion left them.
std::vector<std::string> ForwardReaders(const CompiledModel& model,
                                        const std::vector<std::string>& of) {
  std::vector<std::string> readers;
  for (const proto::OpRow& op : model.ops.all()) {
    if (op.role() != "forward") continue;
    for (const proto::SlotNames& slot : op.input()) {
      const bool reads = std::any_of(
          slot.value().begin(), slot.value().end(), [&of](const auto& value) {
            return std::find(of.begin(), of.end(), value) != of.end();
          });
      if (reads && (readers.empty() || readers.back() != op.name())) {
        readers.push_back(op.name());
      }
    }
  }
  return readers;
}

std::string InitText(const Initializer& init) {
  const text::InitSpelling& spelling = text::SpellingOf(init.kind);
  if (spelling.word.empty()) return "computed from another cell";
  return absl::StrCat(
      spelling.word, "(", ExactDouble(init.a),
      spelling.arguments == 2 ? absl::StrCat(", ", ExactDouble(init.b)) : "",
      ")");
}

// The all-reduce of a parameter's gradient, by its number; -1: none.
int BucketOf(const CompiledModel& model, const proto::ParamRow& param) {
  const Entry* const train = model.program->FindEntry(kTrainEntry);
  if (train == nullptr) return -1;
  const Block& block = train->block();
  const CellId cell = model.program->FindCell(param.name());
  for (const ParameterUpdate& update : ParameterUpdates(block)) {
    if (update.parameter != cell || !update.origin.local.valid()) continue;
    const absl::string_view local = block.name(update.origin.local);
    for (int b = 0; b < model.report.bucket_size(); ++b) {
      const auto& members = model.report.bucket(b).member();
      if (std::find(members.begin(), members.end(), local) != members.end()) {
        return b;
      }
    }
  }
  return -1;
}

const proto::ParamRow* FindParam(const CompiledModel& model,
                                 const std::string& name) {
  for (const proto::ParamRow& param : model.report.param()) {
    if (param.name() == name) return &param;
  }
  return nullptr;
}

// Adds a line about the gradient of a parameter.
void AddGradient(const CompiledModel& model, const proto::ParamRow& param,
                 Subject* subject) {
  if (!param.has_gradient_dtype()) return;
  subject->json["gradient_dtype"] = param.gradient_dtype();
  const int b = BucketOf(model, param);
  if (b < 0) return;
  const proto::BucketRow& bucket = model.report.bucket(b);
  subject->json["bucket"] = b;
  absl::StrAppend(&subject->text, "  gradient ", param.gradient_dtype(),
                  ", summed over the ranks in all-reduce ", b + 1, " of ",
                  model.report.bucket_size(), " (", WithCommas(bucket.bytes()),
                  " B, ", runtime::Count(bucket.member_size(), "gradient"),
                  ")\n");
}

// Adds a line about what gives the cell its next value.
void AddUpdate(const Program& program, const Cell& cell, Subject* subject) {
  const Entry& entry = MainEntry(program);
  const ValueId next = entry.CommitOf(cell.id);
  if (!next.valid()) {
    subject->json["updated_by"] = nullptr;
    absl::StrAppend(&subject->text, "  never updated\n");
    return;
  }
  const Block& block = entry.block();
  const OpId id = block.value(next).op();
  const std::string op =
      id.valid() ? std::string(block.name(block.op(id))) : "";
  const std::string type = id.valid() ? block.op(id).schema->name() : "";
  const bool applied = cell.commit == Commit::kApplied;
  subject->json["updated_by"] = op;
  subject->json["commit"] = std::string(text::Name(cell.commit));
  absl::StrAppend(&subject->text, "  updated by ", op, " (", type, "), ",
                  applied ? "unless the step is rejected"
                          : "in every step, rejected ones too",
                  "\n");
}

constexpr size_t kMostReaders = 6;

// Adds a line about who reads a cell, itself or through its low copy.
void AddReaders(const CompiledModel& model, const std::string& name,
                const std::string& low_cell, Subject* subject) {
  const auto direct = ForwardReaders(model, {name});
  subject->json["readers"] = direct;
  if (!direct.empty()) {
    absl::StrAppend(&subject->text, "  read by ",
                    runtime::JoinFew(direct, kMostReaders), "\n");
  }
  if (low_cell.empty()) return;
  const auto low = ForwardReaders(model, {low_cell});
  subject->json["low_cell"] = low_cell;
  subject->json["low_readers"] = low;
  absl::StrAppend(&subject->text, "  read through ", low_cell, " by ",
                  runtime::JoinFew(low, kMostReaders), "\n");
}

struct Made {
  const Entry* entry = nullptr;
  OpId op;
};

// What holds for every cell of the kind.
absl::string_view RuleOfCell(const Cell& cell, bool has_low_cell) {
  switch (cell.kind) {
    case CellKind::kParameter:
      return has_low_cell ? "The name stands for the FP32 copy: it is what the "
                            "update changes and a checkpoint keeps."
                          : "";
    case CellKind::kStatistic:
      return "Running statistics stay f32 at every level.";
    case CellKind::kSlot:
      return "Optimizer state stays f32 at every level.";
    case CellKind::kAverage:
      return "Follows the parameter; what evaluation reads.";
    case CellKind::kDerived:
      return "Never saved: made again after every load.";
    case CellKind::kAccumulator:
      return "What the micro-batches of a step add up, or what ranks last "
             "averaged; never saved.";
    case CellKind::kScaler:
      return "State of the loss scaling.";
    case CellKind::kClock:
      return "Counts steps.";
  }
  return "";
}

// In the first entry that has it: train, then eval, then the startup ones.
Made FindMade(const Program& program, const std::string& name) {
  for (const auto& entry : program.entries()) {
    const Block& block = entry->block();
    const OpId op = block.FindOp(name);
    if (op.valid()) return {entry.get(), op};
    const ValueId value = block.FindValue(name);
    if (value.valid() && block.value(value).op().valid()) {
      return {entry.get(), block.value(value).op()};
    }
  }
  return {};
}

// The type of a feed of any entry; empty: there is none of that name.
std::string FeedType(const Program& program, const std::string& name) {
  for (const auto& entry : program.entries()) {
    const Block& block = entry->block();
    for (const ValueId feed : block.Feeds()) {
      if (block.name(feed) == name) {
        return ToString(block.type(feed), program.symbols());
      }
    }
  }
  return "";
}

}  // namespace

Subject FeedSubject(const CompiledModel& model, const std::string& name) {
  Subject subject;
  const std::string type = FeedType(*model.program, name);
  if (type.empty()) return subject;
  int line = 0;
  for (int f = 0; f < model.source.model->feed_size(); ++f) {
    if (model.source.model->feed(f).name() != name) continue;
    if (f < static_cast<int>(model.source.feed_lines.size())) {
      line = model.source.feed_lines[f];
    }
  }
  const auto readers = ForwardReaders(model, {name});
  subject.json = {
      {"kind", "feed"}, {"name", name}, {"type", type}, {"readers", readers}};
  if (line > 0) subject.json["line"] = line;
  subject.text = absl::StrCat(
      name, ": feed ", type, Place(model, line), "\n  ",
      name[0] == '@'
          ? "Set by the runtime; it leaves the graph alone."
          : "Arrives as the reader delivers it: no rule, list or level "
            "changes its type.",
      "\n",
      readers.empty()
          ? ""
          : absl::StrCat("  read by ", runtime::JoinFew(readers, kMostReaders)),
      readers.empty() ? "" : "\n");
  return subject;
}

Subject CellSubject(const CompiledModel& model, const std::string& name) {
  Subject subject;
  const Program& program = *model.program;
  const CellId id = program.FindCell(name);
  if (!id.valid()) return subject;
  const Cell& cell = program.cell(id);
  const std::string kind(text::Name(cell.kind));
  const std::string type = ToString(cell.type, program.symbols());
  const std::string of = cell.of.valid() ? program.cell(cell.of).name : "";
  const int64_t bytes = kernels::Bind(cell.type, SymbolValues{}).bytes();
  subject.json = {{"kind", kind},
                  {"name", name},
                  {"type", type},
                  {"bytes", bytes},
                  {"init", InitText(cell.init)}};
  if (!of.empty()) subject.json["of"] = of;
  if (cell.line > 0) subject.json["line"] = cell.line;
  subject.text =
      absl::StrCat(name, ": ", kind, of.empty() ? "" : absl::StrCat(" of ", of),
                   " ", type, ", ", WithCommas(bytes), " B, ",
                   InitText(cell.init), Place(model, cell.line), "\n");
  const proto::ParamRow* param = FindParam(model, name);
  const bool has_low_cell = param != nullptr && param->has_low_cell();
  const absl::string_view rule = RuleOfCell(cell, has_low_cell);
  if (!rule.empty()) absl::StrAppend(&subject.text, "  ", rule, "\n");
  AddReaders(model, name, has_low_cell ? param->low_cell() : "", &subject);
  if (param != nullptr) AddGradient(model, *param, &subject);
  AddUpdate(program, cell, &subject);
  return subject;
}

Subject ProgramSubject(const CompiledModel& model, const std::string& name) {
  Subject subject;
  const Made made = FindMade(*model.program, name);
  if (made.entry == nullptr) return subject;
  const Block& block = made.entry->block();
  const Op& op = block.op(made.op);
  const std::string reason(Name(op.decision.reason));
  const std::string op_name(block.name(op));
  std::string line = PrintOp(block, op);
  line.erase(line.find_last_not_of(" \n") + 1);
  line.erase(0, line.find_first_not_of(' '));
  subject.json = {{"kind", op_name == name ? "op" : "value"},
                  {"name", name},
                  {"entry", made.entry->name()},
                  {"op", op_name},
                  {"type", op.schema->name()},
                  {"role", std::string(Name(op.role))},
                  {"precision", std::string(Name(op.decision.precision))},
                  {"reason", reason},
                  {"program", line}};
  subject.text = absl::StrCat(
      name, ": ",
      op_name == name ? "" : absl::StrCat("made by ", op_name, ", "),
      op.schema->name(), " (", Name(op.role), ") of the finished ",
      made.entry->name(), " entry, ", Name(op.decision.precision), " ", reason,
      "\n  ", RuleOf(reason), "\n  ", line, "\n");
  return subject;
}

std::vector<std::string> SubjectNames(const CompiledModel& model) {
  std::vector<std::string> names;
  const Block& block = MainEntry(*model.program).block();
  for (const ValueId feed : block.Feeds()) names.emplace_back(block.name(feed));
  for (int c = 0; c < model.program->num_cells(); ++c) {
    names.push_back(model.program->cell(CellId(c)).name);
  }
  return names;
}

}  // namespace tools
}  // namespace halftone
