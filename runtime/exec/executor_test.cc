#include "runtime/exec/executor.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "runtime/device/fake_device.h"
#include "runtime/exec/executor_testing.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class ExecutorTest : public ::testing::Test {
 protected:
  std::unique_ptr<Program> program_ = ParseProgram();
};

// Calls `at_end` when it ends.
class Ends : public kernels::KernelInstance {
 public:
  Ends(std::unique_ptr<kernels::KernelInstance> kernel,
       std::function<void()> at_end)
      : kernel_(std::move(kernel)), at_end_(std::move(at_end)) {}
  ~Ends() override { at_end_(); }
  absl::Status Enqueue(const kernels::Buffers& buffers,
                       Stream& stream) override {
    return kernel_->Enqueue(buffers, stream);
  }

 private:
  std::unique_ptr<kernels::KernelInstance> kernel_;
  std::function<void()> at_end_;
};

TEST_F(ExecutorTest, KernelsEndAfterTheStepThatIsUnderWay) {
  FakeDeviceOptions deferred;
  deferred.deferred = true;
  auto owned = MakeFakeDevice(deferred);
  FakeDevice* const device = owned.get();
  std::vector<std::string> last;  // of the log, when a kernel ends
  kernels::KernelRegistry registry = FakeKernels();
  registry.ForEach([&](absl::string_view, kernels::Candidate& c) {
    c.prepare = [&, prepare = c.prepare](const kernels::BoundOp& op,
                                         Device& where)
        -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
      HT_ASSIGN_OR_RETURN(auto kernel, prepare(op, where));
      return {std::make_unique<Ends>(
          std::move(kernel), [&] { last.push_back(device->log().back()); })};
    };
  });
  TestRank rank(program_.get(), {}, std::move(owned), MakeSingleCommunicator(),
                registry);
  ASSERT_TRUE(rank.status.ok()) << rank.status;
  const auto binding = rank.executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
  last.clear();
  rank.executor.reset();
  EXPECT_FALSE(last.empty());
  EXPECT_THAT(last, Each("compute: synchronize"));
}

TEST_F(ExecutorTest, RunsStepsAndReadsThemTwoLate) {
  TestRank rank(program_.get());
  ASSERT_TRUE(rank.status.ok()) << rank.status;
  const auto binding = rank.executor->Prepare("train", Samples(1));
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  EXPECT_EQ(rank.Cell(kW), std::vector<float>({3, 3}));

  std::vector<float> w = {3, 3};
  std::vector<double> totals;
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> x = {1.0f + 0.1f * step, 2};
    const std::vector<float> g = {std::log(x[0] * w[0]), std::log(x[1] * w[1])};
    totals.push_back(g[0] + g[1]);
    for (int i = 0; i < 2; ++i) w[i] -= g[i];
    const auto ticket = rank.executor->Execute(*binding, {Feed(x)});
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_EQ(*ticket, step);
    if (step < 2) continue;
    const auto view = rank.executor->Read(step - 2);
    ASSERT_TRUE(view.ok());
    EXPECT_FLOAT_EQ(view->Scalar("total"), totals[step - 2]);
  }
}

TEST_F(ExecutorTest, DerivedCellsFollowTheirSource) {
  TestRank rank(program_.get());
  const float w[2] = {1.5, -2};
  ASSERT_TRUE(
      rank.executor
          ->WriteCell(CellId(kW), {reinterpret_cast<const char*>(w), sizeof(w)})
          .ok());
  ASSERT_TRUE(rank.executor->Derive().ok());
  std::string low;
  ASSERT_TRUE(rank.executor->ReadCell(CellId(kLow), &low).ok());
  EXPECT_EQ(low, std::string("\x00\x3e\x00\xc0", 4));
}

// A parameter and its low cell, which lie as `layout` says.
std::unique_ptr<Program> ImageCells(const std::string& layout) {
  return ParseProgram(absl::StrReplaceAll(R"(
program "p" dim B
cell w : f32[3,5,2,2]@ parameter trainable applied init=uniform(-1, 1)
cell w.low : f16[3,5,2,2]@ derived(w) applied
entry init {
  feed @seed : i64[]
  w.init: init_uniform(Seed=@seed) -> (Out=w.init : f32[3,5,2,2]@) {shape=[3, 5, 2, 2], dtype=f32, stream=9, low=-1, high=1}   forward
  commit w <- w.init
}
entry derive {
  low: cast(X=w) -> (Out=low : f16[3,5,2,2]@) {to=f16}   forward
  commit w.low <- low
}
)",
                                          {{"]@", absl::StrCat("]", layout)}}));
}

// Checkpoints of one layout are read into another.
TEST(ExecutorCells, AreReadAndWrittenInLogicalOrderHoweverTheyLie) {
  const auto row_major = ImageCells(""), last = ImageCells(" @channels_last");
  TestRank a(row_major.get()), b(last.get());
  const auto read = [](TestRank& rank, int cell) {
    std::string bytes;
    EXPECT_TRUE(rank.executor->ReadCell(CellId(cell), &bytes).ok());
    return bytes;
  };
  std::string before;
  for (int64_t seed : {7, 8}) {
    ASSERT_TRUE(a.executor->Initialize(seed).ok());
    ASSERT_TRUE(b.executor->Initialize(seed).ok());
    EXPECT_NE(read(a, 0), before);
    EXPECT_EQ(read(a, 0), read(b, 0));
    EXPECT_EQ(read(a, 1), read(b, 1));
    before = read(a, 0);
  }
  std::string other = before;
  std::reverse(other.begin(), other.end());
  ASSERT_TRUE(b.executor->WriteCell(CellId(0), other).ok());
  EXPECT_EQ(read(b, 0), other);
}

TEST_F(ExecutorTest, ARejectedStepNamesItsFirstOpAndChangesNothing) {
  TestRank rank(program_.get());
  const auto binding = rank.executor->Prepare("train", Samples(2));
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 1, 0, 1};  // log(0) = -inf
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
  }
  EXPECT_EQ(rank.executor->Read(2)->Scalar("bad"), 1);
  EXPECT_EQ(rank.Cell(kW), std::vector<float>({3, 3}));
  EXPECT_EQ(rank.executor->FirstNonFinite()->op, "logs");
  EXPECT_EQ(rank.executor->FirstNonFinite()->input, "");
  // The replay has put the clock back where it was.
  std::string clock;
  ASSERT_TRUE(rank.executor->ReadCell(CellId(kAttempted), &clock).ok());
  EXPECT_EQ(clock, std::string("\3\0\0\0\0\0\0\0", 8));
}

TEST_F(ExecutorTest, WhatIsFedIsNoOpsFault) {
  TestRank rank(program_.get());
  const auto binding = rank.executor->Prepare("train", Samples(2));
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 1, std::nanf(""), 1};
  ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
  EXPECT_EQ(rank.executor->Read(0)->Scalar("bad"), 1);
  const auto found = rank.executor->FirstNonFinite();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->input, "x");
  EXPECT_EQ(found->op, "y");
}

TEST_F(ExecutorTest, AReplayOfAnAppliedStepChangesNothingEither) {
  TestRank rank(program_.get());
  const auto binding = rank.executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
  const std::vector<float> w = rank.Cell(kW);
  EXPECT_NE(w, std::vector<float>({3, 3}));
  EXPECT_EQ(rank.executor->FirstNonFinite()->op, "");
  EXPECT_EQ(rank.Cell(kW), w);
}

TEST_F(ExecutorTest, MemoryIsWhatWasPlanned) {
  TestRank rank(program_.get());
  int64_t peak = 0;
  for (int64_t samples : {100, 7, 0}) {
    const auto binding = rank.executor->Prepare("train", Samples(samples));
    ASSERT_TRUE(binding.ok()) << binding.status();
    peak = std::max(peak, rank.executor->plan(*binding).peak_bytes());
  }
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  EXPECT_GE(rank.executor->planned_bytes(), peak);
  EXPECT_EQ(rank.executor->allocated_bytes(), rank.executor->planned_bytes());
}

TEST_F(ExecutorTest, APlanThatDoesNotFitIsRefused) {
  ExecutorOptions options;
  options.memory_limit = 64 << 10;
  TestRank rank(program_.get(), options);
  EXPECT_TRUE(rank.executor->Prepare("train", Samples(10)).ok());
  const auto large = rank.executor->Prepare("train", Samples(10000));
  EXPECT_EQ(ExitCodeOf(large.status()), ExitCode::kOutOfMemory);
  EXPECT_THAT(std::string(large.status().message()),
              AllOf(HasSubstr("10000 samples"), HasSubstr("f32[10000,2]"),
                    HasSubstr("64.0 KiB")));
}

TEST_F(ExecutorTest, FeedsMustBeThereAndFit) {
  TestRank rank(program_.get());
  const auto binding = rank.executor->Prepare("train", Samples(2));
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  EXPECT_THAT(
      std::string(rank.executor->Execute(*binding, {}).status().message()),
      HasSubstr("feed x is missing"));
  EXPECT_THAT(
      std::string(
          rank.executor->Execute(*binding, {Feed({1, 2})}).status().message()),
      HasSubstr("expected 16 bytes (f32[2,2]), found 8"));
}

TEST_F(ExecutorTest, FetchesAreResults) {
  ExecutorOptions options;
  options.fetches = {"logs"};
  TestRank rank(program_.get(), options);
  const auto binding = rank.executor->Prepare("train", Samples(1));
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  const auto ticket = rank.executor->Execute(*binding, {Feed(x)});
  const auto view = rank.executor->Read(*ticket);
  EXPECT_FLOAT_EQ(view->Scalar("logs"), std::log(3.0f));
}

// Unlike what is kept, they are there of steps that fetch.
TEST_F(ExecutorTest, FetchesOfSomeSteps) {
  ExecutorOptions options;
  options.kept = {"x"};
  options.fetches = {"logs"};
  TestRank rank(program_.get(), options);
  const auto binding = rank.executor->Prepare("train", Samples(1));
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  std::vector<int64_t> tickets;
  for (const float first : {1, 2, 3}) {
    rank.executor->SetFetching(first == 1);
    const std::vector<float> x = {first, 2};
    const auto ticket = rank.executor->Execute(*binding, {Feed(x)});
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    tickets.push_back(*ticket);
  }
  for (int step = 0; step < 3; ++step) {
    const auto view = rank.executor->Read(tickets[step]);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->Has("logs"), step == 0);
    EXPECT_EQ(view->Scalar("x"), step + 1);
    EXPECT_FLOAT_EQ(view->Scalar("logs"), step == 0 ? std::log(3.0f) : 0);
  }
  EXPECT_GT(rank.executor->fetch_seconds(), 0);
}

// Runs `body(rank, executor)` on two ranks as threads.
void OnTwoRanks(const Program* first, const Program* second,
                const std::function<void(int, TestRank&)>& body) {
  auto communicators = MakeInProcessCommunicators(2, absl::Seconds(60));
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      TestRank rank(r == 0 ? first : second, {}, MakeCpuDevice(r, 1),
                    std::move(communicators[r]));
      body(r, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ExecutorTest, RanksReduceTheirGradients) {
  std::vector<std::vector<float>> w(2);
  OnTwoRanks(program_.get(), program_.get(), [&](int r, TestRank& rank) {
    // The ranks may hold different numbers of samples.
    const auto binding = rank.executor->Prepare("train", Samples(1 + r));
    ASSERT_TRUE(binding.ok()) << binding.status();
    ASSERT_TRUE(rank.executor->Initialize(7).ok());
    const std::vector<float> x =
        r == 0 ? std::vector<float>{1, 2} : std::vector<float>{1, 1, 2, 2};
    ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
    w[r] = rank.Cell(kW);
  });
  const float log3 = std::log(3.f), log6 = std::log(6.f);
  EXPECT_FLOAT_EQ(w[0][0], 3 - (log3 + log3 + log6));
  EXPECT_FLOAT_EQ(w[0][1], 3 - (log6 + log3 + log6));
  EXPECT_EQ(w[0], w[1]);
}

TEST_F(ExecutorTest, RanksWithDifferentModelsAreToldSo) {
  std::string text = kTestProgram;
  text.replace(text.find("scale=0.25"), 10, "scale=0.75");
  const auto changed = Parse(text, "other.ht");
  OnTwoRanks(program_.get(), changed->get(), [&](int, TestRank& rank) {
    EXPECT_EQ(ExitCodeOf(rank.status), ExitCode::kCommunication);
    EXPECT_THAT(std::string(rank.status.message()),
                HasSubstr("compiled model"));
  });
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
