// Sequences of tensors whose length is known: lists of values, no ops.
#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

void Construct(OnnxNode& node, const Rule&) {
  std::vector<std::string> values;
  for (int i = 0; i < node.inputs(); ++i) values.push_back(node.In(i));
  if (values.empty()) return node.Refuse("a sequence of nothing");
  node.SequenceOf(std::move(values));
}

// Parts of one size, the last of what is left; of a size each; of 1.
void SplitToSequence(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  const bool keeps = node.Int("keepdims", 1) != 0;
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int64_t axis =
      node.Axis(node.Int("axis", 0), static_cast<int>(dims.size()));
  const OnnxConstant* const split = node.Known(1);
  IntList sections = node.Has(1) ? node.KnownInts(1) : IntList{1};
  if (node.failed()) return;
  if (!dims[axis].is_constant()) return node.Refuse("parts of the batch");
  const int64_t all = dims[axis].coefficient();
  if (split == nullptr || split->dims.empty()) {
    const int64_t each = sections.empty() ? 0 : sections[0];
    constexpr int64_t kMost = 1 << 16;
    if (each < 1 || all / each > kMost) return node.Refuse("parts of size 0");
    sections.assign((all + each - 1) / each, each);
    if (all % each != 0) sections.back() = all % each;
  }
  if (sections.empty()) return node.Refuse("a sequence of nothing");
  std::vector<std::string> parts = {x};
  if (sections.size() > 1) {
    parts = node.Op("split")
                .In("X", x)
                .Attr("axis", axis)
                .Attr("sections", sections)
                .MadeList("Out", static_cast<int64_t>(sections.size()));
  }
  if (!node.Has(1) && !keeps) {
    Dims without(dims);
    without.erase(without.begin() + axis);
    for (std::string& part : parts) part = node.Reshaped(part, without);
  }
  node.SequenceOf(std::move(parts));
}

void At(OnnxNode& node, const Rule&) {
  const std::vector<std::string>* const values = node.Sequence(0);
  const int64_t at = node.KnownInt(1, 0);
  if (node.failed()) return;
  const auto size = static_cast<int64_t>(values->size());
  if (at < -size || at >= size) return node.Refuse("a place beyond its end");
  node.Same(0, (*values)[at < 0 ? at + size : at]);
}

void ConcatFromSequence(OnnxNode& node, const Rule&) {
  const std::vector<std::string>* const values = node.Sequence(0);
  const bool stacks = node.Int("new_axis", 0) != 0;
  if (node.failed()) return;
  OnnxOp op = node.Op(stacks ? "stack" : "concat");
  for (const std::string& value : *values) op.In("X", value);
  const int rank = node.TypeOf(values->front()).rank() + (stacks ? 1 : 0);
  op.Attr("axis", node.Axis(node.Int("axis", 0), rank));
  op.Out(stacks ? "Y" : "Out");
}

}  // namespace

const std::vector<OnnxRule>& OnnxSequenceRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"ConcatFromSequence", ConcatFromSequence},
      {"SequenceAt", At},
      {"SequenceConstruct", Construct},
      {"SplitToSequence", SplitToSequence},
  };
  return rules;
}

}  // namespace halftone
