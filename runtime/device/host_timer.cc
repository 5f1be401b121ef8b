// The timer of devices that have none of their own.
#include <chrono>

#include "absl/memory/memory.h"
#include "graph/base/error.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {
namespace {

class HostTimer : public Timer {
 public:
  absl::Status Start(Stream& stream) override {
    HT_RETURN_IF_ERROR(stream.Synchronize());
    start_ = Clock::now();
    return absl::OkStatus();
  }
  absl::Status Stop(Stream& stream) override {
    HT_RETURN_IF_ERROR(stream.Synchronize());
    passed_ = Clock::now() - start_;
    return absl::OkStatus();
  }
  absl::StatusOr<double> Microseconds() override {
    return std::chrono::duration<double, std::micro>(passed_).count();
  }
  absl::StatusOr<double> MicrosecondsSince(Timer& earlier) override {
    return std::chrono::duration<double, std::micro>(
               start_ - static_cast<HostTimer&>(earlier).start_)
        .count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  Clock::duration passed_{};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Timer>> Device::CreateTimer() {
  return {absl::make_unique<HostTimer>()};
}

}  // namespace runtime
}  // namespace halftone
