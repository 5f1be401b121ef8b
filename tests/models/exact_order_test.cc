// dist.reduce: "exact_order": gradients are added in the order of the ranks, in
// f32, and rounded once: equal bits from run to run, across a resume and for
// any buckets, on any number of ranks.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "tests/models/samples.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kExact[] = "dist.reduce=exact_order";

struct Subject {
  const char* name;
  std::string model, data;
  int64_t steps;
};

Subject ConvNet() { return {"mnist_convnet", "", "idx:models/digits", 23}; }
Subject Transformer() { return {"gpt2", "", "synthetic:20", 6}; }

absl::StatusOr<CompiledModel> Compile(const Subject& subject,
                                      std::vector<std::string> overrides) {
  if (absl::string_view(subject.name) == "mnist_convnet") {
    overrides.push_back("train.epochs=1");
    return CompileFile("models/mnist_convnet.pbtxt", "models/mnist_o1.pbtxt",
                       overrides);
  }
  HT_ASSIGN_OR_RETURN(const std::string model, SmallGpt2());
  return CompileText(model, R"(
amp { level: "O1" loss_scaling { init_loss_scaling: 1024 } }
optimizer { adam {} }
lr { base: 0.001 constant: true }
train { batch_size: 7 epochs: 2 seed: 3 }
)",
                     overrides);
}

Checkpoint Train(const Subject& subject,
                 const std::vector<std::string>& overrides, int ranks) {
  const auto model = Compile(subject, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  static int runs = 0;
  const TrainConfig config =
      ConfigOf(*model, subject.data, absl::StrCat(FreshDirectory(), runs++));
  const Trained trained = TrainOn(*model, config, ranks);
  EXPECT_TRUE(trained.status.ok()) << trained.status;
  if (!trained.status.ok()) return {};
  return Newest(config.out);
}

bool SameBits(const Checkpoint& a, const Checkpoint& b) {
  bool same = a.tensors.size() == b.tensors.size() && !a.tensors.empty();
  for (size_t i = 0; same && i < a.tensors.size(); ++i) {
    same = a.tensors[i].bytes == b.tensors[i].bytes;
  }
  return same;
}

class ExactOrder
    : public ::testing::TestWithParam<std::tuple<Subject (*)(), int>> {
 protected:
  Subject subject_ = std::get<0>(GetParam())();
  int ranks_ = std::get<1>(GetParam());
};

TEST_P(ExactOrder, ForAnyBucketsAndShardedState) {
  const Checkpoint once = Train(subject_, {kExact}, ranks_);
  EXPECT_EQ(once.manifest.step, subject_.steps);
  EXPECT_TRUE(SameBits(once, Train(subject_, {kExact}, ranks_))) << "again";
  for (const char* buckets :
       {"dist.fuse_all_reduce_ops=false", "dist.fuse_grad_size_in_MB=0.002",
        "dist.first_bucket_size_in_MB=0.001", "dist.delay_allreduce=true",
        "dist.sharding.stage=1"}) {
    EXPECT_TRUE(SameBits(once, Train(subject_, {kExact, buckets}, ranks_)))
        << buckets;
  }
}

TEST_P(ExactOrder, AcrossAResume) {
  const Checkpoint whole = Train(subject_, {kExact}, ranks_);
  const auto model = Compile(subject_, {kExact});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, subject_.data, FreshDirectory());
  config.on_activity = [](int64_t step, const char* what) {
    if (step == 2 && std::string(what) == "train") ::kill(::getpid(), SIGTERM);
  };
  EXPECT_EQ(TrainOn(*model, config, ranks_).signal, SIGTERM);
  EXPECT_LT(Newest(config.out).manifest.step, subject_.steps);
  config.on_activity = nullptr;
  config.resume = true;
  const Trained resumed = TrainOn(*model, config, ranks_);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status;
  EXPECT_TRUE(SameBits(whole, Newest(config.out)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExactOrder,
                         ::testing::Combine(::testing::Values(&ConvNet,
                                                              &Transformer),
                                            ::testing::Values(1, 2, 4)));

// Of f32 the communicators add in that order, too; sums of f16 are rounded once
// and not at each rank, so that those of 4 ranks have other bits.
TEST(ExactOrderSums, AreOfF32) {
  const auto same = [](const char* level) {
    const std::string at = absl::StrCat("amp.level=", level);
    return SameBits(Train(ConvNet(), {at}, 4),
                    Train(ConvNet(), {at, kExact}, 4));
  };
  EXPECT_TRUE(same("O0"));
  EXPECT_FALSE(same("O1"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
