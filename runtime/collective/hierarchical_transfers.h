// An all_reduce in two levels, for ranks of several nodes: it adds inside each
// node first, then between the nodes, then shares inside. Between two nodes
// travels one node's sum, not every rank's numbers.
//
// Each rank of a node has a part of the node's sum and meets those of the other
// nodes that have the same part. Elements that make no whole parts go by way of
// each node's first rank. Whichever way an element goes, it is added in the
// order of the ranks of its node, then of the nodes: the bits are those of
// ranks that are threads (in_process_communicator.cc).
#ifndef HALFTONE_RUNTIME_COLLECTIVE_HIERARCHICAL_TRANSFERS_H_
#define HALFTONE_RUNTIME_COLLECTIVE_HIERARCHICAL_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/transfers.h"

namespace halftone {
namespace runtime {

class HierarchicalTransfers : public Transfers {
 public:
  // Transfers among some ranks, of which this one is one. All ranks call it at
  // the same time, for their own.
  using Join = std::function<absl::StatusOr<std::unique_ptr<Transfers>>(
      std::vector<int>)>;
  // Nodes are runs of `ranks_per_node` ranks, which divides `world_size`.
  // `flat`, borrowed, is among all and does everything else.
  static absl::StatusOr<std::unique_ptr<Transfers>> Connect(int rank,
                                                            int world_size,
                                                            int ranks_per_node,
                                                            Transfers& flat,
                                                            const Join& join);

  void AllReduce(const TransferCall& call, void* data, int64_t count,
                 const ReduceArithmetic& how) override;
  // All of it is as good as a part, and has the same bits.
  void ReduceScatter(const TransferCall& call, void* data, int64_t count,
                     const ReduceArithmetic& how) override {
    AllReduce(call, data, count, how);
  }
  void Broadcast(const TransferCall& call, void* data, int64_t bytes,
                 int root) override;
  void GatherParts(const TransferCall& call, void* data,
                   int64_t bytes) override;
  std::unique_ptr<Memory> Allocate(int64_t bytes) override {
    return inside_.transfers->Allocate(bytes);
  }
  void Interrupt() override;
  void Close() override;
  int awaited_peer() const override { return waiting_->awaited_peer(); }

 private:
  struct Level {
    std::unique_ptr<Transfers> transfers;
    int64_t calls = 0;  // made so far, alike on its ranks
  };
  // The next call of a level, a part of `call`: the `step`-th of those.
  TransferCall Next(const TransferCall& call, int step, Level& level);

  explicit HierarchicalTransfers(Transfers& flat)
      : flat_(flat), waiting_(&flat) {}

  Transfers& flat_;
  int place_ = 0;  // in the node
  int ranks_per_node_ = 1;
  Level inside_, between_;
  Transfers* waiting_;  // what the last call was of
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_HIERARCHICAL_TRANSFERS_H_
