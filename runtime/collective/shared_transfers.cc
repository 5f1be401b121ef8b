#include "runtime/collective/shared_transfers.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "absl/memory/memory.h"
#include "graph/base/error.h"
#include "runtime/collective/spin.h"
#include "runtime/device/host_info.h"

namespace halftone {
namespace runtime {
namespace {

// What a rank offers at a time: it and what the others offer stay in a
// second-level cache, and is large enough to hide what a signal costs.
constexpr int64_t kBufferBytes = 256 << 10;
// Three are needed: one that is read, one that is complete, and one that a rank
// writes before it waits. Four, so that they go on in turn where counters wrap.
constexpr int kBuffers = 4;
// Up to here one exchange among all beats two rounds.
constexpr int64_t kSmallBytes = 32 << 10;
// Their lines and parts of buffers must be of use.
constexpr int kMaxRanks = 512;
// Between two looks at what no signal tells.
constexpr int64_t kLookNanoseconds = 5'000'000;
// A rank may be two calls ahead of one that it need not wait for.
constexpr int kTags = 4;

constexpr int kCounters = 3;
constexpr int kBuffered = 2;  // of them
// Of Allocate, in a rank's life: a program's entries have one each.
constexpr int kMaxBlocks = 16;
constexpr int64_t kAddressBytes = 128;
constexpr int kOffsetBits = 48;  // of a place; the rest is the block's number

// One at least: nobody leaves a call before all have come.
int64_t BuffersFor(int64_t bytes) {
  return std::max<int64_t>(1, (bytes + kBufferBytes - 1) / kBufferBytes);
}

using Counter = std::atomic<uint32_t>;
static_assert(sizeof(Counter) == 4 && Counter::is_always_lock_free,
              "the kernel and other processes look at it");

// Sleeps if `counter` still is `value`, at most kLookNanoseconds.
void SleepWhile(const Counter& counter, uint32_t value) {
  const timespec time = {0, kLookNanoseconds};
  syscall(SYS_futex, &counter, FUTEX_WAIT, value, &time, nullptr, 0);
}

void WakeAll(const Counter& counter) {
  syscall(SYS_futex, &counter, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace

struct SharedTransfers::Line {
  struct alignas(64) OfALine {
    Counter value;
  };
  OfALine counters[kCounters];
  struct OfABlock {
    char address[kAddressBytes];  // ends with a 0
    int64_t bytes;
  };
  // Of the last calls, in turn.
  alignas(64) std::atomic<uint64_t> tags[kTags];
  std::atomic<uint64_t> places[kTags];
  alignas(64) std::atomic<uint32_t> sleeps;  // on another's counter
  std::atomic<uint32_t> gone;
  OfABlock blocks[kMaxBlocks];  // there before a place names them
};

struct SharedTransfers::Block {
  SharedSegment segment;
  int64_t bytes;
};

class SharedTransfers::BlockMemory : public Memory {
 public:
  explicit BlockMemory(std::shared_ptr<Block> block)
      : block_(std::move(block)) {}
  void* data() const override { return block_->segment.data(); }
  int64_t bytes() const override { return block_->bytes; }

 private:
  std::shared_ptr<Block> block_;
};

absl::StatusOr<std::unique_ptr<Transfers>> SharedTransfers::Connect(
    int rank, std::vector<int> ranks, const AllGather& all_gather) {
  const int own_place = PlaceIn(ranks, rank);
  const int world_size = static_cast<int>(ranks.size());
  const int64_t bytes =
      sizeof(Line) + int64_t{kBuffered} * kBuffers * kBufferBytes;
  std::vector<SharedSegment> segments(world_size);
  absl::StatusOr<SharedSegment> own = CommunicationError("too many ranks");
  if (world_size <= kMaxRanks) own = SharedSegment::Create(bytes);
  if (own.ok()) segments[own_place] = std::move(*own);
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                      all_gather(segments[own_place].address()));
  bool reached = own.ok();
  for (int peer = 0; peer < world_size && reached; ++peer) {
    if (peer == own_place) continue;
    absl::StatusOr<SharedSegment> theirs =
        SharedSegment::Open(addresses[ranks[peer]], bytes);
    reached = theirs.ok();
    if (reached) segments[peer] = std::move(*theirs);
  }
  // All of them, or none: one that cannot read is waited for in vain.
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> verdicts,
                      all_gather(reached ? "yes" : "no"));
  for (const int peer : ranks) {
    if (verdicts[peer] != "yes") return nullptr;
  }
  segments[own_place].Unpublish();
  return absl::WrapUnique(
      new SharedTransfers(own_place, std::move(ranks), std::move(segments)));
}

SharedTransfers::SharedTransfers(int rank, std::vector<int> ranks,
                                 std::vector<SharedSegment> segments)
    : ranks_(std::move(ranks)),
      rank_(rank),
      world_size_(static_cast<int>(segments.size())),
      spins_(world_size_ <= UsableCores()),
      segments_(std::move(segments)),
      scratch_(kReduceBlock * sizeof(double)) {
  for (Events* events : {&posted_, &reduced_, &ended_}) {
    events->seen.resize(world_size_);
  }
  reduced_.counter = 1;
  ended_.counter = 2;
  their_blocks_.resize(world_size_);
  in_place_.resize(world_size_);
  posted_.buffers = sizeof(Line);
  reduced_.buffers = posted_.buffers + kBuffers * kBufferBytes;
}

SharedTransfers::~SharedTransfers() { Close(); }

void SharedTransfers::Close() {
  Line& own = OwnLine();
  own.gone.store(1);
  for (const Line::OfALine& counter : own.counters) WakeAll(counter.value);
}

SharedTransfers::Line& SharedTransfers::OwnLine() {
  return *reinterpret_cast<Line*>(segments_[rank_].data());
}

const SharedTransfers::Line& SharedTransfers::LineOf(int rank) const {
  return *reinterpret_cast<const Line*>(segments_[rank].data());
}

char* SharedTransfers::Buffer(const Events& events, int rank,
                              int64_t index) const {
  const uint32_t event = events.seen[rank] + static_cast<uint32_t>(index);
  return segments_[rank].data() + events.buffers +
         event % kBuffers * kBufferBytes;
}

std::unique_ptr<Memory> SharedTransfers::Allocate(int64_t bytes) {
  const size_t number = blocks_.size();
  if (number == kMaxBlocks) return nullptr;
  absl::StatusOr<SharedSegment> segment = SharedSegment::Create(bytes);
  if (!segment.ok() || segment->address().size() >= kAddressBytes) {
    return nullptr;
  }
  Line::OfABlock& line = OwnLine().blocks[number];
  segment->address().copy(line.address, kAddressBytes - 1);
  line.bytes = bytes;
  auto block = std::make_shared<Block>(Block{*std::move(segment), bytes});
  blocks_.push_back(block);
  return absl::make_unique<BlockMemory>(std::move(block));
}

uint64_t SharedTransfers::PlaceOf(const char* data, int64_t bytes) const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const std::shared_ptr<Block> block = blocks_[i].lock();
    if (block == nullptr) continue;
    const int64_t offset = data - block->segment.data();
    if (offset < 0 || offset + bytes > block->bytes) continue;
    return (uint64_t{i} + 1) << kOffsetBits | static_cast<uint64_t>(offset);
  }
  return 0;
}

const char* SharedTransfers::DataOf(const TransferCall& call, int peer) {
  const Line& line = LineOf(peer);
  const uint64_t place = line.places[call.number % kTags].load();
  if (place == 0) return nullptr;
  const uint64_t number = ((place >> kOffsetBits) - 1) % kMaxBlocks;
  const uint64_t offset = place & ((uint64_t{1} << kOffsetBits) - 1);
  std::vector<SharedSegment>& mapped = their_blocks_[peer];
  if (mapped.size() <= number) mapped.resize(number + 1);
  SharedSegment& segment = mapped[number];
  if (segment.data() == nullptr) {
    const Line::OfABlock& block = line.blocks[number];
    absl::StatusOr<SharedSegment> opened = SharedSegment::Open(
        absl::string_view(block.address, strnlen(block.address, kAddressBytes)),
        block.bytes);
    if (!opened.ok()) {
      awaited_peer_ = ranks_[peer];
      throw std::runtime_error(std::string(opened.status().message()));
    }
    segment = *std::move(opened);
  }
  return segment.data() + offset;
}

void SharedTransfers::Begin(const TransferCall& call, uint64_t place) {
  Line& own = OwnLine();
  own.places[call.number % kTags].store(place);
  own.tags[call.number % kTags].store(call.tag);
}

void SharedTransfers::Signal(const Events& events) {
  Counter& counter = OwnLine().counters[events.counter].value;
  counter.fetch_add(1);  // before the look at who sleeps
  for (int peer = 0; peer < world_size_; ++peer) {
    if (LineOf(peer).sleeps.load() == 0 || peer == rank_) continue;
    WakeAll(counter);
    return;
  }
}

void SharedTransfers::Await(const Events& events, int peer, int64_t index,
                            const TransferCall& call) {
  const Line& theirs = LineOf(peer);
  const Counter& counter = theirs.counters[events.counter].value;
  const uint32_t event = events.seen[peer] + static_cast<uint32_t>(index) + 1;
  // A peer that makes another call never gets there.
  const auto reached = [&] {
    return static_cast<int32_t>(counter.load() - event) >= 0 &&
           theirs.tags[call.number % kTags].load() == call.tag;
  };
  if (reached()) return;
  awaited_peer_ = ranks_[peer];
  if (spins_ && Spin(reached)) return;
  Line& own = OwnLine();
  own.sleeps.store(1);  // before the look at the counter
  while (true) {
    const uint32_t value = counter.load();
    const bool gone = theirs.gone.load() != 0;  // what it did came before
    if (reached()) break;
    if (interrupted_ || MonotonicTime::Now() >= call.deadline) {
      throw TransferInterrupted();
    }
    if (gone) throw std::runtime_error("it left");
    SleepWhile(counter, value);
  }
  own.sleeps.store(0);
}

void SharedTransfers::AwaitAll(const Events& events, int64_t index,
                               const TransferCall& call) {
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer != rank_) Await(events, peer, index, call);
  }
}

void SharedTransfers::AllReduce(const TransferCall& call, void* data,
                                int64_t count, const ReduceArithmetic& how) {
  Reduce(call, data, count, how, /*shares=*/true);
}

void SharedTransfers::ReduceScatter(const TransferCall& call, void* data,
                                    int64_t count,
                                    const ReduceArithmetic& how) {
  Reduce(call, data, count, how, /*shares=*/false);
}

void SharedTransfers::Reduce(const TransferCall& call, void* data,
                             int64_t count, const ReduceArithmetic& how,
                             bool shares) {
  const int64_t bytes = count * how.element_bytes;
  const bool small = bytes <= kSmallBytes;
  char* const own = static_cast<char*>(data);
  const uint64_t place = small ? 0 : PlaceOf(own, bytes);
  Begin(call, place);
  const int64_t piece = kBufferBytes / world_size_ / how.element_bytes;
  const Reduction what = {call,       own,   count, how, piece / 64 * 64,
                          place != 0, shares};
  if (small) {
    ReduceSmall(what);
  } else {
    ReduceLarge(what);
  }
}

// Each rank reduces all of it, its own as it offered it.
void SharedTransfers::ReduceSmall(const Reduction& what) {
  const ReduceArithmetic& how = what.how;
  if (how.scale) how.scale(what.data, how.pre_scale, what.count);
  if (what.count > 0) {  // else `data` may be null
    std::memcpy(Buffer(posted_, rank_, 0), what.data,
                what.count * how.element_bytes);
  }
  Signal(posted_);
  AwaitAll(posted_, 0, what.call);
  const void* sum = Buffer(posted_, 0, 0);
  for (int r = 1; r < world_size_ && what.count > 0; ++r) {
    how.reduce(what.data, sum, Buffer(posted_, r, 0), what.count);
    sum = what.data;
  }
  for (uint32_t& seen : posted_.seen) ++seen;
}

void SharedTransfers::ReduceLarge(const Reduction& what) {
  int64_t chunks = 0;
  for (int r = 0; r < world_size_; ++r) {
    while (PieceOfPart(r, world_size_, chunks, what.chunk, what.count).count >
           0) {
      ++chunks;
    }
  }
  // A rank offers the next chunk before it waits for others with this one.
  // What it overwrites was offered four chunks before, and all have read it:
  // their results of that chunk have been collected.
  Post(what, 0);
  for (int64_t i = 0; i <= chunks; ++i) {
    if (i + 1 < chunks) Post(what, i + 1);
    if (i == 0) {
      AwaitAll(posted_, 0, what.call);
      for (int r = 0; r < world_size_; ++r) {
        in_place_[r] = r == rank_ ? nullptr : DataOf(what.call, r);
      }
    }
    if (i < chunks) ReduceOwn(what, i);
    if (i > 0) Collect(what, i - 1);
  }
  // What others read where it is must stay until they have.
  Signal(ended_);
  if (what.in_block) AwaitAll(ended_, 0, what.call);
  for (int r = 0; r < world_size_; ++r) {
    posted_.seen[r] += static_cast<uint32_t>(chunks);
    reduced_.seen[r] += static_cast<uint32_t>(chunks);
    ended_.seen[r] += 1;
  }
}

// To every peer its own place in the buffer, if it cannot read it elsewhere.
void SharedTransfers::Post(const Reduction& what, int64_t index) {
  const int64_t bytes = what.how.element_bytes;
  char* const buffer = Buffer(posted_, rank_, index);
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    const ElementRange part =
        PieceOfPart(peer, world_size_, index, what.chunk, what.count);
    char* const data = what.data + part.start * bytes;
    char* const to = what.in_block ? data : buffer + peer * what.chunk * bytes;
    for (int64_t at = 0; at < part.count; at += kReduceBlock) {
      const int64_t count = std::min(kReduceBlock, part.count - at);
      if (to != data) {
        std::memcpy(to + at * bytes, data + at * bytes, count * bytes);
      }
      if (what.how.scale) {
        what.how.scale(to + at * bytes, what.how.pre_scale, count);
      }
    }
  }
  Signal(posted_);
}

void SharedTransfers::ReduceOwn(const Reduction& what, int64_t index) {
  const ReduceArithmetic& how = what.how;
  const int64_t bytes = how.element_bytes;
  AwaitAll(posted_, index, what.call);
  const ElementRange part =
      PieceOfPart(rank_, world_size_, index, what.chunk, what.count);
  char* const result = Buffer(reduced_, rank_, index);
  for (int64_t at = 0; at < part.count; at += kReduceBlock) {
    const int64_t count = std::min(kReduceBlock, part.count - at);
    char* const own = what.data + (part.start + at) * bytes;
    if (how.scale) how.scale(own, how.pre_scale, count);
    const void* sum = nullptr;
    for (int r = 0; r < world_size_; ++r) {
      const char* term = own;
      if (r != rank_) {
        term =
            in_place_[r] != nullptr
                ? in_place_[r] + (part.start + at) * bytes
                : Buffer(posted_, r, index) + (rank_ * what.chunk + at) * bytes;
      }
      if (sum == nullptr) {
        sum = term;
        continue;
      }
      // `own` is needed until it is this rank's turn.
      void* const next = r < rank_ ? scratch_.data() : own;
      how.reduce(next, sum, term, count);
      sum = next;
    }
    if (what.shares && !what.in_block) {
      std::memcpy(result + at * bytes, own, count * bytes);
    }
  }
  Signal(reduced_);
}

void SharedTransfers::Collect(const Reduction& what, int64_t index) {
  const int64_t bytes = what.how.element_bytes;
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    Await(reduced_, peer, index, what.call);
    if (!what.shares) continue;  // it has read what was posted
    const ElementRange part =
        PieceOfPart(peer, world_size_, index, what.chunk, what.count);
    const char* from = in_place_[peer] != nullptr
                           ? in_place_[peer] + part.start * bytes
                           : Buffer(reduced_, peer, index);
    std::memcpy(what.data + part.start * bytes, from, part.count * bytes);
  }
}

// Whoever has taken a buffer says so, and the root goes on.
void SharedTransfers::Broadcast(const TransferCall& call, void* data,
                                int64_t bytes, int root) {
  Begin(call);
  char* const all = static_cast<char*>(data);
  const int64_t chunks = BuffersFor(bytes);
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t at = i * kBufferBytes;
    const int64_t size = std::min(kBufferBytes, bytes - at);
    char* const buffer = Buffer(posted_, root, i);
    if (rank_ == root) {
      if (i >= 2) AwaitAll(reduced_, i - 2, call);
      if (size > 0) std::memcpy(buffer, all + at, size);
      Signal(posted_);
    } else {
      Await(posted_, root, i, call);
      if (size > 0) std::memcpy(all + at, buffer, size);
      Signal(reduced_);
    }
  }
  if (rank_ == root) AwaitAll(reduced_, chunks - 1, call);
  for (int r = 0; r < world_size_; ++r) {
    (r == root ? posted_ : reduced_).seen[r] += static_cast<uint32_t>(chunks);
  }
}

void SharedTransfers::GatherParts(const TransferCall& call, void* data,
                                  int64_t bytes) {
  Begin(call);
  char* const all = static_cast<char*>(data);
  const int64_t chunks = BuffersFor(bytes);
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t at = i * kBufferBytes;
    const int64_t size = std::min(kBufferBytes, bytes - at);
    if (size > 0) {
      std::memcpy(Buffer(posted_, rank_, i), all + rank_ * bytes + at, size);
    }
    Signal(posted_);
    for (int peer = 0; peer < world_size_; ++peer) {
      if (peer == rank_) continue;
      Await(posted_, peer, i, call);
      if (size > 0) {
        std::memcpy(all + peer * bytes + at, Buffer(posted_, peer, i), size);
      }
    }
  }
  for (uint32_t& seen : posted_.seen) seen += static_cast<uint32_t>(chunks);
}

}  // namespace runtime
}  // namespace halftone
