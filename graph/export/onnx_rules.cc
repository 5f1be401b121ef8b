#include "graph/export/onnx_rules.h"

#include <map>

namespace halftone {
namespace onnx_export {

const Rule* FindRule(absl::string_view ours) {
  static const auto& all = *[] {
    auto* rules = new std::map<absl::string_view, const Rule*>();
    for (const auto* family :
         {&ElementwiseRules(), &MoveRules(), &LayerRules(), &NormRules(),
          &ReductionRules(), &SequenceRules(), &WindowRules()}) {
      for (const Rule& rule : *family) (*rules)[rule.ours] = &rule;
    }
    return rules;
  }();
  const auto found = all.find(ours);
  return found == all.end() ? nullptr : found->second;
}

std::string Wide(SourceOp& op, absl::string_view slot) {
  const DType dtype = op.dtype(slot);
  return op.Cast(op.In(slot), dtype, IsLow(dtype) ? DType::kF32 : dtype);
}

void FromWide(SourceOp& op, const std::string& wide, absl::string_view slot) {
  const DType to = op.OutType(slot).dtype;
  if (!IsLow(to)) return op.Same(wide, slot);
  op.Node("Cast").In(wide).Attr("to", to).Out(slot);
}

}  // namespace onnx_export
}  // namespace halftone
