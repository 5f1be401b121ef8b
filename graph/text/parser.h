// The parser of the text form: recursive descent, one token ahead.
#ifndef HALFTONE_GRAPH_TEXT_PARSER_H_
#define HALFTONE_GRAPH_TEXT_PARSER_H_

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"
#include "graph/text/lexer.h"

namespace halftone {
namespace text {

class Parser {
 public:
  Parser(absl::string_view text, absl::string_view file);

  // To be called once.
  absl::StatusOr<std::unique_ptr<Program>> Run();

 private:
  // ---- Tokens. "file:line:column: expected <expected>, found <at>".
  absl::Status Expected(absl::string_view expected, const Token& at) const;
  absl::Status Error(const Token& at, absl::string_view message) const;
  Token Take();
  bool TryTake(char punct);
  bool TryTakeWord(absl::string_view word);
  absl::Status Take(char punct);
  absl::Status Take(TokenKind kind, absl::string_view expected);
  absl::Status TakeEndOfLine();
  // Any word or string; the view is good as long as the parser.
  absl::StatusOr<absl::string_view> NameOf(const Token& token,
                                           absl::string_view what);
  absl::Status TakeName(absl::string_view what, absl::string_view* name);
  absl::Status TakeName(absl::string_view what, std::string* name);
  absl::Status TakeInt(int64_t* value);
  absl::Status TakeFloat(double* value);
  absl::Status TakeString(std::string* value);
  // `[a, b]`: `element` reads one.
  absl::Status TakeList(absl::FunctionRef<absl::Status()> element);
  // `=` and a number.
  absl::Status TakeLine(int32_t* line);

  // ---- Program (parser.cc).
  absl::Status ParseHeader();
  absl::Status ParseStatement();
  absl::Status ParseLoss();
  absl::Status ParseMetric();
  absl::Status ParseOutput();
  absl::Status ParseConstant();
  absl::Status ParseCell();
  absl::Status ParseCellKind(Cell* cell, Token* of);
  absl::Status ParseCellWords(Cell* cell);
  absl::Status ParseInit(Initializer* init);
  absl::Status ResolveOwners();
  absl::Status ParseEntry();
  absl::Status ParseType(TensorType* type);
  absl::Status ParseDim(Dim* dim);

  // ---- Entries and ops (op_parser.cc).
  struct NamedType {
    absl::string_view name;
    TensorType type;
  };
  absl::Status ParseEntryStatement(Entry& entry);
  absl::Status TakeCell(CellId* cell);
  absl::Status ParseGradient(Entry& entry);
  absl::Status ParseCommit(Entry& entry);
  absl::Status ParseResult(Entry& entry);
  absl::Status ParseFeed(Block& block);
  absl::Status ParseOp(Block& block, const Token& name);
  absl::Status ParseInputs(Block& block, const OpSchema& schema);
  absl::Status ParseOutputs(Block& block, const OpSchema& schema);
  absl::Status ParseOutput(const Block& block, std::vector<NamedType>* outputs);
  // Adds the op that was read to the block.
  OpId AddOp(Block& block, const OpSchema* schema, absl::string_view name,
             AttrList attrs);
  // That the op being read defines no name twice.
  absl::Status CheckDistinct(const Token& at) const;
  // `Slot=`: its index.
  absl::StatusOr<int> TakeSlot(absl::Span<const Slot> slots);
  absl::Status ParseAttrs(const OpSchema& schema, AttrList* attrs);
  absl::StatusOr<AttrValue> ParseAttr(AttrKind kind);
  absl::Status ParseDecision(Op& op);
  absl::Status ParseNames(NameList* names);
  absl::Status ParseBody(Op& op);
  absl::Status ParseReturn(Block& body);
  // The value of that name: of this block, or of a cell or constant.
  absl::Status TakeValue(Block& block, ValueId* value);

  std::string file_;
  Lexer lexer_;
  Token next_;
  std::unique_ptr<Program> program_;
  std::deque<std::string> strings_;  // unescaped names
  // Cells whose owner is still a name: `slot(w)` may stand before w.
  std::vector<std::pair<CellId, Token>> owners_;
  int depth_ = 0;  // of fusion bodies
  // The op being read, by slot; kept so that their storage is.
  std::vector<std::vector<ValueId>> inputs_;
  std::vector<std::vector<NamedType>> outputs_;
};

}  // namespace text
}  // namespace halftone

#endif  // HALFTONE_GRAPH_TEXT_PARSER_H_
