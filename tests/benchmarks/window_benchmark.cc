// Convolutions of one to three spatial dims, transposed ones, pooling and
// interpolation with their gradients, on one thread: to be held against
// PyTorch's on the same tensors (compare_windows.py).
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"
#include "tests/benchmarks/register_cases.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using Dims = std::vector<int64_t>;

struct Case {
  const char* name;
  const char* op;
  std::vector<std::pair<const char*, Dims>> inputs;
  std::vector<std::pair<const char*, AttrValue>> attrs{};
};

// The tensors that they are about: of sequences, images and volumes.
const Dims kSequence = {16, 64, 512}, kSequenceFilter = {64, 64, 3};
const Dims kImage = {8, 64, 28, 28}, kUpFilter = {64, 32, 2, 2};
const Dims kUp = {8, 32, 56, 56}, kTwice = {8, 64, 56, 56};
const Dims kVolume = {2, 16, 16, 32, 32}, kVolumeFilter = {16, 16, 3, 3, 3};
const Dims kHalf = {2, 16, 8, 16, 16}, kVolumeUpFilter = {16, 16, 2, 2, 2};
const Dims kThird = {8, 64, 9, 9}, kShuffled = {8, 16, 56, 56};
const Dims kGrid = {8, 56, 56, 2};
const Dims kTwo = {2, 2}, kTwos = {2, 2, 2}, kOnes = {1, 1, 1};

using Attrs = std::vector<std::pair<const char*, AttrValue>>;
const Attrs kAvg = {
    {"pooling_type", "avg"}, {"ksize", kTwos}, {"strides", kTwos}};
const Attrs kMax = {{"ksize", kTwos}, {"strides", kTwos}};
const Attrs kMiddles = {{"scale", std::vector<double>{2}},
                        {"align_corners", false},
                        {"align_mode", 0}};
const Attrs kEvenly = {
    {"pooling_type", "avg"}, {"ksize", Dims{9, 9}}, {"adaptive", true}};

const Case kCases[] = {
    {"conv1d",
     "conv1d",
     {{"Input", kSequence}, {"Filter", kSequenceFilter}},
     {{"paddings", Dims{1}}}},
    {"conv3d",
     "conv3d",
     {{"Input", kVolume}, {"Filter", kVolumeFilter}},
     {{"paddings", kOnes}}},
    {"conv3d_grad_input",
     "conv3d_grad_input",
     {{"OutputGrad", kVolume}, {"Filter", kVolumeFilter}},
     {{"paddings", kOnes}, {"input_dhw", Dims{16, 32, 32}}}},
    {"conv3d_grad_filter",
     "conv3d_grad_filter",
     {{"Input", kVolume}, {"OutputGrad", kVolume}},
     {{"paddings", kOnes}, {"filter_dhw", Dims{3, 3, 3}}}},
    {"conv2d_transpose",
     "conv2d_transpose",
     {{"Input", kImage}, {"Filter", kUpFilter}, {"Bias", {32}}},
     {{"strides", kTwo}}},
    {"conv2d_transpose_by_input",
     "conv2d",
     {{"Input", kUp}, {"Filter", kUpFilter}},
     {{"strides", kTwo}}},
    {"conv2d_transpose_by_filter",
     "conv2d_grad_filter",
     {{"Input", kUp}, {"OutputGrad", kImage}},
     {{"strides", kTwo}, {"filter_hw", kTwo}}},
    {"conv3d_transpose",
     "conv3d_transpose",
     {{"Input", kHalf}, {"Filter", kVolumeUpFilter}, {"Bias", {16}}},
     {{"strides", kTwos}}},
    {"max_pool3d", "pool3d", {{"X", kVolume}}, kMax},
    {"max_pool3d_grad",
     "pool3d_grad",
     {{"X", kVolume}, {"Out", kHalf}, {"OutGrad", kHalf}},
     kMax},
    {"avg_pool3d", "pool3d", {{"X", kVolume}}, kAvg},
    {"avg_pool3d_grad",
     "pool3d_grad",
     {{"X", kVolume}, {"Out", kHalf}, {"OutGrad", kHalf}},
     kAvg},
    {"adaptive_avg_pool2d", "pool2d", {{"X", kImage}}, kEvenly},
    {"adaptive_avg_pool2d_grad",
     "pool2d_grad",
     {{"X", kImage}, {"Out", kThird}, {"OutGrad", kThird}},
     kEvenly},
    {"bilinear", "bilinear_interp_v2", {{"X", kImage}}, kMiddles},
    {"bilinear_grad",
     "bilinear_interp_v2_grad",
     {{"OutGrad", kTwice}, {"X", kImage}},
     kMiddles},
    {"nearest",
     "nearest_interp_v2",
     {{"X", kImage}},
     {{"scale", std::vector<double>{2}}, {"align_corners", false}}},
    {"nearest_grad",
     "nearest_interp_v2_grad",
     {{"OutGrad", kTwice}, {"X", kImage}},
     {{"scale", std::vector<double>{2}}, {"align_corners", false}}},
    {"trilinear", "trilinear_interp_v2", {{"X", kHalf}}, kMiddles},
    {"trilinear_grad",
     "trilinear_interp_v2_grad",
     {{"OutGrad", kVolume}, {"X", kHalf}},
     kMiddles},
    {"bicubic", "bicubic_interp_v2", {{"X", kImage}}, kMiddles},
    {"bicubic_grad",
     "bicubic_interp_v2_grad",
     {{"OutGrad", kTwice}, {"X", kImage}},
     kMiddles},
    {"grid_sampler", "grid_sampler", {{"X", kImage}, {"Grid", kGrid}}},
    {"grid_sampler_grad_input",
     "grid_sampler_grad_input",
     {{"X", kImage}, {"Grid", kGrid}, {"OutputGrad", kTwice}}},
    {"grid_sampler_grad_grid",
     "grid_sampler_grad_grid",
     {{"X", kImage}, {"Grid", kGrid}, {"OutputGrad", kTwice}}},
    {"pixel_shuffle",
     "pixel_shuffle",
     {{"X", kImage}},
     {{"upscale_factor", 2}}},
    {"pixel_unshuffle",
     "pixel_unshuffle",
     {{"X", kShuffled}},
     {{"upscale_factor", 2}}},
};

void RunCase(benchmark::State& state, const Case& c, DType dtype) {
  KernelRun run(c.op);
  int64_t salt = 0;
  for (const auto& [slot, dims] : c.inputs) {
    const int64_t n = std::accumulate(dims.begin(), dims.end(), int64_t{1},
                                      std::multiplies<int64_t>());
    run.In(slot, {dtype, dims, kernels::Eighths(n, salt++)});
  }
  for (const auto& [name, value] : c.attrs) run.Attr(name, value);
  run.Run();
  for (auto step : state) run.Enqueue();
}

const bool kRegistered = RegisterCases(kCases, RunCase);

}  // namespace
}  // namespace halftone
