#include "runtime/device/cuda/cuda_stream.h"

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

TEST(CudaWaits, ReturnWhenTheDeviceIsDone) {
  CudaWaits waits;
  int asked = 0;
  EXPECT_TRUE(
      waits.Await([&]() -> absl::StatusOr<bool> { return ++asked == 50; })
          .ok());
  EXPECT_EQ(asked, 50);
}

TEST(CudaWaits, ReturnTheDevicesError) {
  CudaWaits waits;
  const absl::Status status =
      waits.Await([]() -> absl::StatusOr<bool> { return DeviceError("lost"); });
  EXPECT_EQ(status.message(), "lost");
}

// The guard ends what the device never would.
TEST(CudaWaits, LongOnesAreGuarded) {
  CudaWaits waits;
  bool guarded = false;
  waits.SetGuard([&](const std::function<absl::StatusOr<bool>()>& done) {
    guarded = true;
    EXPECT_FALSE(*done());
    return CommunicationError("rank 1 is gone");
  });
  EXPECT_TRUE(waits.Await([]() -> absl::StatusOr<bool> { return true; }).ok());
  EXPECT_FALSE(guarded);
  const absl::Status status =
      waits.Await([]() -> absl::StatusOr<bool> { return false; });
  EXPECT_TRUE(guarded);
  EXPECT_EQ(status.message(), "rank 1 is gone");
}

// A communicator that ends takes its guard back, and may go then.
TEST(CudaWaits, AGuardIsReplacedWhenItGuardsNothing) {
  CudaWaits waits;
  std::atomic<bool> guarding{false}, ended{false}, may_end{false};
  waits.SetGuard([&](const std::function<absl::StatusOr<bool>()>&) {
    guarding = true;
    while (!may_end) absl::SleepFor(absl::Milliseconds(1));
    ended = true;
    return absl::OkStatus();
  });
  std::thread waiter([&] {
    EXPECT_TRUE(
        waits.Await([]() -> absl::StatusOr<bool> { return false; }).ok());
  });
  while (!guarding) absl::SleepFor(absl::Milliseconds(1));
  std::thread owner([&] {
    waits.SetGuard(nullptr);
    EXPECT_TRUE(ended);
  });
  absl::SleepFor(absl::Milliseconds(50));  // for the owner to be in SetGuard
  may_end = true;
  owner.join();
  waiter.join();
}

TEST(StreamPriority, CollectivesFirst) {
  EXPECT_EQ(StreamPriority("compute", 0, -5), 0);
  EXPECT_EQ(StreamPriority("side", 0, -5), 0);
  EXPECT_EQ(StreamPriority("communicate", 0, -5), -5);
  EXPECT_LT(StreamPriority("copy_in", 0, -5), 0);
  EXPECT_GT(StreamPriority("copy_in", 0, -5), -5);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
