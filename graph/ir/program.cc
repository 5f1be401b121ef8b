#include "graph/ir/program.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"

namespace halftone {

ValueId Entry::CommitOf(CellId cell) const {
  for (const CommitStatement& commit : commits_) {
    if (commit.cell == cell) return commit.value;
  }
  return ValueId();
}

ValueId Entry::FindResult(absl::string_view name) const {
  for (const Result& result : results_) {
    if (result.name == name) return result.value;
  }
  return ValueId();
}

int Program::Symbol(absl::string_view name) {
  const auto it = std::find(symbols_.begin(), symbols_.end(), name);
  if (it != symbols_.end()) return static_cast<int>(it - symbols_.begin());
  if (symbols_.size() == kMaxSymbols) return -1;
  symbols_.emplace_back(name);
  return static_cast<int>(symbols_.size()) - 1;
}

Cell& Program::AddCell(Cell cell) {
  const NameId name = InternName(cell.name);
  return AddCell(name, std::move(cell));
}

Cell& Program::AddCell(NameId name, Cell cell) {
  cell.id = CellId(num_cells());
  cell.name = std::string(name_of(name));
  HT_CHECK(cell_by_name_.Insert(name, cell.id), cell.name.c_str());
  cell_names_.push_back(name);
  cell_types_.emplace_back();
  return cells_.Add() = std::move(cell);
}

TypeId Program::InternTypeOf(CellId id) {
  const TensorType& type = cell(id).type;
  TypeId& known = cell_types_[id.index()];
  if (!known.valid() || types_[known] != type) known = Intern(type);
  return known;
}

Constant& Program::AddConstant(Constant constant) {
  constant.id = ConstantId(num_constants());
  const NameId name = InternName(constant.name);
  HT_CHECK(constant_by_name_.Insert(name, constant.id), constant.name.c_str());
  constant_names_.push_back(name);
  constants_.push_back(std::move(constant));
  return constants_.back();
}

Entry& Program::AddEntry(absl::string_view name) {
  HT_CHECK(FindEntry(name) == nullptr, "an entry of that name exists");
  entries_.push_back(std::make_unique<Entry>(this, std::string(name)));
  return *entries_.back();
}

Entry* Program::FindEntry(absl::string_view name) {
  for (const auto& entry : entries_) {
    if (entry->name() == name) return entry.get();
  }
  return nullptr;
}

const Entry* Program::FindEntry(absl::string_view name) const {
  return const_cast<Program*>(this)->FindEntry(name);
}

void Program::RemoveEntry(absl::string_view name) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if ((*it)->name() == name) {
      entries_.erase(it);
      return;
    }
  }
}

}  // namespace halftone
