#include "runtime/device/cuda/cuda_driver.h"

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/targets/target.h"
#include "gtest/gtest.h"
#include "runtime/device/cuda/cuda_device.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice) << status;
  return std::string(status.message());
}

TEST(CudaDriver, IsMissing) {
  EXPECT_THAT(Message(CheckDriverVersion(0, 13000)),
              AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("libcuda.so.1"),
                    HasSubstr("code 35"), HasSubstr("--target cpu")));
}

TEST(CudaDriver, IsTooOld) {
  EXPECT_THAT(Message(CheckDriverVersion(12040, 13000)),
              AllOf(HasSubstr("serves CUDA 12.4"), HasSubstr("needs 13.0"),
                    HasSubstr("driver 580.65 or newer")));
}

TEST(CudaDriver, ServesItsOwnMajorVersionAndEarlierOnes) {
  EXPECT_TRUE(CheckDriverVersion(13000, 13000).ok());
  EXPECT_TRUE(CheckDriverVersion(12000, 12080).ok());
  EXPECT_TRUE(CheckDriverVersion(13000, 12080).ok());
}

TEST(CudaDriver, TargetsAreThoseThatHaveCode) {
  EXPECT_EQ(*TargetOfCapability(8, 0, "d"), "sm_80");
  EXPECT_EQ(*TargetOfCapability(8, 9, "d"), "sm_80");
  EXPECT_EQ(*TargetOfCapability(9, 0, "d"), "sm_90");
  EXPECT_EQ(*TargetOfCapability(10, 3, "d"), GpuTargetFor(103)->name);
  EXPECT_THAT(Message(TargetOfCapability(7, 5, "cuda:0 (Tesla T4)").status()),
              AllOf(HasSubstr("cuda:0 (Tesla T4)"), HasSubstr("7.5")));
}

// True on every machine: either there are devices, or the error is clear.
TEST(CudaDriver, SaysWhatThisMachineHas) {
  const auto count = CountCudaDevices();
  if (count.ok()) {
    EXPECT_GE(*count, 1);
    EXPECT_THAT(Message(CudaDevice::Create(*count).status()),
                HasSubstr("no such device"));
    EXPECT_THAT(Message(TargetOfDevice(*count).status()),
                HasSubstr("no such device"));
    return;
  }
  EXPECT_FALSE(Message(count.status()).empty());
  EXPECT_EQ(CudaDevice::Create(0).status(), count.status());
  EXPECT_EQ(TargetOfDevice(0).status(), count.status());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
