#include "graph/text/parser.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/text/names.h"
#include "graph/text/spelling.h"
#include "graph/text/text.h"

namespace halftone {
namespace text {

Parser::Parser(absl::string_view text, absl::string_view file)
    : file_(file), lexer_(text), program_(std::make_unique<Program>()) {
  program_->file = file_;
  next_ = lexer_.Next();
}

// ---- Tokens.

absl::Status Parser::Error(const Token& at, absl::string_view message) const {
  return ModelError(file_, ":", at.line, ":", at.column, ": ", message);
}

absl::Status Parser::Expected(absl::string_view expected,
                              const Token& at) const {
  return Error(at,
               absl::StrCat("expected ", expected, ", found ", Describe(at)));
}

Token Parser::Take() {
  const Token token = next_;
  next_ = lexer_.Next();
  return token;
}

bool Parser::TryTake(char punct) {
  if (!next_.Is(punct)) return false;
  Take();
  return true;
}

bool Parser::TryTakeWord(absl::string_view word) {
  if (!next_.IsWord(word)) return false;
  Take();
  return true;
}

absl::Status Parser::Take(char punct) {
  if (TryTake(punct)) return absl::OkStatus();
  return Expected(absl::StrCat("'", std::string(1, punct), "'"), next_);
}

absl::Status Parser::Take(TokenKind kind, absl::string_view expected) {
  if (next_.kind != kind) return Expected(expected, next_);
  Take();
  return absl::OkStatus();
}

absl::Status Parser::TakeEndOfLine() {
  if (next_.kind == TokenKind::kEnd) return absl::OkStatus();
  return Take(TokenKind::kNewline, "the end of the line");
}

absl::StatusOr<absl::string_view> Parser::NameOf(const Token& token,
                                                 absl::string_view what) {
  if (token.kind == TokenKind::kWord) return token.text;
  if (token.kind != TokenKind::kString) return Expected(what, token);
  strings_.emplace_back();
  if (!Unescape(token.text, &strings_.back())) {
    return Expected("only the escapes \\\\ \\\" \\n \\xHH", token);
  }
  return absl::string_view(strings_.back());
}

absl::Status Parser::TakeName(absl::string_view what, absl::string_view* name) {
  if (next_.kind == TokenKind::kWord) {
    *name = next_.text;
  } else {
    HT_ASSIGN_OR_RETURN(*name, NameOf(next_, what));
  }
  Take();
  return absl::OkStatus();
}

absl::Status Parser::TakeName(absl::string_view what, std::string* name) {
  absl::string_view view;
  HT_RETURN_IF_ERROR(TakeName(what, &view));
  *name = std::string(view);
  return absl::OkStatus();
}

absl::Status Parser::TakeInt(int64_t* value) {
  if (next_.kind != TokenKind::kWord || !absl::SimpleAtoi(next_.text, value)) {
    return Expected("an integer", next_);
  }
  Take();
  return absl::OkStatus();
}

absl::Status Parser::TakeFloat(double* value) {
  if (next_.kind != TokenKind::kWord || !absl::SimpleAtod(next_.text, value)) {
    return Expected("a number", next_);
  }
  Take();
  return absl::OkStatus();
}

absl::Status Parser::TakeString(std::string* value) {
  if (next_.kind != TokenKind::kString) {
    return Expected("a string in double quotes", next_);
  }
  return TakeName("a string", value);
}

absl::Status Parser::TakeList(absl::FunctionRef<absl::Status()> element) {
  HT_RETURN_IF_ERROR(Take('['));
  if (TryTake(']')) return absl::OkStatus();
  do {
    HT_RETURN_IF_ERROR(element());
  } while (TryTake(','));
  return Take(']');
}

absl::Status Parser::TakeLine(int32_t* line) {
  HT_RETURN_IF_ERROR(Take('='));
  const Token at = next_;
  int64_t value = 0;
  HT_RETURN_IF_ERROR(TakeInt(&value));
  if (value < 0 || value > INT32_MAX) return Expected("a line number", at);
  *line = static_cast<int32_t>(value);
  return absl::OkStatus();
}

// ---- Program.

absl::StatusOr<std::unique_ptr<Program>> Parser::Run() {
  HT_RETURN_IF_ERROR(ParseHeader());
  while (next_.kind != TokenKind::kEnd) {
    HT_RETURN_IF_ERROR(ParseStatement());
  }
  HT_RETURN_IF_ERROR(ResolveOwners());
  return std::move(program_);
}

absl::Status Parser::ParseHeader() {
  if (!TryTakeWord("program")) return Expected("program", next_);
  HT_RETURN_IF_ERROR(TakeName("the program's name", &program_->name));
  if (TryTakeWord("dim")) {
    do {
      const Token at = Take();
      const int count = static_cast<int>(program_->symbols().size());
      if (count == kMaxSymbols) {
        return Error(at, absl::StrCat("expected at most ", kMaxSymbols,
                                      " dims, found more"));
      }
      if (at.kind != TokenKind::kWord || !absl::ascii_isalpha(at.text[0]) ||
          program_->Symbol(at.text) != count) {
        return Expected("a new dim's name", at);
      }
    } while (TryTake(','));
  }
  return TakeEndOfLine();
}

absl::Status Parser::ParseStatement() {
  const Token keyword = Take();
  if (keyword.IsWord("loss")) return ParseLoss();
  if (keyword.IsWord("metric")) return ParseMetric();
  if (keyword.IsWord("output")) return ParseOutput();
  if (keyword.IsWord("constant")) return ParseConstant();
  if (keyword.IsWord("cell")) return ParseCell();
  if (keyword.IsWord("entry")) return ParseEntry();
  return Expected("loss, metric, output, constant, cell or entry", keyword);
}

absl::Status Parser::ParseLoss() {
  LossInfo& loss = program_->loss;
  HT_RETURN_IF_ERROR(TakeName("the loss's value", &loss.var));
  if (TryTakeWord("over")) {
    HT_RETURN_IF_ERROR(TakeName("a value", &loss.mean_over));
  }
  if (TryTakeWord("mask")) {
    HT_RETURN_IF_ERROR(TakeName("a value", &loss.mask));
  }
  while (TryTakeWord("denominator")) {
    HT_RETURN_IF_ERROR(TakeName("a value", &loss.denominators.emplace_back()));
  }
  while (TryTakeWord("part")) {
    LossPart& part = loss.parts.emplace_back();
    HT_RETURN_IF_ERROR(TakeName("a value", &part.name));
    if (!TryTakeWord("as")) return Expected("as", Take());
    HT_RETURN_IF_ERROR(TakeName("a value", &part.weighted));
  }
  return TakeEndOfLine();
}

absl::Status Parser::ParseMetric() {
  MetricInfo metric;
  HT_RETURN_IF_ERROR(TakeName("a metric's name", &metric.name));
  HT_RETURN_IF_ERROR(Take('='));
  HT_RETURN_IF_ERROR(TakeName("a value", &metric.var));
  if (TryTakeWord("over")) {
    HT_RETURN_IF_ERROR(TakeName("a value", &metric.over));
  }
  program_->metrics.push_back(std::move(metric));
  return TakeEndOfLine();
}

absl::Status Parser::ParseOutput() {
  program_->outputs.emplace_back();
  HT_RETURN_IF_ERROR(TakeName("a value", &program_->outputs.back()));
  return TakeEndOfLine();
}

absl::Status Parser::ParseConstant() {
  Constant constant;
  const Token at = next_;
  HT_RETURN_IF_ERROR(TakeName("a constant's name", &constant.name));
  if (program_->FindConstant(constant.name).valid()) {
    return Error(at, absl::StrCat("two constants are called ", constant.name));
  }
  HT_RETURN_IF_ERROR(Take(':'));
  HT_RETURN_IF_ERROR(ParseType(&constant.type));
  HT_RETURN_IF_ERROR(Take('='));
  HT_RETURN_IF_ERROR(TakeList([&] {
    constant.values.push_back(0);
    return TakeFloat(&constant.values.back());
  }));
  const Dim elements = constant.type.Elements();
  const int64_t found = constant.values.size();
  if (!elements.is_constant() || elements.coefficient() != found) {
    return Error(
        at, absl::StrCat("expected ", ToString(elements, program_->symbols()),
                         " values, found ", found));
  }
  program_->AddConstant(std::move(constant));
  return TakeEndOfLine();
}

absl::Status Parser::ParseCell() {
  Cell cell;
  cell.init.kind = Initializer::Kind::kNone;
  const Token at = next_;
  HT_RETURN_IF_ERROR(TakeName("a cell's name", &cell.name));
  if (program_->FindCell(cell.name).valid()) {
    return Error(at, absl::StrCat("two cells are called ", cell.name));
  }
  HT_RETURN_IF_ERROR(Take(':'));
  HT_RETURN_IF_ERROR(ParseType(&cell.type));
  Token of;
  HT_RETURN_IF_ERROR(ParseCellKind(&cell, &of));
  HT_RETURN_IF_ERROR(ParseCellWords(&cell));
  const CellId id = program_->AddCell(std::move(cell)).id;
  if (of.kind != TokenKind::kEnd) owners_.emplace_back(id, of);
  return TakeEndOfLine();
}

absl::Status Parser::ParseCellKind(Cell* cell, Token* of) {
  const std::optional<CellKind> kind = CellKindFromName(next_.text);
  if (next_.kind != TokenKind::kWord || !kind.has_value()) {
    return Expected(absl::StrCat("parameter, statistic, slot, scaler, clock, "
                                 "derived or accumulator",
                                 NearestHint(next_.text, CellKindNames())),
                    next_);
  }
  cell->kind = *kind;
  Take();
  if (!TryTake('(')) return absl::OkStatus();
  *of = next_;
  absl::string_view name;
  HT_RETURN_IF_ERROR(TakeName("a cell's name", &name));
  return Take(')');
}

absl::Status Parser::ParseCellWords(Cell* cell) {
  while (next_.kind == TokenKind::kWord) {
    const Token word = Take();
    if (word.text == "trainable") {
      cell->trainable = true;
    } else if (const auto commit = CommitFromName(word.text)) {
      cell->commit = *commit;
    } else if (const auto spread = SpreadFromName(word.text)) {
      cell->spread = *spread;
    } else if (word.text == "init") {
      HT_RETURN_IF_ERROR(ParseInit(&cell->init));
    } else if (word.text == "line") {
      HT_RETURN_IF_ERROR(TakeLine(&cell->line));
    } else {
      return Expected(
          "trainable, applied, always, sharded, per_rank, init= or line=",
          word);
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseInit(Initializer* init) {
  HT_RETURN_IF_ERROR(Take('='));
  const Token word = Take();
  const auto kind = InitFromName(word.text);
  if (word.kind != TokenKind::kWord || !kind.has_value()) {
    return Expected(
        absl::StrCat("an initialiser", NearestHint(word.text, InitNames())),
        word);
  }
  init->kind = *kind;
  HT_RETURN_IF_ERROR(Take('('));
  HT_RETURN_IF_ERROR(TakeFloat(&init->a));
  if (SpellingOf(*kind).arguments == 2) {
    HT_RETURN_IF_ERROR(Take(','));
    HT_RETURN_IF_ERROR(TakeFloat(&init->b));
  }
  return Take(')');
}

absl::Status Parser::ResolveOwners() {
  for (const auto& [cell, token] : owners_) {
    HT_ASSIGN_OR_RETURN(const absl::string_view name, NameOf(token, "a cell"));
    const CellId owner = program_->FindCell(name);
    if (!owner.valid()) return Expected("a cell", token);
    program_->cell(cell).of = owner;
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseEntry() {
  const Token at = next_;
  absl::string_view name;
  HT_RETURN_IF_ERROR(TakeName("an entry's name", &name));
  if (program_->FindEntry(name) != nullptr) {
    return Error(at, absl::StrCat("two entries are called ", name));
  }
  Entry& entry = program_->AddEntry(name);
  HT_RETURN_IF_ERROR(Take('{'));
  HT_RETURN_IF_ERROR(TakeEndOfLine());
  while (!next_.Is('}')) {
    HT_RETURN_IF_ERROR(ParseEntryStatement(entry));
  }
  Take();
  return TakeEndOfLine();
}

absl::Status Parser::ParseType(TensorType* type) {
  const auto dtype = DTypeFromName(next_.text);
  if (next_.kind != TokenKind::kWord || !dtype.has_value()) {
    return Expected("a type such as f32[B,10]", next_);
  }
  type->dtype = *dtype;
  Take();
  HT_RETURN_IF_ERROR(TakeList([&] {
    type->dims.emplace_back(1);
    return ParseDim(&type->dims.back());
  }));
  if (TryTakeWord("@channels_last")) type->layout = Layout::kChannelsLast;
  type->sharded = TryTakeWord("@shard");
  return absl::OkStatus();
}

// Factors joined by '*': dims' names and numbers.
absl::Status Parser::ParseDim(Dim* dim) {
  do {
    const Token at = next_;
    int64_t coefficient = 0;
    if (at.kind == TokenKind::kWord &&
        absl::SimpleAtoi(at.text, &coefficient)) {
      *dim = *dim * Dim(coefficient);
      Take();
      continue;
    }
    absl::string_view name;
    HT_RETURN_IF_ERROR(TakeName("a number or a dim's name", &name));
    const std::vector<std::string>& symbols = program_->symbols();
    int index = 0;
    while (index < static_cast<int>(symbols.size()) && symbols[index] != name) {
      ++index;
    }
    if (index == static_cast<int>(symbols.size())) {
      return Expected("a number or one of the program's dims", at);
    }
    *dim = *dim * Dim::Symbol(index);
  } while (TryTake('*'));
  return absl::OkStatus();
}

}  // namespace text

absl::StatusOr<std::unique_ptr<Program>> Parse(absl::string_view text,
                                               absl::string_view file) {
  return text::Parser(text, file).Run();
}

}  // namespace halftone
