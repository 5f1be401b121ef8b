// The zoo's large nets through the whole compiler, against published figures.
#include "graph/zoo/zoo.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace {

using passes::Override;
using ::testing::ElementsAre;

absl::StatusOr<CompiledModel> CompileZoo(const std::string& name,
                                         std::vector<Override> overrides) {
  HT_ASSIGN_OR_RETURN(const proto::Model model, ZooModel(name));
  HT_ASSIGN_OR_RETURN(const ModelFile file,
                      ParseModel(PrintModel(model), name));
  overrides.push_back({"optimizer.momentum.momentum", "0.9", "--set"});
  HT_ASSIGN_OR_RETURN(
      const passes::Options options,
      passes::ResolveOptions(passes::StrategyFile(), overrides));
  return passes::Compile(file, options, passes::AllKernels(),
                         {.verify_each = true});
}

int ForwardCasts(const CompiledModel& model) {
  int casts = 0;
  for (const proto::CastRow& cast : model.casts.all()) {
    casts += cast.role() == "forward" ? 1 : 0;
  }
  return casts;
}

// Paddle's O1 with its own lists: a cast per weight and bias, one of the input,
// one of the logits and two around the flattening, which it does not list; in
// training as many again, but for the input's.
TEST(ZooTest, CastsAsPaddleHasThem) {
  for (const std::string rule : {"any_low", "all_low"}) {
    for (const auto& [name, forward, training] :
         {std::tuple("resnet50", 59, 117), std::tuple("vgg16", 36, 71)}) {
      const auto model =
          CompileZoo(name, {{"amp.level", "O1", "--set"},
                            {"amp.op_lists", "paddle", "--set"},
                            {"amp.precision_rule", rule, "--set"}});
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ(ForwardCasts(*model), forward) << name << " " << rule;
      EXPECT_EQ(model->casts.size(), training) << name << " " << rule;
    }
  }
}

// With the classes of our own schemas the flattening costs no cast, and no cast
// is left to run on its own.
TEST(ZooTest, NoCastRunsOnItsOwn) {
  for (const std::string level : {"O1", "O2"}) {
    for (const auto& [name, training] :
         {std::pair("resnet50", 113), std::pair("vgg16", 67)}) {
      const auto model = CompileZoo(name, {{"amp.level", level, "--set"}});
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ(model->casts.size(), training) << name;
      for (const proto::CastRow& cast : model->casts.all()) {
        EXPECT_NE(cast.fate(), "standalone") << name << " " << cast.name();
      }
    }
  }
}

std::vector<int64_t> BucketBytes(const std::string& name,
                                 const std::string& level) {
  const auto model =
      CompileZoo(name, {{"amp.level", level, "--set"},
                        {"dist.fuse_grad_size_in_MB", "25", "--set"}});
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<int64_t> bytes;
  if (!model.ok()) return bytes;
  for (const proto::BucketRow& bucket : model->report.bucket()) {
    bytes.push_back(bucket.bytes());
  }
  return bytes;
}

// The figures of PyTorch's DistributedDataParallel, in FP32 and all in FP16.
TEST(ZooTest, ResNet50sBucketsAreThoseOfDdp) {
  EXPECT_THAT(BucketBytes("resnet50", "O0"),
              ElementsAre(8196000, 31502336, 26255360, 26550272, 9724160));
  EXPECT_THAT(BucketBytes("resnet50", "O3"),
              ElementsAre(4098000, 28878848, 18137216));
}

TEST(ZooTest, Vgg16sBucketsAreThoseOfDdp) {
  EXPECT_THAT(
      BucketBytes("vgg16", "O0"),
      ElementsAre(16388000, 67125248, 411058176, 28317696, 28319744, 2221312));
}

}  // namespace
}  // namespace halftone
