#include "kernels/fused_op.h"

#include <vector>

#include "graph/base/check.h"

namespace halftone {
namespace kernels {
namespace {

const FusionPattern& PatternOf(const BoundOp& fusion) {
  const FusionPattern* pattern = FindFusionPattern(fusion.Str("pattern"));
  HT_CHECK(pattern != nullptr, "a fusion has a pattern that there is");
  return *pattern;
}

}  // namespace

FusedOp::FusedOp(const BoundOp& fusion)
    : fusion_(fusion),
      pattern_(PatternOf(fusion)),
      group_(pattern_.MatchBody(body())) {
  HT_CHECK(!group_.ops().empty(), "a fusion's body is its pattern's");
}

BoundOp FusedOp::Of(absl::string_view role) const {
  return BoundOp(body(), body().op(group_.Of(role)), fusion_.symbols(),
                 fusion_.context());
}

int ArgumentPosition(const Block& body, ValueId value) {
  const std::vector<ValueId> arguments = body.Feeds();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == value) return static_cast<int>(i);
  }
  return -1;
}

int ArgumentPosition(const BoundOp& body_op, absl::string_view slot) {
  const int input = body_op.InputIndex(slot);
  if (input < 0) return -1;
  return ArgumentPosition(body_op.block(), body_op.op().inputs.all()[input]);
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

}  // namespace kernels
}  // namespace halftone
