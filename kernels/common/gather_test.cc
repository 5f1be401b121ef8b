#include "kernels/common/gather.h"

#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

// Statistics of a norm of 3 channels, of which each value has 256 bytes.
GatherShape ShapeOf(int world_size, int rank, int64_t group_size,
                    int64_t replicas = 1) {
  Program program;
  Block& block = program.AddEntry("train").block();
  const TensorType vector{DType::kF32, Layout::kRowMajor, {Dim(3)}};
  const TensorType scalar{DType::kF32, Layout::kRowMajor, {}};
  OpBuilder combine(&block, "combine_stats");
  combine.Name("c")
      .In("Mean", {block.AddFeed("mean", vector)})
      .In("Variance", {block.AddFeed("variance", vector)})
      .In("Count", {block.AddFeed("count", scalar)})
      .Out("Mean", "m")
      .Out("Variance", "v")
      .Out("Count", "n")
      .Attr("group_size", group_size)
      .Attr("replicas", replicas);
  const OpId op = combine.Build().value();
  BindContext context;
  context.world_size = world_size;
  context.rank = rank;
  return GatherShapeOf(BoundOp(block, block.op(op), SymbolValues{}, context));
}

constexpr int64_t kPart = 3 * 256;  // of one rank

void ExpectShape(const GatherShape& shape, int first, int step, int ranks) {
  EXPECT_EQ(shape.first_bytes, first * kPart);
  EXPECT_EQ(shape.stride_bytes, step * kPart);
  EXPECT_EQ(shape.ranks, ranks);
}

TEST(GatherShape, OfAllRanks) {
  for (int rank = 0; rank < 6; ++rank) {
    ExpectShape(ShapeOf(6, rank, 0), 0, 1, 6);
    ExpectShape(ShapeOf(6, rank, 6), 0, 1, 6);
  }
  ExpectShape(ShapeOf(1, 0, 0), 0, 1, 1);
}

TEST(GatherShape, OfTheRanksGroup) {
  for (int rank = 0; rank < 6; ++rank) {
    ExpectShape(ShapeOf(6, rank, 2), rank / 2 * 2, 1, 2);
    ExpectShape(ShapeOf(6, rank, 3), rank / 3 * 3, 1, 3);
    ExpectShape(ShapeOf(6, rank, 1), rank, 1, 1);
  }
  // Where a model is planned for one rank, that is its group.
  ExpectShape(ShapeOf(1, 0, 4), 0, 1, 1);
}

TEST(GatherShape, OfOneRankOfMany) {
  for (int rank = 0; rank < 6; ++rank) {
    ExpectShape(ShapeOf(6, rank, 0, 2), 0, 2, 3);
    ExpectShape(ShapeOf(6, rank, 0, 6), 0, 6, 1);
  }
  ExpectShape(ShapeOf(1, 0, 0, 4), 0, 4, 1);
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
