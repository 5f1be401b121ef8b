// Norms whose statistics are those of a group of ranks: N ranks in groups of G
// train as N / G ranks would, each with a group's samples and norms of its own.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSync[] = "dist.sync_batch_norm=true";

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.05 constant: true }
train { batch_size: 13 epochs: 2 seed: 3 }
)";

std::string Groups(int size) {
  return absl::StrCat("dist.sync_batch_norm_group_size=", size);
}

// Two norms of 3 channels over `space` (", 4, 5"), the first behind a parameter
// whose gradient passes both.
std::string Model(const std::string& space, int elements) {
  const auto norm = [](const std::string& x, const std::string& n) {
    return Op("batch_norm",
              {{"X", x},
               {"Scale", "s" + n},
               {"Bias", "b" + n},
               {"Mean", "m" + n},
               {"Variance", "v" + n}},
              "Y", "y" + n);
  };
  std::string model = absl::StrCat(
      "name: \"groups\"  format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 3",
      space, "] }\nfeed { name: \"label\" dtype: I64 dims: [-1] }\n",
      Param("p", absl::StrCat("1, 3", space)),
      Param("w", absl::StrCat(elements, ", 4")));
  for (const char* n : {"1", "2"}) {
    absl::StrAppend(&model, Param(absl::StrCat("s", n), "3"),
                    Param(absl::StrCat("b", n), "3"), "stat { name: \"m", n,
                    "\" dims: [3] init { constant: 0 } }\nstat { name: \"v", n,
                    "\" dims: [3] init { constant: 1 } }\n");
  }
  return absl::StrCat(model, Binary("elementwise_mul", "x", "p", "h"),
                      norm("h", "1"), Unary("tanh", "y1", "t"), norm("t", "2"),
                      Op("flatten", {{"X", "y2"}}, "Out", "flat"),
                      Matmul("flat", "w", "", "logits"), CrossEntropy());
}

std::string Planes() { return Model(", 4, 5", 60); }

// 31 samples: batches of 13, 13 and 5, which leave ranks and groups uneven, and
// one of 6 ranks without a sample.
Outcome Train(const std::string& model,
              const std::vector<std::string>& overrides, int ranks) {
  Outcome run = TrainText(model, kStrategy, overrides, "synthetic:31", ranks);
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.steps.size(), 6u);
  return run;
}

// Of f32 sums in another order, of numbers of about 1, through 6 steps.
constexpr double kRounding = 3e-5;

struct Space {
  const char* name;
  const char* dims;
  int elements;
};
class SyncBatchNormGroups : public ::testing::TestWithParam<Space> {};

// The first n mod N ranks have a sample more, so that a group has what its one
// rank would have.
TEST_P(SyncBatchNormGroups, AreOneDeviceEach) {
  const std::string model = Model(GetParam().dims, GetParam().elements);
  const Outcome two = Train(model, {}, 2), three = Train(model, {}, 3);
  ExpectClose(two, Train(model, {kSync, Groups(2)}, 4), kRounding);
  ExpectClose(two, Train(model, {kSync, Groups(3)}, 6), kRounding);
  ExpectClose(three, Train(model, {kSync, Groups(2)}, 6), kRounding);
  // That is no accident: whose statistics they are shows.
  const double a = two.steps[2]["loss"], b = three.steps[2]["loss"];
  EXPECT_GT(std::abs(a - b), 100 * kRounding);
}

TEST_P(SyncBatchNormGroups, OfOneShareNothing) {
  const std::string model = Model(GetParam().dims, GetParam().elements);
  ExpectClose(Train(model, {}, 3), Train(model, {kSync, Groups(1)}, 3),
              kRounding);
}

TEST_P(SyncBatchNormGroups, OfAllRanksAreNone) {
  const std::string model = Model(GetParam().dims, GetParam().elements);
  for (const int ranks : {1, 2, 3, 6}) {
    SCOPED_TRACE(ranks);
    ExpectClose(Train(model, {kSync}, ranks),
                Train(model, {kSync, Groups(ranks)}, ranks), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Spaces, SyncBatchNormGroups,
                         ::testing::Values(Space{"features", "", 3},
                                           Space{"line", ", 7", 21},
                                           Space{"plane", ", 4, 5", 60},
                                           Space{"volume", ", 2, 3, 2", 36}),
                         [](const auto& info) { return info.param.name; });

// What moves or shares work moves no bit of it, with groups either.
TEST(SyncBatchNormGroupsWith, WhatChangesNoBit) {
  const std::vector<std::string> groups = {kSync, Groups(2)};
  const Outcome plain = Train(Planes(), groups, 4);
  for (const char* option :
       {"dist.sharding.stage=1", "memory.recompute.within=1KiB",
        "dist.delay_allreduce=true", "dist.fuse_all_reduce_ops=false",
        "dist.reduce=exact_order"}) {
    SCOPED_TRACE(option);
    std::vector<std::string> overrides = groups;
    overrides.push_back(option);
    ExpectClose(plain, Train(Planes(), overrides, 4), 0);
  }
}

TEST(SyncBatchNormGroupsWith, LowPrecision) {
  for (const char* level : {"amp.level=O1", "amp.level=O2"}) {
    SCOPED_TRACE(level);
    ExpectClose(Train(Planes(), {level, kSync}, 4),
                Train(Planes(), {level, kSync, Groups(4)}, 4), 0);
    // f16 has a relative 1e-3.
    ExpectClose(Train(Planes(), {level}, 2),
                Train(Planes(), {level, kSync, Groups(2)}, 4), 2e-2);
  }
}

// Each micro-batch has statistics of its own.
TEST(SyncBatchNormGroupsWith, MicroBatches) {
  const std::string merge = "dist.gradient_merge.k_steps=2";
  ExpectClose(Train(Planes(), {merge, kSync}, 3),
              Train(Planes(), {merge, kSync, Groups(3)}, 3), 0);
  ExpectClose(Train(Planes(), {merge}, 3),
              Train(Planes(), {merge, kSync, Groups(1)}, 3), kRounding);
}

TEST(SyncBatchNormGroupsRefused, WithoutSynchronisedNorms) {
  const auto compiled = CompileText(Planes(), kStrategy, {Groups(2)});
  EXPECT_THAT(std::string(compiled.status().message()),
              AllOf(HasSubstr("dist.sync_batch_norm_group_size"),
                    HasSubstr("dist.sync_batch_norm is not true")));
}

TEST(SyncBatchNormGroupsRefused, RanksThatFormNone) {
  for (const int ranks : {1, 2, 4}) {
    const Outcome run = TrainText(Planes(), kStrategy, {kSync, Groups(3)},
                                  "synthetic:31", ranks);
    EXPECT_EQ(ExitCodeOf(run.status), ExitCode::kUsage) << run.status;
    EXPECT_THAT(std::string(run.status.message()),
                AllOf(HasSubstr("dist.sync_batch_norm_group_size 3"),
                      HasSubstr(absl::StrCat("found ", ranks))));
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
