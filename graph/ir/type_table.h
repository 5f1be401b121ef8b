// Interned types: each once, an id for comparing and hashing.
#ifndef HALFTONE_GRAPH_IR_TYPE_TABLE_H_
#define HALFTONE_GRAPH_IR_TYPE_TABLE_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/ids.h"
#include "graph/ir/type.h"

namespace halftone {

// Types are never removed and never move.
class TypeTable {
 public:
  TypeId Intern(const TensorType& type);
  const TensorType& operator[](TypeId id) const { return types_[id.index()]; }
  int32_t size() const { return types_.size(); }

 private:
  ChunkedVector<TensorType> types_;
  absl::flat_hash_map<TensorType, TypeId> ids_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_TYPE_TABLE_H_
