#include "runtime/profile/hints.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

// An op that multiplies, and where it stands; null: there is none.
struct Product {
  const Block* block = nullptr;
  const Op* op = nullptr;
};
Product ProductOf(const Block& block, const Op& op) {
  if (op.body == nullptr) {
    return op.schema->flops() == nullptr ? Product() : Product{&block, &op};
  }
  for (OpId id : op.body->ops()) {
    const Product inside = ProductOf(*op.body, op.body->op(id));
    if (inside.op != nullptr) return inside;
  }
  return {};
}

std::string WhyF32(const Op& product) {
  const Reason reason = product.decision.reason;
  const std::string type = product.schema->name();
  switch (reason) {
    case Reason::kBlackList:
    case Reason::kUnlisted:
      return absl::StrCat("in f32 by ", Name(reason), ": --white ", type);
    case Reason::kUserBlack:
    case Reason::kBlackVarname:
    case Reason::kFp32Scope:
      return absl::StrCat("in f32 by ", Name(reason),
                          ": the strategy's choice");
    case Reason::kGrayF32Input:
      return absl::StrCat("in f32 by ", Name(reason), " of its inputs");
    default:
      return "";
  }
}

// "3 channels: no multiple of 8"; empty: they are one.
std::string Ragged(const Product& product, int multiple,
                   const SymbolValues& symbols) {
  for (ValueId value : {product.op->in(0), product.op->out(0)}) {
    const Dims& dims = product.block->type(value).dims;
    if (dims.size() < 2) continue;
    const bool image = dims.size() == 4;
    const int64_t count = (image ? dims[1] : dims.back()).Evaluate(symbols);
    if (count % multiple == 0) continue;
    return absl::StrCat(count, image ? " channels" : " columns",
                        ": no multiple of ", multiple);
  }
  return "";
}

}  // namespace

Hints::Hints(const Plan& plan, const Target& target)
    : plan_(plan), target_(target) {
  for (const InlinedFusion& fusion : plan.inlined) {
    inlined_[fusion.body] = &fusion;
  }
}

std::string Hints::For(const Step& step, std::optional<Bound> bound) const {
  if (step.kind != Step::Kind::kKernel) return "";
  const Op& op = step.block->op(step.op);
  const auto inlined = inlined_.find(step.block);
  if (inlined != inlined_.end()) {
    const InlinedFusion& fusion = *inlined->second;
    return absl::StrCat("of ", fusion.name, ", which no ", fusion.pattern,
                        " kernel takes", fusion.refusal.empty() ? "" : ": ",
                        fusion.refusal);
  }
  if (step.candidate->name == "reference") {
    return "plain loops: no faster kernel takes these types and shapes";
  }
  const Product product = ProductOf(*step.block, op);
  if (product.op != nullptr) {
    const bool low = IsLow(product.block->dtype(product.op->in(0)));
    if (!low) return WhyF32(*product.op);
    return Ragged(product, target_.channel_multiple, plan_.symbols);
  }
  if (bound == Bound::kLaunch) return "too small for a launch: a larger batch";
  if (bound == Bound::kBytes && op.body == nullptr &&
      op.schema->element_wise()) {
    return "moves memory for itself alone: in no fusion";
  }
  return "";
}

}  // namespace runtime
}  // namespace halftone
