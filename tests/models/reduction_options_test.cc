// How gradients are reduced, as Apex, Paddle's Fleet and PyTorch let one
// choose: what may change no bit changes none, the rest the last digits.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kStrategy[] = R"(
amp { level: "O1" loss_scaling { init_loss_scaling: 1024 } }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.1 constant: true }
train { batch_size: 8 epochs: 3 seed: 3 }
)";

// `w` is read by two products.
std::string Shared() {
  return absl::StrCat(kSixFeatures, Param("w", "6, 6"), Param("v", "6, 4"),
                      Matmul("x", "w", "", "h"), Unary("tanh", "h", "t"),
                      Matmul("t", "w", "", "g"), Matmul("g", "v", "", "logits"),
                      CrossEntropy());
}

Outcome Train(const std::string& model,
              const std::vector<std::string>& overrides, int ranks) {
  Outcome run = TrainText(model, kStrategy, overrides, "synthetic:27", ranks);
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.state.manifest.step, 12);
  return run;
}

TEST(ReductionOptions, ThatMoveNothingButTime) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome plain = Train(Perceptron(), {}, ranks);
    for (const char* option :
         {"dist.delay_allreduce=true", "dist.message_size=10",
          "dist.fuse_all_reduce_ops=false"}) {
      SCOPED_TRACE(absl::StrCat(option, " on ", ranks));
      ExpectClose(plain, Train(Perceptron(), {option}, ranks), 0);
    }
  }
}

// A power of two is exact; 2 is what 2 ranks divide by anyway.
TEST(ReductionOptions, PredivideFactor) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome plain = Train(Perceptron(), {}, ranks);
    for (const char* factor : {"1", "2", "4", "0.5"}) {
      SCOPED_TRACE(absl::StrCat(factor, " on ", ranks));
      ExpectClose(
          plain,
          Train(Perceptron(),
                {absl::StrCat("dist.gradient_predivide_factor=", factor),
                 "amp.level=O0"},
                ranks),
          2e-2);
    }
  }
  const Outcome fp32 = Train(Perceptron(), {"amp.level=O0"}, 2);
  for (const char* factor : {"1", "2", "4", "0.5"}) {
    ExpectClose(fp32,
                Train(Perceptron(),
                      {absl::StrCat("dist.gradient_predivide_factor=", factor),
                       "amp.level=O0"},
                      2),
                0);
  }
  // 1/3 is rounded, in f32.
  ExpectClose(fp32,
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
      ExpectClose(as_made, Train(Perceptron(), overrides, 2), 2e-2);
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
      ExpectClose(Train(Shared(), {at}, 1), Train(Shared(), {at}, ranks),
                  tolerance);
    }
  }
}

constexpr char kByNodes[] = "dist.use_hierarchical_allreduce=true";
std::string NodesOf(int ranks) {
  return absl::StrCat("dist.hierarchical_allreduce_inter_nranks=", ranks);
}

// Sums in another order, which is the same in every run.
TEST(HierarchicalAllReduce, IsTheSumAtOnceToRounding) {
  for (const char* level : {"amp.level=O0", "amp.level=O1"}) {
    const double tolerance = level == std::string("amp.level=O0") ? 3e-5 : 2e-2;
    for (const int ranks : {4, 6}) {
      SCOPED_TRACE(absl::StrCat(level, " on ", ranks));
      const std::vector<std::string> nodes = {level, kByNodes, NodesOf(2)};
      const Outcome run = Train(Perceptron(), nodes, ranks);
      ExpectClose(Train(Perceptron(), {level}, ranks), run, tolerance);
      ExpectClose(Train(Perceptron(), nodes, ranks), run, 0);
    }
  }
}

// What is summed in shards, in micro-batches or late is summed by nodes.
TEST(HierarchicalAllReduce, ChangesNoOtherOptionsBits) {
  const Outcome run = Train(Perceptron(), {kByNodes, NodesOf(2)}, 4);
  for (const char* option :
       {"dist.sharding.stage=1", "dist.delay_allreduce=true",
        "dist.fuse_all_reduce_ops=false"}) {
    SCOPED_TRACE(option);
    ExpectClose(run, Train(Perceptron(), {kByNodes, NodesOf(2), option}, 4), 0);
  }
  const std::string merge = "dist.gradient_merge.k_steps=2";
  ExpectClose(Train(Perceptron(), {merge}, 4),
              Train(Perceptron(), {merge, kByNodes, NodesOf(2)}, 4), 2e-2);
}

// Threads are on one machine.
TEST(HierarchicalAllReduce, OfOneNodeIsAtOnce) {
  const Outcome run = Train(Perceptron(), {}, 4);
  ExpectClose(run, Train(Perceptron(), {kByNodes}, 4), 0);
  ExpectClose(run, Train(Perceptron(), {kByNodes, NodesOf(4)}, 4), 0);
  ExpectClose(run, Train(Perceptron(), {kByNodes, NodesOf(1)}, 4), 0);
}

TEST(HierarchicalAllReduce, RefusesRanksThatFormNoNodes) {
  for (const int ranks : {1, 4}) {
    const Outcome run = TrainText(
        Perceptron(), kStrategy, {kByNodes, NodesOf(3)}, "synthetic:27", ranks);
    EXPECT_EQ(ExitCodeOf(run.status), ExitCode::kUsage) << run.status;
    EXPECT_THAT(
        std::string(run.status.message()),
        ::testing::AllOf(
            ::testing::HasSubstr("dist.hierarchical_allreduce_inter_nranks 3"),
            ::testing::HasSubstr(absl::StrCat("found ", ranks))));
  }
}

// Three samples, of 1, 2 and 6, of which rank 0 has two and rank 1 the third.
std::string Uneven() {
  ZipFile file;
  file.members = {
      {"x.npy", NpyFile{"<f4", "3, 1", BytesOf(std::vector<float>{1, 2, 6})}
                    .Serialize()}};
  const std::string path = FreshDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

// One step of gradient descent by 1; what became of the values of that name.
float AfterOneStep(const std::string& ops, const std::string& name,
                   const std::vector<std::string>& overrides, int ranks) {
  const std::string model = absl::StrCat(
      "name: \"uneven\"  format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 1] }\n",
      ops, Unary("mean", "y", "loss"),
      "loss { var: \"loss\" mean_over: \"y\" }\n");
  const auto compiled = CompileText(model,
                                    "amp { level: 'O0' } optimizer { sgd {} } "
                                    "lr { base: 1 constant: true } "
                                    "train { batch_size: 3 epochs: 1 }",
                                    overrides);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return 0;
  static int runs = 0;
  const TrainConfig config =
      ConfigOf(*compiled, Uneven(), absl::StrCat(FreshDirectory(), runs++));
  const Trained trained = TrainOn(*compiled, config, ranks);
  EXPECT_TRUE(trained.status.ok()) << trained.status;
  return trained.status.ok() ? Values(Newest(config.out), name)[0] : 0;
}

// Whose sample is alone depends on how they were shuffled.
TEST(GradientMean, OverSamplesOrRanks) {
  const std::string ops = absl::StrCat(Param("w", "1, 1", "constant: 10"),
                                       Matmul("x", "w", "", "y"));
  const std::string by_ranks = "dist.gradient_mean=ranks";
  using ::testing::AnyOf;
  using ::testing::FloatNear;
  EXPECT_NEAR(AfterOneStep(ops, "w", {}, 1), 10 - 3, 1e-5);
  EXPECT_NEAR(AfterOneStep(ops, "w", {}, 2), 10 - 3, 1e-5);
  EXPECT_NEAR(AfterOneStep(ops, "w", {by_ranks}, 1), 10 - 3, 1e-5);
  EXPECT_THAT(AfterOneStep(ops, "w", {by_ranks}, 2),
              AnyOf(FloatNear(10 - (1.5 + 6) / 2, 1e-5),
                    FloatNear(10 - (3.5 + 2) / 2, 1e-5),
                    FloatNear(10 - (4 + 1) / 2.0, 1e-5)));
}

TEST(BatchNormStatistics, CombinedOrOfRank0) {
  const std::string ops = absl::StrCat(Param("s", "1", "constant: 1"),
                                       Param("b", "1", "constant: 0"),
                                       BatchNorm("x", 1, "s", "b", "y"));
  const std::string of_rank0 = "dist.batch_norm_statistics=rank0";
  using ::testing::AnyOf;
  using ::testing::FloatNear;
  EXPECT_NEAR(AfterOneStep(ops, "m", {}, 2), 0.3, 1e-5);
  EXPECT_NEAR(AfterOneStep(ops, "m", {of_rank0}, 1), 0.3, 1e-5);
  EXPECT_THAT(AfterOneStep(ops, "m", {of_rank0}, 2),
              AnyOf(FloatNear(0.15, 1e-5), FloatNear(0.35, 1e-5),
                    FloatNear(0.4, 1e-5)));
  EXPECT_THAT(
      AfterOneStep(ops, "v", {of_rank0}, 2),
      AnyOf(FloatNear(0.9 + 0.1 * 0.25, 1e-5),
            FloatNear(0.9 + 0.1 * 6.25, 1e-5), FloatNear(0.9 + 0.1 * 4, 1e-5)));
}

TEST(UnusedParameters, AreNamedOrRefused) {
  const std::string model =
      absl::StrCat(Perceptron(), Param("aside", "3"), Param("apart", "2"));
  const auto noted = CompileText(model, kStrategy);
  ASSERT_TRUE(noted.ok()) << noted.status();
  std::string notes;
  for (const auto& note : noted->report.note()) notes += note.text() + "\n";
  EXPECT_THAT(notes, ::testing::HasSubstr("does not depend on aside, apart"));
  const auto refused =
      CompileText(model, kStrategy, {"dist.find_unused_parameters=false"});
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::AllOf(
                  ::testing::HasSubstr("dist.find_unused_parameters: false"),
                  ::testing::HasSubstr("aside, apart")));
  EXPECT_TRUE(CompileText(Perceptron(), kStrategy,
                          {"dist.find_unused_parameters=false"})
                  .ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
