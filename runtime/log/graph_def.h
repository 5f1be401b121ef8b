// A program as a tensorflow.GraphDef, which TensorBoard draws.
#ifndef HALFTONE_RUNTIME_LOG_GRAPH_DEF_H_
#define HALFTONE_RUNTIME_LOG_GRAPH_DEF_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace halftone {
namespace runtime {

struct GraphNode {
  struct Output {
    std::string dtype;          // "f16"
    std::vector<int64_t> dims;  // -1: not the same in each step
  };
  // By position in the graph, and which of its outputs.
  struct Input {
    int node = 0, output = 0;
  };
  std::string name;  // slashes make scopes
  std::string op;    // its type
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<std::pair<std::string, std::string>> attributes;
};

// The bytes of the message. Each name is there once and in TensorFlow's
// characters (letters, digits and ._-/\, the first a letter, a digit or a dot):
// others become _, and what begins with @ lies in the scope "step".
std::string GraphDef(absl::Span<const GraphNode> nodes);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_GRAPH_DEF_H_
