#include "runtime/device/fake_stream.h"

#include <algorithm>
#include <cstring>

#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

thread_local int current_ordinal = 0;

constexpr double kBytesPerMicrosecond = 1e6;

void Merge(const FakeClock& from, FakeClock& into) {
  for (const auto& [stream, count] : from) {
    into[stream] = std::max(into[stream], count);
  }
}

}  // namespace

int FakeCurrentOrdinal() { return current_ordinal; }
void SetFakeCurrentOrdinal(int ordinal) { current_ordinal = ordinal; }

void FakeQueue::RunThrough(int64_t until) {
  while (done < until) {
    const Item item = std::move(items.front());
    if (item.after != nullptr) item.after->RunThrough(item.until);
    if (item.action) item.action();
    items.pop_front();
    ++done;
  }
}

bool FakeState::Owns(const void* at) const {
  const char* const address = static_cast<const char*>(at);
  auto block = memory.upper_bound(address);
  if (block == memory.begin()) return false;
  --block;
  return address < block->first + std::max<int64_t>(block->second, 1);
}

void FakeState::Hurry() {
  for (const auto& queue : queues) {
    while (queue->hasty && !queue->items.empty()) {
      const FakeQueue::Item& next = queue->items.front();
      if (next.after != nullptr && next.after->done < next.until) break;
      queue->RunThrough(queue->done + 1);
    }
  }
}

void FakeState::Finish() {
  for (const auto& queue : queues) queue->RunThrough(queue->end());
}

absl::Status FakeState::CheckCurrent(absl::string_view what) const {
  if (current_ordinal == ordinal) return absl::OkStatus();
  return CompilerBug(what, " of device ", ordinal, " while device ",
                     current_ordinal, " is the thread's");
}

absl::Status FakeEvent::Synchronize() {
  if (captured_) return Forbidden("synchronise with");
  HT_RETURN_IF_ERROR(state_->broken);
  HT_RETURN_IF_ERROR(state_->given_up);
  state_->log.push_back(absl::StrCat("host: synchronize ", name_));
  if (queue_ != nullptr) queue_->RunThrough(until_);
  return absl::OkStatus();
}

// Who asks long enough is told that it is done.
absl::StatusOr<bool> FakeEvent::Query() {
  if (captured_) return Forbidden("query");
  HT_RETURN_IF_ERROR(state_->broken);
  state_->log.push_back(absl::StrCat("host: query ", name_));
  if (queue_ == nullptr || queue_->done >= until_) return true;
  queue_->RunThrough(until_);
  return false;
}

absl::Status FakeEvent::Forbidden(absl::string_view what) const {
  return CompilerBug("host may not ", what, " event ", name_,
                     ": it was recorded while capturing");
}

absl::Status FakeStream::Record(Event& event) {
  FakeEvent& fake = static_cast<FakeEvent&>(event);
  HT_RETURN_IF_ERROR(Do(absl::StrCat("record ", fake.name()), nullptr));
  if (Captured()) {
    fake.Capture(state_->recording->streams[this]);
  } else {
    fake.RecordEagerly(queue_);
  }
  return absl::OkStatus();
}

absl::Status FakeStream::Wait(Event& event) {
  FakeEvent& fake = static_cast<FakeEvent&>(event);
  if (fake.captured() != nullptr) {
    if (state_->recording == nullptr) {
      return CompilerBug("stream ", name_, " waits for event ", fake.name(),
                         ", which was recorded in a capture that ended");
    }
    Merge(*fake.captured(), state_->recording->streams[this]);
  } else if (Captured() && fake.queue() != nullptr) {
    return CompilerBug("stream ", name_, " is captured and waits for event ",
                       fake.name(), ", which was recorded before the capture");
  }
  if (!Captured()) Push({nullptr, fake.queue(), fake.until()});
  return Do(absl::StrCat("wait ", fake.name()), nullptr);
}

absl::Status FakeStream::Copy(void* to, const void* from, int64_t bytes) {
  const bool reads_pageable = bytes > 0 && !state_->Owns(from);
  const bool writes_pageable = bytes > 0 && !state_->Owns(to);
  if (!state_->deferred || Captured() ||
      (!reads_pageable && !writes_pageable)) {
    return Do(absl::StrCat("copy ", bytes), [=] {
      state_->microseconds += bytes / kBytesPerMicrosecond;
      if (bytes > 0) std::memcpy(to, from, bytes);
    });
  }
  state_->log.push_back(absl::StrCat(name_, ": pageable ", bytes));
  const char* const begin = static_cast<const char*>(from);
  const std::string staged(begin, reads_pageable ? begin + bytes : begin);
  const absl::Status status =
      Do(absl::StrCat("copy ", bytes), [=, keep = staged] {
        std::memcpy(to, reads_pageable ? keep.data() : from, bytes);
      });
  if (writes_pageable) queue_->RunThrough(queue_->end());
  return status;
}

absl::Status FakeStream::Fill(void* to, uint8_t value, int64_t bytes) {
  return Do(absl::StrCat("fill ", bytes), [=] {
    state_->microseconds += bytes / kBytesPerMicrosecond;
    if (bytes > 0) std::memset(to, value, bytes);
  });
}

absl::Status FakeStream::Synchronize() {
  if (Captured()) {
    return CompilerBug("host may not synchronise with stream ", name_,
                       " while it is captured");
  }
  HT_RETURN_IF_ERROR(state_->broken);
  HT_RETURN_IF_ERROR(state_->given_up);
  HT_RETURN_IF_ERROR(Do("synchronize", nullptr));
  queue_->RunThrough(queue_->end());
  return absl::OkStatus();
}

absl::Status FakeStream::Do(absl::string_view what,
                            std::function<void()> action) {
  std::string line = absl::StrCat(name_, ": ", what);
  HT_RETURN_IF_ERROR(state_->CheckCurrent(line));
  if (Captured()) {
    ++state_->recording->streams[this][this];
    state_->recording->entries.push_back({std::move(line), std::move(action)});
    return absl::OkStatus();
  }
  state_->log.push_back(std::move(line));
  Push({std::move(action), nullptr, 0});
  return absl::OkStatus();
}

void FakeStream::Push(FakeQueue::Item item) {
  queue_->items.push_back(std::move(item));
  if (!state_->deferred) queue_->RunThrough(queue_->end());
  state_->Hurry();
}

absl::Status FakeGraph::Launch(Stream& stream) {
  FakeStream& fake = static_cast<FakeStream&>(stream);
  HT_RETURN_IF_ERROR(state_->CheckCurrent(absl::StrCat(name_, ": launch")));
  state_->log.push_back(absl::StrCat(name_, ": launch on ", fake.name()));
  for (const FakeEntry& entry : *entries_) {
    state_->log.push_back(absl::StrCat(name_, ": ", entry.line));
  }
  fake.Push({[entries = entries_] {
               for (const FakeEntry& entry : *entries) {
                 if (entry.action) entry.action();
               }
             },
             nullptr, 0});
  return absl::OkStatus();
}

absl::Status FakeTimer::Start(Stream& stream) {
  return static_cast<FakeStream&>(stream).Do(
      "start timer", [this] { start_ = state_->microseconds; });
}

absl::Status FakeTimer::Stop(Stream& stream) {
  stream_ = &stream;
  return static_cast<FakeStream&>(stream).Do(
      "stop timer", [this] { stop_ = state_->microseconds; });
}

absl::StatusOr<double> FakeTimer::Microseconds() {
  if (stream_ != nullptr) HT_RETURN_IF_ERROR(stream_->Synchronize());
  return stop_ - start_;
}

absl::Status CheckJoined(const FakeRecording& recording) {
  FakeClock known = recording.streams.at(recording.origin);
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

}  // namespace runtime
}  // namespace halftone
