// Recurrent layers of Paddle's: rnn, and the first states of zeros that its
// layers make, whose shape is that of the batch at run time.
#include "graph/import/paddle_attrs.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using paddle::OpDesc;

constexpr char kStates[] = "PreState";

bool AsksForItsShape(const OpDesc& op) {
  return !InputsOf(op, "ShapeTensor").empty() ||
         !InputsOf(op, "ShapeTensorList").empty();
}

bool IsZeros(const OpDesc* op) {
  return op != nullptr && op->type() == "fill_constant" &&
         InputsOf(*op, "ValueTensor").empty() &&
         FloatAttr(*op, "value", 0) == 0;
}

}  // namespace

void Filled(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  const auto& out = OutputsOf(op, "Out");
  if (AsksForItsShape(op) && IsZeros(&op) && !out.empty() &&
      scope.IsReadOnlyBy(out[0], "rnn", kStates)) {
    scope.Write(out[0]);  // Recurrent leaves it out
    return;
  }
  const bool by_shape = !InputsOf(op, "ShapeTensorList").empty() ||
                        !InputsOf(op, "ShapeTensor").empty();
  (by_shape ? FilledByShape : ByName)(op, rule, scope, result);
}

// Without states they begin at 0.
void Recurrent(const OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result) {
  OpDesc without = op;
  bool zeros = true;
  for (const std::string& state : InputsOf(op, kStates)) {
    zeros = zeros && IsZeros(scope.Writer(state));
  }
  for (OpDesc::Var& in : *without.mutable_inputs()) {
    if (zeros && in.parameter() == kStates) in.clear_arguments();
  }
  ByName(without, rule, scope, result);
}

}  // namespace halftone
