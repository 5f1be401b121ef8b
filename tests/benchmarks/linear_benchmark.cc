// Convolutions and products of the nets in models/, on one thread, by each
// candidate: whether the library's own formats pay for their reorders, and
// what the f32 staging of f16 costs.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using kernels::Tensor;
using Dims = std::vector<int64_t>;

struct Conv {
  const char* name;
  int64_t n, c, size, o, kernel, stride;
  int64_t groups = 1;
};
constexpr Conv kConvs[] = {
    {"mnist_first", 64, 1, 28, 16, 5, 1},
    {"mnist_second", 64, 16, 14, 32, 5, 1},
    {"small_3x3", 64, 32, 16, 32, 3, 1},
    {"small_down", 64, 16, 32, 32, 3, 2},
    {"resnet50_first", 4, 3, 224, 64, 7, 2},
    {"resnet50_3x3_56", 4, 64, 56, 64, 3, 1},
    {"resnet50_3x3_28", 4, 128, 28, 128, 3, 1},
    {"resnet50_3x3_14", 4, 256, 14, 256, 3, 1},
    {"resnet50_3x3_14_16", 16, 256, 14, 256, 3, 1},
    {"vgg16_14", 8, 512, 14, 512, 3, 1},
    {"vgg16_28", 8, 512, 28, 512, 3, 1},
    {"resnet50_3x3_7", 4, 512, 7, 512, 3, 1},
    {"resnet50_down_28", 4, 128, 56, 128, 3, 2},
    {"resnet50_up_56", 4, 64, 56, 256, 1, 1},
    {"resnet50_wide_14", 4, 1024, 14, 256, 1, 1},
    {"resnet50_side_28", 4, 256, 56, 512, 1, 2},
    {"convnext_first", 4, 3, 224, 96, 4, 4},
    {"convnext_down_28", 4, 96, 56, 192, 2, 2},
    {"vit_first", 4, 3, 224, 768, 16, 16},
    {"mobilenet_112", 4, 32, 112, 32, 3, 1, 32},
    {"mobilenet_down_56", 4, 96, 112, 96, 3, 2, 96},
    {"mobilenet_14", 4, 384, 14, 384, 3, 1, 384},
    {"mobilenet_7", 4, 960, 7, 960, 3, 1, 960},
    {"mobilenet_no_vectors_20", 4, 72, 20, 72, 3, 1, 72},
    {"efficientnet_14", 4, 672, 14, 672, 5, 1, 672},
    {"convnext_56", 4, 96, 56, 96, 7, 1, 96},
    {"convnext_7", 4, 768, 7, 768, 7, 1, 768},
};

Tensor Filled(DType dtype, const Dims& dims,
              Layout layout = Layout::kRowMajor) {
  int64_t n = 1;
  for (int64_t dim : dims) n *= dim;
  return {dtype, dims, kernels::Eighths(n), layout};
}

void Time(benchmark::State& state, KernelRun& run) {
  run.Run();
  for (auto step : state) run.Enqueue();
}

void RunConv(benchmark::State& state, const Conv& conv, const std::string& op,
             DType dtype, Layout layout, const std::string& candidate) {
  const int64_t n = conv.n;
  const int64_t padding = conv.kernel > conv.stride ? conv.kernel / 2 : 0;
  const int64_t out = (conv.size - 1) / conv.stride + 1;
  const Tensor input = Filled(dtype, {n, conv.c, conv.size, conv.size}, layout);
  const Tensor filter = Filled(
      dtype, {conv.o, conv.c / conv.groups, conv.kernel, conv.kernel}, layout);
  const Tensor grad = Filled(dtype, {n, conv.o, out, out}, layout);
  KernelRun run(op);
  run.Attr("strides", Dims{conv.stride, conv.stride})
      .Attr("paddings", Dims{padding, padding})
      .Attr("groups", conv.groups)
      .Use(candidate);
  if (op == "conv2d") {
    run.In("Input", input).In("Filter", filter);
  } else if (op == "conv2d_grad_input") {
    run.In("OutputGrad", grad).In("Filter", filter);
    run.Attr("input_hw", Dims{conv.size, conv.size});
  } else {
    run.In("Input", input).In("OutputGrad", grad);
    run.Attr("filter_hw", Dims{conv.kernel, conv.kernel});
  }
  Time(state, run);
}

struct Product {
  const char* name;
  Dims x, y;
  bool trans_x, trans_y;
};
const Product kProducts[] = {
    {"mlp", {8, 32}, {32, 32}, false, false},
    {"fc", {64, 1568}, {1568, 10}, false, false},
    {"fc_grad_x", {64, 10}, {1568, 10}, false, true},
    {"fc_grad_y", {64, 1568}, {64, 10}, true, false},
    {"square", {256, 256}, {256, 256}, false, false},
};

void RunProduct(benchmark::State& state, const Product& product, DType dtype) {
  KernelRun run("matmul");
  run.In("X", Filled(dtype, product.x))
      .In("Y", Filled(dtype, product.y))
      .Attr("trans_x", product.trans_x)
      .Attr("trans_y", product.trans_y);
  Time(state, run);
}

constexpr std::pair<Layout, const char*> kCandidates[] = {
    {Layout::kRowMajor, ""},
    {Layout::kRowMajor, "onednn"},
    {Layout::kRowMajor, "onednn_plain"},
    {Layout::kChannelsLast, ""},
    {Layout::kChannelsLast, "onednn"},
    {Layout::kChannelsLast, "packed"},
};

void RegisterAll() {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Conv& conv : kConvs) {
      for (std::string op :
           {"conv2d", "conv2d_grad_input", "conv2d_grad_filter"}) {
        for (const auto& [layout, candidate] : kCandidates) {
          benchmark::RegisterBenchmark(
              absl::StrCat(conv.name, "/", op, "/", Name(dtype), "/",
                           Name(layout), "/",
                           *candidate == 0 ? "preferred" : candidate)
                  .c_str(),
              [&conv, op, dtype, layout = layout,
               candidate = candidate](benchmark::State& state) {
                RunConv(state, conv, op, dtype, layout, candidate);
              })
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
    for (const Product& product : kProducts) {
      benchmark::RegisterBenchmark(
          absl::StrCat("matmul_", product.name, "/", Name(dtype)).c_str(),
          [&product, dtype](benchmark::State& state) {
            RunProduct(state, product, dtype);
          })
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace halftone
