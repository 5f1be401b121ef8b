// After the first steps nothing is taken from the heap: what a rank's thread
// allocates between two steps is counted, and what all threads do, readers'
// among them.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/models/training.h"

namespace {

thread_local int64_t allocations = 0;
std::atomic<int64_t> all_allocations{0};

void* TryAllocate(size_t bytes) {
  ++allocations;
  ++all_allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* Allocate(size_t bytes) {
  void* p = TryAllocate(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return TryAllocate(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return TryAllocate(bytes);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

namespace halftone {
namespace runtime {
namespace {

class Allocations : public ::testing::TestWithParam<int> {};

TEST_P(Allocations, NonePerStep) {
  const auto model =
      CompileText(kScaleModel, kScaleStrategy, {"train.epochs=1"});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:640", "");
  config.log_every = 1000;  // an event may allocate
  std::vector<int64_t> counts(100, -1), of_all(100, -1);
  config.on_activity = [&](int64_t step, const char* what) {
    if (std::string(what) != "train") return;
    counts[step] = allocations;
    of_all[step] = all_allocations;
  };
  ASSERT_TRUE(TrainOn(*model, config, GetParam()).status.ok());
  // Step 3 is the first that reads another one's results.
  for (int step = 5; step <= 40; ++step) {
    EXPECT_EQ(counts[step] - counts[step - 1], 0) << "in step " << step - 1;
  }
  // By then readers have had every slot of their rings.
  for (int step = 10; step <= 40; ++step) {
    EXPECT_EQ(of_all[step] - of_all[step - 1], 0) << "in step " << step - 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Allocations, ::testing::Values(1, 2));

}  // namespace
}  // namespace runtime
}  // namespace halftone
