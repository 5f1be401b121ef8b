#include "runtime/device/cuda/cuda_stream.h"

#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "runtime/device/cuda/cuda_error.h"
#include "runtime/device/cuda/native.h"

namespace halftone {
namespace runtime {
namespace {

// A step of a small model takes less than the first, so that it is noticed at
// once; a sleep is short beside a step that takes longer.
constexpr absl::Duration kAwake = absl::Microseconds(200);
constexpr absl::Duration kSleep = absl::Microseconds(50);
constexpr absl::Duration kUnguarded = absl::Milliseconds(300);

// Whether enqueued work is done, from cudaStreamQuery or cudaEventQuery.
absl::StatusOr<bool> IsDone(cudaError_t code, absl::string_view call,
                            absl::string_view context) {
  if (code == cudaErrorNotReady) {
    (void)cudaGetLastError();  // or the next launch would be blamed for it
    return false;
  }
  if (code == cudaSuccess) return true;
  return CudaCallStatus(code, call, context);
}

class CudaEvent : public Event {
 public:
  CudaEvent(cudaEvent_t event, CudaWaits* waits)
      : event_(event), waits_(waits) {}
  ~CudaEvent() override { (void)cudaEventDestroy(event_); }

  absl::Status Synchronize() override {
    return waits_->Await([this] { return Query(); });
  }
  absl::StatusOr<bool> Query() override {
    return IsDone(cudaEventQuery(event_), "cudaEventQuery", "");
  }
  cudaEvent_t native() const { return event_; }

 private:
  cudaEvent_t event_;
  CudaWaits* waits_;
};

cudaEvent_t NativeOf(Event& event) {
  return static_cast<CudaEvent&>(event).native();
}

class CudaStream : public Stream {
 public:
  CudaStream(cudaStream_t stream, absl::string_view name, CudaWaits* waits)
      : stream_(stream), name_(absl::StrCat("stream ", name)), waits_(waits) {}
  ~CudaStream() override { (void)cudaStreamDestroy(stream_); }

  absl::Status Record(Event& event) override {
    return HT_CUDA(cudaEventRecord(NativeOf(event), stream_), name_);
  }
  absl::Status Wait(Event& event) override {
    return HT_CUDA(cudaStreamWaitEvent(stream_, NativeOf(event), 0), name_);
  }
  absl::Status Copy(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    return HT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
                   name_);
  }
  absl::Status Fill(void* to, uint8_t value, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    return HT_CUDA(cudaMemsetAsync(to, value, bytes, stream_), name_);
  }
  absl::Status Synchronize() override {
    return waits_->Await([this] {
      return IsDone(cudaStreamQuery(stream_), "cudaStreamQuery", name_);
    });
  }
  void* native() override { return stream_; }

 private:
  cudaStream_t stream_;
  const std::string name_;
  CudaWaits* waits_;
};

class CudaTimer : public Timer {
 public:
  CudaTimer(std::unique_ptr<CudaEvent> start, std::unique_ptr<CudaEvent> stop)
      : start_(std::move(start)), stop_(std::move(stop)) {}

  absl::Status Start(Stream& stream) override { return stream.Record(*start_); }
  absl::Status Stop(Stream& stream) override { return stream.Record(*stop_); }
  absl::StatusOr<double> Microseconds() override {
    HT_RETURN_IF_ERROR(stop_->Synchronize());
    return Between(*start_, *stop_);
  }
  absl::StatusOr<double> MicrosecondsSince(Timer& earlier) override {
    return Between(*static_cast<CudaTimer&>(earlier).start_, *start_);
  }

 private:
  static absl::StatusOr<double> Between(CudaEvent& first, CudaEvent& second) {
    float milliseconds = 0;
    HT_RETURN_IF_ERROR(HT_CUDA(
        cudaEventElapsedTime(&milliseconds, first.native(), second.native()),
        "a timer"));
    return milliseconds * 1e3;
  }

  std::unique_ptr<CudaEvent> start_, stop_;
};

class CudaGraph : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t exec) : exec_(exec) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(exec_); }

  absl::Status Launch(Stream& stream) override {
    return HT_CUDA(cudaGraphLaunch(exec_, CudaStreamOf(stream)), "a step");
  }

 private:
  cudaGraphExec_t exec_;
};

absl::StatusOr<std::unique_ptr<CudaEvent>> NewEvent(unsigned flags,
                                                    CudaWaits* waits) {
  cudaEvent_t event = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(cudaEventCreateWithFlags(&event, flags), ""));
  return absl::make_unique<CudaEvent>(event, waits);
}

constexpr char kCapture[] = "the capture of a step";

// Ends the capture whatever became of it; null with an error.
absl::StatusOr<cudaGraph_t> EndCapture(cudaStream_t stream,
                                       const absl::Status& enqueued) {
  cudaGraph_t graph = nullptr;
  const cudaError_t code = cudaStreamEndCapture(stream, &graph);
  if (enqueued.ok() && code == cudaSuccess) return graph;
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();  // a capture that was given up leaves one behind
  HT_RETURN_IF_ERROR(enqueued);
  return CudaCallStatus(code, "cudaStreamEndCapture", kCapture);
}

}  // namespace

void CudaWaits::SetGuard(WaitGuard guard) {
  std::unique_lock<std::mutex> lock(mutex_);
  unguarded_.wait(lock, [this] { return guarded_ == 0; });
  guard_ = std::move(guard);
}

absl::Status CudaWaits::Await(
    const std::function<absl::StatusOr<bool>()>& done) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return absl::OkStatus();
    const absl::Duration waited =
        absl::FromChrono(std::chrono::steady_clock::now() - start);
    if (waited < kAwake) continue;
    if (waited < kUnguarded) {
      absl::SleepFor(kSleep);
      continue;
    }
    WaitGuard guard;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      guard = guard_;
      if (guard != nullptr) ++guarded_;
    }
    if (guard != nullptr) {
      const absl::Status status = guard(done);
      std::lock_guard<std::mutex> lock(mutex_);
      if (--guarded_ == 0) unguarded_.notify_all();
      return status;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

int StreamPriority(absl::string_view name, int least, int greatest) {
  if (name == "communicate") return greatest;
  // Copies are short and what compute waits for.
  if (name == "copy_in" || name == "copy_out") return (least + greatest) / 2;
  return least;
}

absl::StatusOr<std::unique_ptr<Stream>> MakeCudaStream(absl::string_view name,
                                                       CudaWaits* waits) {
  int least = 0, greatest = 0;
  HT_RETURN_IF_ERROR(
      HT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest), name));
  cudaStream_t stream = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                   StreamPriority(name, least, greatest)),
      absl::StrCat("stream ", name)));
  return {absl::make_unique<CudaStream>(stream, name, waits)};
}

absl::StatusOr<std::unique_ptr<Event>> MakeCudaEvent(CudaWaits* waits) {
  HT_ASSIGN_OR_RETURN(auto event, NewEvent(cudaEventDisableTiming, waits));
  return {std::move(event)};
}

absl::StatusOr<std::unique_ptr<Timer>> MakeCudaTimer(CudaWaits* waits) {
  HT_ASSIGN_OR_RETURN(auto start, NewEvent(cudaEventDefault, waits));
  HT_ASSIGN_OR_RETURN(auto stop, NewEvent(cudaEventDefault, waits));
  return {absl::make_unique<CudaTimer>(std::move(start), std::move(stop))};
}

absl::StatusOr<std::unique_ptr<Graph>> CaptureCudaGraph(
    Stream& stream, const std::function<absl::Status()>& enqueue) {
  const cudaStream_t native = CudaStreamOf(stream);
  // Other threads of the process (readers, other ranks) go on as they like.
  HT_RETURN_IF_ERROR(
      HT_CUDA(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal),
              kCapture));
  HT_ASSIGN_OR_RETURN(const cudaGraph_t graph, EndCapture(native, enqueue()));
  cudaGraphExec_t exec = nullptr;
  // Each kernel has the priority of the stream it was captured on; without the
  // flag all would have that of the stream on which the graph is launched.
  const absl::Status made =
      HT_CUDA(cudaGraphInstantiateWithFlags(
                  &exec, graph, cudaGraphInstantiateFlagUseNodePriority),
              kCapture);
  (void)cudaGraphDestroy(graph);
  HT_RETURN_IF_ERROR(made);
  auto captured = absl::make_unique<CudaGraph>(exec);
  // So that the first launch is as fast as the others.
  HT_RETURN_IF_ERROR(HT_CUDA(cudaGraphUpload(exec, native), kCapture));
  return {std::move(captured)};
}

}  // namespace runtime
}  // namespace halftone
