#include "runtime/exec/prepared_plan.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

int PartOf(Role role) {
  switch (role) {
    case Role::kForward:
    case Role::kBackward:
      return 0;
    case Role::kCommunicate:
      return 1;
    case Role::kLossScale:
    case Role::kOptimize:
      return 2;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedPlan>> PreparedPlan::Create(
    Plan plan, const kernels::BindContext& bind, Device* device,
    ExecutorStreams* streams) {
  std::unique_ptr<PreparedPlan> prepared(
      new PreparedPlan(std::move(plan), device, streams));
  HT_RETURN_IF_ERROR(prepared->Instantiate(bind));
  HT_RETURN_IF_ERROR(prepared->PrepareRing());
  return prepared;
}

absl::Status PreparedPlan::Instantiate(const kernels::BindContext& bind) {
  int events = 0;
  for (const Step& step : plan_.steps) {
    events = std::max(events, step.records + 1);
    Ready ready;
    ready.step = &step;
    ready.part = PartOf(step.role);
    const bool communicates = step.stream == StreamKind::kCommunicate;
    communicates_ |= communicates;
    holds_collectives_ |= IsCollective(step.kind);
    ready.stream =
        (communicates ? streams_->communicate : streams_->compute).get();
    if (step.kind == Step::Kind::kKernel) {
      const kernels::BoundOp bound(*step.block, step.block->op(step.op),
                                   plan_.symbols, bind);
      auto instance = step.candidate->prepare(bound, *device_);
      if (!instance.ok()) {
        return Annotate(
            instance.status(),
            absl::StrCat(step.name, " (", step.candidate->name, " kernel)"));
      }
      ready.instance = std::move(*instance);
    }
    ready_.push_back(std::move(ready));
  }
  for (int e = 0; e < events; ++e) {
    HT_ASSIGN_OR_RETURN(auto event, device_->CreateEvent());
    events_.push_back(std::move(event));
  }
  HT_ASSIGN_OR_RETURN(fork_, device_->CreateEvent());
  HT_ASSIGN_OR_RETURN(join_, device_->CreateEvent());
  return absl::OkStatus();
}

absl::Status PreparedPlan::PrepareRing() {
  const int64_t bytes = plan_.arena_bytes[static_cast<int>(ArenaKind::kResult)];
  HT_ASSIGN_OR_RETURN(computed_, device_->CreateEvent());
  if (bytes > 0) {
    HT_ASSIGN_OR_RETURN(ring_, device_->AllocatePinned(kRing * bytes));
  }
  for (const PlannedResult& result : plan_.results) {
    if (result.fetched) continue;
    ++always_items_;
    always_bytes_ =
        std::max(always_bytes_, result.slice.offset + result.slice.bytes);
  }
  for (int slot = 0; slot < kRing; ++slot) {
    HT_ASSIGN_OR_RETURN(copied_[slot], device_->CreateEvent());
    for (const PlannedResult& result : plan_.results) {
      // Without a ring all results are empty: this rank has no samples.
      const char* const data = ring_ == nullptr
                                   ? nullptr
                                   : static_cast<const char*>(ring_->data()) +
                                         slot * bytes + result.slice.offset;
      items_[slot].push_back({result.name, &result.desc, data});
    }
  }
  return absl::OkStatus();
}

void PreparedPlan::Resolve(const Arenas& arenas) {
  for (Ready& ready : ready_) {
    ready.inputs.clear();
    ready.outputs.clear();
    for (const Slice& slice : ready.step->inputs) {
      ready.inputs.push_back(arenas.At(plan_.entry, slice));
    }
    for (const Slice& slice : ready.step->outputs) {
      ready.outputs.push_back(arenas.At(plan_.entry, slice));
    }
    ready.workspace = arenas.At(plan_.entry, ready.step->workspace);
  }
  feeds_.clear();
  for (const PlannedFeed& feed : plan_.feeds) {
    feeds_.push_back(arenas.At(plan_.entry, feed.slice));
  }
  const int64_t bytes = plan_.arena_bytes[static_cast<int>(ArenaKind::kResult)];
  result_block_ = arenas.At(plan_.entry, {ArenaKind::kResult, 0, bytes});
  graph_.reset();
  may_capture_ = true;
}

absl::Status PreparedPlan::EnqueueStep(const Ready& ready,
                                       Communicator& communicator) {
  const Step& step = *ready.step;
  switch (step.kind) {
    case Step::Kind::kKernel:
      return ready.instance->Enqueue(
          {ready.inputs, ready.outputs, ready.workspace}, *ready.stream);
    case Step::Kind::kAllReduce:
      return communicator.AllReduce(ready.outputs[0], step.count, step.dtype,
                                    ReduceOp::kSum, step.pre_scale,
                                    *ready.stream);
    case Step::Kind::kBroadcast:
      return communicator.Broadcast(ready.outputs[0], step.outputs[0].bytes,
                                    step.root, *ready.stream);
    case Step::Kind::kAllGather:
      return communicator.GatherParts(
          ready.outputs[0], step.count * SizeOf(step.dtype), *ready.stream);
    case Step::Kind::kReduceScatter:
    case Step::Kind::kGatherShards:
      return EnqueueShards(ready, communicator);
    case Step::Kind::kCopy:
      return ready.stream->Copy(ready.outputs[0], ready.inputs[0],
                                step.inputs[0].bytes);
    case Step::Kind::kZero:
      return ready.stream->Fill(ready.outputs[0], 0, step.outputs[0].bytes);
  }
  return absl::OkStatus();
}

absl::Status PreparedPlan::EnqueueShards(const Ready& ready,
                                         Communicator& communicator) {
  const Step& step = *ready.step;
  const bool gathers = step.kind == Step::Kind::kGatherShards;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int64_t bytes = step.outputs[i].bytes / plan_.world_size;
    HT_RETURN_IF_ERROR(
        gathers
            ? communicator.GatherParts(ready.outputs[i], bytes, *ready.stream)
            : communicator.ReduceScatter(ready.outputs[i],
                                         bytes / SizeOf(step.dtype), step.dtype,
                                         step.pre_scale, *ready.stream));
  }
  return absl::OkStatus();
}

absl::Status PreparedPlan::TimeSteps() {
  HT_ASSIGN_OR_RETURN(timers_,
                      StepTimers::Create(device_, ready_.size(), kRing));
  return absl::OkStatus();
}

absl::Status PreparedPlan::EnqueueTimed(const Ready& ready,
                                        Communicator& communicator) {
  const size_t step = &ready - ready_.data();
  HT_RETURN_IF_ERROR(timers_->Start(step, *ready.stream));
  HT_RETURN_IF_ERROR(EnqueueStep(ready, communicator));
  return timers_->Stop(step, *ready.stream);
}

absl::Status PreparedPlan::Follow(Stream& stream, Stream& leader,
                                  Event& event) {
  HT_RETURN_IF_ERROR(leader.Record(event));
  return stream.Wait(event);
}

absl::Status PreparedPlan::Run(Communicator& communicator,
                               const Prologue& prologue, bool use_graph) {
  const bool eager = !use_graph || (eager_collectives_ && holds_collectives_);
  if (!eager && ran_ && std::exchange(may_capture_, false)) {
    const absl::Status captured = Capture(communicator, prologue);
    if (!captured.ok()) {
      return Annotate(captured, absl::StrCat("entry ", plan_.entry));
    }
  }
  if (graph_ != nullptr) return graph_->Launch(*streams_->compute);
  HT_RETURN_IF_ERROR(EnqueueAll(communicator, prologue));
  ran_ = true;
  return absl::OkStatus();
}

absl::Status PreparedPlan::Capture(Communicator& communicator,
                                   const Prologue& prologue) {
  capturing_ = true;
  auto graph = device_->Capture(
      *streams_->compute, [&] { return EnqueueAll(communicator, prologue); });
  capturing_ = false;
  HT_RETURN_IF_ERROR(graph.status());
  graph_ = *std::move(graph);
  return absl::OkStatus();
}

absl::Status PreparedPlan::EnqueueAll(Communicator& communicator,
                                      const Prologue& prologue) {
  if (prologue.bytes > 0) {
    HT_RETURN_IF_ERROR(
        streams_->compute->Copy(prologue.to, prologue.from, prologue.bytes));
  }
  return Enqueue(communicator, nullptr);
}

// The communicate stream begins behind what came before on compute and has
// ended before anything that comes after: a capture demands both, whatever
// the plan's own events say.
absl::Status PreparedPlan::Enqueue(Communicator& communicator,
                                   StepWatcher* watcher) {
  Stream& compute = *streams_->compute;
  Stream& communicate = *streams_->communicate;
  if (communicates_) HT_RETURN_IF_ERROR(Follow(communicate, compute, *fork_));
  HT_RETURN_IF_ERROR(EnqueueSteps(communicator, watcher));
  return communicates_ ? Follow(compute, communicate, *join_)
                       : absl::OkStatus();
}

absl::Status PreparedPlan::EnqueueSteps(Communicator& communicator,
                                        StepWatcher* watcher) {
  const bool timed = timers_ != nullptr && watcher == nullptr;
  double spent[3] = {0, 0, 0};
  int part = 0;
  Clock::time_point since = Clock::now();
  for (const Ready& ready : ready_) {
    if (ready.part != part) {  // the clock is read where the part changes
      const Clock::time_point now = Clock::now();
      spent[part] += Milliseconds(now - since);
      since = now;
      part = ready.part;
    }
    for (int event : ready.step->waits) {
      HT_RETURN_IF_ERROR(ready.stream->Wait(*events_[event]));
    }
    if (watcher != nullptr) {
      HT_RETURN_IF_ERROR(watcher->Before(*ready.step, ready.inputs));
    }
    const absl::Status status = timed ? EnqueueTimed(ready, communicator)
                                      : EnqueueStep(ready, communicator);
    if (!status.ok()) return Annotate(status, ready.step->name);
    if (ready.step->records >= 0) {
      HT_RETURN_IF_ERROR(ready.stream->Record(*events_[ready.step->records]));
    }
    if (watcher != nullptr) {
      HT_RETURN_IF_ERROR(
          watcher->After(*ready.step, ready.inputs, ready.outputs));
    }
  }
  spent[part] += Milliseconds(Clock::now() - since);
  // The host's clock says nothing of a device that works later.
  if (!device_->asynchronous()) times_ = {spent[0], spent[1], spent[2]};
  return absl::OkStatus();
}

absl::Status PreparedPlan::EnqueueResults(int slot, bool fetch) {
  HT_RETURN_IF_ERROR(streams_->compute->Record(*computed_));
  HT_RETURN_IF_ERROR(streams_->copy_out->Wait(*computed_));
  const int64_t bytes = plan_.arena_bytes[static_cast<int>(ArenaKind::kResult)];
  if (bytes > 0) {
    char* to = static_cast<char*>(ring_->data()) + slot * bytes;
    HT_RETURN_IF_ERROR(streams_->copy_out->Copy(to, result_block_,
                                                fetch ? bytes : always_bytes_));
  }
  copied_items_[slot] = fetch ? items_[slot].size() : always_items_;
  HT_RETURN_IF_ERROR(streams_->copy_out->Record(*copied_[slot]));
  // The next step may overwrite the results only when they are copied.
  return streams_->compute->Wait(*copied_[slot]);
}

absl::Status PreparedPlan::AwaitResults(int slot) {
  return copied_[slot]->Synchronize();
}

}  // namespace runtime
}  // namespace halftone
