#include "passes/lower/mask_pooled.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// A gradient of pooling whose maxima's places are known.
bool IsMaxPoolGrad(const OpSchema* schema) {
  return schema->FindInput("Argmax") >= 0 && schema->FindInput("OutGrad") >= 0;
}

class Masker {
 public:
  Masker(Block& block, HeldValues& held) : block_(block), held_(held) {}

  absl::StatusOr<bool> Run() {
    bool changed = false;
    for (const OpId mask : OpsOfType(block_, "relu_grad")) {
      const OpId grad = PoolGradBefore(block_.op(mask));
      if (!grad.valid()) continue;
      HT_RETURN_IF_ERROR(Swap(mask, grad));
      changed = true;
    }
    return changed;
  }

 private:
  // What makes the mask's OutGrad for it alone, if it is the gradient of
  // pooling what the mask is of; else invalid.
  OpId PoolGradBefore(const Op& mask) const {
    const OpId id =
        OnlyFor(block_, mask.id, InputOf(mask, "OutGrad"), held_.function());
    if (!id.valid() || !IsMaxPoolGrad(block_.schema(id))) return OpId();
    const OpId pool = PoolOf(block_.op(id));
    return pool.valid() && block_.op(pool).in(0) == InputOf(mask, "Out")
               ? id
               : OpId();
  }
  OpId PoolOf(const Op& grad) const {
    return block_.value(InputOf(grad, "Argmax")).op();
  }

  absl::Status Swap(OpId mask_id, OpId grad_id) {
    const Op &mask = block_.op(mask_id), &grad = block_.op(grad_id);
    const int gradient = grad.schema->FindInput("OutGrad");
    const std::string made(block_.name(mask.out(0)));
    OpBuilder builder(&block_, mask.schema);
    builder.Name(absl::StrCat(block_.name(mask), ".pooled"))
        .FirstOut(absl::StrCat(block_.name(grad.out(0)), ".pooled"))
        .At(Block::Before(grad_id))
        .In("Out", block_.op(PoolOf(grad)).out(0))
        .In("OutGrad", grad.in(gradient))
        .Role(mask.role)
        .Why(mask.decision)
        .Line(mask.line)
        .Unique();
    HT_ASSIGN_OR_RETURN(const ValueId masked, BuildValue(block_, builder));
    InheritOrigins(mask, block_.mutable_op(block_.value(masked).op()));
    block_.SetInputSlot(grad_id, gradient, {masked});
    const ValueId out = grad.out(0);
    ReplaceValue(block_, mask.out(0), out, held_);
    block_.EraseOp(mask_id);
    block_.RenameValue(out, made);
    return absl::OkStatus();
  }

  Block& block_;
  HeldValues& held_;
};

}  // namespace

absl::StatusOr<bool> MaskPooled::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    if (!entry->block().HasOpOf(IsMaxPoolGrad)) continue;
    HeldValues held(*entry);
    HT_ASSIGN_OR_RETURN(const bool swapped, Masker(entry->block(), held).Run());
    changed |= swapped;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
