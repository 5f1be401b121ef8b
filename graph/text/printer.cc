#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/stable_hasher.h"
#include "graph/base/text.h"
#include "graph/schema/op_schema.h"
#include "graph/text/names.h"
#include "graph/text/spelling.h"
#include "graph/text/text.h"

namespace halftone {
namespace {

using text::AppendName;
using text::AppendQuoted;

using Sink = absl::FunctionRef<void(absl::string_view)>;

constexpr size_t kPart = size_t{64} << 10;

class Printer {
 public:
  Printer(const Program& program, Sink sink) : program_(program), sink_(sink) {}
  // The last part.
  void Flush() { sink_(out_); }

  void PrintHeader();
  void PrintEntry(const Entry& entry);
  void PrintOp(const Block& block, const Op& op, int indent);

 private:
  // Between two lines: hands them on where they are many.
  void EndLine() {
    out_ += '\n';
    if (out_.size() < kPart) return;
    sink_(out_);
    out_.clear();
  }
  void Word(absl::string_view word) { out_.append(word.data(), word.size()); }
  void Type(const TensorType& type) {
    out_ += ToString(type, program_.symbols());
  }
  // Programs have far fewer types than values.
  void TypeOf(const Block& block, ValueId value);
  void Name(absl::string_view name) { AppendName(name, &out_); }
  void Name(NameId name) { Name(program_.name_of(name)); }
  // `keyword name` if the name is not empty.
  void Clause(absl::string_view keyword, absl::string_view name);
  void PrintConstant(const Constant& constant);
  void PrintCell(const Cell& cell);
  void PrintInit(const Initializer& init);
  void PrintFeeds(const Block& block, int indent);
  void PrintInputs(const Block& block, const Op& op);
  void PrintOutputs(const Block& block, const Op& op);
  void PrintAttrs(const Op& op);
  void PrintAttr(const AttrValue& value);
  void PrintDecision(const Op& op);
  void PrintBody(const Block& body, int indent);
  // `print(i)` for i in [0, n), separated by ", ".
  template <typename Print>
  void List(int n, const Print& print) {
    for (int i = 0; i < n; ++i) {
      if (i > 0) out_ += ", ";
      print(i);
    }
  }

  const Program& program_;
  const Sink sink_;
  std::string out_;                 // what is not handed on yet
  std::vector<std::string> types_;  // by TypeId; empty: not printed yet
};

void Printer::TypeOf(const Block& block, ValueId value) {
  const TypeId id = block.value(value).type;
  if (id.index() >= static_cast<int>(types_.size())) {
    types_.resize(id.index() + 1);
  }
  std::string& text = types_[id.index()];
  if (text.empty()) text = ToString(program_.type(id), program_.symbols());
  out_ += text;
}

void Printer::Clause(absl::string_view keyword, absl::string_view name) {
  if (name.empty()) return;
  absl::StrAppend(&out_, " ", keyword, " ");
  Name(name);
}

void Printer::PrintHeader() {
  out_ += "program ";
  AppendQuoted(program_.name, &out_);
  if (!program_.symbols().empty()) out_ += " dim ";
  List(program_.symbols().size(), [&](int i) { Name(program_.symbols()[i]); });
  out_ += '\n';
  const LossInfo& loss = program_.loss;
  if (!loss.var.empty() || !loss.mean_over.empty() || !loss.mask.empty() ||
      !loss.denominators.empty()) {
    out_ += "loss ";
    Name(loss.var);
    Clause("over", loss.mean_over);
    Clause("mask", loss.mask);
    for (const std::string& value : loss.denominators) {
      Clause("denominator", value);
    }
    for (const LossPart& part : loss.parts) {
      Clause("part", part.name);
      Clause("as", part.weighted);
    }
    out_ += '\n';
  }
  for (const MetricInfo& metric : program_.metrics) {
    out_ += "metric ";
    Name(metric.name);
    out_ += " = ";
    Name(metric.var);
    Clause("over", metric.over);
    out_ += '\n';
  }
  for (const std::string& output : program_.outputs) {
    out_ += "output ";
    Name(output);
    out_ += '\n';
  }
  for (int i = 0; i < program_.num_constants(); ++i) {
    PrintConstant(program_.constant(ConstantId(i)));
  }
  for (int i = 0; i < program_.num_cells(); ++i) {
    PrintCell(program_.cell(CellId(i)));
  }
}

void Printer::PrintConstant(const Constant& constant) {
  out_ += "constant ";
  Name(constant.name);
  out_ += " : ";
  Type(constant.type);
  out_ += " = [";
  List(constant.values.size(),
       [&](int i) { out_ += ExactDouble(constant.values[i]); });
  out_ += ']';
  EndLine();
}

void Printer::PrintInit(const Initializer& init) {
  const text::InitSpelling& spelling = text::SpellingOf(init.kind);
  if (spelling.word.empty()) return;
  absl::StrAppend(&out_, " init=", spelling.word, "(", ExactDouble(init.a));
  if (spelling.arguments == 2) {
    absl::StrAppend(&out_, ", ", ExactDouble(init.b));
  }
  out_ += ')';
}

void Printer::PrintCell(const Cell& cell) {
  out_ += "cell ";
  Name(cell.name);
  out_ += " : ";
  Type(cell.type);
  absl::StrAppend(&out_, " ", text::Name(cell.kind));
  if (cell.of.valid()) {
    out_ += '(';
    Name(program_.cell(cell.of).name);
    out_ += ')';
  }
  if (cell.trainable) out_ += " trainable";
  absl::StrAppend(&out_, " ", text::Name(cell.commit));
  if (cell.spread != Spread::kReplicated) {
    absl::StrAppend(&out_, " ", text::Name(cell.spread));
  }
  PrintInit(cell.init);
  if (cell.line != 0) absl::StrAppend(&out_, " line=", cell.line);
  EndLine();
}

void Printer::PrintFeeds(const Block& block, int indent) {
  for (ValueId feed : block.Feeds()) {
    out_.append(indent, ' ');
    out_ += "feed ";
    Name(block.name(feed));
    out_ += " : ";
    TypeOf(block, feed);
    out_ += '\n';
  }
}

void Printer::PrintEntry(const Entry& entry) {
  out_ += "entry ";
  Name(entry.name());
  out_ += " {\n";
  const Block& block = entry.block();
  PrintFeeds(block, 2);
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    PrintOp(block, block.op(id), 2);
  }
  for (const GradientStatement& gradient : entry.gradients()) {
    out_ += "  gradient ";
    Name(program_.cell(gradient.parameter).name);
    out_ += " = ";
    Name(block.name(gradient.value));
    out_ += '\n';
  }
  for (const CommitStatement& commit : entry.commits()) {
    out_ += "  commit ";
    Name(program_.cell(commit.cell).name);
    out_ += " <- ";
    Name(block.name(commit.value));
    EndLine();
  }
  for (const Result& result : entry.results()) {
    out_ += "  result ";
    Name(result.name);
    out_ += " = ";
    Name(block.name(result.value));
    out_ += '\n';
  }
  out_ += "}\n";
}

void Printer::PrintInputs(const Block& block, const Op& op) {
  const auto slots = op.schema->inputs();
  bool first = true;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    if (!op.inputs.has(s)) continue;
    const auto values = op.inputs.slot(s);
    const bool list = slots[s].list() || values.size() != 1;
    Word(first ? "" : ", ");
    Word(slots[s].name);
    Word(list ? "=[" : "=");
    List(values.size(), [&](int i) { Name(block.name(values[i])); });
    if (list) out_ += ']';
    first = false;
  }
}

void Printer::PrintOutputs(const Block& block, const Op& op) {
  const auto slots = op.schema->outputs();
  bool first = true;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    if (!op.outputs.has(s)) continue;
    const auto values = op.outputs.slot(s);
    const bool list = slots[s].list() || values.size() != 1;
    Word(first ? "" : ", ");
    Word(slots[s].name);
    Word(list ? "=[" : "=");
    List(values.size(), [&](int i) {
      Name(block.name(values[i]));
      out_ += " : ";
      TypeOf(block, values[i]);
    });
    if (list) out_ += ']';
    first = false;
  }
}

void Printer::PrintAttr(const AttrValue& value) {
  switch (KindOf(value)) {
    case AttrKind::kBool:
      return Word(std::get<bool>(value) ? "true" : "false");
    case AttrKind::kInt:
      return absl::StrAppend(&out_, std::get<int64_t>(value));
    case AttrKind::kFloat:
      return Word(ExactDouble(std::get<double>(value)));
    case AttrKind::kString:
      return AppendQuoted(std::get<std::string>(value), &out_);
    case AttrKind::kDType:
      return Word(halftone::Name(std::get<DType>(value)));
    case AttrKind::kInts:
    case AttrKind::kFloats:
    case AttrKind::kStrings:
      break;
  }
  out_ += '[';
  if (auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    List(ints->size(), [&](int i) { absl::StrAppend(&out_, (*ints)[i]); });
  } else if (auto* floats = std::get_if<std::vector<double>>(&value)) {
    List(floats->size(), [&](int i) { out_ += ExactDouble((*floats)[i]); });
  } else if (auto* words = std::get_if<std::vector<std::string>>(&value)) {
    List(words->size(), [&](int i) { AppendQuoted((*words)[i], &out_); });
  }
  out_ += ']';
}

void Printer::PrintAttrs(const Op& op) {
  if (op.attrs.empty()) return;
  out_ += " {";
  List(op.attrs.size(), [&](int i) {
    Word(op.schema->attrs()[op.attrs[i].first].name);
    out_ += '=';
    PrintAttr(op.attrs[i].second);
  });
  out_ += '}';
}

void Printer::PrintDecision(const Op& op) {
  Word("   ");
  Word(halftone::Name(op.role));
  const Decision& decision = op.decision;
  if (decision.precision != DType::kInvalid) {
    out_ += ' ';
    Word(halftone::Name(decision.precision));
  }
  if (decision.reason != Reason::kNone) {
    out_ += ' ';
    Word(halftone::Name(decision.reason));
  }
  if (!decision.because_of.empty()) {
    out_ += " <- ";
    List(decision.because_of.size(),
         [&](int i) { Name(decision.because_of[i]); });
  }
  if (!op.origins.empty()) {
    out_ += " origins=[";
    List(op.origins.size(), [&](int i) { Name(op.origins[i]); });
    out_ += ']';
  }
  if (op.line != 0) absl::StrAppend(&out_, " line=", op.line);
}

void Printer::PrintBody(const Block& body, int indent) {
  out_ += " body {\n";
  PrintFeeds(body, indent + 2);
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    PrintOp(body, body.op(id), indent + 2);
  }
  out_.append(indent + 2, ' ');
  out_ += "return ";
  const std::vector<ValueId>& results = body.body_results();
  List(results.size(), [&](int i) { Name(body.name(results[i])); });
  out_ += '\n';
  out_.append(indent, ' ');
  out_ += '}';
}

void Printer::PrintOp(const Block& block, const Op& op, int indent) {
  out_.append(indent, ' ');
  Name(op.name);
  Word(": ");
  Word(op.schema->name());
  out_ += '(';
  PrintInputs(block, op);
  out_ += ") -> (";
  PrintOutputs(block, op);
  out_ += ')';
  PrintAttrs(op);
  PrintDecision(op);
  if (op.body != nullptr) PrintBody(*op.body, indent);
  EndLine();
}

// What is printed in parts, whole.
std::string Joined(absl::FunctionRef<void(Sink)> print) {
  std::string text;
  print([&text](absl::string_view part) {
    text.append(part.data(), part.size());
  });
  return text;
}

}  // namespace

void Print(const Program& program, Sink sink) {
  Printer printer(program, sink);
  printer.PrintHeader();
  for (const auto& entry : program.entries()) printer.PrintEntry(*entry);
  printer.Flush();
}

std::string Print(const Program& program) {
  return Joined([&](Sink sink) { Print(program, sink); });
}

std::string PrintEntry(const Entry& entry) {
  return Joined([&](Sink sink) {
    Printer printer(entry.block().program(), sink);
    printer.PrintEntry(entry);
    printer.Flush();
  });
}

std::string PrintOp(const Block& block, const Op& op) {
  std::string text = Joined([&](Sink sink) {
    Printer printer(block.program(), sink);
    printer.PrintOp(block, op, 0);
    printer.Flush();
  });
  text.pop_back();  // the line's end
  return text;
}

uint64_t Fingerprint(const Program& program) {
  StableHasher hasher;
  Print(program, [&hasher](absl::string_view part) { hasher.Append(part); });
  return hasher.hash();
}

}  // namespace halftone
