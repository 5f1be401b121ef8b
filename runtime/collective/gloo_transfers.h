// The collectives' data movement over a GlooMesh.
//
// An all_reduce gives each rank a part of the elements: it gets that part from
// everybody, reduces it in rank order, and gives the result to everybody. That
// is as many bytes as a ring moves, and the bits depend neither on the number
// of elements nor on their place in a buffer: they are the bits of ranks that
// are threads (in_process_communicator.cc). Little data goes from everybody to
// everybody at once, and each rank reduces all of it in the same order.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_GLOO_TRANSFERS_H_
#define HALFTONE_RUNTIME_COLLECTIVE_GLOO_TRANSFERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/collective/gloo_mesh.h"
#include "runtime/collective/transfers.h"

namespace halftone {
namespace runtime {

class GlooTransfers : public Transfers {
 public:
  // Among `ranks` of the mesh, of which `rank`, this one, is one.
  GlooTransfers(GlooMesh& mesh, int rank, std::vector<int> ranks);

  void AllReduce(const TransferCall& call, void* data, int64_t count,
                 const ReduceArithmetic& how) override;
  void ReduceScatter(const TransferCall& call, void* data, int64_t count,
                     const ReduceArithmetic& how) override;
  void Broadcast(const TransferCall& call, void* data, int64_t bytes,
                 int root) override;
  void GatherParts(const TransferCall& call, void* data,
                   int64_t bytes) override;
  void Interrupt() override { mesh_.Interrupt(); }
  // Of all that use the mesh.
  void Close() override;
  int awaited_peer() const override { return mesh_.awaited_peer(); }

  std::vector<std::string> AllGather(const TransferCall& call,
                                     absl::string_view mine);
  void Barrier(const TransferCall& call);

 private:
  // A buffer of ours that Gloo knows.
  struct Registered {
    std::vector<char> data;
    std::unique_ptr<GlooBuffer> gloo;
  };

  Registered Register(int64_t bytes);
  // `mine`, at most kSmallBytes, to all, and theirs to theirs_[peer].
  void ExchangeSmall(const TransferCall& call, const void* mine, int64_t bytes);
  void ReduceSmall(const TransferCall& call, char* data, int64_t count,
                   const ReduceArithmetic& how);
  void ReduceLarge(const TransferCall& call, char* data, int64_t count,
                   const ReduceArithmetic& how, bool shares);
  // Segment `index` of the part of the elements that `rank` reduces.
  ElementRange Segment(int rank, int64_t index, int64_t count,
                       int64_t element_bytes) const;
  void StartSegment(const TransferCall& call, int64_t index, int64_t count,
                    int64_t element_bytes);
  void ReduceSegment(const TransferCall& call, int64_t index, char* data,
                     int64_t count, const ReduceArithmetic& how);
  void ShareSegment(const TransferCall& call, int64_t index, int64_t count,
                    int64_t element_bytes);
  void Finish(const TransferCall& call, int64_t segments, int64_t count,
              int64_t element_bytes);

  GlooMesh& mesh_;
  const std::vector<int> ranks_;  // by place
  // Places among them; a rank in what follows is one.
  const int rank_;
  const int world_size_;
  // Small messages: this rank's, and the peers'.
  Registered mine_;
  std::vector<Registered> theirs_;
  // Segments under way: two, each from all peers.
  std::vector<std::vector<Registered>> segments_;
  // The caller's data during one call: to send from, and to receive into.
  std::unique_ptr<GlooBuffer> outgoing_;
  std::vector<std::unique_ptr<GlooBuffer>> incoming_;
  std::vector<std::string> gathered_;  // so far; may still be received into
  int64_t sends_ = 0;                  // of outgoing_ that are under way
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_GLOO_TRANSFERS_H_
