#include "passes/precision/op_classes.h"

#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

// Paddle's flatten2 is another op than the one (flatten_contiguous_range) that
// our flatten stands for: a list that has the one does not have the other.
constexpr absl::string_view kAnotherOp = "flatten2";

}  // namespace

OpClasses::OpClasses(const OpLists& lists)
    : given_(lists.given), unlisted_(lists.unlisted) {
  if (!given_) return;
  Add(lists.black, AmpClass::kBlack);
  Add(lists.white, AmpClass::kWhite);
  Add(lists.gray, AmpClass::kGray);
  Add(lists.clear, AmpClass::kClear);
}

void OpClasses::Add(const std::vector<std::string>& names, AmpClass amp_class) {
  for (const std::string& name : names) {
    const OpSchema* schema = name == kAnotherOp ? nullptr : Ops().Find(name);
    if (schema != nullptr) listed_.try_emplace(schema, amp_class);
  }
}

AmpClass OpClasses::Of(const Op& op) const {
  if (!given_) return op.schema->amp(op);
  const auto it = listed_.find(op.schema);
  return it == listed_.end() ? unlisted_ : it->second;
}

bool OpClasses::Unlisted(const Op& op) const {
  return given_ && !listed_.contains(op.schema);
}

}  // namespace passes
}  // namespace halftone
