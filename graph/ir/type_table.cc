#include "graph/ir/type_table.h"

namespace halftone {

TypeId TypeTable::Intern(const TensorType& type) {
  const auto [it, inserted] = ids_.try_emplace(type, types_.size());
  if (inserted) types_.Add() = type;
  return it->second;
}

}  // namespace halftone
