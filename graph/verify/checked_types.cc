#include <type_traits>
#include <utility>
#include <variant>

#include "absl/hash/hash.h"
#include "graph/schema/op_schema.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

size_t HashOf(const Block& block, const Op& op) {
  size_t hash = absl::Hash<const OpSchema*>()(op.schema);
  const auto add = [&hash](size_t part) {
    hash = absl::Hash<std::pair<size_t, size_t>>()({hash, part});
  };
  for (const SlotValues* values : {&op.inputs, &op.outputs}) {
    for (ValueId value : values->all()) add(block.value(value).type.index());
    for (int s = 0; s < values->slots(); ++s) add(values->end(s));
  }
  for (const auto& attr : op.attrs) {
    add(attr.first);
    std::visit(
        [&add](const auto& value) {
          add(absl::Hash<std::decay_t<decltype(value)>>()(value));
        },
        attr.second);
  }
  return hash;
}

bool SameTypes(const Block& a_block, const SlotValues& a, const Block& b_block,
               const SlotValues& b) {
  if (a.slots() != b.slots() || a.all().size() != b.all().size()) return false;
  for (int s = 0; s < a.slots(); ++s) {
    if (a.end(s) != b.end(s)) return false;
  }
  for (size_t i = 0; i < a.all().size(); ++i) {
    if (a_block.value(a.all()[i]).type != b_block.value(b.all()[i]).type) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool CheckedTypes::Same(const Place& a, const Place& b) {
  return a.op->schema == b.op->schema && a.op->attrs == b.op->attrs &&
         SameTypes(*a.block, a.op->inputs, *b.block, b.op->inputs) &&
         SameTypes(*a.block, a.op->outputs, *b.block, b.op->outputs);
}

bool CheckedTypes::Passed(const Block& block, const Op& op) {
  last_ = HashOf(block, op);
  const Place place{&block, &op};
  const auto [it, fresh] = seen_.try_emplace(last_, place);
  if (fresh) return false;
  if (Same(it->second, place)) return true;
  it->second = place;
  return false;
}

}  // namespace verify
}  // namespace halftone
