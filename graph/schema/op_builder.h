// OpBuilder adds ops to a block by slot name, infers their output types and
// checks them against the schema: the one way in which readers and passes
// make ops.
//
//   HT_ASSIGN_OR_RETURN(OpId op, OpBuilder(&block, "matmul")
//       .Name("fc0").In("X", x).In("Y", w).Attr("trans_y", true)
//       .Out("Out", "h").Role(Role::kForward).Build());
#ifndef HALFTONE_GRAPH_SCHEMA_OP_BUILDER_H_
#define HALFTONE_GRAPH_SCHEMA_OP_BUILDER_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"

namespace halftone {

class OpBuilder {
 public:
  // An unknown op name is reported by Build, with the nearest one.
  OpBuilder(Block* block, absl::string_view op_type);
  OpBuilder(Block* block, const OpSchema* schema)
      : block_(block), schema_(schema) {}

  OpBuilder& Name(absl::string_view name);  // default: first output's name
  OpBuilder& Name(NameId name);
  // An invalid value leaves the slot absent. A slot named more than once
  // (a list) takes all its values in order.
  OpBuilder& In(absl::string_view slot, ValueId value);
  OpBuilder& In(absl::string_view slot, absl::Span<const ValueId> values);
  OpBuilder& In(absl::string_view slot, std::initializer_list<ValueId> values);
  // The last value given for a name counts. Kinds are coerced where nothing
  // is lost (attr_coercion.h).
  OpBuilder& Attr(absl::string_view name, AttrValue value);
  // The set attributes of `from` that this op has too.
  OpBuilder& AttrsOf(const Op& from);
  // Names an output value (a list slot: call once per member). A required
  // output that is not named gets "<op>.<Slot>"; an optional one is absent.
  OpBuilder& Out(absl::string_view slot, absl::string_view name);
  OpBuilder& Out(absl::string_view slot, NameId name);
  // A member of a mixed list (fusion), whose type no schema can infer.
  OpBuilder& Out(absl::string_view slot, NameId name, TypeId type);
  // Names the first output unless it has a name.
  OpBuilder& FirstOut(absl::string_view name);
  OpBuilder& FirstOut(NameId name);
  // Binds a type variable that no input binds (TOut), or the dtype of an
  // output ("Out" of cast follows its `to`).
  OpBuilder& Bind(absl::string_view type_var, DType dtype);
  OpBuilder& At(Block::Position position);
  OpBuilder& Role(halftone::Role role);
  OpBuilder& Why(halftone::Decision decision);
  OpBuilder& Origin(NameId name);
  OpBuilder& Line(int line);

  // Errors (class kModel) name op, slot, what was expected and found; unknown
  // slots and attributes get the nearest name. Output names that are taken
  // get a suffix only if `unique` was asked for; otherwise they are an error
  // ("two definitions of h").
  absl::StatusOr<OpId> Build();
  OpBuilder& Unique() {
    unique_ = true;
    return *this;
  }

 private:
  struct Draft;
  // Keeps the first thing that is wrong with what is given, for Build.
  void Refuse(absl::Status status);
  std::string Label(const Draft& draft) const;
  absl::Status Complete(Draft& draft);
  absl::Status GatherInputs(Draft& draft);
  absl::Status ArityError(const Draft& draft) const;
  absl::Status NameOutputs(Draft& draft);
  bool IsTaken(NameId name, const Draft& draft) const;
  // Another name in place of one that is taken, or the error that it is.
  absl::Status FreeName(int slot, const Draft& draft, NameId* name) const;
  absl::Status FillImplicit(Draft& draft) const;
  // The types of all outputs (infer_outputs.cc): remembered, or inferred.
  absl::Status FindOutputTypes(Draft& draft) const;
  absl::Status InferOutputTypes(Draft& draft) const;
  absl::Status SetMixedTypes(InferContext& context) const;
  OpId AddTo(Draft& draft);

  template <typename T>
  struct Given {
    int slot;
    T item;
  };
  Block* block_;
  const OpSchema* schema_;
  std::string unknown_;  // the op's type, if there is no such op
  absl::Status wrong_;
  NameId name_;
  absl::InlinedVector<Given<ValueId>, 4> inputs_;
  // In order, of the schema's kinds.
  absl::InlinedVector<AttrList::value_type, 6> attrs_;
  absl::InlinedVector<Given<NameId>, 2> outputs_;
  absl::InlinedVector<Given<TypeId>, 1> mixed_types_;
  absl::InlinedVector<std::pair<std::string, DType>, 1> bindings_;
  Block::Position position_;
  halftone::Role role_ = halftone::Role::kForward;
  halftone::Decision decision_;
  NameList origins_;
  int line_ = 0;
  bool unique_ = false;
};

// The dtype each type variable of an op has, in the schema's order, from the
// stored types of its values: the op's kernel key. kInvalid for a variable
// that nothing binds (all its slots are absent or empty).
absl::InlinedVector<DType, 4> TypeBinding(const Block& block, const Op& op);

// Infers the op's output types from its stored inputs and compares them with
// the stored outputs; an error says what differs. Free type variables are
// taken from the stored outputs. Used by the verifier.
absl::Status CheckTypes(const Block& block, const Op& op);

// The value of a well-known feed or cell ("@seed", "@attempted") in `block`,
// added to program and block on first demand.
absl::StatusOr<ValueId> WellKnownValue(Block* block, absl::string_view name);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_OP_BUILDER_H_
