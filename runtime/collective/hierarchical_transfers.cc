#include "runtime/collective/hierarchical_transfers.h"

#include <utility>

#include "absl/memory/memory.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

// The low bits of a call's tag are the transfers'.
constexpr int kStepShift = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<Transfers>> HierarchicalTransfers::Connect(
    int rank, int world_size, int ranks_per_node, Transfers& flat,
    const Join& join) {
  auto made = absl::WrapUnique(new HierarchicalTransfers(flat));
  made->ranks_per_node_ = ranks_per_node;
  made->place_ = rank % ranks_per_node;
  std::vector<int> node, peers;
  for (int r = 0; r < world_size; ++r) {
    if (r / ranks_per_node == rank / ranks_per_node) node.push_back(r);
    if (r % ranks_per_node == made->place_) peers.push_back(r);
  }
  HT_ASSIGN_OR_RETURN(made->inside_.transfers, join(std::move(node)));
  HT_ASSIGN_OR_RETURN(made->between_.transfers, join(std::move(peers)));
  return {std::move(made)};
}

TransferCall HierarchicalTransfers::Next(const TransferCall& call, int step,
                                         Level& level) {
  waiting_ = level.transfers.get();
  TransferCall next = call;
  next.tag += static_cast<uint64_t>(step) << kStepShift;
  next.number = ++level.calls;
  return next;
}

void HierarchicalTransfers::AllReduce(const TransferCall& call, void* data,
                                      int64_t count,
                                      const ReduceArithmetic& how) {
  Transfers& inside = *inside_.transfers;
  Transfers& between = *between_.transfers;
  ReduceArithmetic sums = how;  // of what is scaled already
  sums.scale = nullptr;
  char* const bytes = static_cast<char*>(data);
  const int64_t part = NodePart(count, how.element_bytes, ranks_per_node_);
  const int64_t whole = part * ranks_per_node_;
  if (part > 0) {
    inside.ReduceScatter(Next(call, 0, inside_), bytes, whole, how);
    between.AllReduce(Next(call, 1, between_),
                      bytes + place_ * part * how.element_bytes, part, sums);
    inside.GatherParts(Next(call, 2, inside_), bytes, part * how.element_bytes);
  }
  if (whole == count && count > 0) return;
  char* const rest = bytes + whole * how.element_bytes;
  inside.AllReduce(Next(call, 3, inside_), rest, count - whole, how);
  if (place_ == 0) {
    between.AllReduce(Next(call, 4, between_), rest, count - whole, sums);
  }
  inside.Broadcast(Next(call, 5, inside_), rest,
                   (count - whole) * how.element_bytes, /*root=*/0);
}

void HierarchicalTransfers::Broadcast(const TransferCall& call, void* data,
                                      int64_t bytes, int root) {
  waiting_ = &flat_;
  flat_.Broadcast(call, data, bytes, root);
}

void HierarchicalTransfers::GatherParts(const TransferCall& call, void* data,
                                        int64_t bytes) {
  waiting_ = &flat_;
  flat_.GatherParts(call, data, bytes);
}

void HierarchicalTransfers::Interrupt() {
  inside_.transfers->Interrupt();
  between_.transfers->Interrupt();
}

void HierarchicalTransfers::Close() {
  inside_.transfers->Close();
  between_.transfers->Close();
}

}  // namespace runtime
}  // namespace halftone
