#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "graph/base/check.h"
#include "runtime/plan/draft.h"

namespace halftone {
namespace runtime {
namespace {

// Best fit over the gaps of a growing arena; adjacent gaps join.
class Gaps {
 public:
  int64_t Take(int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) return Grow(bytes);
    const auto [size, offset] = *best;
    Erase(gaps_.find(offset));
    if (size > bytes) Insert(offset + bytes, size - bytes);
    return offset;
  }

  void Give(int64_t offset, int64_t bytes) {
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = Erase(next);
    }
    if (next != gaps_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        Erase(previous);
      }
    }
    Insert(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  using ByOffset = absl::btree_map<int64_t, int64_t>;  // -> bytes

  void Insert(int64_t offset, int64_t bytes) {
    gaps_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  ByOffset::iterator Erase(ByOffset::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    return gaps_.erase(gap);
  }
  // Extends a gap at the end if there is one.
  int64_t Grow(int64_t bytes) {
    int64_t offset = end_;
    if (!gaps_.empty()) {
      auto last = std::prev(gaps_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        Erase(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  ByOffset gaps_;
  absl::btree_set<std::pair<int64_t, int64_t>> by_size_;  // those, bytes first
  int64_t end_ = 0;
};

// First and last step that touches each root's storage.
struct Interval {
  int first = -1, last = -1;
};

std::vector<Interval> RootIntervals(const Draft& draft) {
  std::vector<Interval> intervals(draft.nodes.size());
  auto touch = [&](int node, int step) {
    if (node < 0) return;
    Interval& interval = intervals[draft.Root(node)];
    if (interval.first < 0) interval.first = step;
    interval.last = step;
  };
  for (size_t s = 0; s < draft.steps.size(); ++s) {
    for (int n : draft.steps[s].inputs) touch(n, static_cast<int>(s));
    for (int n : draft.steps[s].outputs) touch(n, static_cast<int>(s));
  }
  return intervals;
}

// What needs storage from one step to another.
struct Lifetime {
  Interval steps;
  int64_t bytes;
  int64_t* offset;
};

// Each when it begins; the end of the arena.
int64_t PlaceInOrder(std::vector<Lifetime> starts) {
  std::vector<Lifetime> ends = starts;
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Lifetime& a, const Lifetime& b) {
                     return a.steps.first < b.steps.first;
                   });
  std::stable_sort(ends.begin(), ends.end(),
                   [](const Lifetime& a, const Lifetime& b) {
                     return a.steps.last < b.steps.last;
                   });
  Gaps gaps;
  auto end = ends.begin();
  for (const Lifetime& start : starts) {
    for (; end != ends.end() && end->steps.last < start.steps.first; ++end) {
      gaps.Give(*end->offset, Aligned(end->bytes));
    }
    *start.offset = gaps.Take(Aligned(start.bytes));
  }
  return gaps.end();
}

// One after the other, each as far in front as what lies there at the same time
// lets it; the end of the arena. In quadratic time, until that is beyond
// `most`.
int64_t PlaceInFront(const std::vector<Lifetime>& all, int64_t most) {
  struct Placed {
    int64_t begin, end;
    Interval steps;
  };
  std::vector<Placed> placed;  // by where they begin
  int64_t end = 0;
  for (const Lifetime& one : all) {
    const int64_t bytes = Aligned(one.bytes);
    int64_t begin = 0;
    for (const Placed& other : placed) {
      if (other.steps.first > one.steps.last ||
          other.steps.last < one.steps.first) {
        continue;
      }
      if (other.begin - begin >= bytes) break;
      begin = std::max(begin, other.end);
    }
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), begin,
        [](int64_t offset, const Placed& p) { return offset < p.begin; });
    placed.insert(at, {begin, begin + bytes, one.steps});
    *one.offset = begin;
    end = std::max(end, begin + bytes);
    if (end > most) break;
  }
  return end;
}

// The step in which the most is alive, of `steps`, and how much: no placement
// takes less.
struct Fullest {
  int step = 0;
  int64_t bytes = 0;
};
Fullest FullestStep(const std::vector<Lifetime>& all, int steps) {
  std::vector<int64_t> change(steps + 1);
  for (const Lifetime& one : all) {
    change[one.steps.first] += Aligned(one.bytes);
    change[one.steps.last + 1] -= Aligned(one.bytes);
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  const auto most = std::max_element(change.begin(), change.end());
  return {static_cast<int>(most - change.begin()), *most};
}

bool IsLarger(const Lifetime& a, const Lifetime& b) {
  return a.bytes > b.bytes;
}

// Orders in which little is lost between what PlaceInFront places. The largest
// first: "greedy by size" of Pisarchyk, Lee: Efficient Memory Management for
// Deep Neural Net Inference, 2020. What is alive when the most is: the longest
// first, as they nest, so that there are no gaps between them; then the rest.
std::vector<std::vector<Lifetime>> Orders(const std::vector<Lifetime>& all,
                                          int fullest) {
  std::vector<Lifetime> by_size = all;
  std::stable_sort(by_size.begin(), by_size.end(), IsLarger);
  std::vector<Lifetime> nested = by_size;
  const auto rest = std::stable_partition(
      nested.begin(), nested.end(), [fullest](const Lifetime& one) {
        return one.steps.first <= fullest && fullest <= one.steps.last;
      });
  std::stable_sort(
      nested.begin(), rest, [](const Lifetime& a, const Lifetime& b) {
        return a.steps.last - a.steps.first > b.steps.last - b.steps.first;
      });
  return {std::move(by_size), std::move(nested)};
}

// Nothing but the compute stream touches what is placed here: between the
// streams there are events for nodes, not for their places.
bool IsTemporary(const Draft& draft, const Node& node) {
  return node.kind == Node::Kind::kTemporary ||
         (node.kind == Node::Kind::kGroup &&
          (draft.world_size == 1 || node.by_liveness));
}

void PlaceTemporaries(Draft& draft, int64_t* bytes) {
  const std::vector<Interval> intervals = RootIntervals(draft);
  std::vector<Lifetime> starts;
  starts.reserve(draft.nodes.size());
  for (size_t n = 0; n < draft.nodes.size(); ++n) {
    Node& node = draft.nodes[n];
    if (node.root != static_cast<int>(n) || !IsTemporary(draft, node) ||
        intervals[n].first < 0) {
      continue;
    }
    node.arena = ArenaKind::kTemporary;
    starts.push_back({intervals[n], node.bytes, &node.offset});
  }
  for (size_t s = 0; s < draft.steps.size(); ++s) {
    DraftStep& step = draft.steps[s];
    if (step.workspace_bytes <= 0) continue;
    const int number = static_cast<int>(s);
    starts.push_back(
        {{number, number}, step.workspace_bytes, &step.workspace_offset});
  }
  *bytes = PlaceInOrder(starts);
  constexpr size_t kMost = 4096;
  if (starts.size() > kMost) return;
  // What lies where something else lay a moment ago finds it in caches: to save
  // 2 % cost a ResNet-50 2 % of its time.
  int64_t most = *bytes - *bytes / 32 - 1;
  const Fullest fullest =
      FullestStep(starts, static_cast<int>(draft.steps.size()));
  if (fullest.bytes > most) return;
  std::vector<Lifetime> others = starts;
  std::vector<int64_t> offsets(starts.size());
  for (size_t i = 0; i < others.size(); ++i) others[i].offset = &offsets[i];
  for (const std::vector<Lifetime>& order : Orders(others, fullest.step)) {
    const int64_t end = PlaceInFront(order, most);
    if (end > most) continue;
    for (size_t i = 0; i < starts.size(); ++i) *starts[i].offset = offsets[i];
    *bytes = end;
    most = end - 1;
  }
}

}  // namespace

StateLayout LayOutState(const Program& program, int64_t shards) {
  StateLayout layout;
  layout.shards = shards;
  SymbolValues symbols{};
  symbols.shards = shards;
  auto take = [&layout, &symbols](const TensorType& type) {
    const int64_t bytes = kernels::Bind(type, symbols).bytes();
    const Slice slice{ArenaKind::kState, layout.bytes, bytes};
    layout.bytes += Aligned(bytes);
    return slice;
  };
  layout.cells.resize(program.num_cells());
  // Sums over micro-batches are of class always, and no replay needs them: it
  // finds them cleared. Nor what ranks last averaged, which no step reads.
  const auto saved = [](const Cell& cell) {
    return cell.commit == Commit::kAlways && cell.spread != Spread::kPerRank;
  };
  const auto take_cells = [&](bool always, bool sharded) {
    for (int i = 0; i < program.num_cells(); ++i) {
      const Cell& cell = program.cell(CellId(i));
      if (saved(cell) == always && cell.type.sharded == sharded) {
        layout.cells[i] = take(cell.type);
      }
    }
  };
  take_cells(true, false);
  layout.always_bytes = layout.bytes;
  take_cells(false, false);
  for (int i = 0; i < program.num_constants(); ++i) {
    layout.constants.push_back(take(program.constant(ConstantId(i)).type));
  }
  layout.common_bytes = layout.bytes;
  take_cells(false, true);
  return layout;
}

int64_t OptimizerBytes(const Program& program, const StateLayout& layout) {
  std::vector<bool> copied(program.num_cells());
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind == CellKind::kDerived) copied[cell.of.index()] = true;
  }
  int64_t bytes = 0;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    const bool counts =
        cell.kind == CellKind::kSlot || cell.kind == CellKind::kAverage ||
        (cell.kind == CellKind::kParameter && cell.trainable && copied[i]);
    if (counts) bytes += layout.cells[i].bytes;
  }
  return bytes;
}

std::array<int64_t, kArenas> PlaceNodes(Draft& draft,
                                        const StateLayout& state) {
  std::array<int64_t, kArenas> arenas{};
  auto append = [&arenas](Node& node, ArenaKind kind) {
    int64_t& end = arenas[static_cast<int>(kind)];
    node.arena = kind;
    node.offset = end;
    end += Aligned(node.bytes);
  };
  auto put = [](Node& node, const Slice& place, int64_t offset) {
    node.arena = place.arena;
    node.offset = place.offset + offset;
  };
  arenas[static_cast<int>(ArenaKind::kState)] = state.bytes;
  absl::flat_hash_set<int> always;  // roots
  for (const Draft::Result& result : draft.results) {
    if (!result.fetched) always.insert(draft.Root(result.value));
  }
  for (size_t n = 0; n < draft.nodes.size(); ++n) {
    Node& node = draft.nodes[n];
    if (node.root != static_cast<int>(n)) continue;
    switch (node.kind) {
      case Node::Kind::kTemporary:
        break;
      case Node::Kind::kFeed:
        append(node, ArenaKind::kFeed);
        break;
      case Node::Kind::kCell:
        put(node, state.cells[node.index], 0);
        break;
      case Node::Kind::kConstant:
        put(node, state.constants[node.index], 0);
        break;
      case Node::Kind::kResult:
        if (always.contains(node.root)) append(node, ArenaKind::kResult);
        break;
      case Node::Kind::kGroup:
        if (!IsTemporary(draft, node)) append(node, ArenaKind::kCommunication);
        break;
    }
  }
  // Behind those that are copied to the host after each step.
  for (size_t n = 0; n < draft.nodes.size(); ++n) {
    Node& node = draft.nodes[n];
    if (node.kind == Node::Kind::kResult && node.root == static_cast<int>(n) &&
        !always.contains(node.root)) {
      append(node, ArenaKind::kResult);
    }
  }
  PlaceTemporaries(draft, &arenas[static_cast<int>(ArenaKind::kTemporary)]);
  for (size_t n = 0; n < draft.nodes.size(); ++n) {
    Node& node = draft.nodes[n];
    if (node.root == static_cast<int>(n)) continue;
    put(node, draft.nodes[node.root].slice(), node.root_offset);
  }
  return arenas;
}

void OrderStreams(const Draft& draft, std::vector<Step>& steps) {
  constexpr int kStreams = 2;
  // Per root: the last step on each stream that touched its storage. Per
  // pair of streams: the last step of the other one that was waited for.
  std::vector<std::array<int, kStreams>> touched(draft.nodes.size(), {-1, -1});
  int waited_for[kStreams] = {-1, -1};
  int events = 0;
  for (size_t s = 0; s < draft.steps.size(); ++s) {
    const DraftStep& step = draft.steps[s];
    const int own = static_cast<int>(step.stream);
    const int other = 1 - own;
    int needed = -1;
    auto touch = [&](int node) {
      if (node < 0) return;
      auto& last = touched[draft.Root(node)];
      needed = std::max(needed, last[other]);
      last[own] = static_cast<int>(s);
    };
    for (int n : step.inputs) touch(n);
    for (int n : step.outputs) touch(n);
    if (needed <= waited_for[own]) continue;
    waited_for[own] = needed;
    Step& producer = steps[needed];
    if (producer.records < 0) producer.records = events++;
    steps[s].waits.push_back(producer.records);
  }
}

}  // namespace runtime
}  // namespace halftone
