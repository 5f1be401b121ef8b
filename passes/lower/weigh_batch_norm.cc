#include "passes/lower/weigh_batch_norm.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/forward_part.h"

namespace halftone {
namespace passes {
namespace {

// Sums, count, coefficients and the rounded vectors of fusions, each written
// and read: no more than this many f32 per channel.
constexpr int64_t kVectors = 24;

class Weigher {
 public:
  Weigher(const Block& block, const HeldValues& held,
          const PatternSet& patterns, const proto::Compress& compress)
      : block_(block), held_(held), patterns_(patterns), compress_(compress) {}

  std::vector<WeighedNorm> Run() {
    std::vector<WeighedNorm> split;
    if (Count("batch_norm") + Count("sync_batch_norm") == 0) return split;
    // A norm is weighed after the one behind the next convolution.
    for (OpId id = block_.last(); id.valid(); id = block_.previous(id)) {
      const bool sync = IsOp(block_, id, "sync_batch_norm");
      if (!sync && !IsOp(block_, id, "batch_norm")) continue;
      WeighedNorm norm = Weigh(id);
      if (norm.saved <= 0 && !sync) continue;
      norm.sync = sync;
      split_.insert(id);
      split.push_back(norm);
    }
    return split;
  }

 private:
  int Count(absl::string_view type) const {
    return block_.CountOf(Ops().Find(type));
  }
  WeighedNorm Weigh(OpId id);
  std::vector<OpId> GradientsOf(const Op& norm) const;
  // The op that alone reads the value.
  OpId OnlyReader(ValueId value) const;
  bool TakesNorm(const Use& use, OpId grad) const;
  // Whether all readers in the backward part, if there are any, are fusions
  // that make norm and relu again from X, which they read anyway.
  bool IsRecomputed(const Op& relu, OpId grad) const;
  bool IsFollowedBySplitNorm(ValueId image) const;
  // Whether the norm's gradient is made of that of the relu.
  bool IsMadeOf(OpId grad, OpId relu_grad) const;
  // The relu's gradient, at the end of a convolution's, of the norm's gradient.
  bool IsConvGradNorm(OpId relu_grad, OpId grad) const;
  // The relu's gradient at a block's end that can be at the end of a
  // convolution's, of the norm's gradient; invalid: there is none.
  OpId BlockMask(ValueId y, OpId grad) const;
  bool IsConvGradAdded(const Op& relu_grad) const;
  bool IsElementwise(ValueId y) const;
  bool IsBehindReluGrad(const Op& norm_grad) const;
  // Whether what the relu makes is pooled and read by nothing else.
  bool IsPooled(OpId relu) const;
  // The gradient of pooling of which the norm's is made; else invalid.
  OpId PoolGradOf(const Op& norm_grad) const;
  // Whether memory.compress names what the op makes.
  bool MayBeCompressed(OpId op) const {
    return op.valid() && compress_.bits() > 0 &&
           (compress_.values().empty() ||
            IsNamedBy(compress_.values(), block_, block_.op(op)));
  }

  const Block& block_;
  const HeldValues& held_;
  const PatternSet& patterns_;
  const proto::Compress& compress_;
  absl::flat_hash_set<OpId> split_;
};

std::vector<OpId> Weigher::GradientsOf(const Op& norm) const {
  const ValueId mean = norm.out(norm.schema->FindOutput("BatchMean"));
  std::vector<OpId> gradients;
  for (const Use& use : block_.value(mean).uses) {
    if (IsOp(block_, use.op, "batch_norm_grad") ||
        IsOp(block_, use.op, "sync_batch_norm_grad")) {
      gradients.push_back(use.op);
    }
  }
  return gradients;
}

OpId Weigher::OnlyReader(ValueId value) const {
  const auto& uses = block_.value(value).uses;
  return uses.size() == 1 && !held_.Has(value) ? uses[0].op : OpId();
}

bool Weigher::IsFollowedBySplitNorm(ValueId image) const {
  for (const Use& use : block_.value(image).uses) {
    if (split_.contains(use.op)) return true;
  }
  return false;
}

bool Weigher::IsMadeOf(OpId grad, OpId relu_grad) const {
  return grad.valid() && IsOp(block_, relu_grad, "relu_grad") &&
         InputOf(block_.op(grad), "YGrad") == block_.op(relu_grad).out(0);
}

bool Weigher::IsConvGradNorm(OpId relu_grad, OpId grad) const {
  if (!IsMadeOf(grad, relu_grad)) return false;
  const Op& op = block_.op(relu_grad);
  return patterns_.HasFor(
      "conv_grad_norm", "conv", "OutputGrad", block_,
      OnlyFor(block_, relu_grad, InputOf(op, "OutGrad"), held_.function()),
      held_);
}

bool Weigher::IsConvGradAdded(const Op& relu_grad) const {
  const auto takes = [&](OpId reader, ValueId value) {
    const OpId conv = OnlyFor(block_, reader, value, held_.function());
    return conv.valid() && patterns_.HasFor("conv_grad_add_norm", "conv",
                                            "OutputGrad", block_, conv, held_);
  };
  const ValueId gradient = InputOf(relu_grad, "OutGrad");
  const OpId parts = OnlyFor(block_, relu_grad.id, gradient, held_.function());
  if (!IsOp(block_, parts, "sum")) return takes(relu_grad.id, gradient);
  const auto all = block_.op(parts).inputs.all();
  return all.size() == 2 && (takes(parts, all[0]) || takes(parts, all[1]));
}

OpId Weigher::BlockMask(ValueId y, OpId grad) const {
  if (!grad.valid()) return OpId();
  const OpId add = OnlyReader(y);
  if (!IsOp(block_, add, "elementwise_add")) return OpId();
  const Op& sum = block_.op(add);
  const OpId relu = OnlyReader(sum.out(0));
  if (block_.type_id(sum.in(0)) != block_.type_id(sum.in(1)) ||
      !IsOp(block_, relu, "relu") || MayBeCompressed(relu)) {
    return OpId();
  }
  for (const Use& use : block_.value(block_.op(relu).out(0)).uses) {
    if (IsMadeOf(grad, use.op) && IsConvGradAdded(block_.op(use.op))) {
      return use.op;
    }
  }
  return OpId();
}

bool Weigher::TakesNorm(const Use& use, OpId grad) const {
  const Op& op = block_.op(use.op);
  const auto reads = [&](absl::string_view slot) {
    return op.inputs.SlotOf(use.position) == op.schema->FindInput(slot);
  };
  if (patterns_.HasFor("norm_conv_stats", "conv", "Input", block_, use.op,
                       held_)) {
    return reads("Input") && IsFollowedBySplitNorm(op.out(0));
  }
  if (patterns_.HasFor("norm_conv_grad_filter", "conv", "Input", block_, use.op,
                       held_)) {
    return reads("Input");
  }
  return IsConvGradNorm(use.op, grad) && reads("Out");
}

bool Weigher::IsRecomputed(const Op& relu, OpId grad) const {
  bool any = false;
  for (const Use& use : block_.value(relu.out(0)).uses) {
    const Op& op = block_.op(use.op);
    if (op.role == relu.role) continue;
    any = true;
    const auto reads = [&](absl::string_view slot) {
      return op.inputs.SlotOf(use.position) == op.schema->FindInput(slot);
    };
    if (patterns_.HasFor("recompute_conv_grad_filter", "conv", "Input", block_,
                         use.op, held_)) {
      if (!reads("Input")) return false;
    } else if (!IsMadeOf(grad, use.op) || !reads("Out") ||
               !patterns_.HasFor("recompute_relu_grad_norm", "mask", "Out",
                                 block_, use.op, held_)) {
      return false;
    }
  }
  return any;
}

// As norm_elementwise matches it.
bool Weigher::IsElementwise(ValueId y) const {
  const OpId reader = OnlyReader(y);
  if (!reader.valid() || !patterns_.Has("norm_elementwise", block_.type(y))) {
    return false;
  }
  const Op& op = block_.op(reader);
  if (IsOp(block_, reader, "relu")) return true;
  if (!IsOp(block_, reader, "elementwise_add")) return false;
  return block_.type_id(op.in(0)) == block_.type_id(op.in(1));
}

// As relu_grad_norm matches it.
bool Weigher::IsBehindReluGrad(const Op& norm_grad) const {
  const ValueId gradient = InputOf(norm_grad, "YGrad");
  const ValueId x = InputOf(norm_grad, "X");
  return x != gradient && block_.type_id(x) == block_.type_id(gradient) &&
         patterns_.HasFor("relu_grad_norm", "mask", "Out", block_,
                          block_.value(gradient).op(), held_);
}

bool Weigher::IsPooled(OpId relu) const {
  if (!IsOp(block_, relu, "relu")) return false;
  const OpId pool = OnlyReader(block_.op(relu).out(0));
  return pool.valid() &&
         patterns_.HasFor("norm_max_pool", "pool", "X", block_, pool, held_);
}

OpId Weigher::PoolGradOf(const Op& norm_grad) const {
  const ValueId gradient = InputOf(norm_grad, "YGrad");
  const OpId pool = block_.value(gradient).op();
  const bool alone = OnlyReader(gradient).valid();
  return alone && pool.valid() &&
                 patterns_.HasFor("max_pool_grad_norm", "pool", "OutGrad",
                                  block_, pool, held_)
             ? pool
             : OpId();
}

WeighedNorm Weigher::Weigh(OpId id) {
  const Op& op = block_.op(id);
  const ValueId x = InputOf(op, "X"), y = op.out(op.schema->FindOutput("Y"));
  WeighedNorm norm;
  norm.norm = id;
  norm.other_grads = GradientsOf(op);
  if (!norm.other_grads.empty()) {
    norm.grad = norm.other_grads.front();
    norm.other_grads.erase(norm.other_grads.begin());
  }
  int64_t passes = 0;
  if (patterns_.HasFor("conv_stats", "conv", "Input", block_,
                       block_.value(x).op(), held_)) {
    passes += 1;
  }
  const OpId relu = OnlyReader(y);
  const bool kept =
      MayBeCompressed(block_.value(x).op()) || MayBeCompressed(relu);
  bool all = !kept && IsOp(block_, relu, "relu") &&
             !held_.Has(block_.op(relu).out(0)) &&
             !block_.value(block_.op(relu).out(0)).uses.empty();
  if (all) {
    for (const Use& use : block_.value(block_.op(relu).out(0)).uses) {
      all = all && TakesNorm(use, norm.grad);
    }
  }
  if (all) {
    norm.relu = relu;
    passes += 4;
    for (const Use& use : block_.value(block_.op(relu).out(0)).uses) {
      if (IsOp(block_, use.op, "relu_grad")) passes += 4;
    }
  } else {
    if (IsPooled(relu)) {
      passes += 4;
    } else if (IsElementwise(y)) {
      passes += 2;
    }
    if (norm.grad.valid()) norm.pool_grad = PoolGradOf(block_.op(norm.grad));
    if (norm.pool_grad.valid()) passes += 2;
    if (!kept) norm.block_mask = BlockMask(y, norm.grad);
    if (norm.block_mask.valid()) passes += 1;
    if (norm.grad.valid() && IsBehindReluGrad(block_.op(norm.grad))) {
      passes += 1;
    }
    if (!kept && IsOp(block_, relu, "relu") &&
        !held_.Has(block_.op(relu).out(0)) &&
        IsRecomputed(block_.op(relu), norm.grad)) {
      norm.relu = relu;
      norm.kept_for_forward = true;
      passes += 1;
    }
  }
  const TensorType& type = block_.type(x);
  const int64_t vectors =
      kVectors * SizeOf(DType::kF32) * type.dims[1].coefficient();
  norm.saved =
      passes * type.Elements().coefficient() * SizeOf(type.dtype) - vectors;
  return norm;
}

}  // namespace

std::vector<WeighedNorm> WeighBatchNorms(const Block& block,
                                         const HeldValues& held,
                                         const PatternSet& patterns,
                                         const proto::Compress& compress) {
  return Weigher(block, held, patterns, compress).Run();
}

}  // namespace passes
}  // namespace halftone
