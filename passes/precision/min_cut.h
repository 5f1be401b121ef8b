// A minimum cut between a source and a sink, exact.
#ifndef HALFTONE_PASSES_PRECISION_MIN_CUT_H_
#define HALFTONE_PASSES_PRECISION_MIN_CUT_H_

#include <cstdint>
#include <vector>

namespace halftone {
namespace passes {

// Source and sink are no nodes: a node has a capacity from the one and to the
// other. What hangs together is solved apart, by Dinic's blocking flows, so
// that a long program of many small regions takes time in proportion.
class MinCut {
 public:
  // More than all capacities of a program together: never cut.
  static constexpr int64_t kNever = int64_t{1} << 61;

  int AddNode();
  void FromSource(int node, int64_t capacity);
  void ToSink(int node, int64_t capacity);
  // `back` is the capacity of the other direction.
  void AddEdge(int from, int to, int64_t capacity, int64_t back);

  // By node, whether it is on the source's side: of all minimum cuts the one
  // whose source side is the largest. To be called once.
  std::vector<bool> Solve();
  // What the cut costs, once it is solved.
  int64_t cost() const { return flow_; }

 private:
  // Edges lie in pairs: e and e ^ 1 are the two directions.
  struct Edge {
    int32_t to, next;  // next edge of the same node; -1: none
    int64_t capacity;  // what is left of it
  };
  struct Node {
    int64_t source = 0, sink = 0;  // capacities that are left
    int32_t first = -1;            // edge
    int32_t at = -1;               // edge that a blocking flow has come to
    int32_t level = -1;
    bool seen = false;
  };

  // The nodes that hang together with `node` and were not seen yet.
  std::vector<int32_t> Region(int32_t node);
  void Saturate(const std::vector<int32_t>& region);
  bool SetLevels(const std::vector<int32_t>& region);
  // Pushes flow from a node along rising levels until nothing more fits.
  void Block(int32_t start);
  // Along the edges of path_, which start at `start` and end at `end`.
  void Augment(int32_t start, int32_t end);

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<int32_t> queue_, path_;
  int64_t flow_ = 0;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_MIN_CUT_H_
