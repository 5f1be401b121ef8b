#include "runtime/device/fake_device.h"

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/device/device_conformance.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceCase Case(const std::string& name, bool has_graphs,
                bool deferred = false) {
  FakeDeviceOptions options;
  options.has_graphs = has_graphs;
  options.deferred = deferred;
  return {name, [=] { return MakeFakeDevice(options); }, has_graphs};
}

INSTANTIATE_TEST_SUITE_P(Fake, DeviceConformance,
                         ::testing::Values(Case("with_graphs", true),
                                           Case("without_graphs", false),
                                           Case("deferred", true, true)),
                         [](const auto& info) { return info.param.name; });

class FakeDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<FakeDevice> device_ = MakeFakeDevice({});
  std::unique_ptr<Stream> compute_ = *device_->CreateStream("compute");
  std::unique_ptr<Stream> side_ = *device_->CreateStream("side");
  std::unique_ptr<Event> e0_ = *device_->CreateEvent();
  std::unique_ptr<Event> e1_ = *device_->CreateEvent();
  char a_[64] = {};
  char b_[64] = {};
};

TEST_F(FakeDeviceTest, LogsWhatIsEnqueued) {
  ASSERT_TRUE(compute_->Copy(a_, b_, 64).ok());
  ASSERT_TRUE(compute_->Record(*e0_).ok());
  ASSERT_TRUE(side_->Wait(*e0_).ok());
  ASSERT_TRUE(side_->Fill(a_, 0, 8).ok());
  device_->Log("side: matmul");
  ASSERT_TRUE(side_->Synchronize().ok());
  EXPECT_THAT(
      device_->log(),
      ElementsAre("compute: copy 64", "compute: record e0", "side: wait e0",
                  "side: fill 8", "side: matmul", "side: synchronize"));
}

TEST_F(FakeDeviceTest, LaunchReplaysTheLog) {
  auto graph = device_->Capture(*compute_, [&] {
    device_->Log("compute: matmul");
    return compute_->Copy(a_, b_, 64);
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE((*graph)->Launch(*compute_).ok());
  EXPECT_THAT(
      device_->log(),
      ElementsAre("graph g0: capture on compute", "graph g0: launch on compute",
                  "graph g0: compute: matmul", "graph g0: compute: copy 64"));
}

TEST_F(FakeDeviceTest, AForkThatDoesNotJoinIsAnError) {
  auto graph = device_->Capture(*compute_, [&] {
    HT_RETURN_IF_ERROR(compute_->Record(*e0_));
    HT_RETURN_IF_ERROR(side_->Wait(*e0_));
    HT_RETURN_IF_ERROR(side_->Record(*e1_));
    HT_RETURN_IF_ERROR(side_->Copy(a_, b_, 64));  // after the last record
    return compute_->Wait(*e1_);
  });
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(), HasSubstr("work of stream side"));
}

TEST_F(FakeDeviceTest, StreamsThatDidNotJoinRunEagerly) {
  auto graph = device_->Capture(*compute_, [&] {
    b_[0] = 1;
    return side_->Copy(a_, b_, 64);
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(a_[0], 1);
}

TEST_F(FakeDeviceTest, TheHostMayNotWaitWhileCapturing) {
  auto graph =
      device_->Capture(*compute_, [&] { return compute_->Synchronize(); });
  EXPECT_THAT(graph.status().message(), HasSubstr("synchronise with stream"));
  graph = device_->Capture(*compute_, [&] {
    HT_RETURN_IF_ERROR(compute_->Record(*e0_));
    return e0_->Synchronize();
  });
  EXPECT_THAT(graph.status().message(), HasSubstr("synchronise with event e0"));
  EXPECT_FALSE(e0_->Query().ok());
  EXPECT_FALSE(side_->Wait(*e0_).ok());  // the capture is over
  ASSERT_TRUE(compute_->Record(*e0_).ok());
  EXPECT_TRUE(e0_->Query().ok());
}

TEST_F(FakeDeviceTest, CapturesDoNotNest) {
  auto graph = device_->Capture(*compute_, [&] {
    return device_->Capture(*side_, [] { return absl::OkStatus(); }).status();
  });
  EXPECT_THAT(graph.status().message(), HasSubstr("within a capture"));
}

TEST_F(FakeDeviceTest, NoDependencyEntersACapture) {
  ASSERT_TRUE(side_->Record(*e0_).ok());
  auto graph =
      device_->Capture(*compute_, [&] { return compute_->Wait(*e0_); });
  EXPECT_THAT(graph.status().message(), HasSubstr("before the capture"));
  graph = device_->Capture(*compute_, [&] { return compute_->Wait(*e1_); });
  EXPECT_TRUE(graph.ok()) << graph.status();  // never recorded: no wait
}

TEST_F(FakeDeviceTest, WhatIsEnqueuedElsewhereIsAnError) {
  FakeDeviceOptions options;
  options.ordinal = 1;
  std::unique_ptr<FakeDevice> other = MakeFakeDevice(options);
  ASSERT_TRUE(compute_->Fill(a_, 1, 8).ok());
  ASSERT_TRUE(other->Use().ok());
  EXPECT_EQ(FakeDevice::CurrentOrdinal(), 1);
  EXPECT_THAT(compute_->Fill(a_, 2, 8).message(), HasSubstr("of device 0"));
  EXPECT_EQ(a_[0], 1);
  std::unique_ptr<Event> event = *device_->CreateEvent();  // as CUDA's do
  EXPECT_TRUE(compute_->Record(*event).ok());
}

class DeferredTest : public ::testing::Test {
 protected:
  static std::unique_ptr<FakeDevice> Make() {
    FakeDeviceOptions options;
    options.deferred = true;
    return MakeFakeDevice(options);
  }
  uint8_t At(const std::unique_ptr<Memory>& memory) {
    return *static_cast<uint8_t*>(memory->data());
  }

  std::unique_ptr<FakeDevice> device_ = Make();
  std::unique_ptr<Stream> compute_ = *device_->CreateStream("compute");
  std::unique_ptr<Stream> side_ = *device_->CreateStream("side");
  std::unique_ptr<Event> e0_ = *device_->CreateEvent();
  std::unique_ptr<Memory> a_ = *device_->Allocate(8);
  std::unique_ptr<Memory> b_ = *device_->Allocate(8);
};

TEST_F(DeferredTest, OnlyWhatEventsDemandIsDone) {
  ASSERT_TRUE(side_->Fill(a_->data(), 1, 8).ok());
  ASSERT_TRUE(side_->Record(*e0_).ok());
  ASSERT_TRUE(side_->Fill(a_->data(), 2, 8).ok());
  ASSERT_TRUE(compute_->Copy(b_->data(), a_->data(), 8).ok());
  ASSERT_TRUE(compute_->Synchronize().ok());
  EXPECT_EQ(At(b_), 0);  // it did not wait for the other stream
  ASSERT_TRUE(compute_->Wait(*e0_).ok());
  ASSERT_TRUE(compute_->Copy(b_->data(), a_->data(), 8).ok());
  EXPECT_EQ(At(a_), 0);
  ASSERT_TRUE(compute_->Synchronize().ok());
  EXPECT_EQ(At(b_), 1);
  EXPECT_EQ(At(a_), 1);  // the second fill is not needed yet
  ASSERT_TRUE(e0_->Synchronize().ok());
  EXPECT_EQ(At(a_), 1);
  b_.reset();  // freeing waits for everything
  EXPECT_EQ(At(a_), 2);
}

TEST_F(DeferredTest, AHastyStreamWaitsForEventsAlone) {
  FakeDeviceOptions options;
  options.deferred = true;
  options.hasty = "side";
  const auto device = MakeFakeDevice(options);
  const auto compute = *device->CreateStream("compute");
  const auto side = *device->CreateStream("side");
  const auto event = *device->CreateEvent();
  const auto memory = *device->Allocate(8);
  ASSERT_TRUE(side->Fill(memory->data(), 1, 8).ok());
  EXPECT_EQ(At(memory), 1);
  ASSERT_TRUE(compute->Fill(memory->data(), 2, 8).ok());
  ASSERT_TRUE(compute->Record(*event).ok());
  ASSERT_TRUE(side->Wait(*event).ok());
  ASSERT_TRUE(side->Fill(memory->data(), 3, 8).ok());
  EXPECT_EQ(At(memory), 1);
  ASSERT_TRUE(compute->Synchronize().ok());
  EXPECT_EQ(At(memory), 2);
  ASSERT_TRUE(side->Synchronize().ok());
  EXPECT_EQ(At(memory), 3);
}

TEST_F(DeferredTest, AQueryIsTrueOnceTheWorkIsDone) {
  ASSERT_TRUE(side_->Fill(a_->data(), 1, 8).ok());
  ASSERT_TRUE(side_->Record(*e0_).ok());
  EXPECT_FALSE(*e0_->Query());
  EXPECT_TRUE(*e0_->Query());
  EXPECT_EQ(At(a_), 1);
}

TEST_F(DeferredTest, PageableMemoryIsReadAndWrittenAtOnce) {
  char host = 3;
  ASSERT_TRUE(compute_->Copy(a_->data(), &host, 1).ok());
  host = 4;
  EXPECT_EQ(At(a_), 0);
  ASSERT_TRUE(compute_->Copy(&host, a_->data(), 1).ok());
  EXPECT_EQ(host, 3);
  const auto pinned = *device_->AllocatePinned(1);
  ASSERT_TRUE(compute_->Copy(pinned->data(), a_->data(), 1).ok());
  EXPECT_EQ(At(pinned), 0);
}

TEST(FakeDevice, CountsItsMemory) {
  FakeDeviceOptions options;
  options.memory_bytes = 1000;
  std::unique_ptr<FakeDevice> device = MakeFakeDevice(options);
  auto memory = device->Allocate(600);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(device->allocated_bytes(), 600);
  EXPECT_EQ(*device->FreeBytes(), 400);
  auto more = device->Allocate(401);
  EXPECT_EQ(ExitCodeOf(more.status()), ExitCode::kOutOfMemory);
  EXPECT_THAT(more.status().message(), HasSubstr("400 B of 1000 B are free"));
  EXPECT_TRUE(device->AllocatePinned(5000).ok());
  memory->reset();
  EXPECT_EQ(device->allocated_bytes(), 0);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
