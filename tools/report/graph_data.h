// A compiled model's graph as data: for pages that draw it and for DOT.
#ifndef HALFTONE_TOOLS_REPORT_GRAPH_DATA_H_
#define HALFTONE_TOOLS_REPORT_GRAPH_DATA_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// What an op reads, casts looked through: they are marks on edges.
struct GraphEdge {
  int from = -1;      // index of the op that makes it; -1: a feed or cell
  std::string value;  // before its cast
  int cast = -1;  // index of the cast between, as CompiledModel::casts has it
};
struct GraphOp {
  const proto::OpRow* row = nullptr;
  // Of a backward op: the forward op that it is the gradient of; -1: none.
  int of = -1;
  std::vector<GraphEdge> inputs;
};
// As insertion left it, in program order. As long as the facts' model lives.
struct GraphData {
  std::vector<GraphOp> ops;
  std::vector<const proto::CastRow*> casts;
};
GraphData GraphOf(const ModelFacts& facts);

// The graph for Graphviz: ops as boxes in the colour of their precision, scopes
// as clusters, edges that carry a cast labelled with it and as wide as it has
// bytes. `scope`: a glob over names of ops; empty: all. Errors (kUsage): it
// matches nothing.
absl::StatusOr<std::string> GraphDot(const ModelFacts& facts,
                                     const std::string& scope);

// What the page of `inspect --html` draws, as one object:
//   strings: what others give as numbers: types, precisions, roles, reasons
//   ops: [name, type, precision, role, line, why, of, inputs, outputs] each;
//     inputs: [op, or a name, cast] each; outputs: [name, type] each
//   casts: [name, from, to, bytes per step, fate, why] each
//   buckets: [dtype, bytes, members] each
//   rules: the rule behind each reason
nlohmann::json GraphJson(const ModelFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_GRAPH_DATA_H_
