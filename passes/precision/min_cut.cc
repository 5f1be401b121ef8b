#include "passes/precision/min_cut.h"

#include <algorithm>
#include <tuple>

namespace halftone {
namespace passes {
namespace {

// Sums of capacities that are never cut stay below 2^63.
int64_t Sum(int64_t a, int64_t b) { return std::min(a + b, MinCut::kNever); }

}  // namespace

int MinCut::AddNode() {
  nodes_.emplace_back();
  return static_cast<int>(nodes_.size()) - 1;
}

void MinCut::FromSource(int node, int64_t capacity) {
  nodes_[node].source = Sum(nodes_[node].source, capacity);
}

void MinCut::ToSink(int node, int64_t capacity) {
  nodes_[node].sink = Sum(nodes_[node].sink, capacity);
}

void MinCut::AddEdge(int from, int to, int64_t capacity, int64_t back) {
  for (const auto& [a, b, c] :
       {std::make_tuple(from, to, capacity), std::make_tuple(to, from, back)}) {
    edges_.push_back({b, nodes_[a].first, c});
    nodes_[a].first = static_cast<int32_t>(edges_.size()) - 1;
  }
}

std::vector<int32_t> MinCut::Region(int32_t node) {
  std::vector<int32_t> region = {node};
  nodes_[node].seen = true;
  for (size_t i = 0; i < region.size(); ++i) {
    for (int32_t e = nodes_[region[i]].first; e >= 0; e = edges_[e].next) {
      Node& to = nodes_[edges_[e].to];
      if (to.seen) continue;
      to.seen = true;
      region.push_back(edges_[e].to);
    }
  }
  return region;
}

bool MinCut::SetLevels(const std::vector<int32_t>& region) {
  queue_.clear();
  for (int32_t n : region) {
    Node& node = nodes_[n];
    node.at = node.first;
    node.level = node.source > 0 ? 0 : -1;
    if (node.level == 0) queue_.push_back(n);
  }
  bool reached = false;
  for (size_t i = 0; i < queue_.size(); ++i) {
    const Node& node = nodes_[queue_[i]];
    reached = reached || node.sink > 0;
    for (int32_t e = node.first; e >= 0; e = edges_[e].next) {
      Node& to = nodes_[edges_[e].to];
      if (edges_[e].capacity == 0 || to.level >= 0) continue;
      to.level = node.level + 1;
      queue_.push_back(edges_[e].to);
    }
  }
  return reached;
}

void MinCut::Augment(int32_t start, int32_t end) {
  int64_t most = std::min(nodes_[start].source, nodes_[end].sink);
  for (int32_t e : path_) most = std::min(most, edges_[e].capacity);
  nodes_[start].source -= most;
  nodes_[end].sink -= most;
  flow_ += most;
  for (int32_t e : path_) {
    edges_[e].capacity -= most;
    edges_[e ^ 1].capacity += most;
  }
}

void MinCut::Block(int32_t start) {
  path_.clear();
  int32_t n = start;
  while (nodes_[start].source > 0) {
    if (nodes_[n].sink > 0) {
      Augment(start, n);
      // Back to where the path has nothing left.
      const auto full =
          std::find_if(path_.begin(), path_.end(),
                       [this](int32_t e) { return edges_[e].capacity == 0; });
      if (full != path_.end()) {
        n = edges_[*full ^ 1].to;
        path_.erase(full, path_.end());
      }
      continue;
    }
    int32_t& at = nodes_[n].at;
    while (at >= 0 && (edges_[at].capacity == 0 ||
                       nodes_[edges_[at].to].level != nodes_[n].level + 1)) {
      at = edges_[at].next;
    }
    if (at >= 0) {
      path_.push_back(at);
      n = edges_[at].to;
      continue;
    }
    if (path_.empty()) return;
    nodes_[n].level = -1;  // a dead end for this round
    n = edges_[path_.back() ^ 1].to;
    path_.pop_back();
  }
}

void MinCut::Saturate(const std::vector<int32_t>& region) {
  while (SetLevels(region)) {
    for (int32_t n : region) {
      if (nodes_[n].level == 0 && nodes_[n].source > 0) Block(n);
    }
  }
}

std::vector<bool> MinCut::Solve() {
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].seen) continue;
    Saturate(Region(static_cast<int32_t>(n)));
  }
  // The sink's side: what can still reach it.
  std::vector<bool> on_source_side(nodes_.size(), true);
  queue_.clear();
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].sink == 0) continue;
    on_source_side[n] = false;
    queue_.push_back(static_cast<int32_t>(n));
  }
  for (size_t i = 0; i < queue_.size(); ++i) {
    for (int32_t e = nodes_[queue_[i]].first; e >= 0; e = edges_[e].next) {
      const int32_t from = edges_[e].to;
      if (edges_[e ^ 1].capacity == 0 || !on_source_side[from]) continue;
      on_source_side[from] = false;
      queue_.push_back(from);
    }
  }
  return on_source_side;
}

}  // namespace passes
}  // namespace halftone
