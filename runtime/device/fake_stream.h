// Streams, events and graphs of the fake device. Private to runtime/device.
#ifndef HALFTONE_RUNTIME_DEVICE_FAKE_STREAM_H_
#define HALFTONE_RUNTIME_DEVICE_FAKE_STREAM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// The work of one stream. Positions count what was enqueued from 0.
struct FakeQueue {
  struct Item {
    std::function<void()> action;      // may be null
    std::shared_ptr<FakeQueue> after;  // which must have done `until` items
    int64_t until = 0;
  };
  std::deque<Item> items;  // those not done yet
  int64_t done = 0;
  bool hasty = false;
  int64_t end() const { return done + static_cast<int64_t>(items.size()); }
  // Does what it takes for `until` items of this queue to be done.
  void RunThrough(int64_t until);
};

// Which of the captured streams' work is known to be done: the count of their
// entries, by stream.
using FakeClock = std::map<const void*, int64_t>;

// What a graph does when it is launched.
struct FakeEntry {
  std::string line;
  std::function<void()> action;  // null: a line alone
};

// A capture under way.
struct FakeRecording {
  const void* origin = nullptr;
  std::vector<FakeEntry> entries;
  std::map<const void*, FakeClock> streams;  // those that joined
};

// What streams, memory and graphs share; it outlives the device.
struct FakeState {
  int ordinal = 0;
  bool deferred = false;
  std::string hasty;
  std::vector<std::string> log;
  int64_t allocated = 0;
  std::map<const char*, int64_t> memory;  // blocks given out, pinned ones too
  int events = 0;
  int graphs = 0;
  int live_graphs = 0;
  absl::Status broken;
  absl::Status given_up;    // what waits end with
  double microseconds = 0;  // the device's clock; work moves it
  std::unique_ptr<FakeRecording> recording;
  std::vector<std::shared_ptr<FakeQueue>> queues;

  // Whether `at` is in memory that a host's copy need not wait for.
  bool Owns(const void* at) const;
  // Does what hasty streams may do without waiting.
  void Hurry();
  // Does everything, as freeing memory does.
  void Finish();
  // An error unless it is the calling thread's device.
  absl::Status CheckCurrent(absl::string_view what) const;
};
using FakeStatePtr = std::shared_ptr<FakeState>;

int FakeCurrentOrdinal();
void SetFakeCurrentOrdinal(int ordinal);

class FakeEvent : public Event {
 public:
  explicit FakeEvent(FakeStatePtr state)
      : state_(std::move(state)), name_(absl::StrCat("e", state_->events++)) {}

  absl::Status Synchronize() override;
  absl::StatusOr<bool> Query() override;

  const std::string& name() const { return name_; }
  const FakeClock* captured() const { return captured_ ? &clock_ : nullptr; }
  void Capture(const FakeClock& clock) {
    captured_ = true;
    queue_ = nullptr;
    clock_ = clock;
  }
  void RecordEagerly(std::shared_ptr<FakeQueue> queue) {
    captured_ = false;
    until_ = queue->end();
    queue_ = std::move(queue);
  }
  // Null if it was never recorded, or while capturing.
  const std::shared_ptr<FakeQueue>& queue() const { return queue_; }
  int64_t until() const { return until_; }

 private:
  absl::Status Forbidden(absl::string_view what) const;

  FakeStatePtr state_;
  std::string name_;
  bool captured_ = false;
  FakeClock clock_;
  std::shared_ptr<FakeQueue> queue_;
  int64_t until_ = 0;
};

class FakeStream : public Stream {
 public:
  FakeStream(FakeStatePtr state, absl::string_view name)
      : state_(std::move(state)),
        name_(name),
        queue_(std::make_shared<FakeQueue>()) {
    queue_->hasty = name_ == state_->hasty;
    state_->queues.push_back(queue_);
  }

  const std::string& name() const { return name_; }
  absl::Status Record(Event& event) override;
  absl::Status Wait(Event& event) override;
  absl::Status Copy(void* to, const void* from, int64_t bytes) override;
  absl::Status Fill(void* to, uint8_t value, int64_t bytes) override;
  absl::Status Synchronize() override;
  void* native() override { return static_cast<Stream*>(this); }

  // Logs "<stream>: <what>" and enqueues or records the action.
  absl::Status Do(absl::string_view what, std::function<void()> action);
  // Behind everything on this stream, without a line of its own.
  void Push(FakeQueue::Item item);

 private:
  bool Captured() const {
    return state_->recording != nullptr &&
           state_->recording->streams.count(this) > 0;
  }

  FakeStatePtr state_;
  std::string name_;
  std::shared_ptr<FakeQueue> queue_;
};

class FakeGraph : public Graph {
 public:
  FakeGraph(FakeStatePtr state, std::string name,
            std::vector<FakeEntry> entries)
      : state_(std::move(state)),
        name_(std::move(name)),
        entries_(std::make_shared<const std::vector<FakeEntry>>(
            std::move(entries))) {
    ++state_->live_graphs;
  }
  ~FakeGraph() override { --state_->live_graphs; }
  absl::Status Launch(Stream& stream) override;

 private:
  FakeStatePtr state_;
  std::string name_;
  // A launch that is not done yet holds them as well.
  std::shared_ptr<const std::vector<FakeEntry>> entries_;
};

class FakeTimer : public Timer {
 public:
  absl::Status Start(Stream& stream) override;
  absl::Status Stop(Stream& stream) override;
  absl::StatusOr<double> Microseconds() override;
  absl::StatusOr<double> MicrosecondsSince(Timer& earlier) override {
    return start_ - static_cast<FakeTimer&>(earlier).start_;
  }
  explicit FakeTimer(FakeStatePtr state) : state_(std::move(state)) {}

 private:
  FakeStatePtr state_;
  Stream* stream_ = nullptr;  // of the stop
  double start_ = 0, stop_ = 0;
};

// An error unless the origin's work comes after that of all who joined.
absl::Status CheckJoined(const FakeRecording& recording);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_FAKE_STREAM_H_
