#include "runtime/device/cuda/cuda_device.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/device/cuda/tested_gpu.h"
#include "runtime/device/device_conformance.h"

namespace halftone {
namespace runtime {
namespace {

std::unique_ptr<Device> FirstGpu() { return TestedGpu(); }

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         ::testing::Values(DeviceCase{"Cuda", FirstGpu,
                                                      /*has_graphs=*/true}));

class CudaDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = FirstGpu();
  std::unique_ptr<Stream> stream_ = *device_->CreateStream("compute");
};

TEST_F(CudaDeviceTest, MemoryStartsZeroed) {
  for (int round = 0; round < 2; ++round) {
    const auto memory = *device_->Allocate(1 << 20);
    std::vector<uint8_t> bytes(1 << 20, 1);
    ASSERT_TRUE(stream_->Copy(bytes.data(), memory->data(), 1 << 20).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
    EXPECT_THAT(bytes, ::testing::Each(0));
    ASSERT_TRUE(stream_->Fill(memory->data(), 7, 1 << 20).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
  }
}

TEST_F(CudaDeviceTest, AForkThatDoesNotJoinIsRefused) {
  const auto side = *device_->CreateStream("side");
  const auto fork = *device_->CreateEvent();
  const auto memory = *device_->Allocate(64);
  const auto graph = device_->Capture(*stream_, [&]() -> absl::Status {
    HT_RETURN_IF_ERROR(stream_->Record(*fork));
    HT_RETURN_IF_ERROR(side->Wait(*fork));
    return side->Fill(memory->data(), 1, 64);
  });
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(ExitCodeOf(graph.status()), ExitCode::kCompilerBug);
  EXPECT_TRUE(stream_->Fill(memory->data(), 1, 64).ok());
  EXPECT_TRUE(stream_->Synchronize().ok());
}

TEST_F(CudaDeviceTest, WhatAnotherThreadDoesIsNotCaptured) {
  const auto memory = *device_->Allocate(64);
  const auto graph = device_->Capture(*stream_, [&]() -> absl::Status {
    std::thread([&] {
      EXPECT_TRUE(device_->Allocate(1000).ok());
      const auto other = *device_->CreateStream("copy_in");
      EXPECT_TRUE(other->Fill(memory->data(), 3, 64).ok());
      EXPECT_TRUE(other->Synchronize().ok());
    }).join();
    return stream_->Fill(memory->data(), 1, 64);
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE((*graph)->Launch(*stream_).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
