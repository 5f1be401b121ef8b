#include "runtime/device/device_conformance.h"

#include <cstring>
#include <thread>

#include "graph/base/error.h"

namespace halftone {
namespace runtime {

DeviceConformance::DeviceConformance() : device_(GetParam().make()) {
  stream_ = MakeStream("compute");
}

std::unique_ptr<Memory> DeviceConformance::Allocate(int64_t bytes) {
  auto memory = device_->Allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return std::move(memory).value();
}

std::unique_ptr<Stream> DeviceConformance::MakeStream(const char* name) {
  auto stream = device_->CreateStream(name);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return std::move(stream).value();
}

std::unique_ptr<Event> DeviceConformance::MakeEvent() {
  auto event = device_->CreateEvent();
  EXPECT_TRUE(event.ok()) << event.status();
  return std::move(event).value();
}

void DeviceConformance::Upload(const Memory& to,
                               const std::vector<uint8_t>& bytes) {
  ASSERT_TRUE(stream_->Copy(to.data(), bytes.data(), bytes.size()).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
}

std::vector<uint8_t> DeviceConformance::Download(const Memory& from) {
  std::vector<uint8_t> bytes(from.bytes());
  EXPECT_TRUE(stream_->Copy(bytes.data(), from.data(), from.bytes()).ok());
  EXPECT_TRUE(stream_->Synchronize().ok());
  return bytes;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);

TEST_P(DeviceConformance, NamesItself) {
  EXPECT_FALSE(device_->kind().empty());
  EXPECT_FALSE(device_->Description().empty());
  EXPECT_FALSE(device_->target().empty());
  EXPECT_GE(device_->ordinal(), 0);
}

TEST_P(DeviceConformance, MemoryIsAlignedAndAsLargeAsAskedFor) {
  for (int64_t bytes : {0, 1, 255, 256, 4097, 3 << 20}) {
    std::unique_ptr<Memory> memory = Allocate(bytes);
    EXPECT_EQ(memory->bytes(), bytes);
    EXPECT_NE(memory->data(), nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % kAlignment, 0u);
    const std::vector<uint8_t> pattern(bytes, 0xa5);
    Upload(*memory, pattern);
    EXPECT_EQ(Download(*memory), pattern);
  }
}

TEST_P(DeviceConformance, PinnedMemoryIsReadableByTheHost) {
  auto pinned = device_->AllocatePinned(1000);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*pinned)->data()) % kAlignment, 0u);
  std::memset((*pinned)->data(), 7, 1000);
  std::unique_ptr<Memory> memory = Allocate(1000);
  ASSERT_TRUE(stream_->Copy(memory->data(), (*pinned)->data(), 1000).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_EQ(Download(*memory), std::vector<uint8_t>(1000, 7));
}

TEST_P(DeviceConformance, RefusesWhatDoesNotFit) {
  auto free = device_->FreeBytes();
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_GT(*free, 0);
  auto memory = device_->Allocate(int64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(ExitCodeOf(memory.status()), ExitCode::kOutOfMemory);
  EXPECT_FALSE(device_->Allocate(-1).ok());
}

TEST_P(DeviceConformance, FillsAndCopiesInStreamOrder) {
  std::unique_ptr<Memory> a = Allocate(4096);
  std::unique_ptr<Memory> b = Allocate(4096);
  ASSERT_TRUE(stream_->Fill(a->data(), 1, 4096).ok());
  ASSERT_TRUE(stream_->Copy(b->data(), a->data(), 4096).ok());
  ASSERT_TRUE(stream_->Fill(a->data(), 2, 4096).ok());
  ASSERT_TRUE(stream_->Fill(a->data(), 3, 0).ok());
  ASSERT_TRUE(stream_->Copy(a->data(), b->data(), 0).ok());
  EXPECT_EQ(Download(*a), std::vector<uint8_t>(4096, 2));
  EXPECT_EQ(Download(*b), std::vector<uint8_t>(4096, 1));
}

TEST_P(DeviceConformance, EventsOrderStreams) {
  std::unique_ptr<Stream> other = MakeStream("copy_in");
  std::unique_ptr<Event> event = MakeEvent();
  std::unique_ptr<Memory> a = Allocate(1 << 20);
  std::unique_ptr<Memory> b = Allocate(1 << 20);
  ASSERT_TRUE(other->Fill(a->data(), 9, a->bytes()).ok());
  ASSERT_TRUE(other->Record(*event).ok());
  ASSERT_TRUE(stream_->Wait(*event).ok());
  ASSERT_TRUE(stream_->Copy(b->data(), a->data(), a->bytes()).ok());
  EXPECT_EQ(Download(*b), std::vector<uint8_t>(1 << 20, 9));
  ASSERT_TRUE(event->Synchronize().ok());
  auto done = event->Query();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(*done);
}

TEST_P(DeviceConformance, WaitForAnEventNeverRecordedIsNoWait) {
  std::unique_ptr<Event> event = MakeEvent();
  EXPECT_TRUE(stream_->Wait(*event).ok());
  EXPECT_TRUE(event->Synchronize().ok());
  EXPECT_TRUE(stream_->Synchronize().ok());
}

TEST_P(DeviceConformance, TimersMeasureWhatAStreamDoes) {
  auto timer = device_->CreateTimer();
  ASSERT_TRUE(timer.ok()) << timer.status();
  std::unique_ptr<Memory> memory = Allocate(64 << 20);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE((*timer)->Start(*stream_).ok());
    ASSERT_TRUE(stream_->Fill(memory->data(), 1, memory->bytes()).ok());
    ASSERT_TRUE((*timer)->Stop(*stream_).ok());
    auto passed = (*timer)->Microseconds();
    ASSERT_TRUE(passed.ok()) << passed.status();
    EXPECT_GT(*passed, 1);  // 64 TB/s
  }
  auto next = device_->CreateTimer();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE((*timer)->Start(*stream_).ok());
  ASSERT_TRUE(stream_->Fill(memory->data(), 1, memory->bytes()).ok());
  ASSERT_TRUE((*timer)->Stop(*stream_).ok());
  ASSERT_TRUE((*next)->Start(*stream_).ok());
  ASSERT_TRUE((*next)->Stop(*stream_).ok());
  ASSERT_TRUE((*next)->Microseconds().ok());
  const auto passed = (*timer)->Microseconds();
  const auto since = (*next)->MicrosecondsSince(**timer);
  ASSERT_TRUE(passed.ok() && since.ok()) << since.status();
  EXPECT_GE(*since, *passed);
}

TEST_P(DeviceConformance, CaptureRecordsAndLaunchRepeats) {
  std::unique_ptr<Memory> a = Allocate(64);
  std::unique_ptr<Memory> b = Allocate(64);
  Upload(*a, std::vector<uint8_t>(64, 1));
  Upload(*b, std::vector<uint8_t>(64, 0));
  auto graph = device_->Capture(
      *stream_, [&] { return stream_->Copy(b->data(), a->data(), 64); });
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(*graph != nullptr, GetParam().has_graphs);
  if (*graph == nullptr) return;
  EXPECT_EQ(Download(*b), std::vector<uint8_t>(64, 0));  // recorded only
  for (uint8_t value : {5, 6}) {
    Upload(*a, std::vector<uint8_t>(64, value));
    ASSERT_TRUE((*graph)->Launch(*stream_).ok());
    EXPECT_EQ(Download(*b), std::vector<uint8_t>(64, value));
  }
}

TEST_P(DeviceConformance, CaptureFollowsForksThatJoin) {
  if (!GetParam().has_graphs) return;
  std::unique_ptr<Stream> side = MakeStream("side");
  std::unique_ptr<Event> fork = MakeEvent();
  std::unique_ptr<Event> join = MakeEvent();
  std::unique_ptr<Memory> a = Allocate(64);
  std::unique_ptr<Memory> b = Allocate(64);
  Upload(*b, std::vector<uint8_t>(64, 0));
  auto graph = device_->Capture(*stream_, [&] {
    HT_RETURN_IF_ERROR(stream_->Fill(a->data(), 4, 64));
    HT_RETURN_IF_ERROR(stream_->Record(*fork));
    HT_RETURN_IF_ERROR(side->Wait(*fork));
    HT_RETURN_IF_ERROR(side->Copy(b->data(), a->data(), 64));
    HT_RETURN_IF_ERROR(side->Record(*join));
    return stream_->Wait(*join);
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Download(*b), std::vector<uint8_t>(64, 0));
  ASSERT_TRUE((*graph)->Launch(*stream_).ok());
  EXPECT_EQ(Download(*b), std::vector<uint8_t>(64, 4));
}

TEST_P(DeviceConformance, CaptureHandsOnTheEnqueuersError) {
  if (!GetParam().has_graphs) return;
  auto graph =
      device_->Capture(*stream_, [] { return ModelError("no such kernel"); });
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().message(), "no such kernel");
  EXPECT_TRUE(stream_->Synchronize().ok());  // usable afterwards
}

TEST_P(DeviceConformance, ThreadsMayAllocateAtTheSameTime) {
  std::vector<std::thread> threads;
  if (device_->kind() == "fake") return;  // a fake belongs to one thread
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 20; ++i) {
        auto memory = device_->Allocate(100000 * i);
        ASSERT_TRUE(memory.ok()) << memory.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace runtime
}  // namespace halftone
