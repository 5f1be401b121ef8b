#include "runtime/train/feeds.h"

#include <cmath>

#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "runtime/train/bindings.h"
#include "runtime/train/skip_names.h"

namespace halftone {
namespace runtime {
namespace {

// A label for each of 7 places of 3 samples' logits.
constexpr char kProgram[] = R"(program "p" dim B
loss loss over ce
cell w : f32[4,10] parameter trainable applied init=constant(0)
entry train {
  feed x : f32[B,7,4]
  feed label : i64[B,7]
  feed @largest_count : f32[]
  feed @first_sample : i64[]
  logits: matmul(X=x, Y=w) -> (Out=logits : f32[B,7,10])   forward
  ce: softmax_with_cross_entropy(Logits=logits, Label=label) -> (Loss=ce : f32[B,7])   forward
  loss: mean(X=ce) -> (Out=loss : f32[])   forward
  n: element_count(X=ce) -> (Out=@local_count : f32[])   loss-scale
}
)";

class FeedsTest : public ::testing::Test {
 protected:
  FeedsTest() {
    auto program = Parse(kProgram, "p");
    EXPECT_TRUE(program.ok()) << program.status();
    if (program.ok()) program_ = *std::move(program);
  }
  std::unique_ptr<Program> program_;
};

TEST_F(FeedsTest, SpecsAreTheDatasOwnFeeds) {
  ASSERT_NE(program_, nullptr);
  const std::vector<FeedSpec> specs = FeedSpecsOf(*program_);
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].name, "x");
  EXPECT_EQ(specs[0].dims, (std::vector<int64_t>{7, 4}));
  EXPECT_EQ(specs[0].classes, 0);
  EXPECT_EQ(specs[1].dtype, DType::kI64);
  EXPECT_EQ(specs[1].classes, 10);
}

TEST_F(FeedsTest, TheLossCountsElements) {
  ASSERT_NE(program_, nullptr);
  const Entry& train = *program_->FindEntry(kTrainEntry);
  EXPECT_EQ(LossElements(train, 1), 7);
  EXPECT_EQ(LossElements(train, 3), 21);
  EXPECT_EQ(LossElements(train, 0), 0);
}

TEST_F(FeedsTest, PointsAtTheBatchAndTheImplicitValues) {
  ASSERT_NE(program_, nullptr);
  ImplicitFeeds implicit;
  FeedList list(*program_->FindEntry(kTrainEntry), FeedSpecsOf(*program_),
                &implicit);
  Batch batch;
  batch.feeds = {{1, 2, 3}, {4, 5}};
  const auto feeds = list.Point(batch);
  ASSERT_EQ(feeds.size(), 4u);
  EXPECT_EQ(feeds[0].bytes.data(), batch.feeds[0].data());
  EXPECT_EQ(feeds[1].bytes.size(), 2u);
  EXPECT_EQ(feeds[2].name, kLargestCount);
  implicit.first_sample = 77;  // later than the list
  EXPECT_EQ(*reinterpret_cast<const int64_t*>(feeds[3].bytes.data()), 77);
}

TEST_F(FeedsTest, PointsAtPartsOfABatch) {
  ASSERT_NE(program_, nullptr);
  ImplicitFeeds implicit;
  FeedList list(*program_->FindEntry(kTrainEntry), FeedSpecsOf(*program_),
                &implicit);
  Batch batch;
  batch.share.indices = {4, 5, 6};
  batch.feeds = {{1, 1, 2, 2, 3, 3}, {4, 5, 6}};
  const auto part = list.Point(batch, 1, 2);
  EXPECT_EQ(part[0].bytes.data(), batch.feeds[0].data() + 2);
  EXPECT_EQ(part[0].bytes.size(), 4u);
  EXPECT_EQ(part[1].bytes[0], 5);
  EXPECT_EQ(part[2].bytes.size(), sizeof(float));
  EXPECT_EQ(list.Point(batch, 3, 0)[1].bytes.size(), 0u);
}

SamplerOptions Options(int64_t size, int64_t batch, int world_size,
                       Tail tail = Tail::kExact) {
  SamplerOptions options;
  options.size = size;
  options.batch = batch;
  options.world_size = world_size;
  options.tail = tail;
  return options;
}

TEST(GlobalCountsTest, WholeBatchAndTail) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(GlobalCounts(Options(1438, 64, 2)), (Counts{64, 30}));
  EXPECT_EQ(GlobalCounts(Options(128, 64, 2)), (Counts{64}));
  EXPECT_EQ(GlobalCounts(Options(31, 64, 2)), (Counts{31}));
  EXPECT_EQ(GlobalCounts(Options(31, 16, 2, Tail::kPad)), (Counts{16}));
  EXPECT_EQ(GlobalCounts(Options(31, 16, 2, Tail::kDrop)), (Counts{16, 14}));
}

// What is bound is what the sampler gives, for every rank and step.
TEST(StepCutTest, AgreesWithTheSampler) {
  for (const int64_t size : {1, 7, 30, 31, 64}) {
    for (const int world_size : {1, 2, 4, 8}) {
      for (const int64_t shards : {0, 8}) {
        SamplerOptions options = Options(size, 16, world_size);
        options.shards = shards;
        for (int rank = 0; rank < world_size; ++rank) {
          options.rank = rank;
          const Sampler sampler(options);
          for (int64_t s = 0; s < sampler.steps_per_epoch(); ++s) {
            const Share share = sampler.At(0, s);
            const StepCut cut(options, share.global_count, 3);
            int64_t end = 0;
            for (int64_t i = 0; i < cut.parts(); ++i) {
              EXPECT_EQ(cut.At(i).begin, end);
              EXPECT_LE(cut.At(i).count, cut.largest());
              end += cut.At(i).count;
            }
            EXPECT_EQ(static_cast<int64_t>(share.indices.size()), end);
          }
        }
      }
    }
  }
}

// No micro-batch without a sample on the fullest rank.
TEST(StepCutTest, HasSamplesInEveryMicroBatch) {
  for (const int64_t global : {1, 3, 8, 31, 64}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const int64_t k : {1, 2, 3, 8}) {
        const StepCut cut(Options(global, global, ranks), global, k);
        EXPECT_GE(cut.parts(), 1);
        EXPECT_LE(cut.parts(), k);
        EXPECT_GE(cut.At(0, cut.parts() - 1).count, 1);
      }
    }
  }
}

// Rank 0 of two has 8 and 8 of 31 samples, the other one 8 and 7.
TEST(BindingsTest, WhatIsUnevenOnOneRankIsSoOnAll) {
  for (const int64_t samples : {31, 32}) {
    for (const int rank : {0, 1}) {
      SamplerOptions options = Options(samples, samples, 2);
      options.rank = rank;
      int made = 0;
      const auto prepare = [&](absl::string_view, const SymbolValues&) {
        return absl::StatusOr<int>(made++);
      };
      Bindings bindings;
      ASSERT_TRUE(bindings.PrepareSteps(options, 2, prepare).ok());
      EXPECT_EQ(bindings.Uneven().size(), samples == 31 ? 2u : 0u) << rank;
    }
  }
}

// Shards are those of the batch, whoever has them: 10 samples are 2 2 1 1 1 1
// 1 1, so that the first of two ranks has 6.
TEST(StepCutTest, ShardsDoNotDependOnRanks) {
  for (const int ranks : {1, 2, 4, 8}) {
    SamplerOptions options = Options(10, 10, ranks);
    options.shards = 8;
    const StepCut cut(options, 10, 1);
    std::vector<int64_t> begins;
    for (int rank = 0; rank < ranks; ++rank) {
      options.rank = rank;
      for (int64_t i = 0; i < cut.parts(); ++i) {
        begins.push_back(Sampler(options).At(0, 0).first_sample +
                         cut.At(rank, i).begin);
      }
    }
    EXPECT_EQ(begins, (std::vector<int64_t>{0, 2, 4, 5, 6, 7, 8, 9})) << ranks;
  }
}

// Whatever the values are called, updates say whose gradients they are.
constexpr char kChecked[] = R"(program "p" dim B
cell conv.w : f32[4] parameter trainable applied init=constant(0)
cell conv : f32[4] parameter trainable applied init=constant(0)
entry train {
  feed low : f16[4]
  feed g : f32[4]
  feed other : f32[4]
  feed bn.global_mean : f32[4]
  feed s : f32[]
  low: all_reduce(X=[low]) -> (Out=[l : f16[4]]) {of="gradient"}   communicate
  f32: all_reduce(X=[g]) -> (Out=[r : f32[4]]) {of="gradient"}   communicate
  check: check_finite(Low=l, F32=[r, other], Stats=bn.global_mean, InvScale=s) -> (FoundInf=@found_inf : bool[], FirstBad=@first_bad : i32[], SquaredNorm=@squared_norm : f32[3])   loss-scale
  u: unscale(X=r, InvScale=s) -> (Out=u : f32[4])   loss-scale
  folded: sgd(Param=[conv.w], Grad=[l], LearningRate=s, FoundInf=@found_inf, InvScale=s) -> (ParamOut=[w.next : f32[4]])   optimize
  plain: sgd(Param=[conv], Grad=[u], LearningRate=s, FoundInf=@found_inf) -> (ParamOut=[conv.next : f32[4]])   optimize
}
)";

TEST(SkipNamesTest, GradientsAreNamedAfterTheirParameter) {
  auto program = Parse(kChecked, "p");
  ASSERT_TRUE(program.ok()) << program.status();
  const SkipNames names(**program);
  EXPECT_EQ(names.NameOf(0), "conv.w.grad");
  EXPECT_EQ(names.NameOf(1), "conv.grad");
  EXPECT_EQ(names.NameOf(2), "other");
  EXPECT_EQ(names.NameOf(3), "bn.global_mean");
  EXPECT_FALSE(names.IsNorm(3));
  EXPECT_TRUE(names.IsNorm(4));
  EXPECT_EQ(names.NameOf(4), "conv.w.grad");
  EXPECT_EQ(names.NameOf(6), "other");

  kernels::TensorDesc desc;
  desc.dtype = DType::kF32;
  desc.dims = {3};
  const float squares[3] = {INFINITY, NAN, 1};
  const std::vector<StepView::Item> items = {{"@squared_norm", &desc, squares}};
  const StepView view(items);
  EXPECT_EQ(names.Describe(0, view), "conv.w.grad has inf");
  EXPECT_EQ(names.Describe(1, view), "conv.grad has nan");
  EXPECT_EQ(names.Describe(3, view), "bn.global_mean is not finite");
  // Its values are finite: only their squares are not.
  EXPECT_EQ(names.Describe(4, view),
            "the gradients' norm overflows f32, for the most part by "
            "conv.w.grad");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
