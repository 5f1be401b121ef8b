#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/streamed_output.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

Values Iota(int64_t n) {
  Values values(n);
  std::iota(values.begin(), values.end(), 0);
  for (double& v : values) v = static_cast<double>(static_cast<int>(v) % 251);
  return values;
}

void ExpectTransposed(const Ints& dims, const Ints& axis) {
  const int rank = static_cast<int>(dims.size());
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  const Values x = Iota(n);
  Ints strides(rank, 1);
  for (int i = rank - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims[i + 1];
  Values expected(n);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, from = 0;
    for (int d = rank - 1; d >= 0; --d) {
      from += rest % dims[axis[d]] * strides[axis[d]];
      rest /= dims[axis[d]];
    }
    expected[i] = x[from];
  }
  for (DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64}) {
    for (int threads : {1, 3}) {
      KernelRun run("transpose");
      run.In("X", {dtype, dims, x}).Attr("axis", axis).Threads(threads);
      EXPECT_EQ(run.Get("Out"), expected)
          << ::testing::PrintToString(dims) << ::testing::PrintToString(axis);
    }
  }
}

TEST(TransposeTest, AnyPermutation) {
  ExpectTransposed({3, 5}, {1, 0});
  ExpectTransposed({300, 257}, {1, 0});
  ExpectTransposed({2, 12, 64, 8}, {0, 2, 1, 3});
  ExpectTransposed({2, 12, 8, 64}, {0, 1, 3, 2});
  ExpectTransposed({4, 3, 17, 33}, {0, 2, 3, 1});
  ExpectTransposed({4, 17, 33, 3}, {0, 3, 1, 2});
  ExpectTransposed({2, 3, 4, 5}, {3, 2, 1, 0});
  ExpectTransposed({2, 3, 4, 5}, {0, 1, 2, 3});
  ExpectTransposed({1, 7, 1, 5}, {2, 3, 0, 1});
  ExpectTransposed({2, 0, 4}, {2, 0, 1});
  ExpectTransposed({6}, {0});
}

TEST(ReshapeTest, CopiesOrStays) {
  KernelRun copy("reshape");
  copy.In("X", F16({2, 3}, Iota(6))).Attr("shape", Ints{3, 2});
  EXPECT_EQ(copy.Get("Out"), Iota(6));
  for (const char* op : {"flatten", "assign"}) {
    KernelRun in_place(op);
    in_place.In("X", F16({2, 3}, Iota(6))).Alias("Out", "X");
    EXPECT_EQ(in_place.Get("Out"), Iota(6)) << op;
  }
  KernelRun like("reshape_like");
  like.In("X", I64({6}, Iota(6))).In("Like", I64({2, 3}, {}));
  EXPECT_EQ(like.Get("Out"), Iota(6));
}

TEST(ConcatTest, AlongAnyAxis) {
  KernelRun rows("concat");
  rows.In("X", F32({1, 2}, {1, 2})).In("X", F32({2, 2}, {3, 4, 5, 6}));
  EXPECT_THAT(rows.Get("Out"), ElementsAre(1, 2, 3, 4, 5, 6));
  KernelRun columns("concat");
  columns.In("X", F16({2, 1}, {1, 2})).In("X", F16({2, 2}, {3, 4, 5, 6}));
  columns.In("X", F16({2, 0}, {})).Attr("axis", int64_t{-1});
  EXPECT_THAT(columns.Get("Out"), ElementsAre(1, 3, 4, 2, 5, 6));
}

// Rows of more than an element lie in one pass.
TEST(ConcatTest, ShortRowsThereAndBack) {
  const int64_t rows = 3000, left = 5, right = 14, all = left + right;
  const Values x = Iota(rows * all);
  Values parts[2];
  for (int64_t i = 0; i < rows * all; ++i) {
    parts[i % all < left ? 0 : 1].push_back(x[i]);
  }
  KernelRun join("concat");
  join.In("X", F32({rows, left}, parts[0]));
  join.In("X", F32({rows, right}, parts[1])).Attr("axis", int64_t{1});
  EXPECT_EQ(join.Threads(3).Get("Out"), x);
  KernelRun cut("split");
  cut.In("X", F32({rows, all}, x)).Attr("axis", int64_t{1}).Out("Out", 2);
  cut.Attr("sections", Ints{left, right}).Threads(3);
  EXPECT_EQ(cut.Get("Out", 0), parts[0]);
  EXPECT_EQ(cut.Get("Out", 1), parts[1]);
}

TEST(SliceTest, StartAndEndFromEitherSide) {
  KernelRun run("slice");
  run.In("Input", I64({2, 4}, Iota(8))).Attr("axes", Ints{1});
  run.Attr("starts", Ints{-3}).Attr("ends", Ints{-1});
  EXPECT_THAT(run.Get("Out"), ElementsAre(1, 2, 5, 6));
  KernelRun none("slice");
  none.In("Input", I64({4}, Iota(4))).Attr("starts", Ints{9});
  EXPECT_THAT(none.Get("Out"), ElementsAre());
}

TEST(PadLikeTest, ZerosAround) {
  KernelRun run("pad_like");
  run.In("X", F32({2, 2}, {1, 2, 3, 4})).In("Like", F32({2, 4}, {}));
  run.Attr("axes", Ints{1}).Attr("starts", Ints{1}).Attr("ends", Ints{3});
  EXPECT_THAT(run.Get("Out"), ElementsAre(0, 1, 2, 0, 0, 3, 4, 0));
}

// Of short rows, whole vectors and not; the last row is read to its end alone.
TEST(MoveTest, EverySecondAndBackwards) {
  for (const DType dtype : {DType::kBool, DType::kF16, DType::kF32}) {
    for (int64_t columns = 7; columns < 40; ++columns) {
      Values x(3 * columns), second, backwards;
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = dtype == DType::kBool ? i % 5 % 2 : static_cast<double>(i);
      }
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          if (c % 2 == 0) second.push_back(x[r * columns + c]);
          backwards.push_back(x[(r + 1) * columns - 1 - c]);
        }
      }
      const Tensor rows{dtype, {3, columns}, x};
      KernelRun slice("strided_slice");
      slice.In("Input", rows).Attr("axes", Ints{1}).Attr("starts", Ints{0});
      slice.Attr("ends", Ints{columns}).Attr("strides", Ints{2});
      EXPECT_EQ(slice.Get("Out"), second) << columns;
      KernelRun flip("flip");
      flip.In("X", rows).Attr("axis", Ints{1});
      EXPECT_EQ(flip.Get("Out"), backwards) << columns;
    }
  }
}

// Threads take rows of their own, of the workspace too.
TEST(MoveTest, LongAndThreaded) {
  const int64_t rows = 300, columns = 700;
  const Values x = Iota(rows * columns);
  Values flipped;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = columns; c-- > 0;) flipped.push_back(x[r * columns + c]);
  }
  KernelRun flip("flip");
  flip.In("X", F32({rows, columns}, x)).Attr("axis", Ints{1}).Threads(4);
  EXPECT_EQ(flip.Get("Out"), flipped);
  KernelRun grad("pad3d_grad");
  grad.In("X", F32({1, 1, 1, rows, columns - 1}, {}));
  grad.In("OutGrad", F32({1, 1, 1, rows, columns}, x)).Threads(4);
  grad.Attr("paddings", Ints{1, 0, 0, 0, 0, 0}).Attr("mode", "replicate");
  const Values sums = grad.Get("XGrad");
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = &x[r * columns];
    EXPECT_EQ(sums[r * (columns - 1)], row[0] + row[1]) << r;
    EXPECT_EQ(sums[r * (columns - 1) + 1], row[2]) << r;
  }
}

// Units of outer axes that are cut for threads, or moved around the caches.
TEST(MoveTest, LargeUnitsOfOuterAxes) {
  const int64_t rows = 3, columns = 131 * 1024;
  const Values x = Iota(rows * columns);
  const auto row = [&](int64_t r) {
    return Values(x.begin() + r * columns, x.begin() + (r + 1) * columns);
  };
  const auto joined = [](const std::vector<Values>& parts) {
    Values all;
    for (const Values& part : parts) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const int64_t least = LeastStreamedBytes();
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    const Tensor tensor{dtype, {rows, columns}, x};
    for (const int64_t bytes : {least, int64_t{0}}) {
      SetLeastStreamedBytes(bytes);
      for (const int threads : {1, 4}) {
        KernelRun expand("expand_v2");
        expand.In("X", tensor).Attr("shape", Ints{2, -1, -1});
        EXPECT_EQ(expand.Threads(threads).Get("Out"), joined({x, x}));
        KernelRun flip("flip");
        flip.In("X", tensor).Attr("axis", Ints{0});
        EXPECT_EQ(flip.Threads(threads).Get("Out"),
                  joined({row(2), row(1), row(0)}));
        KernelRun slice("slice");
        slice.In("Input", tensor).Attr("axes", Ints{0});
        slice.Attr("starts", Ints{1}).Attr("ends", Ints{3});
        EXPECT_EQ(slice.Threads(threads).Get("Out"), joined({row(1), row(2)}));
        KernelRun pad("pad");
        pad.In("X", tensor).Attr("paddings", Ints{1, 1, 0, 0});
        EXPECT_EQ(pad.Threads(threads).Get("Out"),
                  joined({Values(columns), x, Values(columns)}));
      }
    }
  }
  SetLeastStreamedBytes(least);
}

// Rows that are shorter than a vector, each the sum of several, beside those of
// another thread.
TEST(MoveTest, NarrowSumsStayWithinTheirRows) {
  const int64_t images = 6000, width = 3;
  const Values x = Eighths(images * 7 * width);
  Values expected(images * 3 * width);
  const int64_t went[7] = {2, 1, 0, 1, 2, 1, 0};  // reflected
  for (int64_t i = 0; i < images * 7 * width; ++i) {
    const int64_t image = i / (7 * width), row = i / width % 7;
    expected[(image * 3 + went[row]) * width + i % width] += x[i];
  }
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    KernelRun grad("pad3d_grad");
    grad.In("X", {dtype, {images, 1, 1, 3, width}, {}});
    grad.In("OutGrad", {dtype, {images, 1, 1, 7, width}, x}).Threads(4);
    grad.Attr("paddings", Ints{0, 0, 2, 2, 0, 0}).Attr("mode", "reflect");
    EXPECT_EQ(grad.Get("XGrad"), expected) << Name(dtype);
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
