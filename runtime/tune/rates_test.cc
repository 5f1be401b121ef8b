#include "runtime/tune/rates.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "runtime/device/fake_device.h"

namespace halftone {
namespace runtime {
namespace {

// A kernel whose runs take these microseconds less one each time.
class Kernel : public kernels::KernelInstance {
 public:
  Kernel(FakeDevice* device, double microseconds)
      : device_(device), microseconds_(microseconds) {}
  absl::Status Enqueue(const kernels::Buffers&, Stream& stream) override {
    return device_->Spend(stream, microseconds_--);
  }

 private:
  FakeDevice* device_;
  double microseconds_;
};

class RatesTest : public ::testing::Test {
 protected:
  void Add(const std::string& op, const std::vector<DType>& binding,
           const std::string& name, double microseconds) {
    kernels::Candidate candidate;
    candidate.name = name;
    candidate.prepare = [this, microseconds](const kernels::BoundOp&, Device&)
        -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
      if (microseconds < 0) return DeviceError("no engine");
      return {absl::make_unique<Kernel>(device_.get(), microseconds)};
    };
    registry_.Add(op, binding, Layout::kRowMajor, candidate);
  }
  TuningTable::Rates Measured(DType low) {
    auto bench = Bench::Create(*device_, 1024);
    EXPECT_TRUE(bench.ok()) << bench.status();
    const auto rates = MeasureRates(registry_, {}, {100, 1000}, low, /*runs=*/3,
                                    **bench, *device_);
    EXPECT_TRUE(rates.ok()) << rates.status();
    return *rates;
  }

  std::unique_ptr<FakeDevice> device_ = MakeFakeDevice({});
  kernels::KernelRegistry registry_;
};

// The first two runs of five do not count: 104 becomes 100, at best.
TEST_F(RatesTest, AreThoseOfTheBestRunOfTheBestKernel) {
  Add("matmul", {DType::kF32, DType::kF32}, "slow", 504);
  Add("matmul", {DType::kF32, DType::kF32}, "fast", 104);
  Add("matmul", {DType::kF32, DType::kF32}, "broken", -1);
  Add("matmul", {DType::kF32, DType::kF32}, "reference", 5);
  Add("matmul", {DType::kBF16, DType::kBF16}, "fast", 54);
  Add("relu", {DType::kF32}, "only", 14);
  const TuningTable::Rates rates = Measured(DType::kBF16);
  EXPECT_EQ(rates.f32, 20'000'000'000);  // 2 x 100^3 in 100 us
  EXPECT_EQ(rates.low, 40'000'000'000);
  EXPECT_EQ(rates.memory, 800'000'000);  // 8,000 bytes in 10 us
  EXPECT_EQ(Measured(DType::kF32).low, 0);
}

TEST_F(RatesTest, WithoutKernelsThereAreNone) {
  const TuningTable::Rates rates = Measured(DType::kF16);
  EXPECT_EQ(rates.memory, 0);
  EXPECT_EQ(rates.f32, 0);
  EXPECT_EQ(rates.low, 0);
}

TEST(LowProducts, AreFoundInFusionsToo) {
  const auto low_of = [](const char* ops) {
    const auto program = Parse(ops, "test.ht");
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? LowProductsOf(**program) : DType::kI64;
  };
  EXPECT_EQ(low_of(R"(program "p" dim B
entry train {
  feed x : f32[B,4]
  feed y : f32[4,4]
  feed l : f16[B,4]
  m: matmul(X=x, Y=y) -> (Out=m : f32[B,4])   forward
  r: relu(X=l) -> (Out=r : f16[B,4])   forward
  result m = m
  result r = r
})"),
            DType::kF32);
  EXPECT_EQ(low_of(R"(program "p" dim B
entry train {
  feed x : bf16[B,4]
  feed y : bf16[4,4]
  f: fusion(X=[x, y]) -> (Out=[o : bf16[B,4]]) {pattern="matmul_relu"}   forward body {
    feed a : bf16[B,4]
    feed b : bf16[4,4]
    m: matmul(X=a, Y=b) -> (Out=m : bf16[B,4])   forward
    r: relu(X=m) -> (Out=r : bf16[B,4])   forward
    return r
  }
  result o = o
})"),
            DType::kBF16);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
