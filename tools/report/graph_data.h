// A compiled model's graph as data: for pages that draw it and for DOT.
#ifndef HALFTONE_TOOLS_REPORT_GRAPH_DATA_H_
#define HALFTONE_TOOLS_REPORT_GRAPH_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// What became of something between two programs.
enum class GraphChange : uint8_t {
  kNone,
  kPrecision,  // of an op
  kReason,     // its type, or why it has its precision
  kAdded,
  kRemoved,
};

// What an op reads, casts looked through: they are marks on edges.
struct GraphEdge {
  int from = -1;      // index of the op that makes it; -1: a feed or cell
  std::string value;  // before its cast
  int cast = -1;  // index of the cast between, as CompiledModel::casts has it
  GraphChange change = GraphChange::kNone;
};
struct GraphOp {
  const proto::OpRow* row = nullptr;
  // Of a backward op: the forward op that it is the gradient of; -1: none.
  int of = -1;
  std::vector<GraphEdge> inputs;
  GraphChange change = GraphChange::kNone;
  const proto::OpRow* was = nullptr;  // where it changed
};
struct GraphCast {
  const proto::CastRow* row = nullptr;
  GraphChange change = GraphChange::kNone;
};
// As insertion left it, in program order. As long as the facts' model lives.
struct GraphData {
  std::vector<GraphOp> ops;
  std::vector<GraphCast> casts;
};
GraphData GraphOf(const ModelFacts& facts);

// Both graphs as one: ops by name, in the order of `after`, those that it lacks
// behind what they follow in `before`; an edge or cast that only one of them
// has is there with its change.
GraphData MergedGraph(const GraphData& before, const GraphData& after);

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
//   collectives: [name, what, dtype, bytes per sample or in all, what is sent]
//     each, as the finished program has them
//   rules: the rule behind each reason
nlohmann::json GraphJson(const ModelFacts& facts);
// The same of a merged graph, for `diff --html`. An op has two members more:
// its change ("precision", "reason", "added", "removed" or "", by number) and
// what it was; an input that changed has a third member, or null and it; a cast
// one more. `before_file`: where the lines of removed ops are.
nlohmann::json GraphDiffJson(const GraphData& merged, const ModelFacts& before,
                             const ModelFacts& after);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_GRAPH_DATA_H_
