#include "runtime/collective/gloo_transfers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace halftone {
namespace runtime {
namespace {

// Up to here the time is latency: one message to each beats two rounds.
constexpr int64_t kLatencyBytes = 8 << 10;
// Large enough to hide a message's cost, small enough that two from each peer
// are little memory, and that a reduction overlaps with the next segment.
constexpr int64_t kSegmentBytes = 1 << 20;

// Tags within a call.
constexpr uint64_t kContribution = 0;
constexpr uint64_t kResult = 1;
constexpr uint64_t kSmall = 2;
constexpr uint64_t kPayload = 3;

}  // namespace

GlooTransfers::GlooTransfers(GlooMesh& mesh, int rank, std::vector<int> ranks)
    : mesh_(mesh),
      ranks_(std::move(ranks)),
      rank_(PlaceIn(ranks_, rank)),
      world_size_(static_cast<int>(ranks_.size())),
      theirs_(world_size_),
      segments_(2),
      incoming_(world_size_) {
  mine_ = Register(kLatencyBytes);
  for (std::vector<Registered>& set : segments_) set.resize(world_size_);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    theirs_[peer] = Register(kLatencyBytes);
    for (std::vector<Registered>& set : segments_) {
      set[peer] = Register(kSegmentBytes);
    }
  }
}

// Whatever still arrives does not touch the callers' data.
void GlooTransfers::Close() {
  mesh_.Close();
  outgoing_.reset();
  for (std::unique_ptr<GlooBuffer>& buffer : incoming_) buffer.reset();
}

GlooTransfers::Registered GlooTransfers::Register(int64_t bytes) {
  Registered registered;
  registered.data.resize(bytes);
  registered.gloo = mesh_.MakeBuffer(registered.data.data(), bytes);
  return registered;
}

void GlooTransfers::ExchangeSmall(const TransferCall& call, const void* mine,
                                  int64_t bytes) {
  if (bytes > 0) std::memcpy(mine_.data.data(), mine, bytes);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.Receive(*theirs_[peer].gloo, ranks_[peer], call.tag + kSmall, 0,
                  bytes);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.Send(*mine_.gloo, ranks_[peer], call.tag + kSmall, 0, bytes);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.AwaitReceived(*theirs_[peer].gloo, ranks_[peer], call.deadline);
  }
  for (int i = 1; i < world_size_; ++i) {
    mesh_.AwaitSent(*mine_.gloo, call.deadline);
  }
}

void GlooTransfers::AllReduce(const TransferCall& call, void* data,
                              int64_t count, const ReduceArithmetic& how) {
  char* bytes = static_cast<char*>(data);
  if (count * how.element_bytes <= kLatencyBytes) {
    ReduceSmall(call, bytes, count, how);
  } else {
    ReduceLarge(call, bytes, count, how, /*shares=*/true);
  }
}

void GlooTransfers::ReduceScatter(const TransferCall& call, void* data,
                                  int64_t count, const ReduceArithmetic& how) {
  char* bytes = static_cast<char*>(data);
  if (count * how.element_bytes <= kLatencyBytes) {
    ReduceSmall(call, bytes, count, how);
  } else {
    ReduceLarge(call, bytes, count, how, /*shares=*/false);
  }
}

void GlooTransfers::ReduceSmall(const TransferCall& call, char* data,
                                int64_t count, const ReduceArithmetic& how) {
  if (how.scale) how.scale(data, how.pre_scale, count);  // all ranks do
  ExchangeSmall(call, data, count * how.element_bytes);
  if (count == 0) return;  // `data` may be null
  const auto term = [&](int rank) {
    return rank == rank_ ? data : theirs_[rank].data.data();
  };
  // Sum up in rank 0's copy: `data` itself may be needed later on.
  char* sum = term(0);
  for (int r = 1; r < world_size_; ++r) how.reduce(sum, sum, term(r), count);
  if (sum != data) std::memcpy(data, sum, count * how.element_bytes);
}

ElementRange GlooTransfers::Segment(int rank, int64_t index, int64_t count,
                                    int64_t element_bytes) const {
  return PieceOfPart(rank, world_size_, index, kSegmentBytes / element_bytes,
                     count);
}

void GlooTransfers::ReduceLarge(const TransferCall& call, char* data,
                                int64_t count, const ReduceArithmetic& how,
                                bool shares) {
  const int64_t bytes = how.element_bytes;
  outgoing_ = mesh_.MakeBuffer(data, count * bytes);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer != rank_ && shares) {
      incoming_[peer] = mesh_.MakeBuffer(data, count * bytes);
    }
  }
  sends_ = 0;
  int64_t segments = 0;
  for (int r = 0; r < world_size_; ++r) {
    while (Segment(r, segments, count, bytes).count > 0) ++segments;
  }
  // While one segment is reduced, the next one is on its way.
  for (int64_t i = 0; i <= segments; ++i) {
    if (i < segments) StartSegment(call, i, count, bytes);
    if (i == 0) continue;
    ReduceSegment(call, i - 1, data, count, how);
    if (shares) ShareSegment(call, i - 1, count, bytes);
  }
  Finish(call, shares ? segments : 0, count, bytes);
}

void GlooTransfers::StartSegment(const TransferCall& call, int64_t index,
                                 int64_t count, int64_t element_bytes) {
  const uint64_t tag = call.tag + kContribution;
  const ElementRange own = Segment(rank_, index, count, element_bytes);
  for (int peer = 0; peer < world_size_ && own.count > 0; ++peer) {
    if (peer == rank_) continue;
    mesh_.Receive(*segments_[index & 1][peer].gloo, ranks_[peer], tag, 0,
                  own.count * element_bytes);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    const ElementRange theirs = Segment(peer, index, count, element_bytes);
    if (peer == rank_ || theirs.count == 0) continue;
    mesh_.Send(*outgoing_, ranks_[peer], tag, theirs.start * element_bytes,
               theirs.count * element_bytes);
    ++sends_;
  }
}

// The sum stays in rank 0's copy until this rank's own turn, then in `data`.
void GlooTransfers::ReduceSegment(const TransferCall& call, int64_t index,
                                  char* data, int64_t count,
                                  const ReduceArithmetic& how) {
  const ElementRange own = Segment(rank_, index, count, how.element_bytes);
  if (own.count == 0) return;
  char* mine = data + own.start * how.element_bytes;
  char* sum = nullptr;
  for (int r = 0; r < world_size_; ++r) {
    char* term = mine;
    if (r != rank_) {
      Registered& segment = segments_[index & 1][r];
      mesh_.AwaitReceived(*segment.gloo, ranks_[r], call.deadline);
      term = segment.data.data();
    }
    if (how.scale) how.scale(term, how.pre_scale, own.count);
    if (sum == nullptr) {
      sum = term;
      continue;
    }
    char* next = r >= rank_ ? mine : sum;
    how.reduce(next, sum, term, own.count);
    sum = next;
  }
}

// A peer gives its result only after it has this rank's contribution, so the
// data that it overwrites has been sent.
void GlooTransfers::ShareSegment(const TransferCall& call, int64_t index,
                                 int64_t count, int64_t element_bytes) {
  const uint64_t tag = call.tag + kResult;
  const ElementRange own = Segment(rank_, index, count, element_bytes);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    const ElementRange theirs = Segment(peer, index, count, element_bytes);
    if (theirs.count > 0) {
      mesh_.Receive(*incoming_[peer], ranks_[peer], tag,
                    theirs.start * element_bytes, theirs.count * element_bytes);
    }
    if (own.count > 0) {
      mesh_.Send(*outgoing_, ranks_[peer], tag, own.start * element_bytes,
                 own.count * element_bytes);
      ++sends_;
    }
  }
}

void GlooTransfers::Finish(const TransferCall& call, int64_t segments,
                           int64_t count, int64_t element_bytes) {
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    for (int64_t i = 0; i < segments; ++i) {
      if (Segment(peer, i, count, element_bytes).count == 0) break;
      mesh_.AwaitReceived(*incoming_[peer], ranks_[peer], call.deadline);
    }
  }
  for (; sends_ > 0; --sends_) mesh_.AwaitSent(*outgoing_, call.deadline);
}

// A binomial tree: a rank's parent is at its place without the lowest set bit.
void GlooTransfers::Broadcast(const TransferCall& call, void* data,
                              int64_t bytes, int root) {
  const int place = (rank_ - root + world_size_) % world_size_;  // root: 0
  const auto rank_at = [&](int p) { return (p + root) % world_size_; };
  int parent_bit = 1;
  while (parent_bit < world_size_ && (place & parent_bit) == 0) {
    parent_bit <<= 1;
  }
  const int parent = place == 0 ? -1 : rank_at(place - parent_bit);
  outgoing_ = mesh_.MakeBuffer(data, bytes);
  sends_ = 0;
  for (int64_t at = 0; at < bytes && parent >= 0; at += kSegmentBytes) {
    mesh_.Receive(*outgoing_, ranks_[parent], call.tag + kPayload, at,
                  std::min(kSegmentBytes, bytes - at));
  }
  for (int64_t at = 0; at < bytes; at += kSegmentBytes) {
    const int64_t size = std::min(kSegmentBytes, bytes - at);
    if (parent >= 0) {
      mesh_.AwaitReceived(*outgoing_, ranks_[parent], call.deadline);
    }
    for (int bit = parent_bit >> 1; bit > 0; bit >>= 1) {
      if (place + bit >= world_size_) continue;
      mesh_.Send(*outgoing_, ranks_[rank_at(place + bit)], call.tag + kPayload,
                 at, size);
      ++sends_;
    }
  }
  for (; sends_ > 0; --sends_) mesh_.AwaitSent(*outgoing_, call.deadline);
}

// A part goes to everybody at once, little by way of buffers that Gloo knows
// already.
void GlooTransfers::GatherParts(const TransferCall& call, void* data,
                                int64_t bytes) {
  char* const all = static_cast<char*>(data);
  if (bytes <= kLatencyBytes) {
    ExchangeSmall(call, all + rank_ * bytes, bytes);
    for (int peer = 0; peer < world_size_; ++peer) {
      if (peer == rank_ || bytes == 0) continue;
      std::memcpy(all + peer * bytes, theirs_[peer].data.data(), bytes);
    }
    return;
  }
  outgoing_ = mesh_.MakeBuffer(all + rank_ * bytes, bytes);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    incoming_[peer] = mesh_.MakeBuffer(all + peer * bytes, bytes);
    mesh_.Receive(*incoming_[peer], ranks_[peer], call.tag + kPayload, 0,
                  bytes);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.Send(*outgoing_, ranks_[peer], call.tag + kPayload, 0, bytes);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.AwaitReceived(*incoming_[peer], ranks_[peer], call.deadline);
    mesh_.AwaitSent(*outgoing_, call.deadline);
  }
}

std::vector<std::string> GlooTransfers::AllGather(const TransferCall& call,
                                                  absl::string_view mine) {
  std::vector<int64_t> sizes(world_size_);
  sizes[rank_] = static_cast<int64_t>(mine.size());
  ExchangeSmall(call, &sizes[rank_], sizeof(int64_t));
  std::vector<std::string>& all = gathered_;
  all.assign(world_size_, "");
  all[rank_] = std::string(mine);
  outgoing_ = mesh_.MakeBuffer(&all[rank_][0], sizes[rank_]);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    std::memcpy(&sizes[peer], theirs_[peer].data.data(), sizeof(int64_t));
    all[peer].resize(sizes[peer]);
    incoming_[peer] = mesh_.MakeBuffer(&all[peer][0], sizes[peer]);
    mesh_.Receive(*incoming_[peer], ranks_[peer], call.tag + kPayload, 0,
                  sizes[peer]);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.Send(*outgoing_, ranks_[peer], call.tag + kPayload, 0, sizes[rank_]);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mesh_.AwaitReceived(*incoming_[peer], ranks_[peer], call.deadline);
    mesh_.AwaitSent(*outgoing_, call.deadline);
  }
  return std::move(gathered_);
}

void GlooTransfers::Barrier(const TransferCall& call) {
  const char nothing = 0;
  ExchangeSmall(call, &nothing, 1);
}

}  // namespace runtime
}  // namespace halftone
