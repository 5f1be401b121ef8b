// A structural copy: what Parse(Print(program)) gives, without the detour.
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/text/text.h"

namespace halftone {
namespace {

class Cloner {
 public:
  explicit Cloner(const Program& from)
      : from_(from), to_(std::make_unique<Program>()) {}

  std::unique_ptr<Program> Run();

 private:
  void CopyHeader();
  void CopyEntry(const Entry& entry);
  // Feeds and ops; returns the copies by the original's value id.
  std::vector<ValueId> CopyBlock(const Block& from, Block& to);
  // The copy of a value that is read; those of cells and constants are made
  // on demand, as a parser does.
  ValueId Map(const Block& from, ValueId value, Block& to,
              std::vector<ValueId>& copies);
  void CopyOp(const Block& from, const Op& op, Block& to,
              std::vector<ValueId>& copies);
  NameId Name(NameId name) { return to_->InternName(from_.name_of(name)); }

  const Program& from_;
  std::unique_ptr<Program> to_;
};

std::unique_ptr<Program> Cloner::Run() {
  CopyHeader();
  for (const auto& entry : from_.entries()) CopyEntry(*entry);
  return std::move(to_);
}

void Cloner::CopyHeader() {
  to_->name = from_.name;
  to_->file = from_.file;
  to_->loss = from_.loss;
  to_->metrics = from_.metrics;
  to_->outputs = from_.outputs;
  for (const std::string& symbol : from_.symbols()) to_->Symbol(symbol);
  for (int i = 0; i < from_.num_constants(); ++i) {
    to_->AddConstant(from_.constant(ConstantId(i)));
  }
  for (int i = 0; i < from_.num_cells(); ++i) {
    to_->AddCell(from_.cell(CellId(i)));
  }
}

void Cloner::CopyEntry(const Entry& entry) {
  Entry& copy = to_->AddEntry(entry.name());
  const Block& from = entry.block();
  Block& to = copy.block();
  std::vector<ValueId> copies = CopyBlock(from, to);
  for (const GradientStatement& gradient : entry.gradients()) {
    copy.gradients().push_back(
        {gradient.parameter, Map(from, gradient.value, to, copies)});
  }
  for (const CommitStatement& commit : entry.commits()) {
    copy.commits().push_back(
        {commit.cell, Map(from, commit.value, to, copies)});
  }
  for (const Result& result : entry.results()) {
    copy.results().push_back(
        {result.name, Map(from, result.value, to, copies)});
  }
}

std::vector<ValueId> Cloner::CopyBlock(const Block& from, Block& to) {
  std::vector<ValueId> copies(from.value_limit());
  for (ValueId feed : from.Feeds()) {
    copies[feed.index()] = to.AddFeed(from.name(feed), from.type(feed));
  }
  for (OpId id = from.first(); id.valid(); id = from.next(id)) {
    CopyOp(from, from.op(id), to, copies);
  }
  for (ValueId result : from.body_results()) {
    to.body_results().push_back(Map(from, result, to, copies));
  }
  return copies;
}

ValueId Cloner::Map(const Block& from, ValueId value, Block& to,
                    std::vector<ValueId>& copies) {
  ValueId& copy = copies[value.index()];
  if (copy.valid()) return copy;
  const Value& original = from.value(value);
  if (original.definition == Definition::kCell) {
    copy = to.CellValue(original.cell());
  } else if (original.definition == Definition::kConstant) {
    copy = to.ConstantValue(ConstantId(original.index));
  }
  return copy;
}

void Cloner::CopyOp(const Block& from, const Op& op, Block& to,
                    std::vector<ValueId>& copies) {
  SlotValues inputs;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    for (ValueId value : op.inputs.slot(s)) {
      inputs.Add(Map(from, value, to, copies));
    }
    inputs.EndSlot();
  }
  Block::Outputs outputs;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    for (ValueId value : op.outputs.slot(s)) {
      outputs.Add(
          {Name(from.value(value).name), to_->Intern(from.type(value))});
    }
    outputs.EndSlot();
  }
  const OpId id = to.AddOp(
      op.schema, Name(op.name), std::move(inputs), outputs,
      to_->Intern(AttrList(op.attrs.begin(), op.attrs.end())), Block::End());
  Op& copy = to.mutable_op(id);
  for (size_t i = 0; i < copy.outputs.all().size(); ++i) {
    copies[op.outputs.all()[i].index()] = copy.outputs.all()[i];
  }
  copy.role = op.role;
  copy.line = op.line;
  copy.decision.precision = op.decision.precision;
  copy.decision.reason = op.decision.reason;
  for (NameId name : op.decision.because_of) {
    copy.decision.because_of.push_back(Name(name));
  }
  for (NameId name : op.origins) copy.origins.push_back(Name(name));
  if (op.body != nullptr) {
    copy.body = std::make_unique<Block>(to_.get(), op.body->num_ops(),
                                        op.body->value_limit());
    CopyBlock(*op.body, *copy.body);
  }
}

}  // namespace

std::unique_ptr<Program> Clone(const Program& program) {
  return Cloner(program).Run();
}

}  // namespace halftone
