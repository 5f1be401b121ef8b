// How the collectives of ranks that are processes move their data: over
// sockets (gloo_transfers.h) or through memory (shared_transfers.h).
#ifndef HALFTONE_RUNTIME_COLLECTIVE_TRANSFERS_H_
#define HALFTONE_RUNTIME_COLLECTIVE_TRANSFERS_H_

#include <cstdint>
#include <exception>
#include <memory>

#include "absl/types/span.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/reduce.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// One call of a collective, the same on all its ranks.
struct TransferCall {
  uint64_t tag = 0;    // unlike that of any other call; its low 4 bits are 0
  int64_t number = 0;  // of the call, from 1
  MonotonicTime deadline;
};

// Where a rank stands among those that work together (CHECKed: it is there).
int PlaceIn(absl::Span<const int> ranks, int rank);

// Elements of a buffer.
struct ElementRange {
  int64_t start = 0;
  int64_t count = 0;
};

// An all_reduce gives each rank a part of `count` elements to reduce, which
// begins at a multiple of 64: piece `index` of `piece` elements of that part,
// empty behind its end.
inline constexpr int64_t kPartElements = 64;  // whole cache lines
ElementRange PieceOfPart(int rank, int world_size, int64_t index, int64_t piece,
                         int64_t count);

// Of an all_reduce in two levels, the elements that each rank of a node has the
// sum of. What is left behind the last one's, of little data all, is reduced by
// way of each node's first rank: there it is latency that counts.
int64_t NodePart(int64_t count, int64_t element_bytes, int ranks_per_node);

// A wait was ended from outside.
struct TransferInterrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// All ranks call the same in the same order. Errors are exceptions
// (TransferInterrupted also at the deadline): the communicator turns them into
// a Status. After one, no call is made any more.
class Transfers {
 public:
  virtual ~Transfers() = default;
  virtual void AllReduce(const TransferCall& call, void* data, int64_t count,
                         const ReduceArithmetic& how) = 0;
  // An all_reduce of which each rank needs its own part alone.
  virtual void ReduceScatter(const TransferCall& call, void* data,
                             int64_t count, const ReduceArithmetic& how) = 0;
  virtual void Broadcast(const TransferCall& call, void* data, int64_t bytes,
                         int root) = 0;
  virtual void GatherParts(const TransferCall& call, void* data,
                           int64_t bytes) = 0;
  // Memory from which AllReduce is faster; null: any is as good. Peers let go
  // of it when their transfers end.
  virtual std::unique_ptr<Memory> Allocate(int64_t bytes) {
    (void)bytes;
    return nullptr;
  }
  // Ends the wait under way and all later ones; from any thread.
  virtual void Interrupt() = 0;
  // Peers that wait for this rank find out that it is gone for good.
  virtual void Close() = 0;
  // Whom the last wait was for; -1 if for nobody in particular.
  virtual int awaited_peer() const = 0;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_TRANSFERS_H_
