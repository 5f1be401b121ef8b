#include "runtime/device/cuda/cuda_stream.h"

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

TEST(CudaWaits, HandOnTheDevicesError) {
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
