// Kernels of other devices against the CPU's on tensors of thousands of
// elements: vectors and their tails, several blocks and pieces, addresses that
// do not allow vectors. (The case files hold what is computed.)
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "tests/ops/large_op.h"

namespace halftone {
namespace {

using Values = Large::Values;

// ---- Element-wise.

TEST(LargeTest, Unary) {
  for (DType dtype : Floats()) {
    for (int64_t n : {1, 5, 8192, 10007}) {
      Large("tanh").In("X", dtype, {n}).Out("Out").Expect(kNear);
      Large("scale")
          .In("X", dtype, {n})
          .Attr("scale", 0.75)
          .Attr("bias", 3.0)
          .Out("Out")
          .Expect(kSame);
      Large("relu_grad")
          .In("Out", dtype, {n})
          .In("OutGrad", dtype, {n})
          .Out("XGrad")
          .Expect(kSame);
    }
  }
}

TEST(LargeTest, Broadcasting) {
  using Dims = std::vector<int64_t>;
  const std::pair<Dims, Dims> kShapes[] = {
      {{67, 24}, {24}},       {{67, 23}, {23}},
      {{67, 24}, {67, 1}},    {{9, 1, 50}, {12, 1}},
      {{1003}, {1}},          {{3, 40, 16}, {40, 16}},
      {{5, 6, 7}, {5, 6, 7}}, {{4, 1, 8, 3}, {1, 5, 1, 3}},
  };
  for (DType dtype : Floats()) {
    for (const auto& [x, y] : kShapes) {
      for (const char* op : {"elementwise_sub", "elementwise_mul"}) {
        Large(op).In("X", dtype, x).In("Y", dtype, y).Out("Out").Expect(kSame);
      }
    }
    for (Layout layout : BothLayouts()) {
      Large("elementwise_add")
          .Layouts(layout)
          .In("X", dtype, {3, 24, 10, 6})
          .In("Y", dtype, {24})
          .Attr("axis", int64_t{1})
          .Out("Out")
          .Expect(kSame);
    }
  }
}

TEST(LargeTest, Casts) {
  for (DType from : {kF32, kF16, kBF16, DType::kI64, DType::kU8}) {
    for (DType to : {kF32, kF16, kBF16, DType::kI32}) {
      Large("cast")
          .In("X", from, {10007}, Whole(10007, 100))
          .Attr("to", to)
          .Out("Out")
          .Expect(kSame);
    }
  }
}

TEST(LargeTest, Sums) {
  for (DType dtype : Floats()) {
    for (int members : {1, 2, 3, 8, 19}) {
      Large sum("sum");
      for (int i = 0; i < members; ++i) sum.In("X", dtype, {3, 1111});
      sum.Out("Out").Expect(kSame);
    }
    // Members that lie as the first does not, and a sum in the workspace.
    for (int members : {2, 3, 11}) {
      for (int64_t channels : {8, 7}) {
        Large sum("sum");
        for (int i = 0; i < members; ++i) {
          sum.Layouts(BothLayouts()[i % 2]);
          sum.In("X", dtype, {3, channels, 6, 10});
        }
        sum.Out("Out").Expect(kSame);
      }
    }
  }
}

// ---- Loss scaling and updates.

void CheckFinite(int members, double bad, int at) {
  const int64_t kSizes[] = {70001, 3, 65536, 0, 32768, 17, 40000};
  Large check("check_finite");
  for (int i = 0; i < members; ++i) {
    const int64_t n = members > 10 ? 5 + i % 7 : kSizes[i % 7];
    Values values = kernels::Draws(n);
    if (i == at && n > 2) values[n - 1] = bad;
    check.In(i < members / 2 ? "Low" : "F32", i < members / 2 ? kF16 : kF32,
             {n}, values);
  }
  check.In("Stats", kF32, {64})
      .In("InvScale", kF32, {}, {0.25})
      .Out("FoundInf")
      .Out("FirstBad")
      .Out("SquaredNorm")
      .Expect({1000, 1e-5});  // sums of 70,000 squares in another order
}

TEST(LargeTest, CheckFinite) {
  const double kInf = std::numeric_limits<double>::infinity();
  CheckFinite(7, 0, -1);
  CheckFinite(7, kInf, 0);
  CheckFinite(7, kInf, 4);
  CheckFinite(7, std::nan(""), 6);
  CheckFinite(150, kInf, 149);
  CheckFinite(1500, kInf, 1400);
}

struct Method {
  const char* op;
  std::vector<const char*> states;
  bool applied = false;
  Tolerance tolerance = kSame;
};

void Update(const Method& method, DType param, DType grad, DType low,
            bool reject, int members, double clip_norm = 0) {
  const int64_t kSizes[] = {32775, 5, 16384, 1001};
  const auto size = [&](int i) {
    return members > 4 ? int64_t{3} + i % 9 : kSizes[i % 4];
  };
  Large update(method.op);
  for (int i = 0; i < members; ++i) update.In("Param", param, {size(i)});
  for (int i = 0; i < members; ++i) update.In("Grad", grad, {size(i)});
  for (const char* state : method.states) {
    for (int i = 0; i < members; ++i) {
      update.In(state, kF32, {size(i)}, Positive(size(i)));
    }
  }
  update.In("LearningRate", kF32, {}, {0.125});
  if (method.applied) update.In("Applied", DType::kI64, {}, {3});
  update.In("FoundInf", DType::kBool, {}, {reject ? 1.0 : 0.0})
      .In("InvScale", kF32, {}, {0.5})
      .In("ClipFactor", kF32, {}, {0.75})
      .Attr("weight_decay", 0.0625)
      .Out("ParamOut", members);
  // The second half of the norms, backwards.
  std::vector<int64_t> norm_of;
  for (int i = 0; i < members; ++i) norm_of.push_back(2 * members - 1 - i);
  if (clip_norm > 0) {
    update.In("SquaredNorm", kF32, {2 * members}, Positive(2 * members))
        .Attr("clip_norm", clip_norm)
        .Attr("norm_of", norm_of);
  } else {
    update.Attr("clip_value", 0.25);
  }
  for (const char* state : method.states) {
    update.Out(absl::StrCat(state, "Out"), members);
  }
  if (low != DType::kInvalid) update.Out("LowOut", members).Bind("L", low);
  update.Expect(reject ? kSame : method.tolerance);
}

TEST(LargeTest, Updates) {
  const Method kMethods[] = {
      {"sgd", {}},
      {"momentum", {"Velocity"}},
      {"adam", {"Moment1", "Moment2"}, true},
      {"adamw", {"Moment1", "Moment2"}, true},
      {"adagrad", {"SquareSum"}, true},
      {"rmsprop", {"MeanSquare"}},
      {"rmsprop", {"MeanSquare", "Momentum"}},
      {"rmsprop", {"MeanSquare", "MeanGrad"}},
      {"rmsprop", {"MeanSquare", "MeanGrad", "Momentum"}},
      {"adadelta", {"MeanSquare", "MeanDelta"}},
      {"adamax", {"Moment", "InfNorm"}, true},
      {"lion", {"Moment"}},
      // Norms of 32,775 elements are added up in another order.
      {"lars", {"Velocity"}, false, kSums},
      {"lamb", {"Moment1", "Moment2"}, true, kSums},
  };
  for (const Method& method : kMethods) {
    for (bool reject : {false, true}) {
      Update(method, kF32, kF16, kF16, reject, 4);
      Update(method, kF32, kF32, DType::kInvalid, reject, 4);
      Update(method, kBF16, kBF16, kBF16, reject, 4);
      Update(method, kF32, kBF16, kBF16, reject, 40);
    }
  }
  // More than a launch takes.
  Update(kMethods[1], kF32, kF16, kF16, false, 400);
  Update(kMethods[13], kF32, kF16, kF16, false, 400);
  // Each gradient's own norm.
  Update(kMethods[2], kF32, kBF16, kBF16, false, 4, 0.75);
  Update(kMethods[1], kF32, kF16, kF16, false, 400, 0.75);
  Update(kMethods[13], kF32, kF16, kF16, false, 4, 0.75);
}

TEST(LargeTest, GlobalNorm) {
  std::vector<int64_t> order;
  for (int64_t i = 599; i >= 0; --i) order.push_back(i);
  for (const auto& o : {std::vector<int64_t>(), order}) {
    Large("global_norm")
        .In("SquaredNorm", kF32, {600}, Positive(600))
        .Attr("order", o)
        .Out("Norm")
        .Expect(kSame);
  }
}

// ---- Rows.

TEST(LargeTest, Softmax) {
  for (DType dtype : Floats()) {
    for (int64_t classes : {10, 257, 768, 1000, 1004}) {
      Large("softmax").In("X", dtype, {19, classes}).Out("Out").Expect(kSums);
      Large("softmax_grad")
          .In("Out", dtype, {19, classes})
          .In("OutGrad", dtype, {19, classes})
          .Out("XGrad")
          .Expect(kSums);
      Large("softmax_with_cross_entropy")
          .In("Logits", dtype, {19, classes})
          .In("Label", DType::kI64, {19, 1}, Whole(19, classes - 1))
          .Out("Loss")
          .Expect(kSums);
      Large("softmax_with_cross_entropy_grad")
          .In("Logits", dtype, {19, classes})
          .In("Label", DType::kI64, {19, 1}, Whole(19, classes - 1))
          .In("LossGrad", kF32, {19, 1})
          .Out("LogitsGrad")
          .Expect(kSums);
    }
    Large("softmax")
        .In("X", dtype, {3, 300, 5})
        .Attr("axis", int64_t{1})
        .Out("Out")
        .Expect(kSums);
  }
}

TEST(LargeTest, RowNorms) {
  using Dims = std::vector<int64_t>;
  for (DType dtype : Floats()) {
    for (const auto& [rows, length] : {std::pair<int64_t, int64_t>{300, 24},
                                       {19, 257},
                                       {40, 768},
                                       {3, 5000}}) {
      Large("layer_norm")
          .In("X", dtype, {rows, length})
          .In("Scale", kF32, {length})
          .In("Bias", kF32, {length})
          .Out("Y")
          .Out("Mean")
          .Out("Variance")
          .Expect(kSums);
      Large("layer_norm_grad")
          .In("X", dtype, {rows, length})
          .In("YGrad", dtype, {rows, length})
          .In("Scale", kF32, {length})
          .In("Mean", kF32, {rows})
          .In("Variance", kF32, {rows}, Positive(rows))
          .Out("XGrad")
          .Out("ScaleGrad")
          .Out("BiasGrad")
          .Expect(kSums);
    }
    for (const Dims& x : {Dims{3, 24, 7, 9}, {2, 24, 64, 33}, {5, 24}}) {
      Large("group_norm")
          .In("X", dtype, x)
          .In("Scale", kF32, {24})
          .In("Bias", kF32, {24})
          .Attr("groups", int64_t{4})
          .Out("Y")
          .Out("Mean")
          .Out("Variance")
          .Expect(kSums);
      Large("group_norm_grad")
          .In("X", dtype, x)
          .In("YGrad", dtype, x)
          .In("Scale", kF32, {24})
          .In("Mean", kF32, {x[0], 4})
          .In("Variance", kF32, {x[0], 4}, Positive(4 * x[0]))
          .Attr("groups", int64_t{4})
          .Out("XGrad")
          .Out("ScaleGrad")
          .Out("BiasGrad")
          .Expect(kSums);
    }
  }
}

// Pieces of more rows than share their numbers at a time.
TEST(LargeTest, RowNormOfManyRows) {
  const int64_t rows = 18001, length = 3;
  Large("layer_norm_grad")
      .In("X", kF16, {rows, length})
      .In("YGrad", kF16, {rows, length})
      .In("Scale", kF32, {length})
      .In("Mean", kF32, {rows})
      .In("Variance", kF32, {rows}, Positive(rows))
      .Out("XGrad")
      .Out("ScaleGrad")
      .Out("BiasGrad")
      .Expect({64, 1e-4});  // sums of 18,001 products around 0
}

TEST(LargeTest, TopK) {
  for (DType dtype : Floats()) {
    for (int64_t classes : {10, 1000, 1003}) {
      // Many equal scores.
      const Values scores = Whole(40 * classes, 50);
      Large("top_k")
          .In("X", dtype, {40, classes}, scores)
          .Attr("k", int64_t{5})
          .Out("Out")
          .Out("Indices")
          .Expect(kSame);
      Large("correct_count")
          .In("X", dtype, {40, classes}, scores)
          .In("Label", DType::kI64, {40}, Whole(40, classes - 1))
          .Attr("k", int64_t{5})
          .Out("Out")
          .Expect(kSame);
    }
  }
}

TEST(LargeTest, Reductions) {
  struct Shape {
    std::vector<int64_t> dims, axes;
  };
  const Shape kShapes[] = {
      {{100003}, {}},          {{300, 520}, {0}},
      {{300, 517}, {0}},       {{300, 517}, {1}},
      {{20, 5000}, {1}},       {{6, 8, 5, 40}, {0, 2, 3}},
      {{6, 8, 5, 40}, {1, 3}}, {{6, 8, 5, 40}, {0, 2}},
      {{4000, 3}, {1}},        {{2500, 4}, {0}},
      {{1, 1, 77}, {1}},       {{50, 8, 16}, {0, 1}},
  };
  for (DType dtype : Floats()) {
    for (const Shape& shape : kShapes) {
      for (const char* op : {"reduce_sum", "reduce_mean"}) {
        // Means of hundreds of numbers around 0 lose their leading digits.
        Large(op)
            .In("X", dtype, shape.dims)
            .Attr("dim", shape.axes)
            .Bind("TOut", kF32)
            .Out("Out")
            .Expect({64, 1e-4});
      }
    }
    Large("mean").In("X", dtype, {100003}).Out("Out").Expect({64, 1e-6});
    Large("broadcast_like")
        .In("X", dtype, {6, 5})
        .In("Like", kF32, {6, 44, 5, 8})
        .Attr("dim", std::vector<int64_t>{1, 3})
        .Attr("mean", true)
        .Out("Out")
        .Expect(kSame);
  }
}

// ---- Moves, draws.

TEST(LargeTest, Moves) {
  for (DType dtype : {kF32, kF16, DType::kI64, DType::kU8}) {
    const auto whole = [](int64_t n) { return Whole(n, 9); };
    for (int64_t inner : {64, 5}) {
      Large("concat")
          .In("X", dtype, {33, 3, inner}, whole(99 * inner))
          .In("X", dtype, {33, 8, inner}, whole(264 * inner))
          .Attr("axis", int64_t{1})
          .Out("Out")
          .Expect(kSame);
      Large("slice")
          .In("Input", dtype, {33, 8, inner}, whole(264 * inner))
          .Attr("axes", std::vector<int64_t>{1})
          .Attr("starts", std::vector<int64_t>{3})
          .Attr("ends", std::vector<int64_t>{7})
          .Out("Out")
          .Expect(kSame);
      Large("pad_like")
          .In("X", dtype, {33, 3, inner}, whole(99 * inner))
          .In("Like", kF32, {33, 8, inner}, whole(264 * inner))
          .Attr("axes", std::vector<int64_t>{1})
          .Attr("starts", std::vector<int64_t>{2})
          .Attr("ends", std::vector<int64_t>{5})
          .Out("Out")
          .Expect(kSame);
    }
    const std::vector<int64_t> kAxes[] = {
        {0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}, {1, 2, 0}};
    for (const auto& axis : kAxes) {
      Large("transpose")
          .In("X", dtype, {3, 70, 48}, whole(3 * 70 * 48))
          .Attr("axis", axis)
          .Out("Out")
          .Expect(kSame);
    }
    // Rows that are copied an element at a time.
    Large("transpose")
        .In("X", dtype, {3, 70, 5}, whole(3 * 70 * 5))
        .Attr("axis", std::vector<int64_t>{1, 0, 2})
        .Out("Out")
        .Expect(kSame);
    for (Layout layout : BothLayouts()) {
      for (int64_t channels : {40, 43, 44, 48}) {
        Large("pad_channels")
            .Layouts(layout)
            .In("X", dtype, {2, 37, 19, 7}, whole(2 * 37 * 133))
            .Attr("channels", channels)
            .Out("Out")
            .Expect(kSame);
      }
      for (const char* to : {"row_major", "channels_last"}) {
        Large("convert_layout")
            .Layouts(layout)
            .In("X", dtype, {2, 40, 9, 7}, whole(2 * 40 * 63))
            .Attr("to", std::string(to))
            .Out("Out")
            .Expect(kSame);
      }
    }
  }
}

TEST(LargeTest, Dropout) {
  for (DType dtype : Floats()) {
    for (int64_t inner : {1000, 36, 33}) {
      Large("dropout")
          .In("X", dtype, {9, inner})
          .In("Seed", DType::kI64, {}, {12345})
          .In("Step", DType::kI64, {}, {7})
          .In("FirstSample", DType::kI64, {}, {1000})
          .Attr("p", 0.3)
          .Attr("stream", int64_t{3})
          .Out("Out")
          .Expect(kSame);
    }
  }
}

TEST(LargeTest, DropoutOfSamplesAndChannels) {
  for (DType dtype : Floats()) {
    for (Layout layout : {Layout::kRowMajor, Layout::kChannelsLast}) {
      for (int64_t side : {8, 5}) {
        for (const auto& axis : {std::vector<int64_t>{0}, {0, 1}}) {
          Large("dropout_nd")
              .Layouts(layout)
              .In("X", dtype, {9, 24, side, side})
              .In("Seed", DType::kI64, {}, {12345})
              .In("Step", DType::kI64, {}, {7})
              .In("FirstSample", DType::kI64, {}, {1000})
              .Attr("p", 0.3)
              .Attr("stream", int64_t{3})
              .Attr("axis", axis)
              .Out("Out")
              .Expect(kSame);
        }
      }
    }
  }
}

TEST(LargeTest, InitialValues) {
  for (const char* op :
       {"init_uniform", "init_normal", "init_truncated_normal"}) {
    Large(op)
        .In("Seed", DType::kI64, {}, {99})
        .Attr("shape", std::vector<int64_t>{37, 91})
        .Attr("stream", int64_t{5})
        .Out("Out")
        .Expect({2, 0});
  }
}

TEST(LargeTest, ImageNormalize) {
  for (DType in : {DType::kU8, DType::kI32, kF32}) {
    for (DType out : Floats()) {
      for (int64_t side : {20, 7}) {
        Large("image_normalize")
            .In("X", in, {5, 3, side, side}, Whole(15 * side * side, 255))
            .Attr("mean", std::vector<double>{120, 110, 100})
            .Attr("std", std::vector<double>{60, 70, 0.5})
            .Bind("TOut", out)
            .Out("Out")
            .Expect(kSame);
      }
    }
  }
}

}  // namespace
}  // namespace halftone
