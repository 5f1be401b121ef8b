#include "passes/lower/kernel_key.h"

#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {

bool IsCollective(const Op& op) {
  return op.schema == Ops().Find("all_reduce") ||
         op.schema == Ops().Find("broadcast");
}

Layout LeadLayout(const Block& block, const Op& op) {
  for (const SlotValues* values : {&op.inputs, &op.outputs}) {
    if (!values->all().empty()) return block.type(values->all()[0]).layout;
  }
  return Layout::kRowMajor;
}

bool HasKernel(const KernelSet& kernels, const Block& block, const Op& op) {
  return HasKernel(kernels, block, op, TypeBinding(block, op));
}

bool HasKernel(const KernelSet& kernels, const Block& block, const Op& op,
               absl::Span<const DType> binding) {
  if (IsCollective(op)) return true;
  return kernels.Has(op.schema->name(), binding, LeadLayout(block, op));
}

std::string KernelKey(const Block& block, const Op& op) {
  return KernelSet::Key(op.schema->name(), TypeBinding(block, op),
                        LeadLayout(block, op));
}

}  // namespace passes
}  // namespace halftone
