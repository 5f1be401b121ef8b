#include "runtime/tune/tune.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "runtime/device/fake_device.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two logarithms that are alike and one that is not.
constexpr char kProgram[] = R"(program "p" dim B
entry train {
  feed x : f32[B,2]
  a: log(X=x) -> (Out=a : f32[B,2])   forward
  b: log(X=a) -> (Out=b : f32[B,2])   forward
  c: reduce_sum(X=b) -> (Out=c : f32[])   forward
  d: log(X=c) -> (Out=d : f32[])   forward
  result d = d
}
)";

class TuneTest : public ::testing::Test {
 protected:
  // A kernel whose time per element of its output is given; its first run
  // takes longer, as one that loads code.
  class Kernel : public kernels::KernelInstance {
   public:
    Kernel(FakeDevice* device, double microseconds)
        : device_(device), microseconds_(microseconds) {}
    absl::Status Enqueue(const kernels::Buffers&, Stream& stream) override {
      return device_->Spend(stream, calls_++ == 0 ? 1e6 : microseconds_);
    }

   private:
    FakeDevice* device_;
    double microseconds_;
    int calls_ = 0;
  };

  void Add(const std::string& op, const std::string& name, double fixed,
           double per_element = 0) {
    kernels::Candidate candidate;
    candidate.name = name;
    candidate.workspace_bytes = [](const kernels::BoundOp&) { return 512; };
    candidate.prepare = [this, fixed, per_element](const kernels::BoundOp& op,
                                                   Device&)
        -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
      if (fixed < 0) return DeviceError("no engine for this shape");
      targets_.insert(op.context().target);
      const double all = fixed + per_element * op.outputs()[0].elements();
      return {std::make_unique<Kernel>(device_.get(), all)};
    };
    // A log has one type variable, reduce_sum two.
    const std::vector<DType> binding(op == "log" ? 1 : 2, DType::kF32);
    registry_.Add(op, binding, Layout::kRowMajor, candidate);
  }
  absl::StatusOr<Tuned> TuneFor(int64_t samples) {
    TuneBinding binding;
    binding.entry = "train";
    binding.symbols[0] = samples;
    return Tune(*program_, registry_, {binding}, TuneOptions(), *device_);
  }

  std::unique_ptr<Program> program_ = *Parse(kProgram, "p");
  std::unique_ptr<FakeDevice> device_ = MakeFakeDevice({});
  kernels::KernelRegistry registry_;
  std::set<std::string> targets_;  // for which kernels were made
};

TEST_F(TuneTest, TheFastestOfEachShapeIsChosen) {
  Add("log", "large", 100, 0.01);
  Add("log", "small", 10, 1);
  Add("log", "broken", -1);
  Add("reduce_sum", "only", 1);
  const auto tuned = TuneFor(1000);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  ASSERT_EQ(tuned->ops.size(), 2u);  // reduce_sum has one candidate
  const TunedOp& pair = tuned->ops[0];
  EXPECT_EQ(pair.first, "a");
  EXPECT_EQ(pair.type, "log");
  EXPECT_EQ(pair.uses, 2);
  EXPECT_EQ(pair.chosen, 0);
  EXPECT_NEAR(pair.microseconds(), 120, 1e-6);
  EXPECT_NEAR(pair.candidates[1].microseconds, 2010, 1e-6);
  EXPECT_EQ(pair.candidates[2].failure, "no engine for this shape");
  const TunedOp& single = tuned->ops[1];
  EXPECT_EQ(single.first, "d");
  EXPECT_EQ(single.chosen, 1);
  EXPECT_NEAR(single.default_microseconds(), 100.01, 1e-6);
  EXPECT_NEAR(single.microseconds(), 11, 1e-6);

  // The plan follows the table, which survives its file.
  const auto table = TuningTable::Parse(tuned->table.Serialize(), "t");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->device_description, "fake device");
  EXPECT_EQ(table->Find(single.key)->workspace_bytes, 512);
  PlanRequest request;
  request.program = program_.get();
  request.entry = "train";
  request.symbols[0] = 1000;
  const auto plan =
      MakePlan(request, registry_, LayOutState(*program_), *table);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> chosen;
  for (const Step& step : plan->steps) {
    if (step.candidate != nullptr) chosen.push_back(step.candidate->name);
  }
  EXPECT_THAT(chosen, ElementsAre("large", "large", "only", "small"));
}

// A library's engines are those of the device that they are timed on.
TEST_F(TuneTest, KernelsAreMadeForTheDevicesTarget) {
  Add("log", "one", 1);
  Add("log", "two", 2);
  Add("reduce_sum", "only", 1);
  ASSERT_TRUE(TuneFor(4).ok());
  EXPECT_THAT(targets_, ElementsAre(device_->target()));
  EXPECT_FALSE(device_->target().empty());
}

TEST_F(TuneTest, ALittleFasterIsNoReason) {
  Add("log", "first", 100);
  Add("log", "little_faster", 98);
  Add("log", "reference", 1);  // not timed, whatever it would take
  Add("reduce_sum", "only", 1);
  Add("reduce_sum", "reference", 1);
  const auto tuned = TuneFor(4);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  ASSERT_EQ(tuned->ops.size(), 2u);
  EXPECT_EQ(tuned->ops[0].candidates.size(), 2u);
  EXPECT_EQ(tuned->ops[0].chosen, 0);
}

TEST_F(TuneTest, SaysThatNoneCanBeMade) {
  Add("log", "one", -1);
  Add("log", "two", -1);
  Add("reduce_sum", "only", 1);
  const absl::Status status = TuneFor(4).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("a: none of its kernels"),
                    HasSubstr("no engine for this shape")));
}

TEST_F(TuneTest, WhatDoesNotFitIsNamed) {
  FakeDeviceOptions options;
  options.memory_bytes = int64_t{130} << 20;
  device_ = MakeFakeDevice(options);
  Add("log", "one", 1);
  Add("log", "two", 2);
  Add("reduce_sum", "only", 1);
  const absl::Status status = TuneFor(1 << 20).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kOutOfMemory);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a: "));
}

TEST(TuningPath, IsBesideTheModel) {
  EXPECT_EQ(TuningPathOf("runs/mnist.htc"), "runs/mnist.tuning.json");
  EXPECT_EQ(TuningPathOf("mnist"), "mnist.tuning.json");
  const std::string model = ::testing::TempDir() + "/tuned.htc";
  EXPECT_TRUE(ReadTuningBeside(model)->empty());
  ASSERT_TRUE(WriteFileAtomically(TuningPathOf(model), "[]").ok());
  EXPECT_EQ(ExitCodeOf(ReadTuningBeside(model).status()), ExitCode::kModel);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
