#include "runtime/exec/executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/base/time/monotonic_time.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "runtime/collective/check_all_equal.h"
#include "runtime/exec/executor_impl.h"
#include "runtime/exec/host_tensor.h"

namespace halftone {
namespace runtime {
namespace {

// What was enqueued before a run failed is done by then, or never: collectives
// end with their communicator.
constexpr absl::Duration kLastSteps = absl::Seconds(10);

int64_t BytesOf(const Plan& plan, ArenaKind kind) {
  return plan.arena_bytes[static_cast<int>(kind)];
}

Executor::Times Sum(const Executor::Times& a, const Executor::Times& b) {
  return {a.forward_backward + b.forward_backward,
          a.communicate + b.communicate, a.update + b.update};
}

// Null: it is missing. Callers give them in the plan's order, in which it is
// the `i`-th; any other is legal, too.
const FeedData* FeedNamed(const std::string& name,
                          absl::Span<const FeedData> feeds, size_t i) {
  if (i < feeds.size() && feeds[i].name == name) return &feeds[i];
  const auto found =
      std::find_if(feeds.begin(), feeds.end(),
                   [&name](const FeedData& fed) { return fed.name == name; });
  return found == feeds.end() ? nullptr : &*found;
}

// The cells alone, as a plan of no steps.
Plan StatePlan(const Program& program, const StateLayout& layout) {
  Plan plan;
  plan.arena_bytes[static_cast<int>(ArenaKind::kState)] = layout.bytes;
  SymbolValues symbols{};
  symbols.shards = layout.shards;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    PlannedValue value;
    value.name = cell.name;
    value.desc = kernels::Bind(cell.type, symbols);
    value.slice = layout.cells[i];
    plan.values.push_back(std::move(value));
  }
  return plan;
}

}  // namespace

ExecutorImpl::ExecutorImpl(const Program* program,
                           const kernels::KernelRegistry* kernels,
                           Device* device, Communicator* communicator,
                           TuningTable tuning, const ExecutorOptions& options)
    : program_(program),
      kernels_(kernels),
      device_(device),
      communicator_(communicator),
      tuning_(std::move(tuning)),
      options_(options),
      state_(LayOutState(*program, communicator->world_size())),
      arenas_(device, communicator),
      staging_(device, &streams_),
      merges_(program->FindEntry(kAccumulateEntry) != nullptr) {}

// Libraries end what they made on the thread's device, and after its work: the
// last steps of a run that failed are still under way.
ExecutorImpl::~ExecutorImpl() {
  (void)Use();
  const bool done =
      streams_.compute != nullptr && streams_.compute->Synchronize().ok();
  communicator_->OnAbort(nullptr);
  if (!done) AwaitAborted();
}

void ExecutorImpl::AwaitAborted() {
  const MonotonicTime end = MonotonicTime::Now() + kLastSteps;
  for (Stream* stream : {streams_.compute.get(), streams_.communicate.get(),
                         streams_.copy_in.get(), streams_.copy_out.get()}) {
    if (stream == nullptr) continue;
    auto event = device_->CreateEvent();
    if (!event.ok() || !stream->Record(**event).ok()) return;
    absl::StatusOr<bool> done = (*event)->Query();
    while (done.ok() && !*done && MonotonicTime::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
      done = (*event)->Query();
    }
  }
}

absl::Status ExecutorImpl::Start() {
  HT_RETURN_IF_ERROR(Use());
  communicator_->OnAbort([this] { return DropGraphs(); });
  HT_ASSIGN_OR_RETURN(streams_.compute, device_->CreateStream("compute"));
  HT_ASSIGN_OR_RETURN(streams_.communicate,
                      device_->CreateStream("communicate"));
  HT_ASSIGN_OR_RETURN(streams_.copy_in, device_->CreateStream("copy_in"));
  HT_ASSIGN_OR_RETURN(streams_.copy_out, device_->CreateStream("copy_out"));
  HT_RETURN_IF_ERROR(CheckAllEqual(*communicator_, "compiled model",
                                   Hex64(Fingerprint(*program_))));
  const Plan state = StatePlan(*program_, state_);
  arenas_.Reserve(state);
  HT_RETURN_IF_ERROR(CheckFits("the state alone", state));
  HT_RETURN_IF_ERROR(Materialize());
  HT_ASSIGN_OR_RETURN(always_before_, device_->Allocate(std::max<int64_t>(
                                          state_.always_bytes, 1)));
  return WriteConstants();
}

kernels::BindContext ExecutorImpl::Bind() const {
  kernels::BindContext bind;
  bind.world_size = communicator_->world_size();
  bind.rank = communicator_->rank();
  bind.threads = streams_.compute->threads();
  bind.deterministic = options_.deterministic;
  bind.target = device_->target();
  return bind;
}

absl::StatusOr<int> ExecutorImpl::Prepare(absl::string_view entry,
                                          const SymbolValues& symbols) {
  HT_RETURN_IF_ERROR(Use());
  PlanRequest request;
  request.program = program_;
  request.entry = std::string(entry);
  request.symbols = symbols;
  request.bind = Bind();
  request.stage_feeds = device_->asynchronous();
  if (IsTrainEntry(entry)) {
    request.kept = options_.kept;
    request.fetches = options_.fetches;
  }
  HT_ASSIGN_OR_RETURN(Plan plan, MakePlan(request, *kernels_, state_, tuning_));
  HT_RETURN_IF_ERROR(CheckAllEqual(*communicator_, "collective sequence",
                                   Hex64(CollectiveHash(plan))));
  arenas_.Reserve(plan);
  HT_RETURN_IF_ERROR(
      CheckFits(absl::StrCat("entry ", entry, " with ", symbols[0],
                             symbols[0] == 1 ? " sample" : " samples"),
                plan));
  HT_ASSIGN_OR_RETURN(
      auto prepared,
      PreparedPlan::Create(std::move(plan), request.bind, device_, &streams_));
  if (options_.profile && entry == kTrainEntry) {
    HT_RETURN_IF_ERROR(prepared->TimeSteps());
  }
  plans_.push_back(std::move(prepared));
  resolved_ = false;
  return static_cast<int>(plans_.size()) - 1;
}

absl::Status ExecutorImpl::CheckFits(const std::string& what,
                                     const Plan& plan) {
  int64_t limit = options_.memory_limit;
  if (limit == 0) {
    HT_ASSIGN_OR_RETURN(const int64_t free, device_->FreeBytes());
    limit = free + arenas_.allocated_bytes();
  }
  if (arenas_.reserved_bytes() <= limit) return absl::OkStatus();
  return OutOfMemoryError(
      what, " on rank ", communicator_->rank(), " needs ",
      HumanBytes(arenas_.reserved_bytes()), ", the device has ",
      HumanBytes(limit),
      "; largest: ", absl::StrJoin(LargestBuffers(plan, 3), ", "),
      "; a smaller --batch-size, more ranks or a lower --level would help");
}

absl::Status ExecutorImpl::Materialize() {
  if (resolved_) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const bool moved, arenas_.Allocate(*streams_.compute));
  (void)moved;  // new plans have to be resolved in any case
  fed_ = nullptr;
  int64_t staged = 0;
  for (auto& plan : plans_) {
    plan->Resolve(arenas_);
    staged = std::max(staged, BytesOf(plan->plan(), ArenaKind::kStaging));
  }
  if (staged > 0) {
    HT_RETURN_IF_ERROR(staging_.Allocate(staged, merges_));
  }
  resolved_ = true;
  return absl::OkStatus();
}

absl::StatusOr<const FeedData*> ExecutorImpl::FindFeed(
    const PreparedPlan& prepared, const PreparedPlan* before,
    absl::Span<const FeedData> feeds, size_t i) const {
  const Plan& plan = prepared.plan();
  const PlannedFeed& slot = plan.feeds[i];
  const FeedData* fed = FeedNamed(slot.name, feeds, i);
  if (fed == nullptr) {
    return ModelError("entry ", plan.entry, ": feed ", slot.name,
                      " is missing");
  }
  if (fed->kept && before != &prepared) {
    return ModelError("entry ", plan.entry, ": feed ", slot.name,
                      ": expected to be there since the step before, found ",
                      before == nullptr ? "none" : "one of another binding",
                      "; feed its bytes");
  }
  if (!fed->kept &&
      static_cast<int64_t>(fed->bytes.size()) != slot.slice.bytes) {
    return ModelError("entry ", plan.entry, ": feed ", slot.name, ": expected ",
                      slot.slice.bytes, " bytes (",
                      kernels::ToString(slot.desc), "), found ",
                      fed->bytes.size());
  }
  return fed;
}

absl::Status ExecutorImpl::TakeFeeds(PreparedPlan& prepared,
                                     absl::Span<const FeedData> feeds,
                                     int slot) {
  const Plan& plan = prepared.plan();
  const bool staged = BytesOf(plan, ArenaKind::kStaging) > 0;
  // Whatever fails on the way, bytes that were overwritten are not there.
  const PreparedPlan* const before = fed_;
  if (staged) HT_RETURN_IF_ERROR(staging_.Begin(slot));
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    const Slice& slice = plan.feeds[i].slice;
    if (slice.bytes == 0) continue;
    HT_ASSIGN_OR_RETURN(const FeedData* fed,
                        FindFeed(prepared, before, feeds, i));
    if (staged && fed->kept) {
      staging_.Keep();
    } else if (staged) {
      staging_.Put(slice.offset, fed->bytes);
    } else if (!fed->kept) {
      fed_ = nullptr;
      HT_RETURN_IF_ERROR(streams_.compute->Copy(
          prepared.feeds()[i], fed->bytes.data(), slice.bytes));
    }
  }
  if (staged) {
    fed_ = nullptr;
    const int64_t bytes = BytesOf(plan, ArenaKind::kStaging);
    HT_RETURN_IF_ERROR(staging_.Enqueue(
        arenas_.At(plan.entry, {ArenaKind::kStaging, 0, bytes}),
        arenas_.At(plan.entry, {ArenaKind::kFeed, 0, bytes})));
  }
  fed_ = &prepared;
  return absl::OkStatus();
}

// What the first of a step's micro-batches finds is not in their graphs, as any
// of them may be the first.
absl::Status ExecutorImpl::RunStep(PreparedPlan& plan, bool last) {
  const PreparedPlan::Prologue keep = {always_before_->data(), arenas_.State(0),
                                       state_.always_bytes};
  if (!merges_) return Run(plan, keep);
  if (!step_begun_) {
    earlier_ = 0;
    if (keep.bytes > 0) {
      HT_RETURN_IF_ERROR(
          streams_.compute->Copy(keep.to, keep.from, keep.bytes));
    }
  }
  step_begun_ = !last;
  return Run(plan, {});
}

void ExecutorImpl::KeepMicroBatch(int binding,
                                  absl::Span<const FeedData> feeds) {
  if (earlier_ == micro_batches_.size()) micro_batches_.emplace_back();
  MicroBatch& batch = micro_batches_[earlier_];
  const Plan& plan = plans_[binding]->plan();
  batch.binding = binding;
  batch.feeds.resize(plan.feeds.size());
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    if (plan.feeds[i].slice.bytes == 0) continue;
    const FeedData& fed = *FeedNamed(plan.feeds[i].name, feeds, i);
    if (fed.kept) {  // the micro-batch before is of the same binding
      HT_CHECK(earlier_ > 0, "a feed is kept within a step");
      batch.feeds[i] = micro_batches_[earlier_ - 1].feeds[i];
    } else {
      batch.feeds[i].assign(reinterpret_cast<const char*>(fed.bytes.data()),
                            fed.bytes.size());
    }
  }
  ++earlier_;
}

absl::Status ExecutorImpl::Run(PreparedPlan& plan,
                               const PreparedPlan::Prologue& prologue) {
  const bool use_graph = options_.use_graphs && communicator_->enqueues() &&
                         plan.timers() == nullptr;
  const absl::Status status = plan.Run(*communicator_, prologue, use_graph);
  // If a collective failed while capturing, its communicator has waited for
  // the capture to end.
  if (!status.ok()) communicator_->Abort(status);
  return status;
}

bool ExecutorImpl::DropGraphs() {
  for (const auto& plan : plans_) {
    if (plan->capturing()) return false;
  }
  for (const auto& plan : plans_) plan->DropGraph();
  return true;
}

absl::StatusOr<int64_t> ExecutorImpl::Execute(
    int binding, absl::Span<const FeedData> feeds) {
  HT_RETURN_IF_ERROR(Use());
  HT_RETURN_IF_ERROR(Materialize());
  PreparedPlan& plan = *plans_[binding];
  const int slot = static_cast<int>(tickets_ % PreparedPlan::kRing);
  // The slot's step has been read if the caller keeps to its two steps; the
  // device is not asked then.
  if (tickets_ - done_ >= PreparedPlan::kRing) {
    HT_RETURN_IF_ERROR(Await(tickets_ - PreparedPlan::kRing));
  }
  if (plan.timers() != nullptr) {
    HT_RETURN_IF_ERROR(plan.timers()->Begin(slot, *streams_.compute));
  }
  HT_RETURN_IF_ERROR(TakeFeeds(plan, feeds, slot));
  HT_RETURN_IF_ERROR(RunStep(plan, /*last=*/true));
  times_ = Sum(std::exchange(times_before_, Times()), plan.times());
  HT_RETURN_IF_ERROR(EnqueueResults(plan, slot));
  ticket_binding_[slot] = last_binding_ = binding;
  return tickets_++;
}

absl::Status ExecutorImpl::EnqueueResults(PreparedPlan& plan, int slot) {
  if (!fetching_ || options_.fetches.empty()) {
    return plan.EnqueueResults(slot, /*fetch=*/false);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point since = Clock::now();
  HT_RETURN_IF_ERROR(plan.EnqueueResults(slot, /*fetch=*/true));
  fetch_seconds_ += std::chrono::duration<double>(Clock::now() - since).count();
  return absl::OkStatus();
}

absl::Status ExecutorImpl::Accumulate(int binding,
                                      absl::Span<const FeedData> feeds) {
  HT_RETURN_IF_ERROR(Use());
  HT_RETURN_IF_ERROR(Materialize());
  PreparedPlan& plan = *plans_[binding];
  const int slot = FeedStaging::MicroBatchSlot(accumulated_++);
  HT_RETURN_IF_ERROR(TakeFeeds(plan, feeds, slot));
  HT_RETURN_IF_ERROR(RunStep(plan, /*last=*/false));
  KeepMicroBatch(binding, feeds);
  times_before_ = Sum(times_before_, plan.times());
  return absl::OkStatus();
}

absl::Status ExecutorImpl::Average(int binding) {
  HT_RETURN_IF_ERROR(Use());
  HT_RETURN_IF_ERROR(Materialize());
  // What a replay of the step wants to find stays.
  HT_RETURN_IF_ERROR(Run(*plans_[binding], {}));
  times_ = Sum(times_, plans_[binding]->times());
  return absl::OkStatus();
}

absl::Status ExecutorImpl::Await(int64_t ticket) {
  const int slot = static_cast<int>(ticket % PreparedPlan::kRing);
  PreparedPlan& plan = *plans_[ticket_binding_[slot]];
  const absl::Status status = plan.AwaitResults(slot);
  if (!status.ok()) {
    // Whatever failed did so at some time before it was noticed here.
    return Annotate(status, absl::StrCat("entry ", plan.plan().entry,
                                         ", at or before the end of its step ",
                                         ticket + 1, " in this process"));
  }
  done_ = std::max(done_, ticket + 1);
  return absl::OkStatus();
}

absl::StatusOr<StepView> ExecutorImpl::Read(int64_t ticket) {
  HT_CHECK(ticket >= 0 && ticket < tickets_ &&
               ticket >= tickets_ - PreparedPlan::kRing,
           "a step's results are read at most two steps late");
  HT_RETURN_IF_ERROR(Use());
  if (ticket >= done_) HT_RETURN_IF_ERROR(Await(ticket));
  const int slot = static_cast<int>(ticket % PreparedPlan::kRing);
  PreparedPlan& plan = *plans_[ticket_binding_[slot]];
  spans_ = {};
  if (plan.timers() != nullptr) {
    HT_ASSIGN_OR_RETURN(spans_, plan.timers()->Read(slot));
  }
  return plan.Results(slot);
}

bool StepView::Has(absl::string_view name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [name](const Item& item) { return item.name == name; });
}

double StepView::Scalar(absl::string_view name) const {
  for (const Item& item : items_) {
    if (item.name == name) return Scalar(item);
  }
  return 0;
}

double StepView::Scalar(const Item& item) {
  return FirstElement(item.desc->dtype, item.data);
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    const Program* program, const kernels::KernelRegistry* kernels,
    Device* device, Communicator* communicator, TuningTable tuning,
    const ExecutorOptions& options) {
  auto executor = std::make_unique<ExecutorImpl>(
      program, kernels, device, communicator, std::move(tuning), options);
  HT_RETURN_IF_ERROR(executor->Start());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace runtime
}  // namespace halftone
