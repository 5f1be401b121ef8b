#include "runtime/device/fake_device.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/targets/target.h"
#include "runtime/device/fake_stream.h"
#include "runtime/device/host_memory.h"

namespace halftone {
namespace runtime {
namespace {

class FakeMemory : public Memory {
 public:
  FakeMemory(FakeStatePtr state, std::unique_ptr<Memory> host, int64_t counted)
      : state_(std::move(state)), host_(std::move(host)), counted_(counted) {
    state_->allocated += counted_;
    state_->memory[static_cast<const char*>(data())] = bytes();
  }
  ~FakeMemory() override {
    state_->Finish();
    state_->allocated -= counted_;
    state_->memory.erase(static_cast<const char*>(data()));
  }
  void* data() const override { return host_->data(); }
  int64_t bytes() const override { return host_->bytes(); }

 private:
  FakeStatePtr state_;
  std::unique_ptr<Memory> host_;
  int64_t counted_;
};

class FakeDeviceImpl : public FakeDevice {
 public:
  explicit FakeDeviceImpl(const FakeDeviceOptions& options)
      : options_(options), state_(std::make_shared<FakeState>()) {
    state_->ordinal = options.ordinal;
    state_->deferred = options.deferred;
    state_->hasty = options.hasty;
  }

  absl::string_view kind() const override { return "fake"; }
  int ordinal() const override { return options_.ordinal; }
  std::string Description() const override { return "fake device"; }
  std::string target() const override { return CpuTarget().name; }
  bool asynchronous() const override { return true; }
  absl::Status Use() override {
    SetFakeCurrentOrdinal(options_.ordinal);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    HT_ASSIGN_OR_RETURN(int64_t free, FreeBytes());
    if (bytes > free) {
      return OutOfMemoryError("fake device: cannot allocate ",
                              HumanBytes(bytes), ": ", HumanBytes(free), " of ",
                              HumanBytes(options_.memory_bytes), " are free");
    }
    return Wrap(bytes, bytes);
  }
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(
      int64_t bytes) override {
    return Wrap(bytes, 0);
  }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(
      absl::string_view name) override {
    HT_RETURN_IF_ERROR(Use());
    return {absl::make_unique<FakeStream>(state_, name)};
  }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    HT_RETURN_IF_ERROR(Use());
    return {absl::make_unique<FakeEvent>(state_)};
  }
  absl::StatusOr<std::unique_ptr<Timer>> CreateTimer() override {
    return {absl::make_unique<FakeTimer>(state_)};
  }
  absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream& stream, const std::function<absl::Status()>& enqueue) override;
  absl::StatusOr<int64_t> FreeBytes() override {
    return options_.memory_bytes - state_->allocated;
  }

  const std::vector<std::string>& log() const override { return state_->log; }
  void Log(std::string line) override {
    if (state_->recording != nullptr) {
      state_->recording->entries.push_back({std::move(line), nullptr});
    } else {
      state_->log.push_back(std::move(line));
    }
  }
  int64_t allocated_bytes() const override { return state_->allocated; }
  int live_graphs() const override { return state_->live_graphs; }
  absl::Status Spend(Stream& stream, double microseconds) override {
    return EnqueueWork(stream, "spend", [state = state_, microseconds] {
      state->microseconds += microseconds;
    });
  }
  void Break(const absl::Status& status) override { state_->broken = status; }
  void GiveUpWaits(const absl::Status& status) override {
    state_->given_up = status;
  }

 private:
  absl::StatusOr<std::unique_ptr<Memory>> Wrap(int64_t bytes, int64_t counted) {
    HT_RETURN_IF_ERROR(Use());
    HT_ASSIGN_OR_RETURN(auto host, AllocateHostMemory(bytes));
    return {absl::make_unique<FakeMemory>(state_, std::move(host), counted)};
  }

  FakeDeviceOptions options_;
  FakeStatePtr state_;
};

absl::StatusOr<std::unique_ptr<Graph>> FakeDeviceImpl::Capture(
    Stream& stream, const std::function<absl::Status()>& enqueue) {
  if (!options_.has_graphs) return {nullptr};
  HT_RETURN_IF_ERROR(Use());
  if (state_->recording != nullptr) {
    return CompilerBug("capture within a capture");
  }
  std::string name = absl::StrCat("graph g", state_->graphs++);
  state_->log.push_back(absl::StrCat(name, ": capture on ",
                                     static_cast<FakeStream&>(stream).name()));
  state_->recording = absl::make_unique<FakeRecording>();
  state_->recording->origin = &stream;
  state_->recording->streams[&stream];
  absl::Status status = enqueue();
  const std::unique_ptr<FakeRecording> recording = std::move(state_->recording);
  HT_RETURN_IF_ERROR(status);
  HT_RETURN_IF_ERROR(CheckJoined(*recording));
  return {absl::make_unique<FakeGraph>(state_, std::move(name),
                                       std::move(recording->entries))};
}

}  // namespace

absl::Status FakeDevice::EnqueueWork(Stream& stream, absl::string_view what,
                                     std::function<void()> work) {
  return static_cast<FakeStream&>(stream).Do(what, std::move(work));
}

int FakeDevice::CurrentOrdinal() { return FakeCurrentOrdinal(); }

std::unique_ptr<FakeDevice> MakeFakeDevice(const FakeDeviceOptions& options) {
  return absl::make_unique<FakeDeviceImpl>(options);
}

}  // namespace runtime
}  // namespace halftone
