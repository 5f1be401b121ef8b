// Collectives of a step must not touch the heap.
#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "graph/base/dtype.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace halftone {
namespace runtime {
namespace {

TEST(InProcessCommunicator, StepsDoNotAllocate) {
  auto ranks = MakeInProcessCommunicators(2, absl::Seconds(60));
  std::unique_ptr<Device> device = MakeCpuDevice(0, 1);
  std::unique_ptr<Stream> stream = *device->CreateStream("communicate");
  std::vector<std::vector<float>> data(2, std::vector<float>(100000, 1));
  const auto steps = [&](int rank) {
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(ranks[rank]
                      ->AllReduce(data[rank].data(), data[rank].size(),
                                  DType::kF32, ReduceOp::kMax, 1, *stream)
                      .ok());
      ASSERT_TRUE(
          ranks[rank]->Broadcast(data[rank].data(), 400, 0, *stream).ok());
    }
  };
  std::atomic<int64_t> before{0};
  std::thread other([&] {
    ASSERT_TRUE(ranks[1]->Barrier().ok());
    steps(1);
  });
  ASSERT_TRUE(ranks[0]->Barrier().ok());
  before = allocations.load();
  steps(0);
  const int64_t during = allocations - before;
  other.join();
  EXPECT_EQ(during, 0);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
