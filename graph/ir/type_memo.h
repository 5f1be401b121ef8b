// What inference once found, by what it looked at.
#ifndef HALFTONE_GRAPH_IR_TYPE_MEMO_H_
#define HALFTONE_GRAPH_IR_TYPE_MEMO_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/ir/ids.h"

namespace halftone {

// Programs repeat themselves: most ops have the schema, input types and
// attributes of another one, and output types are a pure function of those.
// Types are interned and never removed, so nothing here grows old. The key
// (graph/schema/type_key.h) is the function's whole input.
class TypeMemo {
 public:
  using Types = absl::InlinedVector<TypeId, 2>;
  using Key = uint64_t;

  // Null if the key is new.
  const Types* Find(Key key) const {
    const auto it = types_.find(key);
    return it == types_.end() ? nullptr : &it->second;
  }
  void Add(Key key, absl::Span<const TypeId> types) {
    types_.try_emplace(key, types.begin(), types.end());
  }

 private:
  // A key is a hash.
  struct Hash {
    size_t operator()(Key key) const { return key; }
  };
  absl::flat_hash_map<Key, Types, Hash> types_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_TYPE_MEMO_H_
