#include "runtime/collective/staged_communicator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "runtime/collective/forwarding_communicator.h"

namespace halftone {
namespace runtime {
namespace {

// Pinned bytes per rank; what is larger goes in pieces, the same on all ranks.
constexpr int64_t kPiece = int64_t{4} << 20;

class StagedCommunicator : public ForwardingCommunicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host,
                     std::unique_ptr<Memory> pinned,
                     std::unique_ptr<Event> returned)
      : ForwardingCommunicator(std::move(host)),
        pinned_(std::move(pinned)),
        returned_(std::move(returned)) {}

  bool enqueues() const override { return false; }
  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream& stream) override {
    const int64_t size = SizeOf(dtype);
    return InPieces(data, count * size, /*reads=*/true, stream,
                    [&](void* piece, int64_t bytes) {
                      return ForwardingCommunicator::AllReduce(
                          piece, bytes / size, dtype, op, pre_scale, stream);
                    });
  }
  // By way of the AllReduce above, piece by piece.
  absl::Status ReduceScatter(void* data, int64_t count, DType dtype,
                             float pre_scale, Stream& stream) override {
    return Communicator::ReduceScatter(data, count, dtype, pre_scale, stream);
  }
  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream& stream) override {
    return InPieces(data, bytes, /*reads=*/root == rank(), stream,
                    [&](void* piece, int64_t part) {
                      return ForwardingCommunicator::Broadcast(piece, part,
                                                               root, stream);
                    });
  }
  // Piece by piece: of each rank's part as much as all together have room.
  absl::Status GatherParts(void* data, int64_t bytes, Stream& stream) override {
    const int64_t most = kPiece / world_size();
    char* const pinned = static_cast<char*>(pinned_->data());
    int64_t begin = 0;
    do {
      const int64_t part = std::min(most, bytes - begin);
      const auto there = [&](int r) {
        return static_cast<char*>(data) + r * bytes + begin;
      };
      HT_RETURN_IF_ERROR(returned_->Synchronize());
      HT_RETURN_IF_ERROR(
          stream.Copy(pinned + rank() * part, there(rank()), part));
      HT_RETURN_IF_ERROR(stream.Synchronize());
      HT_RETURN_IF_ERROR(
          ForwardingCommunicator::GatherParts(pinned, part, stream));
      for (int r = 0; r < world_size(); ++r) {
        if (r == rank()) continue;
        HT_RETURN_IF_ERROR(stream.Copy(there(r), pinned + r * part, part));
      }
      HT_RETURN_IF_ERROR(stream.Record(*returned_));
      begin += part;
    } while (begin < bytes);
    return absl::OkStatus();
  }

 private:
  // Calls `collective` at least once, so that the ranks meet for nothing too.
  absl::Status InPieces(
      void* data, int64_t bytes, bool reads, Stream& stream,
      const std::function<absl::Status(void*, int64_t)>& collective) {
    int64_t begin = 0;
    do {
      char* const there = static_cast<char*>(data) + begin;
      const int64_t part = std::min(kPiece, bytes - begin);
      // On whatever stream it was: the last piece has left the buffer.
      HT_RETURN_IF_ERROR(returned_->Synchronize());
      if (reads) {
        HT_RETURN_IF_ERROR(stream.Copy(pinned_->data(), there, part));
        HT_RETURN_IF_ERROR(stream.Synchronize());
      }
      HT_RETURN_IF_ERROR(collective(pinned_->data(), part));
      HT_RETURN_IF_ERROR(stream.Copy(there, pinned_->data(), part));
      HT_RETURN_IF_ERROR(stream.Record(*returned_));
      begin += part;
    } while (begin < bytes);
    return absl::OkStatus();
  }

  std::unique_ptr<Memory> pinned_;
  std::unique_ptr<Event> returned_;  // what left the buffer has arrived
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeStagedCommunicator(
    std::unique_ptr<Communicator> host, Device* device) {
  HT_ASSIGN_OR_RETURN(auto pinned, device->AllocatePinned(kPiece));
  HT_ASSIGN_OR_RETURN(auto returned, device->CreateEvent());
  return {std::make_unique<StagedCommunicator>(
      std::move(host), std::move(pinned), std::move(returned))};
}

}  // namespace runtime
}  // namespace halftone
