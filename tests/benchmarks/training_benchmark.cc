// What a training step has beside convolutions, products and element-wise ops
// of one shape: lookups and their gradients, losses by label, biases, casts,
// pooling of images, gradients of padding and norms, updates. On one thread: to
// be held against PyTorch's on the same tensors (compare_training.py); larger
// ones, on one thread and on all, against a copy (compare_copy.py).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"
#include "tests/benchmarks/register_cases.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using Dims = std::vector<int64_t>;

enum class Kind {
  kData,     // of the case's dtype, between -1 and 1
  kShare,    // likewise, between 0 and 1
  kForward,  // of the case's dtype: an output of the op whose gradient this is
  kFloat,    // ones in f32
  kNumbers,  // i64 between 0 and 99
  kPlaces,   // u8 between 0 and 8: of maxima in windows of 3 x 3
  kCount,    // i64, ones
  kFlag,     // bool, false
};

struct Input {
  const char* slot;
  Kind kind;
  Dims dims;
};

struct Case {
  const char* name;
  const char* op;
  std::vector<Input> inputs;
  std::vector<std::pair<const char*, AttrValue>> attrs{};
  std::vector<const char*> outputs{};  // optional ones and lists
  bool makes_dtype = false;            // has an attribute for its output's
  Layout layout = Layout::kRowMajor;   // of what is of the case's dtype
};

const Dims kImages = {64, 16, 28, 28}, kRows = {1024, 784}, kLabels = {1024};
const Dims kTable = {8192, 256}, kTaken = {2048, 256}, kFew = {2048};
const Dims kPooled = {8, 64, 56, 56}, kHalves = {8, 64, 28, 28};
const Dims kFlat = {64, 16, 1, 28, 28}, kPadded = {64, 16, 1, 30, 30};
const Dims kParameters = {802816}, kOne = {1}, kChannels = {16};

using Attrs = std::vector<std::pair<const char*, AttrValue>>;
const Attrs kTiles = {{"ksize", Dims{2, 2}}, {"strides", Dims{2, 2}}};
const Attrs kOverlapping = {
    {"ksize", Dims{3, 3}}, {"strides", Dims{2, 2}}, {"paddings", Dims{1, 1}}};
const Attrs kOverlappingGrad = {{"ksize", Dims{3, 3}},
                                {"strides", Dims{2, 2}},
                                {"paddings", Dims{1, 1}},
                                {"input_hw", Dims{56, 56}}};
const Attrs kMeans = {
    {"ksize", Dims{2, 2}}, {"strides", Dims{2, 2}}, {"pooling_type", "avg"}};
const Attrs kOverlappingMeans = {{"ksize", Dims{3, 3}},
                                 {"strides", Dims{2, 2}},
                                 {"paddings", Dims{1, 1}},
                                 {"pooling_type", "avg"}};

const std::vector<Input> kPoolGrad = {{"X", Kind::kData, kPooled},
                                      {"Out", Kind::kForward, kHalves},
                                      {"OutGrad", Kind::kData, kHalves}};
const std::vector<Input> kPooling = {{"X", Kind::kData, kPooled}};
const std::vector<Input> kArgmaxGrad = {{"OutGrad", Kind::kData, kHalves},
                                        {"Argmax", Kind::kPlaces, kHalves}};
const std::vector<Input> kPadGrad = {{"X", Kind::kData, kFlat},
                                     {"OutGrad", Kind::kData, kPadded}};
Attrs Padded(const char* mode) {
  return {{"paddings", Dims{1, 1, 1, 1, 0, 0}}, {"mode", mode}};
}

// The inputs of an optimizer: `states` of them.
std::vector<Input> Update(const std::vector<const char*>& states, bool counts) {
  std::vector<Input> inputs = {{"Param", Kind::kFloat, kParameters},
                               {"Grad", Kind::kFloat, kParameters}};
  for (const char* state : states) {
    inputs.push_back({state, Kind::kFloat, kParameters});
  }
  inputs.push_back({"LearningRate", Kind::kFloat, {}});
  if (counts) inputs.push_back({"Applied", Kind::kCount, {}});
  inputs.push_back({"FoundInf", Kind::kFlag, {}});
  return inputs;
}

const std::vector<const char*> kAdamOuts = {"ParamOut", "Moment1Out",
                                            "Moment2Out"};

const Case kCases[] = {
    {"embedding",
     "lookup_table_v2",
     {{"W", Kind::kData, kTable}, {"Ids", Kind::kNumbers, kFew}}},
    {"embedding_grad",
     "gather_grad",
     {{"X", Kind::kData, kTable},
      {"Index", Kind::kNumbers, kFew},
      {"OutGrad", Kind::kData, kTaken}}},
    {"scatter",
     "scatter",
     {{"X", Kind::kData, kTable},
      {"Ids", Kind::kNumbers, kFew},
      {"Updates", Kind::kData, kTaken}}},
    {"scatter_sums",
     "scatter",
     {{"X", Kind::kData, kTable},
      {"Ids", Kind::kNumbers, kFew},
      {"Updates", Kind::kData, kTaken}},
     {{"overwrite", false}}},
    {"index_select_columns",
     "index_select",
     {{"X", Kind::kData, kRows}, {"Index", Kind::kNumbers, {64}}},
     {{"dim", 1}}},
    {"one_hot",
     "one_hot_v2",
     {{"X", Kind::kNumbers, {8192}}},
     {{"depth", 100}},
     {},
     true},
    {"nll_loss",
     "nll_loss",
     {{"X", Kind::kData, kRows}, {"Label", Kind::kNumbers, kLabels}}},
    {"nll_loss_grad",
     "nll_loss_grad",
     {{"X", Kind::kData, kRows},
      {"Label", Kind::kNumbers, kLabels},
      {"OutGrad", Kind::kFloat, kLabels}}},
    {"bce_loss",
     "bce_loss",
     {{"X", Kind::kShare, kImages}, {"Label", Kind::kShare, kImages}}},
    {"sigmoid_cross_entropy_grad",
     "sigmoid_cross_entropy_with_logits_grad",
     {{"X", Kind::kData, kImages},
      {"Label", Kind::kShare, kImages},
      {"OutGrad", Kind::kData, kImages}}},
    {"prelu_channels",
     "prelu",
     {{"X", Kind::kData, kImages}, {"Alpha", Kind::kData, kChannels}},
     {{"mode", "channel"}}},
    {"prelu_by_x",
     "prelu_by_x",
     {{"X", Kind::kData, kImages}, {"Alpha", Kind::kData, kOne}}},
    {"bias_of_rows",
     "elementwise_add",
     {{"X", Kind::kData, kRows}, {"Y", Kind::kData, {784}}}},
    {"bias_of_channels",
     "elementwise_add",
     {{"X", Kind::kData, kImages}, {"Y", Kind::kData, kChannels}},
     {{"axis", 1}}},
    {"column_times_rows",
     "elementwise_mul",
     {{"X", Kind::kData, kRows}, {"Y", Kind::kData, {1024, 1}}}},
    {"times_number",
     "elementwise_mul",
     {{"X", Kind::kData, kRows}, {"Y", Kind::kData, kOne}}},
    {"sum_of_rows",
     "reduce_sum",
     {{"X", Kind::kData, kRows}},
     {{"dim", Dims{0}}}},
    {"sum_of_channels",
     "reduce_sum",
     {{"X", Kind::kData, kImages}},
     {{"dim", Dims{0, 2, 3}}}},
    {"cast_to_f32",
     "cast",
     {{"X", Kind::kData, kImages}},
     {{"to", DType::kF32}}},
    {"cast_to_f16",
     "cast",
     {{"X", Kind::kData, kImages}},
     {{"to", DType::kF16}}},
    {"cast_to_bf16",
     "cast",
     {{"X", Kind::kData, kImages}},
     {{"to", DType::kBF16}}},
    {"scale_bias",
     "scale_bias",
     {{"X", Kind::kData, kImages},
      {"Scale", Kind::kFloat, kChannels},
      {"Bias", Kind::kFloat, kChannels},
      {"Mean", Kind::kFloat, kChannels},
      {"Variance", Kind::kFloat, kChannels}}},
    {"instance_norm_grad",
     "instance_norm_grad",
     {{"X", Kind::kData, kImages},
      {"YGrad", Kind::kData, kImages},
      {"Scale", Kind::kFloat, kChannels},
      {"SavedMean", Kind::kFloat, {1024}},
      {"SavedVariance", Kind::kFloat, {1024}}},
     {},
     {"ScaleGrad", "BiasGrad"}},
    {"reflect_grad", "pad3d_grad", kPadGrad, Padded("reflect")},
    {"replicate_grad", "pad3d_grad", kPadGrad, Padded("replicate")},
    {"max_pool2d", "pool2d", kPooling, kTiles},
    {"max_pool2d_grad", "pool2d_grad", kPoolGrad, kTiles},
    {"max_pool2d_overlapping", "pool2d", kPooling, kOverlapping},
    {"max_pool2d_overlapping_grad", "pool2d_grad", kPoolGrad, kOverlapping},
    {"max_pool2d_channels_last",
     "pool2d",
     kPooling,
     kOverlapping,
     {},
     false,
     Layout::kChannelsLast},
    {"max_pool2d_channels_last_grad",
     "pool2d_grad",
     kPoolGrad,
     kOverlapping,
     {},
     false,
     Layout::kChannelsLast},
    {"max_pool2d_argmax", "pool2d", kPooling, kOverlapping, {"Argmax"}},
    {"max_pool2d_argmax_grad", "max_pool2d_grad", kArgmaxGrad,
     kOverlappingGrad},
    {"max_pool2d_argmax_channels_last",
     "pool2d",
     kPooling,
     kOverlapping,
     {"Argmax"},
     false,
     Layout::kChannelsLast},
    {"max_pool2d_argmax_channels_last_grad",
     "max_pool2d_grad",
     kArgmaxGrad,
     kOverlappingGrad,
     {},
     false,
     Layout::kChannelsLast},
    {"avg_pool2d", "pool2d", kPooling, kMeans},
    {"avg_pool2d_grad", "pool2d_grad", kPoolGrad, kMeans},
    {"avg_pool2d_overlapping", "pool2d", kPooling, kOverlappingMeans},
    {"avg_pool2d_overlapping_grad", "pool2d_grad", kPoolGrad,
     kOverlappingMeans},
    {"fill_constant",
     "fill_constant",
     {},
     {{"shape", kImages}, {"value", 0.5}},
     {},
     true},
    {"sgd", "sgd", Update({}, false), {}, {"ParamOut"}},
    {"momentum",
     "momentum",
     Update({"Velocity"}, false),
     {{"mu", 0.9}},
     {"ParamOut", "VelocityOut"}},
    {"adam", "adam", Update({"Moment1", "Moment2"}, true), {}, kAdamOuts},
    {"adamw", "adamw", Update({"Moment1", "Moment2"}, true), {}, kAdamOuts},
};

// What an op is run on: the case's tensors with so many times the samples.
struct Setting {
  const Case& c;
  DType dtype;
  int64_t scale;
  int threads;

  // `dims` of so many times the samples, if their first one is of samples or
  // of their channels.
  Dims Scaled(Dims dims) const {
    if (dims.empty() || c.inputs.empty()) return dims;
    const Dims& x = c.inputs[0].dims;
    const bool planes = x.size() > 1 && dims == Dims{x[0] * x[1]};
    if (dims[0] == x[0] || planes) dims[0] *= scale;
    return dims;
  }

  kernels::Tensor Drawn(const Input& input, int64_t salt) const {
    const Dims dims = Scaled(input.dims);
    const int64_t n = Elements(dims);
    std::vector<double> values(n, input.kind == Kind::kFlag ? 0 : 1);
    const int64_t numbers = input.kind == Kind::kNumbers  ? 100
                            : input.kind == Kind::kPlaces ? 9
                                                          : 0;
    for (int64_t i = 0; numbers > 0 && i < n; ++i) {
      values[i] = static_cast<double>(i * 37 % numbers);
    }
    switch (input.kind) {
      case Kind::kData:
        return {dtype, dims, kernels::Eighths(n, salt), c.layout};
      case Kind::kShare:
        return {dtype, dims, kernels::Draws(n, 0.1, 0.9)};
      case Kind::kFloat:
        return {DType::kF32, dims, values};
      case Kind::kPlaces:
        return {DType::kU8, dims, values, c.layout};
      case Kind::kFlag:
        return {DType::kBool, dims, values};
      default:
        return {DType::kI64, dims, values};
    }
  }

  // The output of that name of the op that `c` is the gradient of.
  kernels::Tensor Forward(const Input& output) const {
    KernelRun forward(absl::StripSuffix(c.op, "_grad"));
    forward.In("X", Drawn(c.inputs[0], 0));
    for (const auto& [name, value] : c.attrs) forward.Attr(name, value);
    return {dtype, Scaled(output.dims), forward.Get(output.slot), c.layout};
  }
};

void RunScaled(benchmark::State& state, const Setting& setting) {
  const Case& c = setting.c;
  KernelRun run(c.op);
  run.Threads(setting.threads);
  int64_t salt = 0;
  for (const Input& input : c.inputs) {
    run.In(input.slot, input.kind == Kind::kForward
                           ? setting.Forward(input)
                           : setting.Drawn(input, salt));
    ++salt;
  }
  for (const auto& [name, value] : c.attrs) run.Attr(name, value);
  if (c.makes_dtype) run.Attr("dtype", setting.dtype);
  for (absl::string_view slot : c.outputs) {
    run.Out(slot);
    // Parameters and states are updated where they are.
    absl::string_view state_slot = slot;
    if (absl::ConsumeSuffix(&state_slot, "Out")) run.Alias(slot, state_slot);
  }
  run.Run();
  for (auto step : state) run.Enqueue();
  ReportBytes(state, run.TensorBytes(), setting.threads);
}

void RunCase(benchmark::State& state, const Case& c, DType dtype) {
  RunScaled(state, {c, dtype, 1, 1});
}
void RunLarge(benchmark::State& state, const Case& c, DType dtype) {
  RunScaled(state, {c, dtype, kLarge, 1});
}
void RunOnAll(benchmark::State& state, const Case& c, DType dtype) {
  RunScaled(state, {c, dtype, kLarge, AllThreads()});
}

const bool kRegistered = RegisterCases(kCases, RunCase) &&
                         RegisterCases(kCases, RunLarge, "/large") &&
                         RegisterCases(kCases, RunOnAll, "/large/all", true);

}  // namespace
}  // namespace halftone
