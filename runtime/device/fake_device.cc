#include "runtime/device/fake_device.h"

#include <cstring>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/device/host_memory.h"

namespace halftone {
namespace runtime {
namespace {

// Which of the captured streams' work is known to be done: the count of their
// entries, by stream.
using Clock = std::map<const void*, int64_t>;

void Merge(const Clock& from, Clock& into) {
  for (const auto& [stream, count] : from) {
    into[stream] = std::max(into[stream], count);
  }
}

// What a graph does when it is launched.
struct Entry {
  std::string line;
  std::function<void()> action;  // null: a line alone
};

// A capture under way.
struct Recording {
  const void* origin = nullptr;
  std::vector<Entry> entries;
  std::map<const void*, Clock> streams;  // those that joined
};

// What streams, memory and graphs share; it outlives the device.
struct State {
  std::vector<std::string> log;
  int64_t allocated = 0;
  int events = 0;
  int graphs = 0;
  std::unique_ptr<Recording> recording;
};
using StatePtr = std::shared_ptr<State>;

class FakeMemory : public Memory {
 public:
  FakeMemory(StatePtr state, std::unique_ptr<Memory> host, int64_t counted)
      : state_(std::move(state)), host_(std::move(host)), counted_(counted) {
    state_->allocated += counted_;
  }
  ~FakeMemory() override { state_->allocated -= counted_; }
  void* data() const override { return host_->data(); }
  int64_t bytes() const override { return host_->bytes(); }

 private:
  StatePtr state_;
  std::unique_ptr<Memory> host_;
  int64_t counted_;
};

class FakeEvent : public Event {
 public:
  explicit FakeEvent(StatePtr state)
      : state_(std::move(state)), name_(absl::StrCat("e", state_->events++)) {}

  absl::Status Synchronize() override {
    return captured_ ? Forbidden("synchronise with") : absl::OkStatus();
  }
  absl::StatusOr<bool> Query() override {
    if (captured_) return Forbidden("query");
    return true;
  }

  const std::string& name() const { return name_; }
  const Clock* captured() const { return captured_ ? &clock_ : nullptr; }
  void Capture(const Clock& clock) {
    captured_ = true;
    clock_ = clock;
  }
  void RecordEagerly() { captured_ = false; }

 private:
  absl::Status Forbidden(absl::string_view what) const {
    return CompilerBug("host may not ", what, " event ", name_,
                       ": it was recorded while capturing");
  }

  StatePtr state_;
  std::string name_;
  bool captured_ = false;
  Clock clock_;
};

class FakeStream : public Stream {
 public:
  FakeStream(StatePtr state, absl::string_view name)
      : state_(std::move(state)), name_(name) {}

  const std::string& name() const { return name_; }

  absl::Status Record(Event& event) override {
    FakeEvent& fake = static_cast<FakeEvent&>(event);
    Do(absl::StrCat("record ", fake.name()), nullptr);
    if (Captured()) {
      fake.Capture(state_->recording->streams[this]);
    } else {
      fake.RecordEagerly();
    }
    return absl::OkStatus();
  }
  absl::Status Wait(Event& event) override {
    FakeEvent& fake = static_cast<FakeEvent&>(event);
    if (fake.captured() != nullptr) {
      if (state_->recording == nullptr) {
        return CompilerBug("stream ", name_, " waits for event ", fake.name(),
                           ", which was recorded in a capture that ended");
      }
      Merge(*fake.captured(), state_->recording->streams[this]);
    }
    Do(absl::StrCat("wait ", fake.name()), nullptr);
    return absl::OkStatus();
  }
  absl::Status Copy(void* to, const void* from, int64_t bytes) override {
    Do(absl::StrCat("copy ", bytes), [=] {
      if (bytes > 0) std::memcpy(to, from, bytes);
    });
    return absl::OkStatus();
  }
  absl::Status Fill(void* to, uint8_t value, int64_t bytes) override {
    Do(absl::StrCat("fill ", bytes), [=] {
      if (bytes > 0) std::memset(to, value, bytes);
    });
    return absl::OkStatus();
  }
  absl::Status Synchronize() override {
    if (Captured()) {
      return CompilerBug("host may not synchronise with stream ", name_,
                         " while it is captured");
    }
    Do("synchronize", nullptr);
    return absl::OkStatus();
  }

 private:
  bool Captured() const {
    return state_->recording != nullptr &&
           state_->recording->streams.count(this) > 0;
  }
  void Do(absl::string_view what, std::function<void()> action) {
    std::string line = absl::StrCat(name_, ": ", what);
    if (Captured()) {
      ++state_->recording->streams[this][this];
      state_->recording->entries.push_back(
          {std::move(line), std::move(action)});
      return;
    }
    state_->log.push_back(std::move(line));
    if (action) action();
  }

  StatePtr state_;
  std::string name_;
};

class FakeGraph : public Graph {
 public:
  FakeGraph(StatePtr state, std::string name, std::vector<Entry> entries)
      : state_(std::move(state)),
        name_(std::move(name)),
        entries_(std::move(entries)) {}

  absl::Status Launch(Stream& stream) override {
    state_->log.push_back(absl::StrCat(
        name_, ": launch on ", static_cast<FakeStream&>(stream).name()));
    for (const Entry& entry : entries_) {
      state_->log.push_back(absl::StrCat(name_, ": ", entry.line));
      if (entry.action) entry.action();
    }
    return absl::OkStatus();
  }

 private:
  StatePtr state_;
  std::string name_;
  std::vector<Entry> entries_;
};

// An error unless the origin's work comes after that of all who joined.
absl::Status CheckJoined(const Recording& recording) {
  Clock known = recording.streams.at(recording.origin);
  for (const auto& [stream, clock] : recording.streams) {
    auto own = clock.find(stream);
    if (own == clock.end() || known[stream] >= own->second) continue;
    return CompilerBug("capture: work of stream ",
                       static_cast<const FakeStream*>(stream)->name(),
                       " is not waited for by the captured stream ",
                       static_cast<const FakeStream*>(recording.origin)->name(),
                       " at the end");
  }
  return absl::OkStatus();
}

class FakeDeviceImpl : public FakeDevice {
 public:
  explicit FakeDeviceImpl(const FakeDeviceOptions& options)
      : options_(options), state_(std::make_shared<State>()) {}

  absl::string_view kind() const override { return "fake"; }
  int ordinal() const override { return 0; }
  std::string Description() const override { return "fake device"; }
  std::string target() const override { return "cpu"; }

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
    return {absl::make_unique<FakeStream>(state_, name)};
  }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    return {absl::make_unique<FakeEvent>(state_)};
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

 private:
  absl::StatusOr<std::unique_ptr<Memory>> Wrap(int64_t bytes, int64_t counted) {
    HT_ASSIGN_OR_RETURN(auto host, AllocateHostMemory(bytes));
    return {absl::make_unique<FakeMemory>(state_, std::move(host), counted)};
  }

  FakeDeviceOptions options_;
  StatePtr state_;
};

absl::StatusOr<std::unique_ptr<Graph>> FakeDeviceImpl::Capture(
    Stream& stream, const std::function<absl::Status()>& enqueue) {
  if (!options_.has_graphs) return {nullptr};
  if (state_->recording != nullptr) {
    return CompilerBug("capture within a capture");
  }
  std::string name = absl::StrCat("graph g", state_->graphs++);
  state_->log.push_back(absl::StrCat(name, ": capture on ",
                                     static_cast<FakeStream&>(stream).name()));
  state_->recording = absl::make_unique<Recording>();
  state_->recording->origin = &stream;
  state_->recording->streams[&stream];
  absl::Status status = enqueue();
  const std::unique_ptr<Recording> recording = std::move(state_->recording);
  HT_RETURN_IF_ERROR(status);
  HT_RETURN_IF_ERROR(CheckJoined(*recording));
  return {absl::make_unique<FakeGraph>(state_, std::move(name),
                                       std::move(recording->entries))};
}

}  // namespace

std::unique_ptr<FakeDevice> MakeFakeDevice(const FakeDeviceOptions& options) {
  return absl::make_unique<FakeDeviceImpl>(options);
}

}  // namespace runtime
}  // namespace halftone
