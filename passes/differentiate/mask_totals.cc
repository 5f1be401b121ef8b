#include "passes/differentiate/mask_totals.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

// What a value is made of.
enum class Source : uint8_t { kNothing, kMask, kOther };

// By value id: the feeds that the mask is made of.
std::vector<bool> FeedsOf(const Block& block, ValueId mask) {
  std::vector<bool> seen(block.value_limit());
  std::vector<bool> feeds(block.value_limit());
  std::vector<ValueId> stack = {mask};
  while (!stack.empty()) {
    const Value& value = block.value(stack.back());
    stack.pop_back();
    if (seen[value.id.index()]) continue;
    seen[value.id.index()] = true;
    feeds[value.id.index()] = value.definition == Definition::kFeed;
    if (!value.op().valid()) continue;
    for (ValueId input : block.op(value.op()).inputs.all()) {
      stack.push_back(input);
    }
  }
  return feeds;
}

class Finder {
 public:
  Finder(const Block& block, const std::vector<bool>& needed, ValueId mask)
      : block_(block),
        needed_(needed),
        feeds_(FeedsOf(block, mask)),
        sources_(block.value_limit(), Source::kNothing),
        within_(block.value_limit()),
        leaves_(block.value_limit()) {}

  std::vector<bool> Run() {
    for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
      if (block_.op(id).role == Role::kForward) Visit(block_.op(id));
    }
    return std::move(leaves_);
  }

 private:
  Source SourceOf(ValueId id) const {
    if (needed_[id.index()]) return Source::kOther;
    if (block_.value(id).definition != Definition::kFeed) {
      return sources_[id.index()];
    }
    return feeds_[id.index()] ? Source::kMask : Source::kOther;
  }
  bool IsTotal(ValueId id) const {
    return sources_[id.index()] == Source::kMask &&
           block_.type(id).Elements().is_constant();
  }
  void Visit(const Op& op) {
    Source source = Source::kNothing;
    bool within = false;
    for (ValueId input : op.inputs.all()) {
      source = std::max(source, SourceOf(input));
      within |= within_[input.index()] || IsTotal(input);
    }
    for (ValueId output : op.outputs.all()) {
      sources_[output.index()] = source;
      within_[output.index()] = within;
    }
    if (!within) return;
    for (ValueId input : op.inputs.all()) {
      leaves_[input.index()] =
          needed_[input.index()] && !within_[input.index()];
    }
  }

  const Block& block_;
  const std::vector<bool>& needed_;
  const std::vector<bool> feeds_;
  // By value id.
  std::vector<Source> sources_;
  std::vector<bool> within_;  // made of a total and more
  std::vector<bool> leaves_;
};

}  // namespace

std::vector<bool> LeavesMaskTotals(const Program& program, const Block& block,
                                   const std::vector<bool>& needed) {
  const ValueId mask = program.loss.mask.empty()
                           ? ValueId()
                           : block.FindValue(program.loss.mask);
  if (!mask.valid()) return std::vector<bool>(block.value_limit());
  return Finder(block, needed, mask).Run();
}

}  // namespace passes
}  // namespace halftone
