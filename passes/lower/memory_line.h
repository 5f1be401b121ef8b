// The bytes that lie in memory at each place of a line, changed and asked by
// ranges in O(log places).
#ifndef HALFTONE_PASSES_LOWER_MEMORY_LINE_H_
#define HALFTONE_PASSES_LOWER_MEMORY_LINE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace halftone {
namespace passes {

class MemoryLine {
 public:
  explicit MemoryLine(int places) {
    while (size_ < places) size_ *= 2;
    most_.resize(2 * size_);
    added_.resize(2 * size_);
  }
  // Places [first, last]; nothing where last < first.
  void Add(int first, int last, int64_t bytes) {
    if (first <= last) Add(1, 0, size_ - 1, first, last, bytes);
  }
  int64_t Most() const { return most_[1]; }
  // The least there is where last < first.
  int64_t Most(int first, int last) const {
    return first > last ? std::numeric_limits<int64_t>::min()
                        : Most(1, 0, size_ - 1, first, last);
  }

 private:
  void Add(int node, int from, int to, int first, int last, int64_t bytes) {
    if (last < from || to < first) return;
    if (first <= from && to <= last) {
      most_[node] += bytes;
      added_[node] += bytes;
      return;
    }
    const int middle = (from + to) / 2;
    Add(2 * node, from, middle, first, last, bytes);
    Add(2 * node + 1, middle + 1, to, first, last, bytes);
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
  }
  int64_t Most(int node, int from, int to, int first, int last) const {
    if (last < from || to < first) return std::numeric_limits<int64_t>::min();
    if (first <= from && to <= last) return most_[node];
    const int middle = (from + to) / 2;
    const int64_t most =
        std::max(Most(2 * node, from, middle, first, last),
                 Most(2 * node + 1, middle + 1, to, first, last));
    return most + added_[node];
  }

  int size_ = 1;
  std::vector<int64_t> most_;   // by node, without what is added above it
  std::vector<int64_t> added_;  // to all of a node's places
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_MEMORY_LINE_H_
