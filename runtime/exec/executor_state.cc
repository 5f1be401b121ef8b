// Cells, the startup that computes them, and the replay of a rejected step:
// what waits for the device.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "runtime/exec/executor_impl.h"
#include "runtime/exec/host_tensor.h"
#include "runtime/exec/non_finite_search.h"

namespace halftone {
namespace runtime {
namespace {

// The cell as all ranks' shards make it up.
kernels::TensorDesc WholeOf(const Cell& cell) {
  TensorType type = cell.type;
  type.sharded = false;
  return kernels::Bind(type, SymbolValues{});
}

}  // namespace

absl::Status ExecutorImpl::WriteConstants() {
  for (int i = 0; i < program_->num_constants(); ++i) {
    const std::string bytes = ConstantBytes(program_->constant(ConstantId(i)));
    HT_RETURN_IF_ERROR(streams_.compute->Copy(
        arenas_.State(state_.constants[i].offset), bytes.data(),
        static_cast<int64_t>(bytes.size())));
    HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  }
  return absl::OkStatus();
}

absl::Status ExecutorImpl::RunStartup(absl::string_view entry, int64_t seed) {
  if (program_->FindEntry(entry) == nullptr) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const int binding, Prepare(entry, SymbolValues{}));
  HT_RETURN_IF_ERROR(Materialize());
  PreparedPlan& plan = *plans_[binding];
  fed_ = nullptr;
  // It waits for the device anyway: no detour for the seed.
  for (size_t i = 0; i < plan.plan().feeds.size(); ++i) {
    const PlannedFeed& feed = plan.plan().feeds[i];
    HT_CHECK(feed.name == kSeed && feed.slice.bytes == sizeof(seed),
             "startup is fed with the seed alone");
    HT_RETURN_IF_ERROR(
        streams_.compute->Copy(plan.feeds()[i], &seed, sizeof(seed)));
  }
  HT_RETURN_IF_ERROR(plan.Enqueue(*communicator_, nullptr));
  HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  plans_.pop_back();  // startup runs once
  return absl::OkStatus();
}

absl::Status ExecutorImpl::Initialize(int64_t seed) {
  HT_RETURN_IF_ERROR(Use());
  HT_RETURN_IF_ERROR(RunStartup(kInitEntry, seed));
  HT_RETURN_IF_ERROR(RunStartup(kDeriveEntry, seed));
  return BroadcastState();
}

absl::Status ExecutorImpl::Derive() {
  HT_RETURN_IF_ERROR(Use());
  return RunStartup(kDeriveEntry, 0);
}

absl::Status ExecutorImpl::BroadcastState() {
  if (communicator_->world_size() == 1 || state_.bytes == 0) {
    return absl::OkStatus();
  }
  HT_RETURN_IF_ERROR(Use());
  HT_RETURN_IF_ERROR(communicator_->Broadcast(
      arenas_.State(0), state_.common_bytes, /*root=*/0, *streams_.compute));
  HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  return state_.bytes > state_.common_bytes ? SpreadWritten()
                                            : absl::OkStatus();
}

absl::Status ExecutorImpl::WithStateKept(
    absl::FunctionRef<absl::Status()> run) {
  Stream& stream = *streams_.compute;
  std::string state(state_.bytes, '\0');
  HT_RETURN_IF_ERROR(stream.Copy(&state[0], arenas_.State(0), state_.bytes));
  HT_RETURN_IF_ERROR(stream.Synchronize());
  HT_RETURN_IF_ERROR(run());
  HT_RETURN_IF_ERROR(stream.Copy(arenas_.State(0), state.data(), state_.bytes));
  return stream.Synchronize();
}

absl::Status ExecutorImpl::RunWatched(PreparedPlan& plan,
                                      StepWatcher* watcher) {
  HT_RETURN_IF_ERROR(watcher->Begin({device_, streams_.compute.get(), kernels_,
                                     Bind(), plan.plan().symbols}));
  return plan.Enqueue(*communicator_, watcher);
}

absl::StatusOr<std::vector<std::string>> ExecutorImpl::ReadFeeds(
    const PreparedPlan& plan) {
  std::vector<std::string> feeds;
  for (size_t i = 0; i < plan.plan().feeds.size(); ++i) {
    const int64_t bytes = plan.plan().feeds[i].slice.bytes;
    feeds.emplace_back(bytes, '\0');
    HT_RETURN_IF_ERROR(
        streams_.compute->Copy(&feeds[i][0], plan.feeds()[i], bytes));
  }
  HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  return feeds;
}

absl::Status ExecutorImpl::WriteFeeds(const PreparedPlan& plan,
                                      const std::vector<std::string>& feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    HT_RETURN_IF_ERROR(
        streams_.compute->Copy(plan.feeds()[i], feeds[i].data(),
                               static_cast<int64_t>(feeds[i].size())));
  }
  return streams_.compute->Synchronize();
}

absl::Status ExecutorImpl::RunAgain(StepWatcher* watcher) {
  Stream& stream = *streams_.compute;
  HT_RETURN_IF_ERROR(stream.Copy(arenas_.State(0), always_before_->data(),
                                 state_.always_bytes));
  for (int i = 0; i < program_->num_cells(); ++i) {
    if (!IsSum(program_->cell(CellId(i)))) continue;
    const Slice& slice = state_.cells[i];
    HT_RETURN_IF_ERROR(
        stream.Fill(arenas_.State(slice.offset), 0, slice.bytes));
  }
  // The last micro-batch's feeds lie where those of the others go.
  PreparedPlan& last = *plans_[last_binding_];
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> feeds, ReadFeeds(last));
  for (size_t i = 0; i < earlier_; ++i) {
    PreparedPlan& plan = *plans_[micro_batches_[i].binding];
    HT_RETURN_IF_ERROR(WriteFeeds(plan, micro_batches_[i].feeds));
    HT_RETURN_IF_ERROR(RunWatched(plan, watcher));
  }
  HT_RETURN_IF_ERROR(WriteFeeds(last, feeds));
  return RunWatched(last, watcher);
}

absl::Status ExecutorImpl::Watch(int binding, absl::Span<const FeedData> feeds,
                                 StepWatcher* watcher) {
  HT_RETURN_IF_ERROR(Use());
  HT_RETURN_IF_ERROR(Materialize());
  PreparedPlan& plan = *plans_[binding];
  const int slot = static_cast<int>(tickets_ % PreparedPlan::kRing);
  HT_RETURN_IF_ERROR(TakeFeeds(plan, feeds, slot));
  return WithStateKept([&] { return RunWatched(plan, watcher); });
}

absl::StatusOr<NonFinite> ExecutorImpl::FirstNonFinite() {
  if (last_binding_ < 0) return NonFinite();
  HT_RETURN_IF_ERROR(Use());
  NonFiniteSearch search;
  HT_RETURN_IF_ERROR(WithStateKept([&] { return RunAgain(&search); }));
  return search.first();
}

absl::StatusOr<StepInputs> ExecutorImpl::LastInputs(
    absl::Span<const CellId> cells) {
  HT_CHECK(last_binding_ >= 0, "a step was executed");
  HT_RETURN_IF_ERROR(Use());
  Stream& stream = *streams_.compute;
  StepInputs read;
  const auto add = [&read](const Plan& plan, std::vector<std::string> bytes) {
    read.micro_batches.push_back({plan.entry, plan.symbols, {}});
    for (size_t i = 0; i < plan.feeds.size(); ++i) {
      read.micro_batches.back().feeds.push_back(
          {plan.feeds[i].name, plan.feeds[i].desc, std::move(bytes[i])});
    }
  };
  for (size_t i = 0; i < earlier_; ++i) {
    const MicroBatch& batch = micro_batches_[i];
    add(plans_[batch.binding]->plan(), batch.feeds);
  }
  const PreparedPlan& last = *plans_[last_binding_];
  HT_ASSIGN_OR_RETURN(std::vector<std::string> fed, ReadFeeds(last));
  add(last.plan(), std::move(fed));
  for (const CellId id : cells) {
    std::string& bytes = read.cells.emplace_back();
    const Slice& slice = state_.cells[id.index()];
    if (slice.offset >= state_.always_bytes) {
      HT_RETURN_IF_ERROR(ReadCell(id, &bytes));
      continue;
    }
    std::string physical(slice.bytes, '\0');
    HT_RETURN_IF_ERROR(stream.Copy(
        &physical[0],
        static_cast<const char*>(always_before_->data()) + slice.offset,
        slice.bytes));
    HT_RETURN_IF_ERROR(stream.Synchronize());
    bytes = ToRowMajor(WholeOf(program_->cell(id)), physical);
  }
  return read;
}

absl::Status ExecutorImpl::ReadCell(CellId id, std::string* bytes) {
  HT_RETURN_IF_ERROR(Use());
  const Cell& cell = program_->cell(id);
  const Slice& slice = state_.cells[id.index()];
  std::string physical(slice.bytes, '\0');
  HT_RETURN_IF_ERROR(streams_.compute->Copy(
      &physical[0], arenas_.State(slice.offset), slice.bytes));
  HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  const kernels::TensorDesc whole = WholeOf(cell);
  if (cell.type.sharded) {
    HT_ASSIGN_OR_RETURN(const std::vector<std::string> shards,
                        communicator_->AllGather(physical));
    physical = absl::StrJoin(shards, "");
    physical.resize(whole.bytes());
  }
  *bytes = ToRowMajor(whole, physical);
  return absl::OkStatus();
}

absl::Status ExecutorImpl::WriteCell(CellId id, absl::string_view bytes) {
  HT_RETURN_IF_ERROR(Use());
  const Cell& cell = program_->cell(id);
  const kernels::TensorDesc whole = WholeOf(cell);
  HT_CHECK(static_cast<int64_t>(bytes.size()) == whole.bytes(),
           "a cell is written whole");
  const std::string physical = FromRowMajor(whole, bytes);
  if (cell.type.sharded && communicator_->world_size() > 1) {
    unspread_[id.index()] = physical;
    return absl::OkStatus();
  }
  return WriteSlice(state_.cells[id.index()], physical);
}

absl::Status ExecutorImpl::WriteSlice(const Slice& slice,
                                      absl::string_view physical) {
  HT_RETURN_IF_ERROR(
      streams_.compute->Copy(arenas_.State(slice.offset), physical.data(),
                             std::min<int64_t>(slice.bytes, physical.size())));
  return streams_.compute->Synchronize();
}

// Each rank takes its part of what was written on rank 0.
absl::Status ExecutorImpl::SpreadWritten() {
  const bool is_zero = communicator_->rank() == 0;
  std::string mine;
  for (const auto& [cell, physical] : unspread_) {
    absl::StrAppend(&mine, cell, " ");
  }
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> written,
                      communicator_->AllGather(is_zero ? mine : ""));
  for (absl::string_view word :
       absl::StrSplit(written[0], ' ', absl::SkipEmpty())) {
    int cell = 0;
    if (!absl::SimpleAtoi(word, &cell) || cell < 0 ||
        cell >= program_->num_cells()) {
      return CommunicationError("rank 0 spreads a cell \"", word,
                                "\" that there is not");
    }
    HT_ASSIGN_OR_RETURN(
        const std::vector<std::string> whole,
        communicator_->AllGather(is_zero ? unspread_[cell] : ""));
    const Slice& slice = state_.cells[cell];
    const size_t begin = communicator_->rank() * slice.bytes;
    // What lies behind the tensor's end is zero.
    std::string part =
        whole[0].substr(std::min(begin, whole[0].size()), slice.bytes);
    part.resize(slice.bytes, '\0');
    HT_RETURN_IF_ERROR(WriteSlice(slice, part));
  }
  unspread_.clear();
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
