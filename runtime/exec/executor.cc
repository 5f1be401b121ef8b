#include "runtime/exec/executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "runtime/collective/check_all_equal.h"
#include "runtime/exec/arenas.h"
#include "runtime/exec/host_tensor.h"
#include "runtime/exec/prepared_plan.h"

namespace halftone {
namespace runtime {
namespace {

class ExecutorImpl : public Executor {
 public:
  ExecutorImpl(const Program* program, const kernels::KernelRegistry* kernels,
               Device* device, Communicator* communicator, TuningTable tuning,
               const ExecutorOptions& options)
      : program_(program),
        kernels_(kernels),
        device_(device),
        communicator_(communicator),
        tuning_(std::move(tuning)),
        options_(options),
        state_(LayOutState(*program)),
        arenas_(device) {}

  absl::Status Start();

  absl::StatusOr<int> Prepare(absl::string_view entry,
                              const SymbolValues& symbols) override;
  const Plan& plan(int binding) const override {
    return plans_[binding]->plan();
  }
  absl::Status Initialize(int64_t seed) override;
  absl::Status Derive() override { return RunStartup(kDeriveEntry, 0); }
  absl::Status BroadcastState() override;
  absl::StatusOr<int64_t> Execute(int binding,
                                  absl::Span<const FeedData> feeds) override;
  absl::StatusOr<StepView> Read(int64_t ticket) override;
  absl::StatusOr<std::string> FirstNonFinite() override;
  absl::Status ReadCell(CellId cell, std::string* bytes) override;
  absl::Status WriteCell(CellId cell, absl::string_view bytes) override;

  const Program& program() const override { return *program_; }
  const TuningTable& tuning() const override { return tuning_; }
  Communicator& communicator() override { return *communicator_; }
  int64_t allocated_bytes() const override { return arenas_.allocated_bytes(); }
  int64_t planned_bytes() const override { return arenas_.reserved_bytes(); }
  Times times() const override { return times_; }

 private:
  absl::Status CheckFits(const Plan& plan);
  absl::Status Materialize();
  absl::Status CopyFeeds(PreparedPlan& plan, absl::Span<const FeedData> feeds);
  absl::Status RunStartup(absl::string_view entry, int64_t seed);
  absl::Status Enqueue(PreparedPlan& plan);
  kernels::BindContext Bind() const;

  const Program* program_;
  const kernels::KernelRegistry* kernels_;
  Device* device_;
  Communicator* communicator_;
  TuningTable tuning_;
  ExecutorOptions options_;
  StateLayout state_;
  Arenas arenas_;
  ExecutorStreams streams_;
  std::vector<std::unique_ptr<PreparedPlan>> plans_;
  bool resolved_ = false;  // pointers of all plans are up to date
  // Cells of class `always` before the last step, for its replay.
  std::unique_ptr<Memory> always_before_;
  int last_binding_ = -1;
  int64_t tickets_ = 0;
  int ticket_binding_[PreparedPlan::kRing] = {-1, -1, -1};
  Times times_;
};

absl::Status ExecutorImpl::Start() {
  HT_ASSIGN_OR_RETURN(streams_.compute, device_->CreateStream("compute"));
  HT_ASSIGN_OR_RETURN(streams_.communicate,
                      device_->CreateStream("communicate"));
  HT_ASSIGN_OR_RETURN(streams_.copy_out, device_->CreateStream("copy_out"));
  HT_RETURN_IF_ERROR(CheckAllEqual(*communicator_, "compiled model",
                                   Hex64(Fingerprint(*program_))));
  Plan state_only;
  state_only.arena_bytes[static_cast<int>(ArenaKind::kState)] = state_.bytes;
  arenas_.Reserve(state_only);
  HT_RETURN_IF_ERROR(Materialize());
  HT_ASSIGN_OR_RETURN(always_before_, device_->Allocate(std::max<int64_t>(
                                          state_.always_bytes, 1)));
  for (int i = 0; i < program_->num_constants(); ++i) {
    const std::string bytes = ConstantBytes(program_->constant(ConstantId(i)));
    HT_RETURN_IF_ERROR(streams_.compute->Copy(
        arenas_.State(state_.constants[i].offset), bytes.data(),
        static_cast<int64_t>(bytes.size())));
    HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  }
  return absl::OkStatus();
}

kernels::BindContext ExecutorImpl::Bind() const {
  kernels::BindContext bind;
  bind.world_size = communicator_->world_size();
  bind.rank = communicator_->rank();
  bind.threads = streams_.compute->threads();
  bind.deterministic = options_.deterministic;
  return bind;
}

absl::StatusOr<int> ExecutorImpl::Prepare(absl::string_view entry,
                                          const SymbolValues& symbols) {
  PlanRequest request;
  request.program = program_;
  request.entry = std::string(entry);
  request.symbols = symbols;
  request.bind = Bind();
  request.device = device_->target() == "cpu" ? "cpu" : "cuda";
  if (entry == kTrainEntry) request.fetches = options_.fetches;
  HT_ASSIGN_OR_RETURN(Plan plan, MakePlan(request, *kernels_, state_, tuning_));
  HT_RETURN_IF_ERROR(CheckAllEqual(*communicator_, "collective sequence",
                                   Hex64(CollectiveHash(plan))));
  arenas_.Reserve(plan);
  HT_RETURN_IF_ERROR(CheckFits(plan));
  HT_ASSIGN_OR_RETURN(
      auto prepared,
      PreparedPlan::Create(std::move(plan), request.bind, device_, &streams_));
  plans_.push_back(std::move(prepared));
  resolved_ = false;
  return static_cast<int>(plans_.size()) - 1;
}

absl::Status ExecutorImpl::CheckFits(const Plan& plan) {
  int64_t limit = options_.memory_limit;
  if (limit == 0) {
    HT_ASSIGN_OR_RETURN(const int64_t free, device_->FreeBytes());
    limit = free + arenas_.allocated_bytes();
  }
  if (arenas_.reserved_bytes() <= limit) return absl::OkStatus();
  return OutOfMemoryError(
      "entry ", plan.entry, " with ", plan.symbols[0], " samples on rank ",
      communicator_->rank(), " needs ", HumanBytes(arenas_.reserved_bytes()),
      ", the device has ", HumanBytes(limit),
      "; largest: ", absl::StrJoin(LargestBuffers(plan, 3), ", "),
      "; a smaller --batch-size, more ranks or a lower --level would help");
}

absl::Status ExecutorImpl::Materialize() {
  if (resolved_) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const bool moved, arenas_.Allocate(*streams_.compute));
  (void)moved;  // new plans have to be resolved in any case
  for (auto& plan : plans_) plan->Resolve(arenas_);
  resolved_ = true;
  return absl::OkStatus();
}

absl::Status ExecutorImpl::CopyFeeds(PreparedPlan& plan,
                                     absl::Span<const FeedData> feeds) {
  const std::vector<PlannedFeed>& slots = plan.plan().feeds;
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t bytes = slots[i].slice.bytes;
    if (bytes == 0) continue;
    // Callers give them in the plan's order; any other is legal, too.
    const FeedData* fed = i < feeds.size() ? &feeds[i] : nullptr;
    if (fed == nullptr || fed->name != slots[i].name) {
      const auto found = std::find_if(
          feeds.begin(), feeds.end(),
          [&](const FeedData& f) { return f.name == slots[i].name; });
      fed = found == feeds.end() ? nullptr : &*found;
    }
    if (fed == nullptr) {
      return ModelError("entry ", plan.plan().entry, ": feed ", slots[i].name,
                        " is missing");
    }
    if (static_cast<int64_t>(fed->bytes.size()) != bytes) {
      return ModelError("entry ", plan.plan().entry, ": feed ", slots[i].name,
                        ": expected ", bytes, " bytes (",
                        kernels::ToString(slots[i].desc), "), found ",
                        fed->bytes.size());
    }
    HT_RETURN_IF_ERROR(
        streams_.compute->Copy(plan.feeds()[i], fed->bytes.data(), bytes));
  }
  return absl::OkStatus();
}

absl::Status ExecutorImpl::Enqueue(PreparedPlan& plan) {
  if (options_.use_graphs && plan.MayCapture()) {
    HT_ASSIGN_OR_RETURN(plan.graph(),
                        device_->Capture(*streams_.compute, [this, &plan] {
                          return plan.Enqueue(*communicator_, nullptr);
                        }));
  }
  if (plan.graph() != nullptr) return plan.graph()->Launch(*streams_.compute);
  return plan.Enqueue(*communicator_, nullptr);
}

absl::StatusOr<int64_t> ExecutorImpl::Execute(
    int binding, absl::Span<const FeedData> feeds) {
  HT_RETURN_IF_ERROR(Materialize());
  PreparedPlan& plan = *plans_[binding];
  HT_RETURN_IF_ERROR(CopyFeeds(plan, feeds));
  if (state_.always_bytes > 0) {
    HT_RETURN_IF_ERROR(streams_.compute->Copy(
        always_before_->data(), arenas_.State(0), state_.always_bytes));
  }
  HT_RETURN_IF_ERROR(Enqueue(plan));
  const int slot = static_cast<int>(tickets_ % PreparedPlan::kRing);
  HT_RETURN_IF_ERROR(plan.EnqueueResults(slot));
  ticket_binding_[slot] = last_binding_ = binding;
  return tickets_++;
}

absl::StatusOr<StepView> ExecutorImpl::Read(int64_t ticket) {
  HT_CHECK(ticket >= 0 && ticket < tickets_ &&
               ticket >= tickets_ - PreparedPlan::kRing,
           "a step's results are read at most two steps late");
  const int slot = static_cast<int>(ticket % PreparedPlan::kRing);
  PreparedPlan& plan = *plans_[ticket_binding_[slot]];
  HT_ASSIGN_OR_RETURN(StepView view, plan.Results(slot));
  times_ = plan.times();
  return view;
}

absl::Status ExecutorImpl::RunStartup(absl::string_view entry, int64_t seed) {
  if (program_->FindEntry(entry) == nullptr) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const int binding, Prepare(entry, SymbolValues{}));
  HT_RETURN_IF_ERROR(Materialize());
  PreparedPlan& plan = *plans_[binding];
  const FeedData feed{
      kSeed,
      absl::MakeSpan(reinterpret_cast<const uint8_t*>(&seed), sizeof(seed))};
  HT_RETURN_IF_ERROR(CopyFeeds(plan, {feed}));
  HT_RETURN_IF_ERROR(plan.Enqueue(*communicator_, nullptr));
  HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  plans_.pop_back();  // startup runs once
  return absl::OkStatus();
}

absl::Status ExecutorImpl::Initialize(int64_t seed) {
  HT_RETURN_IF_ERROR(RunStartup(kInitEntry, seed));
  HT_RETURN_IF_ERROR(RunStartup(kDeriveEntry, seed));
  return BroadcastState();
}

absl::Status ExecutorImpl::BroadcastState() {
  if (communicator_->world_size() == 1 || state_.bytes == 0) {
    return absl::OkStatus();
  }
  HT_RETURN_IF_ERROR(communicator_->Broadcast(arenas_.State(0), state_.bytes,
                                              /*root=*/0, *streams_.compute));
  return streams_.compute->Synchronize();
}

absl::StatusOr<std::string> ExecutorImpl::FirstNonFinite() {
  if (last_binding_ < 0) return std::string();
  Stream& stream = *streams_.compute;
  std::string state(state_.bytes, '\0');
  HT_RETURN_IF_ERROR(stream.Copy(&state[0], arenas_.State(0), state_.bytes));
  HT_RETURN_IF_ERROR(stream.Synchronize());
  HT_RETURN_IF_ERROR(stream.Copy(arenas_.State(0), always_before_->data(),
                                 state_.always_bytes));
  std::string first;
  const PreparedPlan::AfterStep check =
      [&first, &stream](const Step& step,
                        absl::Span<void* const> outputs) -> absl::Status {
    if (!first.empty() || step.kind != Step::Kind::kKernel) {
      return absl::OkStatus();
    }
    const Op& op = step.block->op(step.op);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DType dtype = step.block->dtype(op.outputs.all()[i]);
      std::string host(step.outputs[i].bytes, '\0');
      if (host.empty() || !IsFloat(dtype)) continue;
      HT_RETURN_IF_ERROR(
          stream.Copy(&host[0], outputs[i], static_cast<int64_t>(host.size())));
      HT_RETURN_IF_ERROR(stream.Synchronize());
      if (!AllFinite(dtype, host.data(), host.size() / SizeOf(dtype))) {
        first = step.name;
        break;
      }
    }
    return absl::OkStatus();
  };
  HT_RETURN_IF_ERROR(plans_[last_binding_]->Enqueue(*communicator_, &check));
  HT_RETURN_IF_ERROR(stream.Copy(arenas_.State(0), state.data(), state_.bytes));
  HT_RETURN_IF_ERROR(stream.Synchronize());
  return first;
}

absl::Status ExecutorImpl::ReadCell(CellId cell, std::string* bytes) {
  const Slice& slice = state_.cells[cell.index()];
  std::string physical(slice.bytes, '\0');
  HT_RETURN_IF_ERROR(streams_.compute->Copy(
      &physical[0], arenas_.State(slice.offset), slice.bytes));
  HT_RETURN_IF_ERROR(streams_.compute->Synchronize());
  *bytes = ToRowMajor(kernels::Bind(program_->cell(cell).type, SymbolValues{}),
                      physical);
  return absl::OkStatus();
}

absl::Status ExecutorImpl::WriteCell(CellId cell, absl::string_view bytes) {
  const Slice& slice = state_.cells[cell.index()];
  HT_CHECK(static_cast<int64_t>(bytes.size()) == slice.bytes,
           "a cell is written whole");
  const std::string physical = FromRowMajor(
      kernels::Bind(program_->cell(cell).type, SymbolValues{}), bytes);
  HT_RETURN_IF_ERROR(streams_.compute->Copy(arenas_.State(slice.offset),
                                            physical.data(), slice.bytes));
  return streams_.compute->Synchronize();
}

}  // namespace

bool StepView::Has(absl::string_view name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [name](const Item& item) { return item.name == name; });
}

double StepView::Scalar(absl::string_view name) const {
  for (const Item& item : items_) {
    if (item.name == name) return FirstElement(item.desc->dtype, item.data);
  }
  return 0;
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
