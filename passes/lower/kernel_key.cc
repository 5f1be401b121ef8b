#include "passes/lower/kernel_key.h"

#include <algorithm>
#include <iterator>

#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

// More dtypes than that do not fit.
constexpr size_t kMostPacked = 15;

uint64_t Packed(Layout layout, absl::Span<const DType> dtypes) {
  static_assert(static_cast<int>(DType::kBool) < 16, "a dtype has 4 bits");
  uint64_t packed = static_cast<uint64_t>(layout);
  for (DType dtype : dtypes) {
    packed = packed << 4 | static_cast<uint64_t>(dtype);
  }
  return packed;
}

}  // namespace

bool IsCollective(const Op& op) {
  constexpr absl::string_view kCollectives[] = {
      "all_reduce", "broadcast", "reduce_scatter", "all_gather", "take_shard"};
  return std::find(std::begin(kCollectives), std::end(kCollectives),
                   op.schema->name()) != std::end(kCollectives);
}

Layout LeadLayout(const Block& block, const Op& op) {
  for (const SlotValues* values : {&op.inputs, &op.outputs}) {
    if (!values->all().empty()) return block.type(values->all()[0]).layout;
  }
  return Layout::kRowMajor;
}

bool KernelLookup::Has(const Block& block, const Op& op) {
  return Has(block, op, TypeBinding(block, op));
}

bool KernelLookup::Has(const Block& block, const Op& op,
                       absl::Span<const DType> binding) {
  const Layout layout = LeadLayout(block, op);
  const auto ask = [&] {
    return IsCollective(op) || kernels_.Has(op.schema->name(), binding, layout);
  };
  if (binding.size() > kMostPacked) return ask();
  const auto [it, fresh] =
      known_.try_emplace({op.schema, Packed(layout, binding)}, false);
  if (fresh) it->second = ask();
  return it->second;
}

bool KernelLookup::HasPattern(const FusionPattern& pattern,
                              const TensorType& key) {
  const auto [it, fresh] =
      known_.try_emplace({&pattern, Packed(key.layout, {key.dtype})}, false);
  if (fresh) it->second = kernels_.HasPattern(pattern.name(), key);
  return it->second;
}

std::string KernelKey(const Block& block, const Op& op) {
  return KernelSet::Key(op.schema->name(), TypeBinding(block, op),
                        LeadLayout(block, op));
}

}  // namespace passes
}  // namespace halftone
