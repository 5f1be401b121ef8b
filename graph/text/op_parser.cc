// Entries, ops and the bodies of fusions.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_registry.h"
#include "graph/text/parser.h"

namespace halftone {
namespace text {
namespace {

constexpr int kMaxDepth = 8;  // of fusions in fusions

// The names of slots or attributes, for "nearest" hints.
template <typename Named>
std::string Nearest(absl::string_view word, absl::Span<const Named> things) {
  std::vector<std::string> names;
  for (const Named& thing : things) names.push_back(thing.name);
  return NearestHint(word, names);
}

}  // namespace

absl::Status Parser::ParseEntryStatement(Entry& entry) {
  const Token first = Take();
  if (next_.Is(':')) return ParseOp(entry.block(), first);
  if (first.IsWord("feed")) return ParseFeed(entry.block());
  if (first.IsWord("gradient")) return ParseGradient(entry);
  if (first.IsWord("commit")) return ParseCommit(entry);
  if (first.IsWord("result")) return ParseResult(entry);
  return Expected("`name: op(...)`, feed, gradient, commit, result or }",
                  first);
}

absl::Status Parser::TakeCell(CellId* cell) {
  const Token at = next_;
  absl::string_view name;
  HT_RETURN_IF_ERROR(TakeName("a cell", &name));
  *cell = program_->FindCell(name);
  return cell->valid() ? absl::OkStatus() : Expected("a cell", at);
}

absl::Status Parser::ParseGradient(Entry& entry) {
  GradientStatement gradient;
  HT_RETURN_IF_ERROR(TakeCell(&gradient.parameter));
  HT_RETURN_IF_ERROR(Take('='));
  HT_RETURN_IF_ERROR(TakeValue(entry.block(), &gradient.value));
  entry.gradients().push_back(gradient);
  return TakeEndOfLine();
}

absl::Status Parser::ParseCommit(Entry& entry) {
  CellId cell;
  HT_RETURN_IF_ERROR(TakeCell(&cell));
  HT_RETURN_IF_ERROR(Take(TokenKind::kFrom, "<-"));
  ValueId value;
  HT_RETURN_IF_ERROR(TakeValue(entry.block(), &value));
  entry.commits().push_back({cell, value});
  return TakeEndOfLine();
}

absl::Status Parser::ParseResult(Entry& entry) {
  Result result;
  HT_RETURN_IF_ERROR(TakeName("a result's name", &result.name));
  HT_RETURN_IF_ERROR(Take('='));
  HT_RETURN_IF_ERROR(TakeValue(entry.block(), &result.value));
  entry.results().push_back(std::move(result));
  return TakeEndOfLine();
}

absl::Status Parser::ParseFeed(Block& block) {
  const Token at = next_;
  absl::string_view name;
  HT_RETURN_IF_ERROR(TakeName("a feed's name", &name));
  if (block.FindValue(name).valid()) {
    return Error(at, absl::StrCat("two definitions of ", name));
  }
  HT_RETURN_IF_ERROR(Take(':'));
  TensorType type;
  HT_RETURN_IF_ERROR(ParseType(&type));
  block.AddFeed(name, type);
  return TakeEndOfLine();
}

absl::Status Parser::TakeValue(Block& block, ValueId* value) {
  const Token at = next_;
  absl::string_view name;
  HT_RETURN_IF_ERROR(TakeName("a value", &name));
  *value = block.FindValue(name);
  if (value->valid()) return absl::OkStatus();
  if (const CellId cell = program_->FindCell(name); cell.valid()) {
    *value = block.CellValue(cell);
    return absl::OkStatus();
  }
  if (const ConstantId id = program_->FindConstant(name); id.valid()) {
    *value = block.ConstantValue(id);
    return absl::OkStatus();
  }
  return Expected("a feed, cell, constant or result of an op above", at);
}

// ---- Ops.

absl::Status Parser::ParseOp(Block& block, const Token& name) {
  HT_ASSIGN_OR_RETURN(const absl::string_view op_name,
                      NameOf(name, "an op's name"));
  if (op_name.empty()) return Expected("an op's name", name);
  if (block.FindOp(op_name).valid()) {
    return Error(name, absl::StrCat("two ops are called ", op_name));
  }
  Take();  // ':'
  const Token type = Take();
  const OpSchema* schema =
      type.kind == TokenKind::kWord ? Ops().Find(type.text) : nullptr;
  if (schema == nullptr) {
    return Expected(
        absl::StrCat("an op", NearestHint(type.text, Ops().Names())), type);
  }
  HT_RETURN_IF_ERROR(ParseInputs(block, *schema));
  HT_RETURN_IF_ERROR(Take(TokenKind::kArrow, "->"));
  HT_RETURN_IF_ERROR(ParseOutputs(block, *schema));
  AttrList attrs;
  if (next_.Is('{')) HT_RETURN_IF_ERROR(ParseAttrs(*schema, &attrs));
  const OpId id = AddOp(block, schema, op_name, std::move(attrs));
  HT_RETURN_IF_ERROR(ParseDecision(block.mutable_op(id)));
  if (TryTakeWord("body")) HT_RETURN_IF_ERROR(ParseBody(block.mutable_op(id)));
  return TakeEndOfLine();
}

OpId Parser::AddOp(Block& block, const OpSchema* schema, absl::string_view name,
                   AttrList attrs) {
  SlotValues inputs;
  for (const std::vector<ValueId>& slot : inputs_) inputs.AddSlot(slot);
  Block::Outputs outputs;
  for (const std::vector<NamedType>& slot : outputs_) {
    for (const NamedType& output : slot) {
      outputs.Add(
          {program_->InternName(output.name), program_->Intern(output.type)});
    }
    outputs.EndSlot();
  }
  return block.AddOp(schema, program_->InternName(name), std::move(inputs),
                     outputs, program_->Intern(std::move(attrs)), Block::End());
}

absl::StatusOr<int> Parser::TakeSlot(absl::Span<const Slot> slots) {
  const Token at = Take();
  for (size_t s = 0; s < slots.size() && at.kind == TokenKind::kWord; ++s) {
    if (slots[s].name != at.text) continue;
    HT_RETURN_IF_ERROR(Take('='));
    return static_cast<int>(s);
  }
  return Expected(absl::StrCat("a slot", Nearest(at.text, slots)), at);
}

absl::Status Parser::ParseInputs(Block& block, const OpSchema& schema) {
  const absl::Span<const Slot> slots = schema.inputs();
  inputs_.resize(slots.size());
  for (std::vector<ValueId>& slot : inputs_) slot.clear();
  HT_RETURN_IF_ERROR(Take('('));
  if (TryTake(')')) return absl::OkStatus();
  do {
    const Token at = next_;
    HT_ASSIGN_OR_RETURN(const int s, TakeSlot(slots));
    if (!inputs_[s].empty()) return Error(at, "the slot is filled twice");
    ValueId value;
    const auto take = [&] {
      absl::Status status = TakeValue(block, &value);
      inputs_[s].push_back(value);
      return status;
    };
    HT_RETURN_IF_ERROR(next_.Is('[') ? TakeList(take) : take());
  } while (TryTake(','));
  return Take(')');
}

absl::Status Parser::ParseOutput(const Block& block,
                                 std::vector<NamedType>* outputs) {
  const Token at = next_;
  outputs->emplace_back();
  NamedType& output = outputs->back();
  HT_RETURN_IF_ERROR(TakeName("the result's name", &output.name));
  if (block.FindValue(output.name).valid()) {
    return Error(at, absl::StrCat("two definitions of ", output.name));
  }
  HT_RETURN_IF_ERROR(Take(':'));
  return ParseType(&output.type);
}

absl::Status Parser::ParseOutputs(Block& block, const OpSchema& schema) {
  const absl::Span<const Slot> slots = schema.outputs();
  outputs_.resize(slots.size());
  for (std::vector<NamedType>& slot : outputs_) slot.clear();
  HT_RETURN_IF_ERROR(Take('('));
  if (TryTake(')')) return absl::OkStatus();
  do {
    const Token at = next_;
    HT_ASSIGN_OR_RETURN(const int s, TakeSlot(slots));
    if (!outputs_[s].empty()) return Error(at, "the slot is filled twice");
    const auto take = [&] { return ParseOutput(block, &outputs_[s]); };
    HT_RETURN_IF_ERROR(next_.Is('[') ? TakeList(take) : take());
  } while (TryTake(','));
  HT_RETURN_IF_ERROR(CheckDistinct(next_));
  return Take(')');
}

absl::Status Parser::CheckDistinct(const Token& at) const {
  absl::flat_hash_set<absl::string_view> names;
  for (const std::vector<NamedType>& slot : outputs_) {
    for (const NamedType& output : slot) {
      if (!names.insert(output.name).second) {
        return Error(at, absl::StrCat("two definitions of ", output.name));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseAttrs(const OpSchema& schema, AttrList* attrs) {
  Take();  // '{'
  do {
    const Token at = Take();
    const int index =
        at.kind == TokenKind::kWord ? schema.FindAttr(at.text) : -1;
    if (index < 0) {
      return Expected(
          absl::StrCat("an attribute", Nearest(at.text, schema.attrs())), at);
    }
    HT_RETURN_IF_ERROR(Take('='));
    HT_ASSIGN_OR_RETURN(AttrValue value,
                        ParseAttr(KindOf(schema.attrs()[index].default_value)));
    attrs->emplace_back(static_cast<int16_t>(index), std::move(value));
  } while (TryTake(','));
  const auto by_index = [](const auto& a, const auto& b) {
    return a.first < b.first;
  };
  std::sort(attrs->begin(), attrs->end(), by_index);
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first;
  };
  if (std::adjacent_find(attrs->begin(), attrs->end(), same) != attrs->end()) {
    return Error(next_, "an attribute is set twice");
  }
  return Take('}');
}

absl::StatusOr<AttrValue> Parser::ParseAttr(AttrKind kind) {
  AttrValue value;
  // Appends one element of the attribute's vector by `take`.
  const auto list = [this](auto* elements, auto take) {
    return TakeList([&] {
      elements->emplace_back();
      return (this->*take)(&elements->back());
    });
  };
  absl::Status status;
  const Token at = next_;
  switch (kind) {
    case AttrKind::kBool: {
      bool& flag = value.emplace<bool>(at.IsWord("true"));
      if (!flag && !at.IsWord("false")) return Expected("true or false", at);
      Take();
      break;
    }
    case AttrKind::kInt:
      status = TakeInt(&value.emplace<int64_t>());
      break;
    case AttrKind::kFloat:
      status = TakeFloat(&value.emplace<double>());
      break;
    case AttrKind::kString:
      status = TakeString(&value.emplace<std::string>());
      break;
    case AttrKind::kInts:
      status = list(&value.emplace<std::vector<int64_t>>(), &Parser::TakeInt);
      break;
    case AttrKind::kFloats:
      status = list(&value.emplace<std::vector<double>>(), &Parser::TakeFloat);
      break;
    case AttrKind::kStrings:
      status =
          list(&value.emplace<std::vector<std::string>>(), &Parser::TakeString);
      break;
    case AttrKind::kDType: {
      const auto dtype = DTypeFromName(Take().text);
      if (!dtype.has_value()) return Expected("a dtype such as f16", at);
      value = *dtype;
      break;
    }
  }
  if (!status.ok()) return status;
  return value;
}

absl::Status Parser::ParseNames(NameList* names) {
  absl::string_view name;
  HT_RETURN_IF_ERROR(TakeName("an op's name", &name));
  names->push_back(program_->InternName(name));
  return absl::OkStatus();
}

// Role, precision, reason, `<- names`, `origins=[names]`, `line=n`: all may be
// left out.
absl::Status Parser::ParseDecision(Op& op) {
  if (const auto role = RoleFromName(next_.text)) {
    op.role = *role;
    Take();
  }
  if (const auto dtype = DTypeFromName(next_.text)) {
    op.decision.precision = *dtype;
    Take();
  }
  if (const auto reason = ReasonFromName(next_.text)) {
    op.decision.reason = *reason;
    Take();
  }
  if (next_.kind == TokenKind::kFrom) {
    do {
      Take();
      HT_RETURN_IF_ERROR(ParseNames(&op.decision.because_of));
    } while (next_.Is(','));
  }
  if (TryTakeWord("origins")) {
    HT_RETURN_IF_ERROR(Take('='));
    HT_RETURN_IF_ERROR(TakeList([&] { return ParseNames(&op.origins); }));
  }
  if (TryTakeWord("line")) HT_RETURN_IF_ERROR(TakeLine(&op.line));
  if (next_.kind == TokenKind::kNewline || next_.kind == TokenKind::kEnd ||
      next_.IsWord("body")) {
    return absl::OkStatus();
  }
  return Expected(
      "a role, dtype, reason, <-, origins=, line=, body or the end of the line",
      next_);
}

absl::Status Parser::ParseBody(Op& op) {
  if (++depth_ > kMaxDepth) {
    return Error(next_, absl::StrCat("expected at most ", kMaxDepth,
                                     " bodies within each other, found more"));
  }
  op.body = std::make_unique<Block>(program_.get());
  Block& body = *op.body;
  HT_RETURN_IF_ERROR(Take('{'));
  HT_RETURN_IF_ERROR(TakeEndOfLine());
  while (!next_.Is('}')) {
    const Token first = Take();
    if (next_.Is(':')) {
      HT_RETURN_IF_ERROR(ParseOp(body, first));
    } else if (first.IsWord("feed")) {
      HT_RETURN_IF_ERROR(ParseFeed(body));
    } else if (first.IsWord("return")) {
      HT_RETURN_IF_ERROR(ParseReturn(body));
    } else {
      return Expected("`name: op(...)`, feed, return or }", first);
    }
  }
  Take();
  --depth_;
  return absl::OkStatus();
}

absl::Status Parser::ParseReturn(Block& body) {
  if (next_.kind == TokenKind::kNewline) return TakeEndOfLine();
  do {
    ValueId value;
    HT_RETURN_IF_ERROR(TakeValue(body, &value));
    body.body_results().push_back(value);
  } while (TryTake(','));
  return TakeEndOfLine();
}

}  // namespace text
}  // namespace halftone
