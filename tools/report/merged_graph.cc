// MergedGraph of graph_data.h.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tools/report/graph_data.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

using Positions = absl::flat_hash_map<std::string, int>;

Positions PositionsOf(const GraphData& graph) {
  Positions positions;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    positions.try_emplace(graph.ops[i].row->name(), static_cast<int>(i));
  }
  return positions;
}

// A cast is another one where it goes to another type.
std::string KeyOf(const proto::CastRow& cast) {
  return absl::StrCat(cast.name(), " ", cast.from(), " ", cast.to());
}

GraphChange ChangeOf(const proto::OpRow& was, const proto::OpRow& is) {
  if (was.precision() != is.precision()) return GraphChange::kPrecision;
  return was.type() != is.type() || WhyText(was) != WhyText(is)
             ? GraphChange::kReason
             : GraphChange::kNone;
}

class Merger {
 public:
  Merger(const GraphData& before, const GraphData& after)
      : before_(before),
        after_(after),
        old_positions_(PositionsOf(before)),
        new_positions_(PositionsOf(after)) {}

  GraphData Merge() {
    MergeCasts();
    for (const GraphOp& op : after_.ops) AddAfter(op);
    AddRemoved(before_.ops.size());
    Positions merged = PositionsOf(merged_);
    for (GraphOp& op : merged_.ops) MergeEdges(merged, &op);
    return std::move(merged_);
  }

 private:
  // An op of `after`; before it what the other program has on the way.
  void AddAfter(const GraphOp& op) {
    const auto old = old_positions_.find(op.row->name());
    if (old == old_positions_.end()) {
      merged_.ops.push_back({op.row, -1, {}, GraphChange::kAdded});
      return;
    }
    AddRemoved(old->second);
    const proto::OpRow* was = before_.ops[old->second].row;
    const GraphChange change = ChangeOf(*was, *op.row);
    if (change == GraphChange::kNone) was = nullptr;
    merged_.ops.push_back({op.row, -1, {}, change, was});
  }
  void AddRemoved(size_t end) {
    for (; next_ < end; ++next_) {
      const GraphOp& op = before_.ops[next_];
      if (new_positions_.contains(op.row->name())) continue;
      merged_.ops.push_back({op.row, -1, {}, GraphChange::kRemoved});
    }
  }

  void MergeCasts() {
    absl::flat_hash_map<std::string, int> old_casts;
    for (const GraphCast& cast : before_.casts) {
      old_casts[KeyOf(*cast.row)] = -1;
    }
    for (const GraphCast& cast : after_.casts) {
      const auto old = old_casts.find(KeyOf(*cast.row));
      if (old != old_casts.end()) {
        old->second = static_cast<int>(merged_.casts.size());
      }
      merged_.casts.push_back({cast.row, old == old_casts.end()
                                             ? GraphChange::kAdded
                                             : GraphChange::kNone});
    }
    for (const GraphCast& cast : before_.casts) {
      int& place = old_casts[KeyOf(*cast.row)];
      if (place < 0) {
        place = static_cast<int>(merged_.casts.size());
        merged_.casts.push_back({cast.row, GraphChange::kRemoved});
      }
      cast_places_.push_back(place);
    }
  }

  // The op's edges in one of the programs, with places in the merged graph.
  std::vector<GraphEdge> EdgesOf(const GraphData& graph,
                                 const Positions& positions,
                                 const Positions& merged,
                                 const std::string& name, int* of) {
    const auto position = positions.find(name);
    if (position == positions.end()) return {};
    const auto place = [&](int op) {
      return op < 0 ? -1 : merged.at(graph.ops[op].row->name());
    };
    const GraphOp& op = graph.ops[position->second];
    std::vector<GraphEdge> edges = op.inputs;
    for (GraphEdge& edge : edges) {
      edge.from = place(edge.from);
      if (edge.cast >= 0 && &graph == &before_) {
        edge.cast = cast_places_[edge.cast];
      }
    }
    *of = place(op.of);
    return edges;
  }

  void MergeEdges(const Positions& merged, GraphOp* op) {
    const std::string& name = op->row->name();
    std::vector<GraphEdge> old =
        EdgesOf(before_, old_positions_, merged, name, &op->of);
    op->inputs = EdgesOf(after_, new_positions_, merged, name, &op->of);
    const auto same = [](const GraphEdge& a, const GraphEdge& b) {
      return a.from == b.from && a.value == b.value && a.cast == b.cast;
    };
    const auto is_in = [&](const std::vector<GraphEdge>& edges,
                           const GraphEdge& edge) {
      return std::any_of(edges.begin(), edges.end(),
                         [&](const GraphEdge& e) { return same(e, edge); });
    };
    std::vector<GraphEdge> removed;
    for (GraphEdge& edge : old) {
      if (is_in(op->inputs, edge)) continue;
      edge.change = GraphChange::kRemoved;
      removed.push_back(edge);
    }
    for (GraphEdge& edge : op->inputs) {
      if (!is_in(old, edge)) edge.change = GraphChange::kAdded;
    }
    op->inputs.insert(op->inputs.end(), removed.begin(), removed.end());
  }

  const GraphData& before_;
  const GraphData& after_;
  const Positions old_positions_, new_positions_;
  std::vector<int> cast_places_;  // of the casts of `before`
  size_t next_ = 0;               // op of `before` that was not looked at yet
  GraphData merged_;
};

}  // namespace

GraphData MergedGraph(const GraphData& before, const GraphData& after) {
  return Merger(before, after).Merge();
}

}  // namespace tools
}  // namespace halftone
