// What cuDNN can fuse batch norm into, asked for without a device.
#include "kernels/cuda/norm_cudnn.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/layout.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn_library.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

TensorDesc Desc(DType dtype, Layout layout, std::vector<int64_t> dims) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.layout = layout;
  desc.dims.assign(dims.begin(), dims.end());
  return desc;
}

// A square filter over images that keeps their size, or with stride 2 halves
// it.
ConvOp Conv(DType dtype, Layout layout, int64_t channels, int64_t filters,
            int64_t kernel, int64_t stride) {
  ConvOp conv;
  conv.image_desc = Desc(dtype, layout, {64, channels, 28, 28});
  conv.filter_desc = Desc(dtype, layout, {filters, channels, kernel, kernel});
  conv.result_desc =
      Desc(dtype, layout, {64, filters, 28 / stride, 28 / stride});
  conv.shape.samples = 64;
  conv.shape.channels = channels;
  conv.shape.filters = filters;
  for (int i = 0; i < 2; ++i) {
    ConvDim& dim = conv.shape.dims()[i];
    dim.image = 28;
    dim.filter = kernel;
    dim.result = 28 / stride;
    dim.stride = stride;
    dim.before = dim.after = kernel / 2;
  }
  return conv;
}

struct Fusion {
  const char* name;
  BoundGraph graph;
};
std::vector<Fusion> FusionsOf(const ConvOp& conv) {
  return {{"conv, sums", NormConvGraph(conv, false)},
          {"norm, conv, sums", NormConvGraph(conv, true)},
          {"norm, gradient of filter", NormConvGradFilterGraph(conv)},
          {"gradient of image, sums", ConvGradNormGraph(conv)}};
}

// ResNet's kinds of convolutions, beside one of other sizes.
template <typename Body>
void ForEachConv(DType dtype, Layout layout, const Body& body) {
  for (const auto& [channels, filters, kernel, stride] :
       {std::array<int64_t, 4>{64, 64, 3, 1},
        {64, 256, 1, 1},
        {256, 64, 1, 1},
        {128, 128, 3, 2},
        {256, 512, 1, 2},
        {24, 40, 3, 1}}) {
    SCOPED_TRACE(
        absl::StrCat(channels, "-", filters, " k", kernel, " s", stride));
    body(Conv(dtype, layout, channels, filters, kernel, stride));
  }
}

TEST(NormCudnnTest, IsTakenByTheLibrary) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    ForEachConv(dtype, Layout::kChannelsLast, [](const ConvOp& conv) {
      for (const Fusion& fusion : FusionsOf(conv)) {
        const absl::Status status = ValidateCudnnGraph(fusion.graph.graph);
        EXPECT_TRUE(status.ok()) << fusion.name << ": " << status;
      }
    });
  }
}

TEST(NormCudnnTest, F16HasDeterministicEngines) {
  for (const char* target : {"sm_80", "sm_90"}) {
    ForEachConv(DType::kF16, Layout::kChannelsLast, [&](const ConvOp& conv) {
      for (const Fusion& fusion : FusionsOf(conv)) {
        const auto engine = ChooseCudnnEngine(fusion.graph.graph, target);
        EXPECT_TRUE(engine.ok())
            << target << ", " << fusion.name << ": " << engine.status();
      }
    });
  }
}

// conv_grad_add_norm takes no strides: sm_90 has no engine for that.
TEST(NormCudnnTest, BlocksHaveEnginesWithoutStrides) {
  ForEachConv(DType::kF16, Layout::kChannelsLast, [](const ConvOp& conv) {
    const bool strides = conv.shape.dims()[0].stride > 1;
    for (const bool gradient : {false, true}) {
      for (const bool norm : {false, true}) {
        const BoundGraph bound = ConvGradAddNormGraph(conv, {gradient, norm});
        const auto sm_80 = ChooseCudnnEngine(bound.graph, "sm_80");
        EXPECT_TRUE(sm_80.ok())
            << gradient << ", " << norm << ": " << sm_80.status();
        const auto sm_90 = ChooseCudnnEngine(bound.graph, "sm_90");
        EXPECT_EQ(sm_90.ok(), !strides)
            << gradient << ", " << norm << ": " << sm_90.status();
      }
    }
  });
}

// Patterns leave such norms whole (passes/lower/patterns/norm_conv.cc): were
// there engines one day, they should not.
TEST(NormCudnnTest, BF16HasNoEngines) {
  for (const char* target : {"sm_80", "sm_90"}) {
    ForEachConv(DType::kBF16, Layout::kChannelsLast, [&](const ConvOp& conv) {
      for (const Fusion& fusion : FusionsOf(conv)) {
        const auto engine = ChooseCudnnEngine(fusion.graph.graph, target);
        EXPECT_TRUE(absl::IsUnimplemented(engine.status()))
            << target << ", " << fusion.name << ": " << engine.status();
      }
    });
  }
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
