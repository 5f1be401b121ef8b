// All that an op's types depend on, as 64 bits that compare and hash.
#ifndef HALFTONE_GRAPH_SCHEMA_TYPE_KEY_H_
#define HALFTONE_GRAPH_SCHEMA_TYPE_KEY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/mix.h"
#include "graph/ir/attr.h"
#include "graph/ir/block.h"
#include "graph/ir/type_memo.h"
#include "graph/schema/op_schema.h"

namespace halftone {

// Equal keys of one program: the same schema, slots, types and attributes, in
// the order in which they were added. 64 bits tell the few thousand kinds of op
// apart that a program has; they are no defence against one that was made to
// collide.
class TypeKey {
 public:
  explicit TypeKey(const OpSchema* schema) { AddAddress(schema); }
  // All that there is to tell ops apart but names, reasons, streams of random
  // numbers and which values they have; in a fusion's body, too, which values.
  TypeKey(const Block& block, const Op& op);

  // The types of an op's values by slot.
  void AddTypes(const Block& block, const SlotValues& values) {
    AddCounts(values);
    AddInts(values.all(),
            [&](ValueId value) { return block.type_id(value).index(); });
  }
  void AddType(TypeId type) { Add(type.index()); }
  // How many items each slot has.
  template <typename T>
  void AddCounts(const Slots<T>& slots) {
    // A schema's slots are as many in every op.
    const SlotEnds& ends = slots.ends();
    if (ends.packed()) {
      Add(ends.word());
      return;
    }
    for (int s = 0; s < ends.size(); ++s) Add(ends[s]);
  }
  // Those of an op with the schema. The streams that ops draw random numbers
  // from tell no kinds apart: most ops that have one would be a kind each.
  void AddAttrs(const OpSchema& schema, Attrs attrs) {
    if (schema.stream_attr() < 0) {
      AddAddress(attrs.identity());
    } else {
      AddAttrsButStream(schema, attrs);
    }
  }
  void AddBinding(absl::string_view type_var, DType dtype);

  TypeMemo::Key value() const { return state_; }

 private:
  void AddAttrsButStream(const OpSchema& schema, Attrs attrs);
  void AddBody(const Block& body);
  void AddIds(absl::Span<const ValueId> values) {
    AddInts(values, [](ValueId value) { return value.index(); });
  }
  template <typename T, typename ToInt>
  void AddInts(absl::Span<const T> items, ToInt to_int) {
    size_t i = 0;
    for (; i + 1 < items.size(); i += 2) {
      Add2(to_int(items[i]), to_int(items[i + 1]));
    }
    if (i < items.size()) Add(to_int(items[i]));
  }
  void AddAddress(const void* address) {
    Add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address)));
  }
  void Add2(int32_t first, int32_t second) {
    Add(static_cast<uint64_t>(first) << 32 | static_cast<uint32_t>(second));
  }
  void Add(uint64_t word) { state_ = Mix(state_, word); }

  uint64_t state_ = 0xd1b54a32d192ed03u;
};

// The key of an op of the block, which keeps it until the op is edited: not for
// several threads at once.
TypeMemo::Key KindOf(const Block& block, OpId op);
// The same for several threads: what nobody has kept is found anew.
TypeMemo::Key KeptKindOf(const Block& block, const Op& op);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_TYPE_KEY_H_
