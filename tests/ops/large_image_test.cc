// Batch normalisation and pooling on other devices against the CPU's, in both
// layouts, on tensors of thousands of elements.
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/ops/large_op.h"

namespace halftone {
namespace {

using Values = Large::Values;

// ---- Images.

void ForEachImage(
    const std::function<void(DType, Layout, const std::vector<int64_t>&)>&
        body) {
  const std::vector<int64_t> kDims[] = {
      {40, 24, 9, 8}, {7, 3, 13, 11}, {3, 300, 4, 4}, {1, 1, 90, 90}};
  for (DType dtype : Floats()) {
    for (Layout layout : BothLayouts()) {
      for (const auto& dims : kDims) body(dtype, layout, dims);
    }
  }
}

TEST(LargeTest, BatchNorm) {
  ForEachImage([](DType dtype, Layout layout, const auto& dims) {
    const std::vector<int64_t> c = {dims[1]};
    Large("batch_norm")
        .Layouts(layout)
        .In("X", dtype, dims)
        .In("Scale", kF32, c)
        .In("Bias", kF32, c)
        .In("Mean", kF32, c)
        .In("Variance", kF32, c)
        .Out("Y")
        .Out("BatchMean")
        .Out("BatchVariance")
        .Out("BatchCount")
        .Expect(kSums);
    Large("batch_norm_grad")
        .Layouts(layout)
        .In("X", dtype, dims)
        .In("YGrad", dtype, dims)
        .In("Scale", kF32, c)
        .In("BatchMean", kF32, c)
        .In("BatchVariance", kF32, c, Positive(c[0]))
        .Out("XGrad")
        .Out("ScaleGrad")
        .Out("BiasGrad")
        .Expect({64, 1e-4});
  });
}

// A bias's gradient, the mean of each channel, and kept dims that come in
// another order than they lie.
TEST(LargeTest, Reductions) {
  ForEachImage([](DType dtype, Layout layout, const auto& dims) {
    using Axes = std::vector<int64_t>;
    for (const Axes& axes :
         {Axes{0, 2, 3}, Axes{2, 3}, Axes{1}, Axes{0}, Axes{0, 3}, Axes{}}) {
      // Thousands of sums of one element are slow, and in LargeTest.
      if (axes.size() == 1 && dims[axes[0]] == 1) continue;
      for (bool keep_dim : {false, true}) {
        Large("reduce_sum")
            .Layouts(layout)
            .In("X", dtype, dims)
            .Attr("dim", axes)
            .Attr("keep_dim", keep_dim)
            .Bind("TOut", kF32)
            .Out("Out")
            .Expect({64, 1e-4});
      }
    }
  });
}

TEST(LargeTest, PartsOfBatchNorm) {
  ForEachImage([](DType dtype, Layout layout, const auto& dims) {
    const std::vector<int64_t> c = {dims[1]};
    Large("channel_stats")
        .Layouts(layout)
        .In("X", dtype, dims)
        .Out("Mean")
        .Out("Variance")
        .Out("Count")
        .Expect(kSums);
    Large("scale_bias")
        .Layouts(layout)
        .In("X", dtype, dims)
        .In("Scale", kF32, c)
        .In("Bias", kF32, c)
        .In("Mean", kF32, c)
        .In("Variance", kF32, c, Positive(c[0]))
        .Out("Y")
        .Expect(kSame);
    Large("bn_grad_reduce")
        .Layouts(layout)
        .In("X", dtype, dims)
        .In("YGrad", dtype, dims)
        .In("BatchMean", kF32, c)
        .In("BatchVariance", kF32, c, Positive(c[0]))
        .Out("ScaleGrad")
        .Out("BiasGrad")
        .Expect({64, 1e-4});
    Large("bn_grad_apply")
        .Layouts(layout)
        .In("X", dtype, dims)
        .In("YGrad", dtype, dims)
        .In("Mean", kF32, c)
        .In("A", kF32, c)
        .In("B", kF32, c)
        .In("C0", kF32, c)
        .Out("XGrad")
        .Expect(kSame);
  });
}

struct Pooling {
  const char* type;
  std::vector<int64_t> ksize, strides, paddings;
  bool global, ceil, exclusive;
};

TEST(LargeTest, Pooling) {
  const Pooling kPoolings[] = {
      {"max", {3, 3}, {2, 2}, {1, 1}, false, false, true},
      {"max", {2, 2}, {2, 2}, {0, 0}, false, true, true},
      {"avg", {3, 2}, {1, 2}, {1, 0}, false, false, false},
      {"avg", {3, 3}, {2, 1}, {1, 1}, false, true, true},
      {"avg", {1, 1}, {1, 1}, {0, 0}, true, false, true},
  };
  for (DType dtype : Floats()) {
    for (Layout layout : BothLayouts()) {
      for (const Pooling& p : kPoolings) {
        for (int64_t channels : {16, 3}) {
          const std::vector<int64_t> dims = {2, channels, 23, 17};
          const auto attrs = [&](Large& op) -> Large& {
            return op.Attr("pooling_type", std::string(p.type))
                .Attr("ksize", p.ksize)
                .Attr("strides", p.strides)
                .Attr("paddings", p.paddings)
                .Attr("global_pooling", p.global)
                .Attr("ceil_mode", p.ceil)
                .Attr("exclusive", p.exclusive);
          };
          // Many equal values, as after a relu.
          Values x = Whole(2 * channels * 23 * 17, 6);
          Large forward("pool2d");
          attrs(forward.Layouts(layout).In("X", dtype, dims, x))
              .Out("Out")
              .Expect(kNear);
        }
      }
    }
  }
}

TEST(LargeTest, PoolingGradients) {
  struct Case {
    const char* type;
    std::vector<int64_t> ksize, strides, paddings, out;
  };
  const Case kCases[] = {
      {"max", {3, 3}, {2, 2}, {1, 1}, {12, 9}},
      {"max", {2, 3}, {2, 1}, {0, 1}, {11, 17}},
      {"avg", {3, 3}, {2, 2}, {1, 1}, {12, 9}},
  };
  for (DType dtype : Floats()) {
    for (Layout layout : BothLayouts()) {
      for (const Case& c : kCases) {
        for (int64_t channels : {16, 3}) {
          const std::vector<int64_t> dims = {2, channels, 23, 17};
          const std::vector<int64_t> out = {2, channels, c.out[0], c.out[1]};
          // Maxima are given, not computed: any window may hold one or not.
          Large("pool2d_grad")
              .Layouts(layout)
              .In("X", dtype, dims, Whole(2 * channels * 23 * 17, 3))
              .In("Out", dtype, out,
                  Whole(2 * channels * c.out[0] * c.out[1], 3))
              .In("OutGrad", dtype, out)
              .Attr("pooling_type", std::string(c.type))
              .Attr("ksize", c.ksize)
              .Attr("strides", c.strides)
              .Attr("paddings", c.paddings)
              .Out("XGrad")
              .Expect(kNear);
        }
      }
    }
  }
}

TEST(LargeTest, PoolingByArgmax) {
  using Dims = std::vector<int64_t>;
  for (DType dtype : Floats()) {
    for (Layout layout : BothLayouts()) {
      for (int64_t channels : {16, 12, 3}) {
        const Dims dims = {2, channels, 23, 17}, out = {2, channels, 12, 9};
        const int64_t windows = 2 * channels * 12 * 9;
        const auto attrs = [](Large& op) -> Large& {
          return op.Attr("ksize", Dims{3, 3})
              .Attr("strides", Dims{2, 2})
              .Attr("paddings", Dims{1, 1});
        };
        Large forward("pool2d");
        forward.Layouts(layout);
        attrs(forward.In("X", dtype, dims, Whole(2 * channels * 23 * 17, 6)))
            .Out("Out")
            .Out("Argmax")
            .Expect(kSame);
        Large gradient("max_pool2d_grad");
        gradient.Layouts(layout).In("OutGrad", dtype, out);
        attrs(gradient.In("Argmax", DType::kU8, out, Whole(windows, 9)))
            .Attr("input_hw", Dims{23, 17})
            .Out("XGrad")
            .Expect(kSame);
      }
    }
  }
}

}  // namespace
}  // namespace halftone
