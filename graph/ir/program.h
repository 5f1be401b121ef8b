// A Program: symbols, constants, cells and entries. See DESIGN in
// ARCHITECTURE.md for the model; the verifier (graph/verify) holds its rules.
#ifndef HALFTONE_GRAPH_IR_PROGRAM_H_
#define HALFTONE_GRAPH_IR_PROGRAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/ir/block.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/ids.h"
#include "graph/ir/name_map.h"
#include "graph/ir/name_table.h"
#include "graph/ir/type.h"
#include "graph/ir/type_memo.h"

namespace halftone {

// How a cell gets its first value.
struct Initializer {
  enum class Kind : uint8_t {
    kNone,             // derived cells: computed by the `derive` startup entry
    kConstant,         // a
    kUniform,          // in [a, b)
    kNormal,           // mean a, standard deviation b
    kTruncatedNormal,  // the same, redrawn outside two deviations
    kXavierUniform,    // gain a
    kXavierNormal,     // gain a
    kKaimingUniform,   // negative slope a: bound = gain * sqrt(3 / fan_in)
    kKaimingNormal,    // negative slope a
  };
  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;
};

// When a new value is taken over at the end of a step.
enum class Commit : uint8_t {
  kApplied,  // only if the step was not rejected
  kAlways,
};
enum class Spread : uint8_t { kReplicated, kSharded, kPerRank };
// What a cell is for; decides checkpoint signature and reports.
enum class CellKind : uint8_t {
  kParameter,
  kStatistic,  // running mean and variance
  kSlot,       // optimizer state of the parameter `of`
  kScaler,     // loss scale and its counters
  kClock,      // attempted, applied
  kDerived,    // low-precision copy of `of`
  kAverage,    // mean of the parameter `of` over the steps, for evaluation
  // What the micro-batches of a step have added up so far: 0 between steps, or
  // the statistic `of` as they leave it. Or `of` as ranks last averaged it.
  kAccumulator,
};

struct Cell {
  CellId id;
  std::string name;
  TensorType type;
  CellKind kind = CellKind::kParameter;
  bool trainable = false;
  Commit commit = Commit::kApplied;
  Spread spread = Spread::kReplicated;
  // kDerived: derived_from; kSlot, kAverage: its parameter
  CellId of;
  int32_t line = 0;
  Initializer init;

  // Whether it is a function of cells between two steps, so that it is made
  // again (entry `derive`) and has no initialiser.
  bool IsMadeAgain() const {
    return kind == CellKind::kDerived ||
           (kind == CellKind::kAccumulator && of.valid());
  }
  // Whether it says nothing between two steps that other cells do not say.
  bool IsSaved() const {
    return kind != CellKind::kDerived && kind != CellKind::kAccumulator;
  }
};

struct Constant {
  ConstantId id;
  std::string name;
  TensorType type;             // constant dims
  std::vector<double> values;  // row-major
};

struct CommitStatement {
  CellId cell;
  ValueId value;
};

// What the update of a parameter is to read: at first the gradient that
// backward made, then what is left of it to do (unscaled, clipped). From
// append-backward until append-optimizer, whose updates have it in their slots.
struct GradientStatement {
  CellId parameter;
  ValueId value;
};

// A value that the runtime reads after the step, by name. Names that begin
// with '@' are the runtime's own (see graph/ir/well_known.h).
struct Result {
  std::string name;
  ValueId value;
};

// One compiled function over the cells: train, eval, init, derive.
class Entry {
 public:
  Entry(Program* program, std::string name)
      : name_(std::move(name)),
        block_(new Block(program, Block::kMany, Block::kMany)) {
    block_->entry_ = this;
  }
  const std::string& name() const { return name_; }
  Block& block() { return *block_; }
  const Block& block() const { return *block_; }

  std::vector<CommitStatement>& commits() { return commits_; }
  const std::vector<CommitStatement>& commits() const { return commits_; }
  // The value committed to the cell, or an invalid id.
  ValueId CommitOf(CellId cell) const;
  std::vector<GradientStatement>& gradients() { return gradients_; }
  const std::vector<GradientStatement>& gradients() const { return gradients_; }
  std::vector<Result>& results() { return results_; }
  const std::vector<Result>& results() const { return results_; }
  ValueId FindResult(absl::string_view name) const;

 private:
  std::string name_;
  std::unique_ptr<Block> block_;
  std::vector<GradientStatement> gradients_;
  std::vector<CommitStatement> commits_;
  std::vector<Result> results_;
};

// What the loss is a mean over (see DESIGN, samples and ranks).
struct LossPart {
  std::string name;      // of the mean that is reported
  std::string weighted;  // of what the loss adds up: it, times its weight
};
struct LossInfo {
  std::string var;        // rank-0 or one-element value
  std::string mean_over;  // its elements are what n counts
  std::string mask;       // optional: n is the sum of this value
  // Without a mask: values that further means are divided by
  // (graph/schema/denominators.h).
  std::vector<std::string> denominators;
  // Of a loss that adds up several; empty: it is one.
  std::vector<LossPart> parts;
};
struct MetricInfo {
  std::string name;
  std::string var;   // a count (scalar)
  std::string over;  // value whose elements are the denominator
};

class Program {
 public:
  Program() = default;
  Program(Program&&) = delete;  // blocks point back: move a unique_ptr

  std::string name;
  // Path of the file it came from, for messages; not part of the fingerprint.
  std::string file;
  LossInfo loss;  // loss.var empty: no loss, forward only
  std::vector<MetricInfo> metrics;
  std::vector<std::string> outputs;  // model outputs, by value name

  // ---- Symbols. Symbol 0 is B, the samples on this rank, if there is one.
  const std::vector<std::string>& symbols() const { return symbols_; }
  // Index of the symbol, declared on first demand; -1 beyond kMaxSymbols.
  int Symbol(absl::string_view name);

  // ---- Types, attributes and names (interned, never removed).
  TypeId Intern(const TensorType& type) { return types_.Intern(type); }
  const TensorType& type(TypeId id) const { return types_[id]; }
  const TypeTable& types() const { return types_; }
  TypeMemo& inferred_types() { return inferred_types_; }
  Attrs Intern(AttrList attrs) { return attrs_.Intern(std::move(attrs)); }
  AttrTable& attrs() { return attrs_; }
  NameId InternName(absl::string_view name) { return names_.Intern(name); }
  // Invalid if the name was never interned.
  NameId FindName(absl::string_view name) const { return names_.Find(name); }
  absl::string_view name_of(NameId id) const { return names_.name(id); }
  NameTable& names() { return names_; }
  const NameTable& names() const { return names_; }

  // ---- Edits of ops, counted over all blocks (Block::edit).
  uint64_t edit() const { return edit_; }
  uint64_t CountEdit() { return ++edit_; }

  // ---- Cells, in order of creation. A name never changes.
  // Sets the id; the name must be new.
  Cell& AddCell(Cell cell);
  // The same under a name that is interned, for those that made it from one.
  Cell& AddCell(NameId name, Cell cell);
  int num_cells() const { return static_cast<int>(cells_.size()); }
  Cell& cell(CellId id) { return cells_[id.index()]; }
  const Cell& cell(CellId id) const { return cells_[id.index()]; }
  NameId cell_name(CellId id) const { return cell_names_[id.index()]; }
  TypeId InternTypeOf(CellId id);
  CellId FindCell(NameId name) const { return cell_by_name_.Find(name); }
  CellId FindCell(absl::string_view name) const {
    return FindCell(FindName(name));
  }

  // ---- Constants.
  Constant& AddConstant(Constant constant);
  int num_constants() const { return static_cast<int>(constants_.size()); }
  const Constant& constant(ConstantId id) const {
    return constants_[id.index()];
  }
  NameId constant_name(ConstantId id) const {
    return constant_names_[id.index()];
  }
  ConstantId FindConstant(absl::string_view name) const {
    return constant_by_name_.Find(FindName(name));
  }

  // ---- Entries, in order of creation.
  Entry& AddEntry(absl::string_view name);
  Entry* FindEntry(absl::string_view name);
  const Entry* FindEntry(absl::string_view name) const;
  const std::vector<std::unique_ptr<Entry>>& entries() const {
    return entries_;
  }
  void RemoveEntry(absl::string_view name);

 private:
  std::vector<std::string> symbols_;
  TypeTable types_;
  TypeMemo inferred_types_;
  AttrTable attrs_;
  NameTable names_;
  ChunkedVector<Cell, 4> cells_;
  std::vector<NameId> cell_names_;
  std::vector<TypeId> cell_types_;  // when they were last asked for
  NameMap<CellId> cell_by_name_;
  std::deque<Constant> constants_;
  std::vector<NameId> constant_names_;
  NameMap<ConstantId> constant_by_name_;
  std::vector<std::unique_ptr<Entry>> entries_;
  uint64_t edit_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_PROGRAM_H_
