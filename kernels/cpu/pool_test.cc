// Pooling against loops over every window.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Dims = std::vector<int64_t>;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

struct Pool {
  Dims x;
  Ints ksize, strides, paddings;  // top, bottom, left, right
  bool ceil_mode = false, exclusive = true;
};

std::string Text(const Pool& p) {
  return absl::StrCat(::testing::PrintToString(p.x), " ksize ",
                      ::testing::PrintToString(p.ksize), " strides ",
                      ::testing::PrintToString(p.strides), " paddings ",
                      ::testing::PrintToString(p.paddings), " ceil ",
                      p.ceil_mode, " exclusive ", p.exclusive);
}

// 224 shapes of windows over small images; some hold a row, some overlap,
// some begin in the padding.
std::vector<Pool> Pools() {
  std::vector<Pool> pools;
  for (int64_t kernel : {1, 2, 3, 5}) {
    for (int64_t stride : {1, 2, 3, 4}) {
      for (int64_t padding : {0, 1, 2}) {
        if (padding >= kernel) continue;
        for (bool ceil : {false, true}) {
          for (bool exclusive : {false, true}) {
            pools.push_back({{2, 3, 7, 9},
                             {kernel, std::max<int64_t>(1, kernel - 1)},
                             {stride, 3},
                             {padding, 0, std::min(padding, kernel / 3), 0},
                             ceil,
                             exclusive});
          }
        }
      }
    }
  }
  pools.push_back({{2, 2, 5, 4}, {2, 2}, {1 << 30, 1 << 30}, {1, 0, 0, 1}});
  pools.push_back({{1, 2, 9, 70}, {3, 40}, {2, 5}, {1, 1, 20, 3}});
  return pools;
}

KernelRun& Set(KernelRun& run, const Pool& p, const std::string& type) {
  return run.Attr("pooling_type", type)
      .Attr("ksize", p.ksize)
      .Attr("strides", p.strides)
      .Attr("paddings", p.paddings)
      .Attr("ceil_mode", p.ceil_mode)
      .Attr("exclusive", p.exclusive);
}

Tensor Image(DType dtype, Dims dims, Values values, bool channels_last) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.values = std::move(values);
  if (channels_last) tensor.layout = Layout::kChannelsLast;
  return tensor;
}

// Result and gradient by the definition.
struct Exact {
  Exact(const Pool& p, const std::string& type, const Values& x,
        const Values& out_grad, int64_t oh, int64_t ow)
      : x_grad(x.size()) {
    const int64_t planes = p.x[0] * p.x[1], h = p.x[2], w = p.x[3];
    for (int64_t at = 0; at < planes * oh * ow; ++at) {
      const int64_t plane = at / (oh * ow) * h * w;
      const int64_t top = at / ow % oh * p.strides[0] - p.paddings[0];
      const int64_t left = at % ow * p.strides[1] - p.paddings[2];
      std::vector<int64_t> inside;
      for (int64_t i = 0; i < p.ksize[0]; ++i) {
        for (int64_t j = 0; j < p.ksize[1]; ++j) {
          if (top + i < 0 || top + i >= h || left + j < 0 || left + j >= w) {
            continue;
          }
          inside.push_back(plane + (top + i) * w + left + j);
        }
      }
      if (type == "max") {
        int64_t best = inside[0];
        for (int64_t k : inside) best = x[k] > x[best] ? k : best;
        out.push_back(x[best]);
        x_grad[best] += out_grad[at];
      } else {
        // What of the window lies inside the image and its padding.
        const int64_t rows = std::min(p.ksize[0], h + p.paddings[1] - top);
        const int64_t columns = std::min(p.ksize[1], w + p.paddings[3] - left);
        const double n = p.exclusive ? inside.size() : rows * columns;
        out.push_back(0);
        for (int64_t k : inside) out.back() += x[k] / n;
        for (int64_t k : inside) x_grad[k] += out_grad[at] / n;
      }
    }
  }
  Values out, x_grad;
};

void ExpectPool(const Pool& p, const std::string& type, bool channels_last,
                int threads) {
  SCOPED_TRACE(absl::StrCat(type, " ", Text(p), channels_last ? " nhwc" : ""));
  int64_t n = 1;
  for (int64_t d : p.x) n *= d;
  Values x(n);  // many ties: the first of them takes the gradient
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(i * i % 7) - 3;
  KernelRun run("pool2d");
  run.In("X", Image(DType::kF32, p.x, x, channels_last));
  const Values found = Set(run, p, type).Threads(threads).Get("Out");
  const int64_t oh = 1 + (p.x[2] + p.paddings[0] + p.paddings[1] - p.ksize[0] +
                          (p.ceil_mode ? p.strides[0] - 1 : 0)) /
                             p.strides[0];
  const int64_t rows = p.x[0] * p.x[1];
  // A last window that starts behind the image does not count.
  const int64_t last = (oh - 1) * p.strides[0] - p.paddings[0];
  const int64_t true_oh = last >= p.x[2] ? oh - 1 : oh;
  const int64_t true_ow = static_cast<int64_t>(found.size()) / rows / true_oh;
  ASSERT_EQ(true_oh * true_ow * rows, static_cast<int64_t>(found.size()));
  const Values out_grad = Draws(found.size());
  const Exact exact(p, type, x, out_grad, true_oh, true_ow);
  EXPECT_THAT(found, Pointwise(DoubleNear(2e-6), exact.out));
  KernelRun grad("pool2d_grad");
  const Dims out_dims = {p.x[0], p.x[1], true_oh, true_ow};
  grad.In("X", Image(DType::kF32, p.x, x, channels_last));
  grad.In("Out", Image(DType::kF32, out_dims, found, channels_last));
  grad.In("OutGrad", Image(DType::kF32, out_dims, out_grad, channels_last));
  EXPECT_THAT(Set(grad, p, type).Threads(threads).Get("XGrad"),
              Pointwise(DoubleNear(2e-6), exact.x_grad));
}

TEST(PoolTest, EveryWindow) {
  for (const Pool& pool : Pools()) {
    for (const char* type : {"max", "avg"}) {
      for (bool channels_last : {false, true}) {
        ExpectPool(pool, type, channels_last, channels_last ? 3 : 1);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PoolTest, Global) {
  Values x(2 * 3 * 35);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  for (bool last : {false, true}) {
    KernelRun avg("pool2d");
    avg.In("X", Image(DType::kF16, {2, 3, 5, 7}, x, last));
    avg.Attr("global_pooling", true).Attr("pooling_type", "avg");
    EXPECT_THAT(avg.Get("Out"), ElementsAre(17, 52, 87, 122, 157, 192));
    KernelRun max("pool2d");
    max.In("X", Image(DType::kF16, {2, 3, 5, 7}, x, last));
    max.Attr("global_pooling", true);
    EXPECT_THAT(max.Get("Out"), ElementsAre(34, 69, 104, 139, 174, 209));
    KernelRun grad("pool2d_grad");
    grad.In("X", Image(DType::kF16, {2, 3, 5, 7}, x, last));
    grad.In("Out", Image(DType::kF16, {2, 3, 1, 1}, Values(6), last));
    grad.In("OutGrad", Image(DType::kF16, {2, 3, 1, 1}, Values(6, 35), last));
    grad.Attr("global_pooling", true).Attr("pooling_type", "avg");
    EXPECT_THAT(grad.Get("XGrad"), Each(1));
  }
}

TEST(PoolTest, LowGradientsAreAddedInF32) {
  // 2048 + 1 + 1 is 2050 in f32; step by step in f16 it would stay 2048.
  KernelRun grad("pool2d_grad");
  grad.In("X", F16({1, 1, 1, 3}, {0, 9, 0}));
  grad.In("Out", F16({1, 1, 1, 3}, {9, 9, 9}));
  grad.In("OutGrad", F16({1, 1, 1, 3}, {2048, 1, 1}));
  grad.Attr("ksize", Ints{1, 3}).Attr("paddings", Ints{0, 1});
  EXPECT_THAT(grad.Get("XGrad"), ElementsAre(0, 2050, 0));
}

TEST(PoolTest, NaNIsTheMaximumAndTakesTheGradient) {
  for (bool last : {false, true}) {
    const Values x = {1, std::nan(""), 3, 2};
    KernelRun run("pool2d");
    run.In("X", Image(DType::kF32, {1, 1, 2, 2}, x, last));
    EXPECT_TRUE(std::isnan(run.Value("Out")));
    KernelRun grad("pool2d_grad");
    grad.In("X", Image(DType::kF32, {1, 1, 2, 2}, x, last));
    grad.In("Out", Image(DType::kF32, {1, 1, 1, 1}, {std::nan("")}, last));
    grad.In("OutGrad", Image(DType::kF32, {1, 1, 1, 1}, {4}, last));
    EXPECT_THAT(grad.Get("XGrad"), ElementsAre(0, 4, 0, 0));
  }
}

TEST(PoolTest, EmptyBatchAndMinusInfinity) {
  KernelRun none("pool2d");
  none.In("X", F32({0, 3, 4, 4}, {}));
  EXPECT_TRUE(none.Get("Out").empty());
  KernelRun run("pool2d");
  run.In("X", F32({1, 1, 2, 2}, Values(4, -INFINITY)));
  EXPECT_EQ(run.Value("Out"), -INFINITY);
}

// Windows that tile the image have candidates of their own, and their gradients
// if they have two columns. 0 and -0, NaNs, ties, rows that are no whole
// vectors and blocks that end within an image among them.
TEST(PoolTest, TilesHaveTheBitsOfAnyWindows) {
  for (const Pool& p : {Pool{{2, 3, 28, 28}, {2, 2}, {2, 2}, {0, 0, 0, 0}},
                        Pool{{1, 5, 6, 78}, {3, 2}, {3, 2}, {0, 0, 0, 0}},
                        Pool{{3, 5, 14, 6}, {2, 3}, {2, 3}, {0, 0, 0, 0}},
                        Pool{{1, 2, 8, 5}, {4, 1}, {4, 1}, {0, 0, 0, 0}},
                        Pool{{1, 1, 4, 2600}, {2, 4}, {2, 4}, {0, 0, 0, 0}},
                        Pool{{0, 3, 4, 4}, {2, 2}, {2, 2}, {0, 0, 0, 0}}}) {
    const int64_t n = p.x[0] * p.x[1] * p.x[2] * p.x[3];
    const Dims out = {p.x[0], p.x[1], p.x[2] / p.ksize[0], p.x[3] / p.ksize[1]};
    const std::vector<double> some = {0, -0.0, 1, 1, -2, std::nan("")};
    Values x(n), grads(n / p.ksize[0] / p.ksize[1]);
    for (int64_t i = 0; i < n; ++i) x[i] = some[i * i % 31 % some.size()];
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = i % 3 * 0.5 - 0.5;
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (int threads : {1, 3}) {
        SCOPED_TRACE(absl::StrCat(Text(p), " ", Name(dtype), " ", threads));
        std::string outs[2], x_grads[2];
        Values maxima;
        for (const bool tiles : {true, false}) {
          KernelRun run("pool2d");
          run.In("X", Image(dtype, p.x, x, false)).Threads(threads);
          Set(run, p, "max").Use(tiles ? "tiles" : "rows");
          outs[tiles] = run.Bytes("Out");
          maxima = run.Get("Out");
          KernelRun grad("pool2d_grad");
          grad.In("X", Image(dtype, p.x, x, false)).Threads(threads);
          grad.In("Out", Image(dtype, out, maxima, false));
          grad.In("OutGrad", Image(dtype, out, grads, false));
          const bool pairs = tiles && p.ksize[1] == 2;
          Set(grad, p, "max").Use(pairs ? "tiles" : "planes").SpoilWorkspace();
          x_grads[tiles] = grad.Bytes("XGrad");
        }
        EXPECT_EQ(outs[true], outs[false]);
        EXPECT_EQ(x_grads[true], x_grads[false]);
      }
    }
  }
}

// The gradient by where the maxima lie.
KernelRun& FromArgmax(KernelRun& run, const Pool& p, Tensor argmax,
                      Tensor out_grad) {
  argmax.dtype = DType::kU8;
  return run.In("OutGrad", std::move(out_grad))
      .In("Argmax", std::move(argmax))
      .Attr("ksize", p.ksize)
      .Attr("strides", p.strides)
      .Attr("paddings", p.paddings)
      .Attr("ceil_mode", p.ceil_mode)
      .Attr("input_hw", Ints{p.x[2], p.x[3]});
}

// The same of windows of at most 16 rows and columns, however they lie, and of
// channels side by side, in vectors and what is left, and of windows that say
// where their maxima lie.
TEST(PoolTest, PlacesHaveTheBitsOfAnyWindows) {
  const std::pair<Pool, Dims> pools[] = {
      {{{5, 3, 28, 28}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {5, 3, 14, 14}},
      {{{1, 5, 9, 17}, {2, 5}, {1, 3}, {1, 0, 2, 1}}, {1, 5, 9, 6}},
      {{{2, 7, 7, 8}, {3, 2}, {3, 1}, {0, 1, 0, 1}, true}, {2, 7, 3, 8}},
      {{{2, 2, 6, 5}, {1, 4}, {2, 5}, {0, 0, 1, 3}}, {2, 2, 3, 2}},
      {{{3, 43, 9, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {3, 43, 5, 4}},
      {{{2, 8, 7, 9}, {2, 3}, {3, 4}, {0, 0, 0, 0}}, {2, 8, 2, 2}},
      {{{3, 43, 8, 6}, {2, 2}, {2, 2}, {0, 0, 0, 0}}, {3, 43, 4, 3}},
      {{{2, 27, 7, 9}, {2, 2}, {2, 2}, {0, 0, 0, 0}}, {2, 27, 3, 4}},
      {{{2, 27, 7, 9}, {2, 2}, {2, 2}, {0, 0, 0, 0}, true}, {2, 27, 4, 5}},
      {{{2, 24, 9, 8}, {2, 3}, {4, 1}, {0, 0, 0, 0}}, {2, 24, 2, 6}},
      {{{2, 3, 10, 67}, {3, 3}, {2, 2}, {0, 1, 1, 0}}, {2, 3, 5, 33}},
      {{{2, 2, 12, 66}, {3, 3}, {2, 2}, {0, 0, 0, 0}}, {2, 2, 5, 32}},
      {{{2, 2, 7, 9}, {3, 3}, {2, 2}, {2, 2, 2, 2}}, {2, 2, 5, 6}},
      {{{2, 3, 9, 20}, {5, 6}, {1, 2}, {2, 2, 2, 2}}, {2, 3, 9, 10}},
      {{{2, 3, 9, 90}, {3, 4}, {2, 1}, {1, 1, 2, 1}}, {2, 3, 5, 90}},
      {{{1, 1, 4, 5000}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {1, 1, 2, 2500}},
      {{{1, 150, 3, 60}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {1, 150, 2, 30}},
      {{{0, 3, 4, 4}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {0, 3, 2, 2}}};
  for (const auto& [p, out] : pools) {
    const std::vector<double> some = {
        0,         -0.0,         1, 1, -2, std::nan(""), INFINITY, -INFINITY,
        -INFINITY, -std::nan("")};
    Values x(p.x[0] * p.x[1] * p.x[2] * p.x[3]);
    for (size_t i = 0; i < x.size(); ++i) x[i] = some[i * i % 31 % some.size()];
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (bool last : {false, true}) {
        SCOPED_TRACE(absl::StrCat(Text(p), " ", Name(dtype), " ", last));
        KernelRun run("pool2d");
        run.In("X", Image(dtype, p.x, x, last));
        const Values maxima = Set(run, p, "max").Get("Out");
        Values gradients = Draws(maxima.size());
        for (size_t i = 0; i < gradients.size(); i += 5) gradients[i] = -0.0;
        std::string x_grads[2];
        for (const bool places : {true, false}) {
          KernelRun grad("pool2d_grad");
          grad.In("X", Image(dtype, p.x, x, last)).Threads(last ? 3 : 1);
          grad.In("Out", Image(dtype, out, maxima, last));
          grad.In("OutGrad", Image(dtype, out, gradients, last));
          const bool channels = last && p.x[1] >= 8;
          Set(grad, p, "max")
              .Use(!places    ? "planes"
                   : channels ? "channels"
                              : "places");
          grad.SpoilWorkspace();
          x_grads[places] = grad.Bytes("XGrad");
        }
        EXPECT_EQ(x_grads[true], x_grads[false]);
        KernelRun argmax("pool2d");
        argmax.In("X", Image(dtype, p.x, x, last)).Threads(last ? 3 : 1);
        Set(argmax, p, "max").Out("Argmax").SpoilWorkspace();
        EXPECT_EQ(argmax.Bytes("Out"), run.Bytes("Out"));
        KernelRun grad("max_pool2d_grad");
        FromArgmax(grad, p, Image(dtype, out, argmax.Get("Argmax"), last),
                   Image(dtype, out, gradients, last))
            .Threads(last ? 3 : 1)
            .SpoilWorkspace();
        EXPECT_EQ(grad.Bytes("XGrad"), x_grads[false]);
      }
    }
  }
}

TEST(PoolTest, ArgmaxOfWindowsFarApart) {
  const Pool far = {{2, 1, 2, 9000}, {1, 3}, {5, 4000}, {0, 0, 1, 0}};
  const Values x = Draws(2 * 2 * 9000);
  const Dims out = {2, 1, 1, 3};
  KernelRun argmax("pool2d");
  argmax.In("X", Image(DType::kF32, far.x, x, false));
  Set(argmax, far, "max").Out("Argmax").SpoilWorkspace();
  const Values maxima = argmax.Get("Out");
  KernelRun exact("pool2d_grad"), grad("max_pool2d_grad");
  exact.In("X", Image(DType::kF32, far.x, x, false));
  exact.In("Out", Image(DType::kF32, out, maxima, false));
  exact.In("OutGrad", Image(DType::kF32, out, Draws(6), false));
  FromArgmax(grad, far, Image(DType::kU8, out, argmax.Get("Argmax"), false),
             Image(DType::kF32, out, Draws(6), false));
  EXPECT_EQ(grad.Bytes("XGrad"),
            Set(exact, far, "max").Use("planes").Bytes("XGrad"));
}

TEST(PoolTest, BitsDoNotDependOnThreads) {
  for (const char* type : {"max", "avg"}) {
    std::string bytes[2];
    for (int threads : {1, 4}) {
      const Dims dims = {5, 6, 33, 31}, out = {5, 6, 16, 15};
      KernelRun grad("pool2d_grad");
      grad.In("X", BF16(dims, Draws(5 * 6 * 33 * 31)));
      grad.In("Out", BF16(out, Draws(5 * 6 * 16 * 15)));
      grad.In("OutGrad", BF16(out, Draws(5 * 6 * 16 * 15)));
      grad.Attr("ksize", Ints{3, 3}).Attr("strides", Ints{2, 2});
      grad.Attr("pooling_type", type).Threads(threads);
      bytes[threads / 4] = grad.Bytes("XGrad");
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
