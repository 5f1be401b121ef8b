#include "runtime/train/program_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/ir/decision.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

class Drawing {
 public:
  explicit Drawing(const Block& block)
      : block_(block), places_(block.value_limit()) {}

  GraphEvent Draw() {
    for (int i = 0; i < block_.value_limit(); ++i) {
      const Value& value = block_.value(ValueId(i));
      if (value.erased || value.op().valid()) continue;
      const char* op = value.definition == Definition::kFeed   ? "feed"
                       : value.definition == Definition::kCell ? "cell"
                                                               : "constant";
      GraphNode& node = NewNode(std::string(block_.name(value.id)), op);
      AddOutput(value.id, 0, &node);
    }
    for (const OpId id : block_.ops()) Add(block_.op(id));
    return std::move(graph_);
  }

 private:
  GraphNode& NewNode(std::string name, std::string op) {
    GraphNode& node = graph_.nodes.emplace_back();
    node.name = std::move(name);
    node.op = std::move(op);
    return node;
  }

  void AddOutput(ValueId value, int output, GraphNode* node) {
    places_[value.index()] = {static_cast<int>(graph_.nodes.size()) - 1,
                              output};
    const TensorType& type = block_.type(value);
    GraphNode::Output& drawn = node->outputs.emplace_back();
    drawn.dtype = std::string(Name(type.dtype));
    for (const Dim& dim : type.dims) {
      drawn.dims.push_back(dim.is_constant() ? dim.coefficient() : -1);
    }
  }

  void Add(const Op& op) {
    const bool fused = op.body != nullptr;
    GraphNode& node = NewNode(std::string(block_.name(op)),
                              fused ? AttrAs<std::string>(op, "pattern")
                                    : std::string(op.schema->name()));
    for (const ValueId input : op.inputs.all()) {
      node.inputs.push_back(places_[input.index()]);
    }
    int output = 0;
    for (const ValueId value : op.outputs.all()) {
      AddOutput(value, output++, &node);
    }
    node.attributes = {{"precision", std::string(Name(op.decision.precision))},
                       {"role", std::string(Name(op.role))}};
  }

  const Block& block_;
  std::vector<GraphNode::Input> places_;  // by value
  GraphEvent graph_;
};

}  // namespace

GraphEvent GraphOf(const Program& program) {
  const Entry* train = program.FindEntry(kTrainEntry);
  return train == nullptr ? GraphEvent() : Drawing(train->block()).Draw();
}

}  // namespace runtime
}  // namespace halftone
