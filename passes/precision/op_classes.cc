#include "passes/precision/op_classes.h"

#include <algorithm>

#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

// Aliases that for Paddle are ops of their own: a list that has the one need
// not have the other. flatten is its flatten_contiguous_range. The schemas of
// these keep what the model wrote.
constexpr absl::string_view kListedApart[] = {"flatten2", "top_k_v2"};
constexpr absl::string_view kWrittenAs = "written_as";

bool IsListedApart(absl::string_view name) {
  return std::find(std::begin(kListedApart), std::end(kListedApart), name) !=
         std::end(kListedApart);
}

// The name under which lists hold an op; empty: not an op of ours.
std::string ListedName(absl::string_view name) {
  if (IsListedApart(name)) return std::string(name);
  const OpSchema* schema = Ops().Find(name);
  return schema == nullptr ? "" : schema->name();
}

const std::string& ListedName(const Op& op) {
  if (op.schema->FindAttr(kWrittenAs) >= 0) {
    const std::string& name = AttrAs<std::string>(op, kWrittenAs);
    if (IsListedApart(name)) return name;
  }
  return op.schema->name();
}

}  // namespace

ListedClasses::ListedClasses(const proto::OpLists& lists) {
  Add(lists.black(), AmpClass::kBlack);
  Add(lists.white(), AmpClass::kWhite);
  Add(lists.gray(), AmpClass::kGray);
  Add(lists.clear(), AmpClass::kClear);
}

void ListedClasses::Add(
    const google::protobuf::RepeatedPtrField<std::string>& names,
    AmpClass amp_class) {
  for (const std::string& name : names) {
    const std::string listed = ListedName(name);
    if (!listed.empty()) listed_.try_emplace(listed, amp_class);
  }
}

std::optional<AmpClass> ListedClasses::Find(const std::string& name) const {
  const auto it = listed_.find(name);
  if (it == listed_.end()) return std::nullopt;
  return it->second;
}

std::optional<AmpClass> ListedClasses::Of(const Op& op) const {
  return Find(ListedName(op));
}

std::optional<AmpClass> ListedClasses::Of(const OpSchema& schema) const {
  return Find(schema.name());
}

OpClasses::OpClasses(const Options& options)
    : given_(!options.strategy.amp().op_lists().empty()),
      unlisted_(UnlistedOf(options)),
      listed_(options.op_lists) {}

AmpClass OpClasses::Of(const Op& op) const {
  return given_ ? listed_.Of(op).value_or(unlisted_) : op.schema->amp(op);
}

bool OpClasses::Unlisted(const Op& op) const {
  return given_ && !listed_.Of(op).has_value();
}

}  // namespace passes
}  // namespace halftone
