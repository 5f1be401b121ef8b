// What adds up all that goes to one place: runs of equal numbers, from one to
// more than a batch of loads or a block of keys, and rows of several blocks.
#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "tests/ops/large_op.h"

namespace halftone {
namespace {

using Values = Large::Values;

// Numbers of rows: few rows are named often.
const std::pair<int64_t, int64_t> kNumbersAndRows[] = {
    {1, 3}, {500, 1}, {700, 2}, {515, 40}, {300, 70000}};

TEST(LargeLookupTest, GatherGrad) {
  for (DType dtype : Floats()) {
    for (const auto& [numbers, rows] : kNumbersAndRows) {
      for (int64_t width : {1, 7, 257}) {
        if (rows * width > 100000) continue;
        // One more than the rows: a number that names none.
        Large("gather_grad")
            .In("X", dtype, {rows, width})
            .In("Index", DType::kI32, {numbers}, Whole(numbers, rows))
            .In("OutGrad", dtype, {numbers, width})
            .Out("XGrad")
            .Expect(kSame);
      }
    }
    Large("gather_grad")
        .In("X", dtype, {2, 3, 300})
        .In("Index", DType::kI64, {100}, Whole(100, 2))
        .In("OutGrad", dtype, {2, 100, 300})
        .Attr("axis", int64_t{1})
        .Out("XGrad")
        .Expect(kSame);
  }
}

// More blocks of keys than one sum over their counts takes, and three digits.
TEST(LargeLookupTest, GatherGradOfManyNumbers) {
  const int64_t numbers = 20001, rows = 70000;
  Large("gather_grad")
      .In("X", kF32, {rows, 1})
      .In("Index", DType::kI64, {numbers}, Whole(numbers, rows))
      .In("OutGrad", kF32, {numbers, 1})
      .Out("XGrad")
      .Expect(kSame);
}

TEST(LargeLookupTest, Scatter) {
  for (DType dtype : Floats()) {
    for (const auto& [numbers, rows] : kNumbersAndRows) {
      for (bool overwrite : {false, true}) {
        const int64_t width = rows > 100 ? 1 : 257;
        Large("scatter")
            .In("X", dtype, {rows, width})
            .In("Ids", DType::kI32, {numbers}, Whole(numbers, rows))
            .In("Updates", dtype, {numbers, width})
            .Attr("overwrite", overwrite)
            .Out("Out")
            .Expect(kSame);
      }
    }
  }
}

TEST(LargeLookupTest, GridSampler) {
  for (DType dtype : Floats()) {
    for (int64_t side : {2, 9}) {
      for (int64_t channels : {1, 35}) {
        Large("grid_sampler_grad_input")
            .In("X", dtype, {2, channels, side, side})
            .In("Grid", dtype, {2, 19, 17, 2})
            .In("OutputGrad", dtype, {2, channels, 19, 17})
            .Out("XGrad")
            .Expect(kSums);
      }
    }
  }
}

}  // namespace
}  // namespace halftone
