#include "kernels/fused_op.h"

#include <vector>

#include "graph/base/check.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/ir/block.h"

namespace halftone {
namespace kernels {
namespace {

const FusionPattern& PatternOf(const BoundOp& fusion) {
  const FusionPattern* pattern = FindFusionPattern(fusion.Str("pattern"));
  HT_CHECK(pattern != nullptr, "a fusion has a pattern that there is");
  return *pattern;
}

int ArgumentPosition(const Block& body, ValueId value) {
  const std::vector<ValueId> arguments = body.Feeds();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == value) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

FusedOp::FusedOp(const BoundOp& fusion)
    : fusion_(fusion),
      pattern_(PatternOf(fusion)),
      group_(std::make_shared<FusionGroup>(pattern_.MatchBody(body()))) {
  HT_CHECK(!group_->ops().empty(), "a fusion's body is its pattern's");
}

const std::string& FusedOp::pattern() const { return pattern_.name(); }

const Block& FusedOp::body() const { return *fusion_.op().body; }

const TensorType& FusedOp::key() const {
  return pattern_.KeyType(body(), *group_);
}

bool FusedOp::Has(absl::string_view role) const { return group_->Has(role); }

BoundOp FusedOp::Of(absl::string_view role) const {
  return BoundOp(body(), body().op(group_->Of(role)), fusion_.symbols(),
                 fusion_.context());
}

int ArgumentPosition(const BoundOp& body_op, absl::string_view slot,
                     int index) {
  const int input = body_op.InputIndex(slot);
  if (input < 0) return -1;
  return ArgumentPosition(body_op.block(),
                          body_op.op().inputs.all()[input + index]);
}

int ResultPosition(const BoundOp& body_op, absl::string_view slot) {
  const int output = body_op.OutputIndex(slot);
  const std::vector<ValueId>& results = body_op.block().body_results();
  for (size_t i = 0; output >= 0 && i < results.size(); ++i) {
    if (results[i] == body_op.op().outputs.all()[output]) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool Reads(const BoundOp& body_op, absl::string_view slot,
           const BoundOp& maker) {
  const int input = body_op.InputIndex(slot);
  return input >= 0 && body_op.op().inputs.all()[input] == maker.op().out(0);
}

std::vector<BodyOp> BodyOps(const BoundOp& fusion) {
  const Block& body = *fusion.op().body;
  std::vector<int> place(body.value_limit(), -1);
  int next = 0;
  for (ValueId argument : body.Feeds()) place[argument.index()] = next++;
  std::vector<BodyOp> ops;
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    const Op& op = body.op(id);
    ops.push_back({BoundOp(body, op, fusion.symbols(), fusion.context()), {}});
    for (ValueId v : op.inputs.all()) {
      ops.back().reads.push_back(place[v.index()]);
    }
    place[op.outputs.all()[0].index()] = next++;
  }
  return ops;
}

}  // namespace kernels
}  // namespace halftone
