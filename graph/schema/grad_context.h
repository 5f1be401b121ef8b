// What an op's Grad sees and makes: the gradients of its outputs in, ops that
// compute the gradients of its inputs out.
//
//   absl::Status GradRelu(GradContext& g) {
//     return g.SetGrad("X", g.Emit("relu_grad")
//                               .In("Out", g.Output("Out"))
//                               .In("OutGrad", g.OutGrad("Out")));
//   }
#ifndef HALFTONE_GRAPH_SCHEMA_GRAD_CONTEXT_H_
#define HALFTONE_GRAPH_SCHEMA_GRAD_CONTEXT_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"

namespace halftone {

class GradContext {
 public:
  using Gradients = absl::InlinedVector<ValueId, 4>;
  using Wanted = absl::InlinedVector<bool, 8>;

  // `out_grads` by flat output position: invalid where no gradient flows.
  // `wanted` by flat input position: whether that input's gradient is needed.
  GradContext(Block* block, OpId op, Gradients out_grads, Wanted wanted);

  Block& block() { return *block_; }
  const Op& op() const { return block_->op(op_); }
  const TensorType& type(ValueId v) const { return block_->type(v); }

  bool Has(absl::string_view input_slot) const;
  ValueId Input(absl::string_view slot, int i = 0) const;
  ValueId Output(absl::string_view slot, int i = 0) const;
  int InputCount(absl::string_view slot) const;
  // The gradient of an output; invalid if none flows (then the op's Grad may
  // assume that at least one other output has one).
  ValueId OutGrad(absl::string_view slot, int i = 0) const;
  bool Wants(absl::string_view input_slot, int i = 0) const;
  const AttrValue& Attr(absl::string_view name) const;

  // A builder for a backward op: role backward, reason GRADIENT_OF <- this
  // op, line of this op, unique names GradientName(op) unless named.
  OpBuilder Emit(absl::string_view op_type);
  // The name that the gradient of an input must have: GradientName (made
  // unique; a partial one where several readers contribute).
  NameId GradName(absl::string_view slot, int i = 0) const;

  // Sets the gradient of an input. The first form builds the op, whose first
  // output becomes the gradient and takes GradName unless named.
  absl::Status SetGrad(absl::string_view slot, OpBuilder& builder, int i = 0);
  absl::Status SetGrad(absl::string_view slot, OpBuilder&& builder, int i = 0) {
    return SetGrad(slot, builder, i);
  }
  void SetGrad(absl::string_view slot, ValueId gradient, int i = 0);

  // By flat input position; invalid: no gradient.
  const Gradients& in_grads() const { return in_grads_; }

 private:
  // The flat position of the slot's i-th input.
  int InputAt(absl::string_view slot, int i) const;
  NameId GradName(ValueId input) const;

  Block* block_;
  OpId op_;
  Gradients out_grads_;
  Wanted wanted_;
  Gradients in_grads_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_GRAD_CONTEXT_H_
