// Convolutions and their gradients against plain loops in f64. Operands are
// eighths of small integers: every sum is exact in f32, so that whatever the
// order of additions the result is the exact one, rounded once. Transforms of
// six and of eight points alone round (winograd.h).
#include "kernels/cpu/conv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/conv_winograd.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/streamed_output.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using Values = std::vector<double>;
using Pair = std::vector<int64_t>;

struct Shape {
  const char* name;
  int64_t n, c, h, w;  // images
  int64_t o, kh, kw;   // filters
  Pair strides, paddings, dilations;
  int64_t groups;

  int64_t per_group() const { return c / groups; }
  int64_t out(int i) const {
    const bool four = paddings.size() == 4;
    const int64_t padding =
        four ? paddings[2 * i] + paddings[2 * i + 1] : 2 * paddings[i];
    const int64_t reach = ((i == 0 ? kh : kw) - 1) * dilations[i] + 1;
    return ((i == 0 ? h : w) + padding - reach) / strides[i] + 1;
  }
  int64_t before(int i) const {
    return paddings.size() == 4 ? paddings[2 * i] : paddings[i];
  }
  Pair input_dims() const { return {n, c, h, w}; }
  Pair filter_dims() const { return {o, per_group(), kh, kw}; }
  Pair output_dims() const { return {n, o, out(0), out(1)}; }
};

int64_t Count(const Pair& dims) {
  return dims[0] * dims[1] * dims[2] * dims[3];
}

// Sizes about those of vector registers and tiles, and far from them.
const Shape kShapes[] = {
    {"lenet_first", 2, 1, 17, 28, 16, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
    {"lenet_second", 1, 16, 8, 7, 32, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
    {"rgb_strided", 2, 3, 23, 19, 17, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1},
    {"pointwise", 2, 33, 7, 5, 65, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
    {"pointwise_strided", 1, 32, 9, 9, 16, 1, 1, {2, 3}, {0, 0}, {1, 1}, 1},
    {"tail", 1, 15, 13, 11, 47, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"uneven_sides", 2, 5, 9, 12, 7, 3, 2, {2, 1}, {0, 2, 1, 0}, {1, 1}, 1},
    {"dilated", 1, 16, 15, 14, 16, 3, 3, {1, 1}, {2, 3}, {2, 3}, 1},
    {"dilated_strided", 2, 4, 17, 16, 6, 3, 2, {3, 2}, {1, 0}, {2, 4}, 1},
    {"groups", 2, 12, 8, 9, 18, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3},
    {"wide_groups", 1, 64, 6, 6, 32, 3, 3, {2, 2}, {1, 1}, {1, 1}, 2},
    {"depthwise", 2, 19, 10, 11, 19, 3, 3, {1, 1}, {1, 1}, {1, 1}, 19},
    {"depthwise_blocked", 1, 32, 9, 9, 32, 3, 3, {2, 2}, {1, 1}, {1, 1}, 32},
    {"depthwise_doubled", 1, 6, 8, 8, 12, 5, 5, {1, 1}, {2, 2}, {1, 1}, 6},
    {"whole_image", 3, 8, 4, 4, 10, 4, 4, {1, 1}, {0, 0}, {1, 1}, 1},
    {"all_padding_rows", 1, 2, 2, 2, 3, 1, 1, {1, 1}, {2, 1}, {1, 1}, 1},
};

// Of which the library gets a gradient wrong (conv.cc).
const Shape kNarrowShapes[] = {
    {"one_window", 3, 32, 5, 1, 32, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1},
    {"two_columns", 2, 32, 4, 2, 32, 5, 5, {3, 3}, {2, 2}, {1, 1}, 1},
    {"few_channels", 2, 17, 5, 1, 17, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1},
    {"more_windows", 1, 17, 2, 1, 32, 2, 5, {2, 2}, {0, 4}, {1, 1}, 1},
};

// Of which each channel has a filter of its own.
const Shape kDepthwiseShapes[] = {
    {"vector", 2, 16, 9, 11, 16, 3, 3, {1, 1}, {1, 1}, {1, 1}, 16},
    {"no_whole_vectors", 3, 43, 8, 7, 43, 3, 3, {1, 1}, {1, 1}, {1, 1}, 43},
    {"blocks", 1, 201, 6, 5, 201, 3, 3, {1, 1}, {1, 1}, {1, 1}, 201},
    {"strided", 2, 40, 13, 12, 40, 3, 3, {2, 2}, {1, 1}, {1, 1}, 40},
    {"stride_skips", 2, 24, 17, 19, 24, 2, 3, {3, 4}, {0, 1}, {1, 1}, 24},
    {"five", 2, 72, 10, 14, 72, 5, 5, {2, 2}, {2, 2}, {1, 1}, 72},
    {"seven", 2, 96, 14, 14, 96, 7, 7, {1, 1}, {3, 3}, {1, 1}, 96},
    {"wide_filter", 1, 17, 4, 5, 17, 3, 13, {1, 1}, {1, 6}, {1, 1}, 17},
    {"even_filter", 1, 32, 9, 8, 32, 4, 6, {1, 2}, {0, 1}, {1, 1}, 32},
    {"spread_taps", 2, 33, 15, 14, 33, 3, 3, {1, 1}, {2, 3}, {2, 3}, 33},
    {"spread_strided", 2, 16, 17, 16, 16, 3, 2, {3, 2}, {1, 0}, {2, 4}, 16},
    {"uneven_sides", 2, 18, 9, 12, 18, 3, 2, {2, 1}, {0, 2, 1, 0}, {1, 1}, 18},
    {"far_padding", 1, 16, 2, 3, 16, 3, 3, {1, 1}, {5, 4}, {1, 1}, 16},
    {"one_pixel", 5, 64, 1, 1, 64, 3, 3, {2, 2}, {1, 1}, {1, 1}, 64},
    {"one_tap", 2, 21, 6, 7, 21, 1, 1, {2, 1}, {0, 0}, {1, 1}, 21},
    {"many_lines", 3, 64, 71, 53, 64, 3, 3, {1, 1}, {1, 1}, {1, 1}, 64},
    {"many_strides", 2, 32, 90, 61, 32, 5, 5, {2, 2}, {2, 2}, {1, 1}, 32},
};

// Of channels enough for packed panels.
const Shape kPackedShapes[] = {
    {"lines", 2, 16, 9, 14, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"odd_channels", 3, 29, 6, 7, 47, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"strided", 2, 24, 13, 12, 13, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1},
    {"stride_skips", 1, 12, 17, 19, 14, 2, 3, {3, 4}, {0, 1}, {1, 1}, 1},
    {"spread_taps", 2, 16, 15, 14, 16, 3, 3, {1, 1}, {2, 3}, {2, 3}, 1},
    {"spread_strided", 2, 16, 17, 16, 30, 3, 2, {3, 2}, {1, 0}, {2, 4}, 1},
    {"uneven_sides", 2, 15, 9, 12, 12, 3, 2, {2, 1}, {0, 2, 1, 0}, {1, 1}, 1},
    {"first", 2, 13, 23, 19, 16, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1},
    {"pointwise", 4, 32, 8, 6, 61, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
    {"pointwise_prime", 1, 32, 1, 211, 14, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
    {"pointwise_strided", 2, 64, 9, 13, 16, 1, 1, {2, 3}, {0, 0}, {1, 1}, 1},
    {"many_lines", 2, 16, 70, 20, 16, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"parts_of_images", 5, 16, 23, 19, 13, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"patches", 2, 3, 12, 20, 32, 4, 4, {4, 4}, {0, 0}, {1, 1}, 1},
    {"large_patches", 4, 3, 32, 80, 45, 16, 16, {16, 16}, {0, 0}, {1, 1}, 1},
    {"halves", 2, 16, 9, 10, 32, 3, 2, {1, 2}, {1, 0}, {1, 1}, 1},
    {"wide_filters", 3, 128, 5, 6, 128, 6, 6, {1, 1}, {3, 3}, {1, 1}, 1},
    {"one_channel", 3, 1, 29, 30, 16, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
    {"three_channels", 2, 3, 19, 23, 45, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1},
    {"three_inside", 2, 3, 9, 10, 16, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},
    {"five_far_padding", 2, 5, 4, 6, 16, 3, 4, {1, 2}, {4, 5}, {1, 1}, 1},
    {"beside_image", 2, 3, 9, 1, 16, 3, 2, {1, 3}, {1, 1, 11, 0}, {1, 1}, 1},
    {"one_spread", 1, 1, 12, 15, 16, 3, 3, {1, 1}, {2, 2}, {2, 2}, 1},
};

// Of windows and channels that tiles of 2 x 2, 2 x 4 or 4 x 4 take.
const Shape kWinogradShapes[] = {
    {"even", 2, 32, 8, 6, 48, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"odd", 3, 48, 7, 9, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"no_padding", 1, 32, 9, 8, 32, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},
    {"wide_padding", 2, 32, 6, 5, 32, 3, 3, {1, 1}, {2, 3}, {1, 1}, 1},
    {"uneven_sides", 2, 32, 9, 11, 32, 3, 3, {1, 1}, {0, 2, 1, 0}, {1, 1}, 1},
    {"many_tiles", 5, 32, 23, 30, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"many_channels", 2, 256, 7, 7, 272, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"large_even", 2, 48, 14, 14, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"large_uneven", 3, 32, 15, 17, 48, 3, 3, {1, 1}, {0, 2, 1, 0}, {1, 1}, 1},
    {"large_channels", 1, 160, 20, 13, 144, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {"five_even", 2, 16, 14, 8, 32, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
    {"five_odd", 3, 48, 7, 9, 32, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
    {"five_no_padding", 1, 32, 9, 10, 16, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1},
    {"five_wide_padding", 2, 32, 6, 5, 32, 5, 5, {1, 1}, {4, 3}, {1, 1}, 1},
    {"five_uneven", 2, 32, 9, 11, 32, 5, 5, {1, 1}, {0, 4, 1, 2}, {1, 1}, 1},
    {"five_far_padding", 1, 16, 6, 7, 16, 5, 5, {1, 1}, {6, 5}, {1, 1}, 1},
    {"five_many_tiles", 5, 16, 23, 30, 48, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
    {"five_many_channels", 2, 256, 7, 7, 272, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
};

// visit(input, filter, output) with the flat positions of what meets. Inside
// is a line of outputs, which costs no division.
template <typename Visit>
void ForEachProduct(const Shape& s, const Visit& visit) {
  const int64_t oh = s.out(0), ow = s.out(1), per_group = s.per_group();
  const int64_t taps = per_group * s.kh * s.kw;
  for (int64_t f = 0; f < s.n * s.o * taps; ++f) {
    const int64_t tap = f % taps, o = f / taps % s.o, n = f / taps / s.o;
    const int64_t j = tap % s.kw, i = tap / s.kw % s.kh, c = tap / s.kw / s.kh;
    const int64_t channel = o / (s.o / s.groups) * per_group + c;
    for (int64_t y = 0; y < oh; ++y) {
      const int64_t iy = y * s.strides[0] - s.before(0) + i * s.dilations[0];
      if (iy < 0 || iy >= s.h) continue;
      const int64_t in = ((n * s.c + channel) * s.h + iy) * s.w;
      const int64_t out = ((n * s.o + o) * oh + y) * ow;
      const int64_t stride = s.strides[1];
      int64_t ix = j * s.dilations[1] - s.before(1);
      for (int64_t x = 0; x < ow; ++x, ix += stride) {
        if (ix >= 0 && ix < s.w) visit(in + ix, o * taps + tap, out + x);
      }
    }
  }
}

class Convolution : public ::testing::TestWithParam<
                        std::tuple<Shape, DType, Layout, const char*>> {
 protected:
  const Shape& shape() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  // Filters lie as images do.
  Tensor Image(const Pair& dims, const Values& values) const {
    return {dtype(), dims, values, std::get<2>(GetParam())};
  }
  // Whether a candidate is to make these columns of these factors. Packed ones
  // of f32 make no single panel where two are made at once, but forward of few
  // channels; where there are pairs of bf16, they take no odd depth, but
  // forward along lines, and Winograd's only large images.
  bool Makes(int64_t columns, int64_t depth, bool forward = false) const {
    if (std::get<3>(GetParam()) == std::string("winograd")) {
      return dtype() != DType::kBF16 ||
             (HasWinograd(dtype()) &&
              (!HasPairs() || shape().h * shape().w >= 14 * 14));
    }
    if (std::get<3>(GetParam()) != std::string("packed")) return true;
    if (4 * columns < 3 * Padded(columns)) return false;
    if (dtype() == DType::kF32) {
      return PanelsOf(columns) >= PanelsAtOnce() || (forward && depth < kPanel);
    }
    return dtype() != DType::kBF16 || !HasPairs() || depth % 2 == 0 ||
           (forward && !HasAmx() && shape().dilations[1] == 1);
  }
  // Of depthwise filters there are gradients alone.
  bool MakesFilterAlone() const {
    return std::get<3>(GetParam()) == std::string("depthwise");
  }
  // Forward convolutions of one tap are not packed in f32.
  bool MakesForward() const {
    return !MakesFilterAlone() &&
           Makes(shape().o, shape().c, /*forward=*/true) &&
           (std::get<3>(GetParam()) != std::string("packed") ||
            dtype() != DType::kF32 || shape().kh * shape().kw > 1);
  }
  // What differs from `expected`, from the first number on.
  std::string Difference(DType dtype, const Values& values,
                         const Values& expected) const {
    const Values exact = Rounded(dtype, expected);
    const std::string candidate = std::get<3>(GetParam());
    const bool preferred = candidate.empty() && HasWinograd(this->dtype()) &&
                           shape().groups == 1 && shape().c % kPanel == 0 &&
                           shape().o % kPanel == 0 &&
                           std::get<2>(GetParam()) == Layout::kChannelsLast;
    const bool rounds = (shape().kh == 5 || IsLow(this->dtype())) &&
                        shape().kh == shape().kw &&
                        (preferred || candidate == "winograd");
    double largest = 0;
    for (const double x : expected) largest = std::max(largest, std::abs(x));
    const double place = dtype == DType::kF32   ? 0
                         : dtype == DType::kF16 ? 0x1p-10
                                                : 0x1p-7;
    const double share = shape().kh == 3        ? 3e-6
                         : IsLow(this->dtype()) ? 8e-6
                                                : 6e-6;
    if (values.size() != exact.size()) return "sizes";
    for (size_t i = 0; i < values.size(); ++i) {
      const double most =
          rounds ? share * largest + place * std::abs(exact[i]) : 0;
      if (std::abs(values[i] - exact[i]) <= most) continue;
      return absl::StrCat("[", i, "] is ", values[i], ", not ", exact[i],
                          "; the largest is ", largest);
    }
    return "";
  }
  Tensor Plain(const Pair& dims, const Values& values) const {
    return {dtype(), dims, values, Layout::kRowMajor};
  }
  // What `op` yields with what `fill` gives it: on one thread, on more, and
  // again, with a workspace that others used and on other buffers.
  template <typename Fill>
  void Expect(const char* op, const Values& expected, const char* slot,
              DType result, const Fill& fill) const {
    for (int threads : {1, 3}) {
      KernelRun run(op);
      run.Attr("strides", shape().strides)
          .Attr("paddings", shape().paddings)
          .Attr("dilations", shape().dilations)
          .Attr("groups", shape().groups)
          .Threads(threads)
          .Use(std::get<3>(GetParam()));
      fill(run);
      EXPECT_EQ(Difference(result, run.Get(slot), expected), "") << threads;
      const std::string bytes = run.Bytes(slot);
      run.SpoilWorkspace();
      run.Enqueue();
      EXPECT_EQ(run.Bytes(slot), bytes) << threads;
      run.MoveBuffers();
      run.Enqueue();
      EXPECT_EQ(run.Bytes(slot), bytes) << threads;
    }
  }

  Values input_ = Eighths(Count(shape().input_dims()), 0);
  Values filter_ = Eighths(Count(shape().filter_dims()), 1);
  Values grad_ = Eighths(Count(shape().output_dims()), 2);
};

TEST_P(Convolution, Forward) {
  if (!MakesForward()) return;
  const Shape& s = shape();
  Values expected(grad_.size());
  ForEachProduct(s, [&](int64_t i, int64_t f, int64_t o) {
    expected[o] += input_[i] * filter_[f];
  });
  const bool depthwise = s.groups == s.c && s.c > 1;
  for (const char* op : {"conv2d", "depthwise_conv2d"}) {
    if (!depthwise && op[0] == 'd') continue;
    Expect(op, expected, "Output", dtype(), [&](KernelRun& run) {
      run.In("Input", Image(s.input_dims(), input_))
          .In("Filter", Image(s.filter_dims(), filter_));
    });
  }
}

TEST_P(Convolution, ForwardWithBias) {
  if (!MakesForward()) return;
  const Shape& s = shape();
  const Values bias = Eighths(s.o, 3);
  Values expected(grad_.size());
  const int64_t plane = s.out(0) * s.out(1);
  for (size_t o = 0; o < expected.size(); ++o) {
    expected[o] = bias[o / plane % s.o];
  }
  ForEachProduct(s, [&](int64_t i, int64_t f, int64_t o) {
    expected[o] += input_[i] * filter_[f];
  });
  Expect("conv2d", expected, "Output", dtype(), [&](KernelRun& run) {
    run.In("Input", Image(s.input_dims(), input_))
        .In("Filter", Image(s.filter_dims(), filter_))
        .In("Bias", Plain({s.o}, bias));
  });
}

TEST_P(Convolution, GradInput) {
  if (MakesFilterAlone() || !Makes(shape().c, shape().o)) return;
  const Shape& s = shape();
  Values expected(input_.size());
  ForEachProduct(s, [&](int64_t i, int64_t f, int64_t o) {
    expected[i] += grad_[o] * filter_[f];
  });
  Expect("conv2d_grad_input", expected, "InputGrad", dtype(),
         [&](KernelRun& run) {
           run.In("OutputGrad", Image(s.output_dims(), grad_))
               .In("Filter", Image(s.filter_dims(), filter_))
               .Attr("input_hw", Pair{s.h, s.w});
         });
}

TEST_P(Convolution, GradFilterInEachType) {
  if (!Makes(shape().c, /*depth: a pair of samples*/ shape().n > 1 ? 2 : 1)) {
    return;
  }
  const Shape& s = shape();
  Values expected(filter_.size());
  ForEachProduct(s, [&](int64_t i, int64_t f, int64_t o) {
    expected[f] += grad_[o] * input_[i];
  });
  for (DType result : {DType::kF32, DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(Name(result));
    Expect("conv2d_grad_filter", expected, "FilterGrad", result,
           [&](KernelRun& run) {
             run.In("Input", Image(s.input_dims(), input_))
                 .In("OutputGrad", Image(s.output_dims(), grad_))
                 .Attr("filter_hw", Pair{s.kh, s.kw})
                 .Bind("TW", result);
           });
  }
}

std::string NameOf(const ::testing::TestParamInfo<
                   std::tuple<Shape, DType, Layout, const char*>>& info) {
  const std::string candidate = std::get<3>(info.param);
  return absl::StrCat(std::get<0>(info.param).name, "_",
                      Name(std::get<1>(info.param)), "_",
                      Name(std::get<2>(info.param)), "_",
                      candidate.empty() ? "preferred" : candidate);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Convolution,
    ::testing::Combine(
        ::testing::ValuesIn(kShapes),
        ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
        ::testing::Values(Layout::kRowMajor, Layout::kChannelsLast),
        ::testing::Values("", "onednn", "onednn_plain", "reference")),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Narrow, Convolution,
    ::testing::Combine(::testing::ValuesIn(kNarrowShapes),
                       ::testing::Values(DType::kF32, DType::kBF16),
                       ::testing::Values(Layout::kRowMajor,
                                         Layout::kChannelsLast),
                       ::testing::Values("")),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Packed, Convolution,
    ::testing::Combine(::testing::ValuesIn(kPackedShapes),
                       ::testing::Values(DType::kF32, DType::kF16,
                                         DType::kBF16),
                       ::testing::Values(Layout::kChannelsLast),
                       ::testing::Values("packed")),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Depthwise, Convolution,
    ::testing::Combine(::testing::ValuesIn(kDepthwiseShapes),
                       ::testing::Values(DType::kF32, DType::kF16,
                                         DType::kBF16),
                       ::testing::Values(Layout::kChannelsLast),
                       ::testing::Values("depthwise")),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Lines, Convolution,
    ::testing::Combine(::testing::ValuesIn(kDepthwiseShapes),
                       ::testing::Values(DType::kF32, DType::kF16,
                                         DType::kBF16),
                       ::testing::Values(Layout::kRowMajor),
                       ::testing::Values("lines")),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Winograd, Convolution,
    ::testing::Combine(::testing::ValuesIn(kWinogradShapes),
                       ::testing::Values(DType::kF32, DType::kF16,
                                         DType::kBF16),
                       ::testing::Values(Layout::kChannelsLast),
                       ::testing::Values("winograd")),
    NameOf);

TEST(EmptyConvolution, NoImages) {
  KernelRun forward("conv2d");
  forward.In("Input", F16({0, 3, 8, 8}, {}))
      .In("Filter", F16({4, 3, 3, 3}, {}));
  EXPECT_THAT(forward.Get("Output"), testing::IsEmpty());
  KernelRun input("conv2d_grad_input");
  input.In("OutputGrad", F32({0, 4, 6, 6}, {}))
      .In("Filter", F32({4, 3, 3, 3}, {}))
      .Attr("input_hw", Pair{8, 8});
  EXPECT_THAT(input.Get("InputGrad"), testing::IsEmpty());
  KernelRun filter("conv2d_grad_filter");
  filter.In("Input", BF16({0, 1, 8, 8}, {}))
      .In("OutputGrad", BF16({0, 2, 7, 7}, {}))
      .Attr("filter_hw", Pair{2, 2});
  EXPECT_EQ(filter.Get("FilterGrad"), Values(8, 0));
}

// Sums are not exact here, and chunks of images are as long as threads are few.
void ExpectSameFilterGradients(const Shape& s, const char* candidate) {
  const auto values = [](int64_t n, double step) {
    Values all(n);
    for (int64_t i = 0; i < n; ++i) all[i] = std::sin(step * (i + 1));
    return all;
  };
  const Values input = values(Count(s.input_dims()), 0.7);
  const Values grad = values(Count(s.output_dims()), 1.3);
  std::string one;
  for (int threads : {1, 2, 16}) {
    KernelRun run("conv2d_grad_filter");
    const Layout last = Layout::kChannelsLast;
    run.In("Input", {DType::kBF16, s.input_dims(), input, last})
        .In("OutputGrad", {DType::kBF16, s.output_dims(), grad, last})
        .Attr("filter_hw", Pair{s.kh, s.kw})
        .Attr("paddings", s.paddings)
        .Attr("groups", s.groups)
        .Threads(threads)
        .Use(candidate);
    const std::string bytes = run.Bytes("FilterGrad");
    if (one.empty()) one = bytes;
    EXPECT_TRUE(bytes == one) << threads;
  }
}

TEST(Convolution, FilterGradientsAreTheSameOnAnyThreads) {
  ExpectSameFilterGradients(
      {"", 2, 1040, 20, 20, 512, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1}, "packed");
  ExpectSameFilterGradients(
      {"", 5, 200, 33, 20, 200, 5, 5, {1, 1}, {2, 2}, {1, 1}, 200},
      "depthwise");
}

// Between windows, and behind the last one.
TEST(Convolution, WhatNoWindowSeesIsInNoSum) {
  Values input(20, 1);
  for (const int unseen : {2, 5, 8, 9}) {
    input[unseen] = input[10 + unseen] = INFINITY;
  }
  KernelRun forward("conv1d");
  forward.In("Input", F32({1, 2, 10}, input))
      .In("Filter", F32({2, 1, 2}, Values(4, 1)))
      .Attr("strides", Pair{3})
      .Attr("groups", int64_t{2})
      .Use("lines");
  EXPECT_EQ(forward.Get("Output"), Values(6, 2));
  KernelRun filter("conv1d_grad_filter");
  filter.In("Input", F32({1, 2, 10}, input))
      .In("OutputGrad", F32({1, 2, 3}, Values(6, 1)))
      .Attr("strides", Pair{3})
      .Attr("groups", int64_t{2})
      .Attr("filter_w", Pair{2})
      .Use("lines");
  EXPECT_EQ(filter.Get("FilterGrad"), Values(4, 3));
}

// Rounding each of two halves of a sum would lose the small ones.
TEST(Convolution, F16IsRoundedOnce) {
  Values input(64, 0.5);
  input[0] = 2048;
  KernelRun run("conv2d");
  run.In("Input", F16({1, 64, 1, 1}, input))
      .In("Filter", F16({1, 64, 1, 1}, Values(64, 1)));
  EXPECT_EQ(run.Value("Output"), 2080);  // 2079.5; alone each 0.5 vanishes
}

// Of many chunks, in each type, also around the caches: the same bits.
TEST(Convolution, LargeResultsAreTheSameAroundTheCaches) {
  const int64_t least = LeastStreamedBytes();
  const Pair image = {2, 16, 24, 20}, filter = {64, 16, 1, 1};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto run = [&](int64_t bytes, int threads) {
      SetLeastStreamedBytes(bytes);
      const Layout last = Layout::kChannelsLast;
      KernelRun conv("conv2d");
      conv.In("Input", {dtype, image, Eighths(Count(image), 1), last})
          .In("Filter", {dtype, filter, Eighths(Count(filter), 2), last})
          .Threads(threads);
      const Values made = conv.Get("Output");
      SetLeastStreamedBytes(least);
      return made;
    };
    const Values expected = run(least, 1);
    for (int threads : {1, 3}) EXPECT_EQ(run(0, threads), expected);
  }
}

// Where oneDNN's instructions are as wide as ours.
TEST(Convolution, OursComeBeforeTheLibrary) {
  if (!OnednnIsAsWide(DType::kBF16) || UsesAmx(DType::kBF16)) GTEST_SKIP();
  const auto candidate = [](DType dtype, int channels, int filters, int tap,
                            int size) {
    const Pair image = {1, channels, size, size};
    const Pair filter = {filters, channels, tap, tap};
    const Layout last = Layout::kChannelsLast;
    KernelRun run("conv2d");
    run.In("Input", {dtype, image, Values(Count(image)), last})
        .In("Filter", {dtype, filter, Values(Count(filter)), last})
        .Attr("paddings", Pair{tap / 2, tap / 2});
    return run.CandidateName();
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    EXPECT_EQ(candidate(dtype, 16, 64, 1, 16), "packed");
    EXPECT_EQ(candidate(dtype, 16, 64, 3, 4),
              dtype == DType::kF32 ? "winograd" : "packed");
    // A filter that is large beside what is made is multiplied where it lies.
    EXPECT_EQ(candidate(dtype, 16, 64, 1, 4), "product");
    // The library is faster where channels are few, but for pairs along lines
    // and for a single panel.
    EXPECT_EQ(candidate(dtype, 3, 64, 3, 16),
              dtype == DType::kF32 ? "onednn" : "packed");
    EXPECT_EQ(candidate(dtype, 4, 64, 3, 16), "onednn");
    EXPECT_EQ(candidate(dtype, 1, 16, 3, 16), "packed");
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
