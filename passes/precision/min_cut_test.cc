#include "passes/precision/min_cut.h"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace passes {
namespace {

// What a cut costs, from its definition.
struct Graph {
  std::vector<int64_t> source, sink;
  std::vector<std::tuple<int, int, int64_t, int64_t>> edges;

  int64_t CostOf(const std::vector<bool>& on_source_side) const {
    int64_t cost = 0;
    for (size_t n = 0; n < source.size(); ++n) {
      cost += on_source_side[n] ? sink[n] : source[n];
    }
    for (const auto& [a, b, capacity, back] : edges) {
      if (on_source_side[a] && !on_source_side[b]) cost += capacity;
      if (on_source_side[b] && !on_source_side[a]) cost += back;
    }
    return cost;
  }
  MinCut Build() const {
    MinCut cut;
    for (size_t n = 0; n < source.size(); ++n) {
      cut.AddNode();
      cut.FromSource(static_cast<int>(n), source[n]);
      cut.ToSink(static_cast<int>(n), sink[n]);
    }
    for (const auto& [a, b, capacity, back] : edges) {
      cut.AddEdge(a, b, capacity, back);
    }
    return cut;
  }
};

Graph RandomGraph(std::mt19937& random, int nodes) {
  Graph graph;
  auto capacity = [&random](int most) -> int64_t {
    return random() % 2 == 0 ? 0 : random() % most;
  };
  for (int n = 0; n < nodes; ++n) {
    graph.source.push_back(capacity(8));
    graph.sink.push_back(capacity(8));
  }
  for (int e = 0; e < 2 * nodes; ++e) {
    graph.edges.emplace_back(random() % nodes, random() % nodes, capacity(5),
                             capacity(5));
  }
  return graph;
}

TEST(MinCutTest, IsTheLeastAndTheLargestOfAllSides) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const int nodes = 1 + static_cast<int>(random() % 9);
    const Graph graph = RandomGraph(random, nodes);
    int64_t least = -1;
    std::vector<bool> largest(nodes);  // the union of all that cost the least
    for (int bits = 0; bits < 1 << nodes; ++bits) {
      std::vector<bool> sides(nodes);
      for (int n = 0; n < nodes; ++n) sides[n] = (bits >> n) & 1;
      const int64_t cost = graph.CostOf(sides);
      if (least < 0 || cost < least) {
        least = cost;
        largest.assign(nodes, false);
      }
      if (cost > least) continue;
      for (int n = 0; n < nodes; ++n) largest[n] = largest[n] || sides[n];
    }
    MinCut cut = graph.Build();
    EXPECT_EQ(cut.Solve(), largest) << "round " << round;
    EXPECT_EQ(cut.cost(), least) << "round " << round;
  }
}

TEST(MinCutTest, NeverCutsWhatIsNeverCut) {
  MinCut cut;
  for (int n = 0; n < 3; ++n) cut.AddNode();
  cut.FromSource(0, 7);
  cut.AddEdge(0, 1, MinCut::kNever, 0);
  cut.AddEdge(1, 2, MinCut::kNever, MinCut::kNever);
  cut.ToSink(2, 5);
  cut.ToSink(2, 1);
  EXPECT_EQ(cut.Solve(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(cut.cost(), 6);
}

// A path of a flow may be as long as the program.
TEST(MinCutTest, TakesLongChains) {
  constexpr int kNodes = 300000;
  MinCut cut;
  for (int n = 0; n < kNodes; ++n) cut.AddNode();
  cut.FromSource(0, 9);
  cut.ToSink(kNodes - 1, 9);
  for (int n = 0; n + 1 < kNodes; ++n) {
    cut.AddEdge(n, n + 1, n == kNodes / 2 ? 3 : 4, 4);
  }
  const std::vector<bool> sides = cut.Solve();
  EXPECT_EQ(cut.cost(), 3);
  EXPECT_EQ(std::count(sides.begin(), sides.end(), true), kNodes / 2 + 1);
}

}  // namespace
}  // namespace passes
}  // namespace halftone
