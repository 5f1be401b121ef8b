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
  struct Key {
    uint64_t a = 0, b = 0;
    friend bool operator==(const Key& x, const Key& y) {
      return x.a == y.a && x.b == y.b;
    }
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.a; }
  };

  // Null if the key is new.
  const Types* Find(const Key& key) const {
    const auto it = types_.find(key);
    return it == types_.end() ? nullptr : &it->second;
  }
  void Add(const Key& key, absl::Span<const TypeId> types) {
    types_.try_emplace(key, types.begin(), types.end());
  }

 private:
  absl::flat_hash_map<Key, Types, KeyHash> types_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_TYPE_MEMO_H_
