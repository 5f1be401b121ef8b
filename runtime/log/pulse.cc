#include "runtime/log/pulse.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

constexpr std::chrono::milliseconds kBeat{50};
constexpr std::chrono::seconds kLongest{60};

Activity::Clock::rep Ticks() {
  return Activity::Clock::now().time_since_epoch().count();
}

Activity::Clock::time_point TimeOf(Activity::Clock::rep ticks) {
  return Activity::Clock::time_point(Activity::Clock::duration(ticks));
}

}  // namespace

void Activity::Begin(const char* stage, int64_t number, int64_t of) {
  number_ = number;
  done_ = 0;
  of_ = of;
  began_ = Ticks();
  moved_ = began_.load();
  stage_ = stage;
}

void Activity::Did(int64_t done) {
  done_ = done;
  moved_ = Ticks();
}

Activity::Now Activity::now() const {
  return {stage_, number_, done_, of_, TimeOf(began_), TimeOf(moved_)};
}

void Patience::Shown() {
  wait_ = rewritten_ ? std::chrono::seconds(1)
                     : std::min<Clock::duration>(2 * wait_, kLongest);
}

std::string ActivityText(const Activity::Now& now,
                         Activity::Clock::time_point at) {
  std::string text = now.stage;
  if (now.number > 0) absl::StrAppend(&text, " ", now.number);
  text.resize(std::max<size_t>(text.size() + 1, 9), ' ');
  const double seconds = std::chrono::duration<double>(at - now.began).count();
  if (now.of > 0) {
    absl::StrAppend(&text, WithCommas(now.done), " of ", WithCommas(now.of),
                    ", ");
  }
  absl::StrAppend(&text, Duration(seconds), " so far");
  if (now.done > 0 && now.of > now.done) {
    const double each = seconds / static_cast<double>(now.done);
    absl::StrAppend(&text, ", ",
                    Duration(each * static_cast<double>(now.of - now.done)),
                    " to go");
  }
  return text;
}

Pulse::Pulse(Console* console, const Activity* activity,
             std::function<std::string(const Activity::Now&)> doing,
             std::function<std::string()> urgent)
    : console_(console),
      activity_(activity),
      doing_(std::move(doing)),
      urgent_(std::move(urgent)),
      patience_(console->is_terminal()),
      thread_([this] { Run(); }) {}

Pulse::Pulse(Console* console, const Activity* activity)
    : Pulse(
          console, activity,
          [](const Activity::Now& now) {
            return ActivityText(now, Activity::Clock::now());
          },
          nullptr) {}

Pulse::~Pulse() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
  console_->EndProgress();
}

void Pulse::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, kBeat, [this] { return end_; })) Beat();
}

void Pulse::Beat() {
  if (urgent_ && !said_) {
    const std::string text = urgent_();
    if (!text.empty()) console_->Message(text);
    said_ = !text.empty();
  }
  const Activity::Now now = activity_->now();
  if (now.stage[0] == '\0') return;
  if (now.began != stage_began_) patience_.Reset();
  stage_began_ = now.began;
  const auto last = std::max(console_->last_line(), now.began);
  if (!patience_.IsDue(Activity::Clock::now(), last)) return;
  const std::string text = doing_(now);
  if (text.empty()) return;
  console_->Progress(text);
  patience_.Shown();
}

}  // namespace runtime
}  // namespace halftone
