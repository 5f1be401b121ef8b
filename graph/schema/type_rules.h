// The rules of a schema about types, shared by OpBuilder, which applies them,
// and CheckTypes, which holds a stored op to them.
#ifndef HALFTONE_GRAPH_SCHEMA_TYPE_RULES_H_
#define HALFTONE_GRAPH_SCHEMA_TYPE_RULES_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/attr.h"
#include "graph/ir/block.h"
#include "graph/ir/type.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/slot_types.h"

namespace halftone {

// The block's program holds them.
SlotTypes TypesOf(const Block& block, const SlotValues& values);

// Finds the dtype of each type variable. Errors begin with "slot X: ...":
// the caller puts the op in front.
class TypeBinder {
 public:
  TypeBinder(const OpSchema& schema, absl::Span<const std::string> symbols)
      : schema_(schema), symbols_(symbols), bound_(schema.type_vars().size()) {}

  // Checks dtypes of all inputs against the slots and binds variables. Slots
  // that are shape-only or mixed neither bind nor are checked.
  absl::Status BindInputs(const SlotTypes& inputs);
  // Binds a variable, or the one of an output slot of that name.
  absl::Status Bind(absl::string_view name, DType dtype);
  // What an attribute `to` or `dtype` says of the outputs' variables that no
  // input slot has.
  absl::Status BindFromAttr(AttrSpan attrs);
  // Takes the variables that are still free from the stored outputs.
  void BindStoredOutputs(const SlotTypes& outputs);
  void BindDefaults();

  // The dtype of each output but those of mixed lists; an output whose
  // variable nothing binds is an error.
  absl::Status SetOutputDTypes(InferContext& context) const;
  // kInvalid: not bound.
  DType DTypeOf(const Slot& slot) const;

 private:
  absl::Status BindVar(int var, DType dtype, absl::string_view by);
  bool AnInputHas(int var) const;

  struct Bound {
    DType dtype{};
    std::string by;  // "slot X", "attribute to"
  };
  const OpSchema& schema_;
  absl::Span<const std::string> symbols_;
  absl::InlinedVector<Bound, 4> bound_;
};

// The position of the attribute by which BindFromAttr binds, or -1.
int DTypeAttrOf(const OpSchema& schema);

// Whether the slot may hold so many values.
inline bool TakesMembers(const Slot& slot, int64_t members) {
  return slot.list() || members == 1 || (members == 0 && slot.optional());
}
// The number of values in each slot: "slot X: expected one value, found 2".
absl::Status CheckArity(absl::Span<const Slot> slots,
                        absl::Span<const int> counts);

// That set attributes are the schema's, of its kinds, and the required ones
// set.
absl::Status CheckAttrs(const OpSchema& schema, AttrSpan attrs);

// Gives each output whose layout Infer left open that of the input which it
// follows by the schema's LayoutRule.
void FollowLayouts(const SlotTypes& inputs, InferContext& context);

// Whether stored layouts obey the schema's LayoutRule; an op whose Infer sets
// layouts is exempt.
absl::Status CheckLayouts(const InferContext& context, const SlotTypes& inputs,
                          const SlotTypes& outputs);

// An output is sharded like the input member whose storage it may share, a low
// copy like its parameter, what an op makes of one tensor like that.
void FollowShards(const SlotTypes& inputs, InferContext& context);

// Whether the op may read the shards among its inputs: element by element,
// all operands alike, or as a collective or the check.
absl::Status CheckShards(const InferContext& context, const SlotTypes& inputs);

// Refuses inferred dims below zero and element counts beyond 64 bits.
absl::Status CheckSizes(const InferContext& context);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_TYPE_RULES_H_
