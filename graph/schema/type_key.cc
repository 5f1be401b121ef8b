#include "graph/schema/type_key.h"

#include <cstring>

namespace halftone {

TypeKey::TypeKey(const Block& block, const Op& op) : TypeKey(op.schema) {
  AddTypes(block, op.inputs);
  AddTypes(block, op.outputs);
  AddAttrs(*op.schema, op.attrs);
  if (op.body != nullptr) AddBody(*op.body);
}

void TypeKey::AddAttrsButStream(const OpSchema& schema, Attrs attrs) {
  for (const auto& [index, value] : attrs) {
    // One of another kind is none: CheckTypes has to see it.
    if (index == schema.stream_attr() && KindOf(value) == AttrKind::kInt) {
      continue;
    }
    Add(static_cast<uint64_t>(index));
    Add(HashOf(value));
  }
}

// Values first: equal ids of equal bodies have one type.
void TypeKey::AddBody(const Block& body) {
  Add2(body.value_limit(), body.num_ops());
  for (int i = 0; i < body.value_limit(); ++i) {
    const Value& value = body.value(ValueId(i));
    Add2(value.type.index(),
         static_cast<int>(value.definition) << 1 | (value.erased ? 1 : 0));
  }
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    const Op& op = body.op(id);
    AddAddress(op.schema);
    AddAttrs(*op.schema, op.attrs);
    AddCounts(op.inputs);
    AddIds(op.inputs.all());
    AddCounts(op.outputs);
    AddIds(op.outputs.all());
    if (op.body != nullptr) AddBody(*op.body);
  }
  AddIds(body.body_results());
}

void TypeKey::AddBinding(absl::string_view type_var, DType dtype) {
  Add(type_var.size());
  for (size_t i = 0; i < type_var.size(); i += sizeof(uint64_t)) {
    const absl::string_view piece = type_var.substr(i, sizeof(uint64_t));
    uint64_t word = 0;
    std::memcpy(&word, piece.data(), piece.size());
    Add(word);
  }
  Add(static_cast<uint64_t>(dtype));
}

TypeMemo::Key KeptKindOf(const Block& block, const Op& op) {
  const TypeMemo::Key kept = block.kind(op.id);
  return kept != 0 ? kept : TypeKey(block, op).value();
}

TypeMemo::Key KindOf(const Block& block, OpId op) {
  if (block.kind(op) == 0) {
    block.SetKind(op, TypeKey(block, block.op(op)).value());
  }
  return block.kind(op);
}

}  // namespace halftone
