// Ops of ours as nodes of ONNX: a table per family. The other direction is
// graph/import/onnx_ops.h; what is the same in both, graph/import/onnx_same.h.
#ifndef HALFTONE_GRAPH_EXPORT_ONNX_RULES_H_
#define HALFTONE_GRAPH_EXPORT_ONNX_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/export/onnx_op.h"

namespace halftone {
namespace onnx_export {

struct Rule {
  absl::string_view ours;
  void (*convert)(SourceOp& op, const Rule& rule);
  absl::string_view onnx = "";  // what `convert` makes of it, if it asks
};

const std::vector<Rule>& ElementwiseRules();
const std::vector<Rule>& MoveRules();
const std::vector<Rule>& LayerRules();
const std::vector<Rule>& NormRules();
const std::vector<Rule>& ReductionRules();
const std::vector<Rule>& SequenceRules();
const std::vector<Rule>& WindowRules();

// Null: ONNX has nothing like it.
const Rule* FindRule(absl::string_view ours);

// ---- For the families.

// The op's input `slot`, in f32 if it is in 16 bits: for what computes in f32
// and rounds once, as ours does.
std::string Wide(SourceOp& op, absl::string_view slot);
// The op's output, from what was computed so.
void FromWide(SourceOp& op, const std::string& wide, absl::string_view slot);

}  // namespace onnx_export
}  // namespace halftone

#endif  // HALFTONE_GRAPH_EXPORT_ONNX_RULES_H_
