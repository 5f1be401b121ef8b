#include "passes/parallel/bucket_allreduce.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "passes/parallel/buckets.h"
#include "passes/parallel/insert_allreduce.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::ElementsAre;

// Elements of each parameter in the order of registration.
using Sizes = std::vector<int64_t>;

void AddConvNorm(int64_t out, int64_t in, int64_t kernel, Sizes* sizes) {
  sizes->push_back(out * in * kernel * kernel);
  sizes->insert(sizes->end(), {out, out});  // scale and bias of the norm
}

// Bottlenecks of 1x1, 3x3, 1x1; the first of a stage projects its input.
Sizes ResNet50() {
  Sizes sizes;
  AddConvNorm(64, 3, 7, &sizes);
  int64_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      AddConvNorm(width, in, 1, &sizes);
      AddConvNorm(width, width, 3, &sizes);
      AddConvNorm(4 * width, width, 1, &sizes);
      if (block == 0) AddConvNorm(4 * width, in, 1, &sizes);
      in = 4 * width;
    }
  }
  sizes.insert(sizes.end(), {2048 * 1000, 1000});
  return sizes;
}

Sizes Vgg16() {
  Sizes sizes;
  int64_t in = 3;
  for (int64_t out :
       {64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512}) {
    sizes.insert(sizes.end(), {out * in * 9, out});
    in = out;
  }
  sizes.insert(sizes.end(),
               {25088 * 4096, 4096, 4096 * 4096, 4096, 4096 * 1000, 1000});
  return sizes;
}

// The limits of buckets in bytes.
proto::Dist Limits(double first, double others) {
  constexpr double kMebibyte = 1 << 20;
  proto::Dist dist;
  dist.set_first_bucket_size_in_mb(first / kMebibyte);
  dist.set_fuse_grad_size_in_mb(others / kMebibyte);
  return dist;
}

// A train entry that makes one gradient per parameter, the last parameter's
// first, as backward does.
std::unique_ptr<Program> MakeProgram(const Sizes& sizes, DType dtype) {
  auto program = std::make_unique<Program>();
  Entry& train = program->AddEntry("train");
  Block& block = train.block();
  for (size_t i = 0; i < sizes.size(); ++i) {
    Cell cell;
    cell.name = absl::StrCat("w", i);
    cell.type.dtype = dtype;
    cell.type.dims = {Dim(sizes[i])};
    cell.trainable = true;
    program->AddCell(cell);
  }
  for (int i = static_cast<int>(sizes.size()) - 1; i >= 0; --i) {
    const Cell& cell = program->cell(CellId(i));
    const auto made = OpBuilder(&block, "assign")
                          .In("X", block.CellValue(cell.id))
                          .Out("Out", absl::StrCat(cell.name, ".grad"))
                          .Role(Role::kBackward)
                          .Build();
    EXPECT_TRUE(made.ok()) << made.status();
    train.gradients().insert(train.gradients().begin(),
                             {cell.id, block.op(*made).out(0)});
  }
  return program;
}

std::vector<int64_t> BucketBytes(const Program& program) {
  const Block& block = program.FindEntry("train")->block();
  std::vector<int64_t> bytes;
  for (OpId id : OpsOfType(block, "all_reduce")) {
    if (!IsReduction(block.op(id), "gradient")) continue;
    bytes.push_back(0);
    for (ValueId member : block.op(id).inputs.all()) {
      bytes.back() += block.type(member).Elements().coefficient() *
                      SizeOf(block.dtype(member));
    }
  }
  return bytes;
}

std::vector<int64_t> CompileAsDdp(const Sizes& sizes, DType dtype,
                                  const proto::Dist& dist) {
  const auto program = MakeProgram(sizes, dtype);
  EXPECT_TRUE(*InsertAllreduce(dist).Run(*program));
  BucketAllreduce pass(dist, /*join_stranded=*/false);
  const auto changed = pass.Run(*program);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_FALSE(*pass.Run(*program)) << "idempotent";
  return BucketBytes(*program);
}

// The expected numbers are those of PyTorch's DistributedDataParallel for
// torchvision's models.
TEST(BucketAllreduceTest, ResNet50AsDdp) {
  const Sizes sizes = ResNet50();
  ASSERT_EQ(sizes.size(), 161u);
  ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 25557032);
  EXPECT_THAT(CompileAsDdp(sizes, DType::kF32, Limits(1 << 20, 25 << 20)),
              ElementsAre(8196000, 31502336, 26255360, 26550272, 9724160));
  EXPECT_THAT(CompileAsDdp(sizes, DType::kF16, Limits(1 << 20, 25 << 20)),
              ElementsAre(4098000, 28878848, 18137216));
}

TEST(BucketAllreduceTest, Vgg16AsDdp) {
  const Sizes sizes = Vgg16();
  ASSERT_EQ(sizes.size(), 32u);
  EXPECT_THAT(
      CompileAsDdp(sizes, DType::kF32, Limits(1 << 20, 25 << 20)),
      ElementsAre(16388000, 67125248, 411058176, 28317696, 28319744, 2221312));
}

TEST(BucketAllreduceTest, StrandedBiasJoinsItsNeighbour) {
  const proto::Dist dist = Limits(100, 1000);
  const std::vector<BucketItem> items = {{DType::kF32, 120},
                                         {DType::kF32, 1000},
                                         {DType::kF16, 40},
                                         {DType::kF32, 8}};
  const std::vector<Bucket> joined = AssignBuckets(items, dist, true);
  ASSERT_EQ(joined.size(), 3u);
  EXPECT_THAT(joined[0].items, ElementsAre(0));
  EXPECT_THAT(joined[1].items, ElementsAre(2)) << "alone of its dtype";
  EXPECT_THAT(joined[2].items, ElementsAre(1, 3));
  EXPECT_EQ(joined[2].bytes, 1008);
  EXPECT_EQ(AssignBuckets(items, dist, false).size(), 4u);
}

TEST(BucketAllreduceTest, ClosesAtTheLimit) {
  const std::vector<BucketItem> items(6, {DType::kF32, 8});
  std::vector<int> counts;
  for (const Bucket& bucket : AssignBuckets(items, Limits(8, 16), true)) {
    counts.push_back(static_cast<int>(bucket.items.size()));
  }
  EXPECT_THAT(counts, ElementsAre(1, 2, 2, 1));
}

TEST(BucketAllreduceTest, NoFusion) {
  proto::Dist dist;
  dist.set_fuse_all_reduce_ops(false);
  const auto program = MakeProgram({4, 4}, DType::kF32);
  ASSERT_TRUE(*InsertAllreduce(dist).Run(*program));
  EXPECT_FALSE(*BucketAllreduce(dist).Run(*program));
  EXPECT_THAT(BucketBytes(*program), ElementsAre(16, 16));
}

TEST(BucketAllreduceTest, NothingToDo) {
  Program program;
  EXPECT_FALSE(*BucketAllreduce(proto::Dist()).Run(program));
  program.AddEntry("train");
  EXPECT_FALSE(*BucketAllreduce(proto::Dist()).Run(program));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
