// What the evaluation of known values shares; for onnx_evaluate.cc and
// onnx_moves.cc alone.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_EVALUATE_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_EVALUATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/onnx_constant.h"

namespace halftone {
namespace onnx_evaluate {

using Ints = std::vector<int64_t>;
using Result = std::optional<OnnxConstant>;
using Inputs = std::vector<const OnnxConstant*>;

struct Rule {
  Result (*make)(const onnx::NodeProto& node, const Inputs& in);
  size_t needs;  // so many inputs have to be there
};
using Rules = std::map<absl::string_view, Rule>;

// Nodes that move elements and compute with none.
const Rules& Moves();

// The broadcast dims; nullopt: they do not go together.
std::optional<Ints> Broadcast(const Ints& a, const Ints& b);
// For each element of `dims`: which of `from`, each dim of which is repeated.
Ints Sources(const Ints& dims, const Ints& from);
// Those elements; nullopt: they are not as many as the dims say, or beyond x.
Result Take(const OnnxConstant& x, Ints dims, const Ints& sources);

int64_t IntOf(const onnx::NodeProto& node, absl::string_view name,
              int64_t otherwise);
// An attribute, or since opset 13 an input; nullopt: neither.
std::optional<Ints> AxesOf(const onnx::NodeProto& node, const Inputs& in,
                           absl::string_view name, size_t input);

}  // namespace onnx_evaluate
}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_EVALUATE_H_
