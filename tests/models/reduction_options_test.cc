// How gradients are reduced, as Apex, Paddle's Fleet and PyTorch let one
// choose: what may change no bit changes none, the rest the last digits.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kHead[] = R"(name: "reduced"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "label" dtype: I64 dims: [-1] }
)";
constexpr char kStrategy[] = R"(
amp { level: "O1" loss_scaling { init_loss_scaling: 1024 } }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.1 constant: true }
train { batch_size: 8 epochs: 3 seed: 3 }
)";

std::string Perceptron() {
  return absl::StrCat(kHead, Param("w1", "6, 12"), Param("b1", "12"),
                      Param("w2", "12, 4"), Param("b2", "4"),
                      Matmul("x", "w1", "b1", "h"), Unary("tanh", "h", "t"),
                      Matmul("t", "w2", "b2", "logits"), CrossEntropy());
}

// `w` is read by two products.
std::string Shared() {
  return absl::StrCat(kHead, Param("w", "6, 6"), Param("v", "6, 4"),
                      Matmul("x", "w", "", "h"), Unary("tanh", "h", "t"),
                      Matmul("t", "w", "", "g"), Matmul("g", "v", "", "logits"),
                      CrossEntropy());
}

struct Outcome {
  absl::Status status;
  std::vector<Json> steps;
  Checkpoint state;
};

Outcome Train(const std::string& model,
              const std::vector<std::string>& overrides, int ranks) {
  Outcome run;
  const auto compiled = CompileText(model, kStrategy, overrides);
  run.status = compiled.status();
  EXPECT_TRUE(run.status.ok()) << run.status;
  if (!run.status.ok()) return run;
  static int runs = 0;
  TrainConfig config = ConfigOf(*compiled, "synthetic:27",
                                absl::StrCat(FreshDirectory(), ".", runs++));
  config.log_every = 1;
  run.status = TrainOn(*compiled, config, ranks).status;
  EXPECT_TRUE(run.status.ok()) << run.status;
  if (!run.status.ok()) return run;
  run.steps = Events(config.out, "step");
  run.state = Newest(config.out);
  EXPECT_EQ(run.state.manifest.step, 12);
  return run;
}

// `tolerance` 0: the same bits.
void ExpectNear(const Outcome& a, const Outcome& b, double tolerance) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    const double x = a.steps[i]["loss"], y = b.steps[i]["loss"];
    EXPECT_NEAR(x, y, tolerance) << "step " << i;
  }
  ASSERT_EQ(a.state.tensors.size(), b.state.tensors.size());
  for (const Tensor& tensor : a.state.tensors) {
    if (tensor.name[0] == '@') continue;  // clocks and loss scale
    const std::vector<float> x = Values(a.state, tensor.name);
    const std::vector<float> y = Values(b.state, tensor.name);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], y[i], tolerance) << tensor.name << " " << i;
    }
  }
}

TEST(ReductionOptions, ThatMoveNothingButTime) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome plain = Train(Perceptron(), {}, ranks);
    for (const char* option :
         {"dist.delay_allreduce=true", "dist.message_size=10",
          "dist.fuse_all_reduce_ops=false"}) {
      SCOPED_TRACE(absl::StrCat(option, " on ", ranks));
      ExpectNear(plain, Train(Perceptron(), {option}, ranks), 0);
    }
  }
}

// A power of two is exact; 2 is what 2 ranks divide by anyway.
TEST(ReductionOptions, PredivideFactor) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome plain = Train(Perceptron(), {}, ranks);
    for (const char* factor : {"1", "2", "4", "0.5"}) {
      SCOPED_TRACE(absl::StrCat(factor, " on ", ranks));
      ExpectNear(plain,
                 Train(Perceptron(),
                       {absl::StrCat("dist.gradient_predivide_factor=", factor),
                        "amp.level=O0"},
                       ranks),
                 2e-2);
    }
  }
  const Outcome fp32 = Train(Perceptron(), {"amp.level=O0"}, 2);
  for (const char* factor : {"1", "2", "4", "0.5"}) {
    ExpectNear(fp32,
               Train(Perceptron(),
                     {absl::StrCat("dist.gradient_predivide_factor=", factor),
                      "amp.level=O0"},
                     2),
               0);
  }
  // 1/3 is rounded, in f32.
  ExpectNear(fp32,
             Train(Perceptron(),
                   {"dist.gradient_predivide_factor=3", "amp.level=O0"}, 2),
             1e-5);
}

// A gradient of f16 has a relative 1e-3, of which 12 steps make at most 1.
TEST(ReductionOptions, DtypeOfTheReduction) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    const std::vector<std::string> plain = {
        absl::StrCat("amp.level=", level),
        // Apart, so that what is not reduced as asked would stay so.
        "dist.fuse_all_reduce_ops=false"};
    const Outcome as_made = Train(Perceptron(), plain, 2);
    for (const char* option :
         {"dist.allreduce_always_fp32=true", "dist.fp16_allreduce=true"}) {
      SCOPED_TRACE(absl::StrCat(level, " ", option));
      std::vector<std::string> overrides = plain;
      overrides.push_back(option);
      ExpectNear(as_made, Train(Perceptron(), overrides, 2), 2e-2);
    }
  }
}

// What travels is of one dtype alone, at every level.
TEST(ReductionOptions, OneDtypeTravels) {
  const auto dtypes = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> found;
    const auto compiled = CompileText(Perceptron(), kStrategy, overrides);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    for (const auto& bucket : compiled->report.bucket()) {
      found.push_back(bucket.dtype());
    }
    return found;
  };
  using ::testing::ElementsAre;
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    const std::string at = absl::StrCat("amp.level=", level);
    EXPECT_THAT(dtypes({at, "dist.allreduce_always_fp32=true"}),
                ElementsAre("f32"));
    EXPECT_THAT(dtypes({at, "dist.fp16_allreduce=true"}), ElementsAre("f16"));
    EXPECT_THAT(dtypes({at, "dist.fp16_allreduce=true", "amp.dtype=bf16"}),
                ElementsAre("bf16"));
  }
}

// Its gradients meet before they are reduced, once, and are one rank's of the
// whole batch.
TEST(SharedParameter, IsReducedOnce) {
  for (const char* level : {"O0", "O1"}) {
    const std::string at = absl::StrCat("amp.level=", level);
    const auto compiled = CompileText(Shared(), kStrategy, {at});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    int members = 0;
    for (const auto& bucket : compiled->report.bucket()) {
      members += bucket.member_size();
    }
    EXPECT_EQ(members, 2) << "w and v";
    const double tolerance = at == "amp.level=O0" ? 3e-5 : 2e-2;
    for (const int ranks : {2, 3}) {
      ExpectNear(Train(Shared(), {at}, 1), Train(Shared(), {at}, ranks),
                 tolerance);
    }
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
