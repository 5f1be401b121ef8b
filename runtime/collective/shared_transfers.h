// The collectives' data movement through memory, for ranks of one machine.
//
// Every rank has a segment that it alone writes: counters, by which the others
// see how far it is, and buffers, from which they read. An all_reduce gives
// each rank a part of the elements, chunk by chunk: it reads that chunk from
// everybody, reduces it in rank order, and everybody reads the result. Data
// that lies in memory of Allocate is read where it is, other by way of the
// buffers. The bits are those of GlooTransfers and of ranks that are threads.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_SHARED_TRANSFERS_H_
#define HALFTONE_RUNTIME_COLLECTIVE_SHARED_TRANSFERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/collective/shared_segment.h"
#include "runtime/collective/transfers.h"

namespace halftone {
namespace runtime {

class SharedTransfers : public Transfers {
 public:
  // A collective of all ranks, by other means: everybody's bytes, by rank.
  using AllGather = std::function<absl::StatusOr<std::vector<std::string>>(
      absl::string_view mine)>;
  // Among `ranks`, of which `rank`, this one, is one; all ranks call it, for
  // their own. Null on all of `ranks` if one of them cannot read another's
  // memory: they are on several machines or in containers. Errors are
  // `all_gather`'s.
  static absl::StatusOr<std::unique_ptr<Transfers>> Connect(
      int rank, std::vector<int> ranks, const AllGather& all_gather);
  ~SharedTransfers() override;

  void AllReduce(const TransferCall& call, void* data, int64_t count,
                 const ReduceArithmetic& how) override;
  void ReduceScatter(const TransferCall& call, void* data, int64_t count,
                     const ReduceArithmetic& how) override;
  void Broadcast(const TransferCall& call, void* data, int64_t bytes,
                 int root) override;
  void GatherParts(const TransferCall& call, void* data,
                   int64_t bytes) override;
  std::unique_ptr<Memory> Allocate(int64_t bytes) override;
  void Interrupt() override { interrupted_ = true; }
  void Close() override;
  int awaited_peer() const override { return awaited_peer_; }

 private:
  struct Line;   // what a rank tells the others
  struct Block;  // what Allocate made
  class BlockMemory;
  // One kind of events, counted by the rank that has them.
  struct Events {
    int counter = 0;             // of a Line
    int64_t buffers = 0;         // what they tell of: at this offset, in turn
    std::vector<uint32_t> seen;  // before this call; by rank, alike on all
  };
  // One all_reduce: what its steps share.
  struct Reduction {
    const TransferCall& call;
    char* data;
    int64_t count;
    const ReduceArithmetic& how;
    int64_t chunk;  // elements of a rank's part at a time
    bool in_block;  // of Allocate: the others read `data`
    bool shares;    // all ranks get all of it
  };
  void Reduce(const TransferCall& call, void* data, int64_t count,
              const ReduceArithmetic& how, bool shares);

  SharedTransfers(int rank, std::vector<int> ranks,
                  std::vector<SharedSegment> segments);

  Line& OwnLine();
  const Line& LineOf(int rank) const;
  // Where `rank` keeps what belongs to its event `index` of this call.
  char* Buffer(const Events& events, int rank, int64_t index) const;
  // `place`: where the others find this rank's data, as PlaceOf says.
  void Begin(const TransferCall& call, uint64_t place = 0);
  // 0: in none of this rank's blocks.
  uint64_t PlaceOf(const char* data, int64_t bytes) const;
  // Where `peer`'s data of the call lies; null: what is read is in its buffers.
  // Known when its first event of the call has been awaited.
  const char* DataOf(const TransferCall& call, int peer);
  // This rank's next event: what it wrote is there to be read.
  void Signal(const Events& events);
  // Until event `index` of this call has happened on `peer`, or on all peers.
  void Await(const Events& events, int peer, int64_t index,
             const TransferCall& call);
  void AwaitAll(const Events& events, int64_t index, const TransferCall& call);

  void ReduceSmall(const Reduction& what);
  void ReduceLarge(const Reduction& what);
  void Post(const Reduction& what, int64_t index);
  void ReduceOwn(const Reduction& what, int64_t index);
  void Collect(const Reduction& what, int64_t index);

  const std::vector<int> ranks_;  // by place
  // Places among them; a rank in what follows is one.
  const int rank_;
  const int world_size_;
  const bool spins_;
  std::vector<SharedSegment> segments_;  // by rank
  Events posted_;                        // contributions and payloads
  Events reduced_;                       // results; payloads that were taken
  Events ended_;                         // all_reduces of much data
  std::vector<std::weak_ptr<Block>> blocks_;
  // By rank, the blocks that were needed so far.
  std::vector<std::vector<SharedSegment>> their_blocks_;
  std::vector<const char*> in_place_;  // DataOf, by rank; in an all_reduce
  std::vector<char> scratch_;          // a block of a sum
  std::atomic<bool> interrupted_{false};
  int awaited_peer_ = -1;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_SHARED_TRANSFERS_H_
