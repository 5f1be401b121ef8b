#include "runtime/collective/gloo_communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/collective_status.h"
#include "runtime/collective/connect.h"
#include "runtime/collective/hierarchical_transfers.h"
#include "runtime/collective/reduce.h"
#include "runtime/collective/shared_transfers.h"

namespace halftone {
namespace runtime {
namespace {

// How long the store may take to tell what became of a peer.
constexpr absl::Duration kNews = absl::Seconds(1);
// Gloo is told to wait for whole milliseconds and may give up a little early.
constexpr absl::Duration kEarly = absl::Milliseconds(20);
// Between two looks at what only a question can tell.
constexpr std::chrono::milliseconds kQuestionLook(1);

// Equal on ranks that make the same call, different for different calls: data
// of one call never lands in another's buffers.
uint64_t TagOf(const Call& call, int64_t number) {
  int64_t scale = 0;
  std::memcpy(&scale, &call.pre_scale, sizeof(call.pre_scale));
  const int64_t fields[] = {number,
                            static_cast<int64_t>(call.collective),
                            static_cast<int64_t>(call.dtype),
                            static_cast<int64_t>(call.op),
                            call.root,
                            call.count,
                            scale};
  return StableHash(absl::string_view(reinterpret_cast<const char*>(fields),
                                      sizeof(fields)))
         << 8;
}

std::vector<int> AllRanks(int world_size) {
  std::vector<int> ranks(world_size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

GlooCommunicator::GlooCommunicator(std::unique_ptr<Meeting> meeting,
                                   std::unique_ptr<GlooMesh> mesh,
                                   std::unique_ptr<StoreClient> watcher,
                                   int rank, int world_size,
                                   absl::Duration timeout)
    : rank_(rank),
      world_size_(world_size),
      timeout_(timeout),
      meeting_(std::move(meeting)),
      mesh_(std::move(mesh)),
      sockets_(absl::make_unique<GlooTransfers>(*mesh_, rank,
                                                AllRanks(world_size))) {
  watch_ = absl::make_unique<RunWatch>(
      std::move(watcher), rank, meeting_->store_keeper(),
      RunWatch::Callbacks{
          [this](const RunFailure& failure) { OnFailure(failure); },
          [this] { return StatusText(); }});
}

GlooCommunicator::~GlooCommunicator() {
  watch_.reset();
  // Peers that still wait for this rank find out that it left for good.
  (void)meeting_->store().Bye();
  CloseTransfers();
  by_nodes_.reset();
  sockets_.reset();
  mesh_.reset();
}

absl::StatusOr<std::unique_ptr<Transfers>> GlooCommunicator::ShareAmong(
    std::vector<int> ranks) {
  return SharedTransfers::Connect(
      rank_, std::move(ranks),
      [this](absl::string_view mine) { return AllGather(mine); });
}

// Whoever failed meanwhile fails on.
void GlooCommunicator::Use(std::unique_ptr<Transfers> made,
                           std::unique_ptr<Transfers>* as) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (made && !reason_.empty()) made->Interrupt();
  *as = std::move(made);
}

absl::Status GlooCommunicator::ShareMemory() {
  may_share_ = true;
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Transfers> shared,
                      ShareAmong(AllRanks(world_size_)));
  Use(std::move(shared), &shared_);
  return absl::OkStatus();
}

absl::Status GlooCommunicator::ReduceByNodes(int ranks_per_node) {
  if (ranks_per_node == 1 || ranks_per_node == world_size_) {
    return absl::OkStatus();
  }
  const auto join = [this](std::vector<int> ranks)
      -> absl::StatusOr<std::unique_ptr<Transfers>> {
    std::unique_ptr<Transfers> shared;
    if (may_share_) {
      HT_ASSIGN_OR_RETURN(shared, ShareAmong(ranks));
    }
    if (shared) return shared;
    return absl::make_unique<GlooTransfers>(*mesh_, rank_, std::move(ranks));
  };
  HT_ASSIGN_OR_RETURN(
      std::unique_ptr<Transfers> by_nodes,
      HierarchicalTransfers::Connect(rank_, world_size_, ranks_per_node,
                                     transfers(), join));
  Use(std::move(by_nodes), &by_nodes_);
  return absl::OkStatus();
}

void GlooCommunicator::CloseTransfers() {
  sockets_->Close();
  if (shared_) shared_->Close();
  if (by_nodes_) by_nodes_->Close();
}

template <typename Transfer>
absl::Status GlooCommunicator::Run(const Call& call, const Transfers& how,
                                   const Transfer& transfer) {
  TransferCall what;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failed_.ok()) return failed_;
    call_ = call;
    inside_ = true;
    begun_ = MonotonicTime::Now();
    limit_ = timeout_;
    what.number = ++calls_;
    what.tag = TagOf(call, what.number);
    what.deadline = begun_ + timeout_;
  }
  try {
    transfer(what);
    std::lock_guard<std::mutex> lock(mutex_);
    inside_ = false;
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return IsOutOfMemory(error) ? OutOfMemory()
                                : Failed(error.what(), how.awaited_peer());
  }
}

absl::Status GlooCommunicator::AllReduce(void* data, int64_t count, DType dtype,
                                         ReduceOp op, float pre_scale,
                                         Stream&) {
  HT_ASSIGN_OR_RETURN(const ReduceArithmetic how,
                      FindReduceArithmetic(dtype, op, pre_scale));
  return Run({Collective::kAllReduce, dtype, op, 0, count, pre_scale},
             transfers(), [&](const TransferCall& call) {
               transfers().AllReduce(call, data, count, how);
             });
}

absl::Status GlooCommunicator::ReduceScatter(void* data, int64_t count,
                                             DType dtype, float pre_scale,
                                             Stream& stream) {
  if (count % kPartElements != 0) {  // parts are cut elsewhere
    return Communicator::ReduceScatter(data, count, dtype, pre_scale, stream);
  }
  const ReduceOp op = ReduceOp::kSum;
  HT_ASSIGN_OR_RETURN(const ReduceArithmetic how,
                      FindReduceArithmetic(dtype, op, pre_scale));
  return Run({Collective::kReduceScatter, dtype, op, 0, count, pre_scale},
             transfers(), [&](const TransferCall& call) {
               transfers().ReduceScatter(call, data, count * world_size_, how);
             });
}

absl::Status GlooCommunicator::Broadcast(void* data, int64_t bytes, int root,
                                         Stream&) {
  if (root < 0 || root >= world_size_) {
    return CompilerBug("broadcast from rank ", root, " of ", world_size_);
  }
  Call what{Collective::kBroadcast};
  what.root = root;
  what.count = bytes;
  return Run(what, transfers(), [&](const TransferCall& call) {
    transfers().Broadcast(call, data, bytes, root);
  });
}

absl::Status GlooCommunicator::GatherParts(void* data, int64_t bytes, Stream&) {
  Call what{Collective::kGatherParts};
  what.count = bytes;
  return Run(what, transfers(), [&](const TransferCall& call) {
    transfers().GatherParts(call, data, bytes);
  });
}

absl::StatusOr<std::vector<std::string>> GlooCommunicator::AllGather(
    absl::string_view mine) {
  std::vector<std::string> all;
  HT_RETURN_IF_ERROR(
      Run({Collective::kAllGather}, *sockets_, [&](const TransferCall& call) {
        all = sockets_->AllGather(call, mine);
      }));
  return all;
}

absl::Status GlooCommunicator::Barrier() {
  return Run({Collective::kBarrier}, *sockets_,
             [&](const TransferCall& call) { sockets_->Barrier(call); });
}

absl::Status GlooCommunicator::Await(
    absl::string_view what, absl::Duration timeout,
    const std::function<absl::StatusOr<bool>()>& done) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failed_.ok()) return failed_;
  awaited_ = std::string(what);
  inside_ = true;
  begun_ = MonotonicTime::Now();
  limit_ = timeout;
  absl::StatusOr<bool> is_done = false;
  while (reason_.empty() && MonotonicTime::Now() - begun_ < timeout) {
    lock.unlock();
    is_done = done();
    lock.lock();
    if (!is_done.ok() || *is_done) break;
    changed_.wait_for(lock, kQuestionLook);
  }
  const bool peers_failed =
      is_done.ok() ? !*is_done
                   : ExitCodeOf(is_done.status()) == ExitCode::kCommunication;
  if (peers_failed) {
    lock.unlock();
    return Failed(is_done.ok() ? "" : std::string(is_done.status().message()),
                  -1);
  }
  awaited_.clear();
  inside_ = false;
  return is_done.status();
}

void GlooCommunicator::Abort(const absl::Status& reason) {
  RunFailure failure;
  failure.suspects = {rank_};
  failure.text =
      absl::StrCat("aborted by rank ", rank_, ": ", reason.message());
  (void)meeting_->store().Fail(failure);
  OnFailure(failure);
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.ok() && !inside_) failed_ = CommunicationError(reason_);
}

void GlooCommunicator::OnFailure(const RunFailure& failure) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reason_.empty()) reason_ = failure.text;
    changed_.notify_all();
    if (shared_) shared_->Interrupt();
    if (by_nodes_) by_nodes_->Interrupt();
  }
  sockets_->Interrupt();
}

std::string GlooCommunicator::AwaitReason(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                    [&] { return !reason_.empty(); });
  return reason_;
}

std::string GlooCommunicator::Doing() const {
  return awaited_.empty() ? Describe(call_) : awaited_;
}

absl::Status GlooCommunicator::Failed(const std::string& cause, int peer) {
  const MonotonicTime now = MonotonicTime::Now();
  CloseTransfers();
  // It may have gone with its machine, and the run is lost as it is.
  meeting_->store().set_patience(kNews);
  std::string reason;
  bool late;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reason = reason_;
    late = now - begun_ + kEarly >= limit_;
  }
  // If a peer that has left had failed, it told why before. Others end their
  // connections when they are late, and inquire before they say why.
  if (reason.empty() && !late) {
    reason = AwaitReason(WhyLeft(peer) ? kNews / 4 : 2 * kNews);
  }
  if (reason.empty()) {
    const RunFailure failure =
        late ? InquireAboutLate() : ExplainBroken(cause, peer);
    (void)meeting_->store().Fail(failure);
    reason = failure.text;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Duration waited =
      absl::Trunc(now - begun_, absl::Milliseconds(1));
  failed_ = CommunicationError(Doing(), " on rank ", rank_, " of ", world_size_,
                               ", waited ", absl::FormatDuration(waited), ": ",
                               reason);
  inside_ = false;
  return failed_;
}

absl::Status GlooCommunicator::OutOfMemory() {
  CloseTransfers();
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = OutOfMemoryError(Doing(), " on rank ", rank_, " of ", world_size_,
                              ": out of memory; use a smaller batch, or fewer "
                              "ranks on a machine");
    failed_ = status;
    inside_ = false;
  }
  // So that the others blame nobody else.
  Abort(status);
  return status;
}

std::optional<std::string> GlooCommunicator::WhyLeft(int peer) {
  if (peer < 0) return std::nullopt;
  absl::StatusOr<WaitResult> left =
      meeting_->store().Wait({LeftKey(peer)}, absl::ZeroDuration());
  if (!left.ok() || !left->missing.empty()) return std::nullopt;
  return left->values[0];
}

RunFailure GlooCommunicator::ExplainBroken(const std::string& cause, int peer) {
  if (peer < 0) return {{}, absl::StrCat("connection lost: ", cause)};
  if (const auto left = WhyLeft(peer)) {
    return {{peer},
            absl::StrCat("rank ", peer, " (", *left, ") left before it")};
  }
  // Without the store, whose end may be the very news, this is all there is.
  return {{peer}, absl::StrCat("connection to rank ", peer, " lost: ", cause)};
}

std::string GlooCommunicator::StatusText() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ToText(CollectiveStatus{inside_, calls_,
                                 calls_ == 0 && !inside_ ? "" : Doing()});
}

RunFailure GlooCommunicator::InquireAboutLate() {
  std::vector<std::string> keys;
  for (int r = 0; r < world_size_; ++r) keys.push_back(StatusKey(r));
  StoreClient& store = meeting_->store();
  // Half the time that a collective has, so that short limits stay short.
  const absl::Duration patience = std::min(kNews, timeout_ / 2);
  if (Inquire(store).ok()) (void)store.Wait(keys, patience);
  std::vector<std::optional<CollectiveStatus>> all(world_size_);
  for (int r = 0; r < world_size_; ++r) {
    absl::StatusOr<std::optional<std::string>> answer = store.Get(keys[r]);
    if (answer.ok() && *answer) all[r] = CollectiveStatusFromText(**answer);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  // This rank's answer may be from an earlier inquiry.
  all[rank_] = CollectiveStatus{true, calls_, Doing()};
  return ExplainLate(rank_, all);
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectRank(
    const ConnectOptions& options) {
  const int rank = options.place.rank;
  const int world_size = options.place.world_size;
  if (world_size == 1) return MakeSingleCommunicator();
  MeetingOptions meeting_options;
  meeting_options.place = options.place;
  meeting_options.token = options.token;
  meeting_options.timeout = options.connect_timeout;
  meeting_options.tmp_dir = options.tmp_dir;
  meeting_options.own_address = options.own_address;
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Meeting> meeting,
                      Meeting::Join(meeting_options));
  HT_ASSIGN_OR_RETURN(std::unique_ptr<StoreClient> watcher,
                      meeting->ConnectWatcher());
  absl::StatusOr<std::unique_ptr<GlooMesh>> mesh =
      GlooMesh::Connect(*meeting, rank, world_size, options.connect_timeout);
  if (!mesh.ok()) {
    // What it waits for may be a rank that has died meanwhile.
    auto failure = meeting->store().Get(kFailureKey);
    if (!failure.ok() || !*failure) return mesh.status();
    return CommunicationError(
        "rank ", rank, " of ", world_size,
        " cannot connect to its peers: ", RunFailureFromText(**failure).text);
  }
  auto communicator = absl::make_unique<GlooCommunicator>(
      std::move(meeting), *std::move(mesh), std::move(watcher), rank,
      world_size, options.timeout);
  if (options.shared_memory) {
    HT_RETURN_IF_ERROR(communicator->ShareMemory());
  }
  return {std::move(communicator)};
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectGloo(
    const GlooOptions& options) {
  ConnectOptions connect;
  connect.place.rank = connect.place.local_rank = options.rank;
  connect.place.world_size = connect.place.local_world_size =
      options.world_size;
  connect.place.master = {options.master_host, options.master_port};
  connect.token = options.token;
  connect.own_address = options.interface_address;
  connect.connect_timeout = options.connect_timeout;
  connect.timeout = options.timeout;
  return ConnectRank(connect);
}

}  // namespace runtime
}  // namespace halftone
