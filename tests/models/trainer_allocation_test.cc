// After the first step the loop itself takes nothing from the heap: what a
// rank's thread allocates between two steps is counted.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/models/training.h"

namespace {

thread_local int64_t allocations = 0;

void* Allocate(size_t bytes) {
  ++allocations;
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
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
  std::vector<int64_t> counts(100, -1);
  config.on_activity = [&counts](int64_t step, const char* what) {
    if (std::string(what) == "train") counts[step] = allocations;
  };
  ASSERT_TRUE(TrainOn(*model, config, GetParam()).status.ok());
  // Step 3 is the first that reads another one's results.
  for (int step = 5; step <= 40; ++step) {
    EXPECT_EQ(counts[step] - counts[step - 1], 0) << "in step " << step - 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Allocations, ::testing::Values(1, 2));

}  // namespace
}  // namespace runtime
}  // namespace halftone
