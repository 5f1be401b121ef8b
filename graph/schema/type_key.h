// All that an op's types depend on, as 64 bits that compare and hash.
#ifndef HALFTONE_GRAPH_SCHEMA_TYPE_KEY_H_
#define HALFTONE_GRAPH_SCHEMA_TYPE_KEY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
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
  explicit TypeKey(const OpSchema* schema) { AddSchema(schema); }
  void AddSchema(const OpSchema* schema) {
    Add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(schema)));
  }

  // The types of an op's values by slot.
  void AddTypes(const Block& block, const SlotValues& values) {
    AddCounts(values);
    const absl::Span<const ValueId> all = values.all();
    size_t i = 0;
    for (; i + 1 < all.size(); i += 2) {
      Add2(block.value(all[i]).type.index(),
           block.value(all[i + 1]).type.index());
    }
    if (i < all.size()) Add(block.value(all[i]).type.index());
  }
  void AddType(TypeId type) { Add(type.index()); }
  // How many items each slot has.
  template <typename T>
  void AddCounts(const Slots<T>& slots) {
    // A schema's slots are as many in every op.
    for (const int32_t end : slots.ends()) Add(static_cast<uint64_t>(end));
  }
  void AddAttrs(Attrs attrs) {
    Add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(attrs.identity())));
  }
  // Which values they are, of a block as of another.
  void AddValues(const SlotValues& values) {
    for (const ValueId value : values.all()) AddValue(value);
  }
  void AddValue(ValueId value) { Add(value.index()); }
  void AddBinding(absl::string_view type_var, DType dtype);

  TypeMemo::Key value() const { return state_; }

 private:
  // The two halves of a 128-bit product, folded (as wyhash does).
  void Add(uint64_t word) {
    const auto product =
        static_cast<unsigned __int128>(state_ ^ word) * kOdd + kOdd;
    state_ =
        static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  }
  void Add2(int32_t first, int32_t second) {
    Add(static_cast<uint64_t>(first) << 32 | static_cast<uint32_t>(second));
  }

  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  uint64_t state_ = 0xd1b54a32d192ed03u;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_TYPE_KEY_H_
