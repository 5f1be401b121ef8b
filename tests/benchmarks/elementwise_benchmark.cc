// Element-wise ops, dropout, softmax and norms on 64 images of 16 x 28 x 28 (or
// as many elements in other dims), on one thread: to be held against PyTorch's
// on the same tensor, and, on kLarge times as many, against a copy, on one
// thread and on all.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"
#include "tests/benchmarks/register_cases.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using Dims = std::vector<int64_t>;

const Dims kImages = {64, 16, 28, 28};
constexpr int64_t kElements = 64 * 16 * 28 * 28;

const Dims kFirst = {0}, kLast = {-1};  // axes
const Dims kRows = {1024, 784};         // as many elements

struct Case {
  const char* name;
  const char* op;
  std::vector<std::string> inputs;  // images
  std::vector<std::pair<const char*, AttrValue>> attrs{};
  bool positive = false;  // draws above 0 alone; else of both signs
  // Further inputs, f32 of so many ones.
  std::vector<std::pair<const char*, Dims>> ones{};
  Dims dims = kImages;
  std::vector<const char*> outputs{};  // optional ones that are made, too
  // Further inputs, i64 of numbers from 0 to 27.
  std::vector<std::pair<const char*, Dims>> classes{};
};

const Case kCases[] = {
    {"gelu", "gelu", {"X"}},
    {"gelu_tanh", "gelu", {"X"}, {{"approximate", "tanh"}}},
    {"gelu_grad", "gelu_grad", {"X", "OutGrad"}},
    {"gelu_grad_tanh",
     "gelu_grad",
     {"X", "OutGrad"},
     {{"approximate", "tanh"}}},
    {"tanh", "tanh", {"X"}},
    {"tanh_grad", "tanh_grad", {"Out", "OutGrad"}},
    {"sigmoid", "sigmoid", {"X"}},
    {"sigmoid_grad", "sigmoid_grad", {"Out", "OutGrad"}},
    {"exp", "exp", {"X"}},
    {"log", "log", {"X"}, {}, true},
    {"sqrt", "sqrt", {"X"}, {}, true},
    {"rsqrt", "rsqrt", {"X"}, {}, true},
    {"relu", "relu", {"X"}},
    {"square", "square", {"X"}},
    {"abs", "abs", {"X"}},
    {"scale", "scale", {"X"}},
    {"reciprocal", "reciprocal", {"X"}},
    {"floor", "floor", {"X"}},
    {"ceil", "ceil", {"X"}},
    {"round", "round", {"X"}},
    {"sign", "sign", {"X"}},
    {"sin", "sin", {"X"}},
    {"cos", "cos", {"X"}},
    {"atan", "atan", {"X"}},
    {"erf", "erf", {"X"}},
    {"relu6", "relu6", {"X"}},
    {"leaky_relu", "leaky_relu", {"X"}},
    {"elu", "elu", {"X"}},
    {"silu", "silu", {"X"}},
    {"hard_swish", "hard_swish", {"X"}},
    {"hard_sigmoid", "hard_sigmoid", {"X"}},
    {"softplus", "softplus", {"X"}},
    {"mish", "mish", {"X"}},
    {"brelu", "brelu", {"X"}, {{"t_min", -1.0}, {"t_max", 1.0}}},
    {"clip", "clip", {"X"}, {{"min", -1.0}, {"max", 1.0}}},
    {"pow_2", "pow", {"X"}, {{"factor", 2.0}}},
    {"pow_3", "pow", {"X"}, {{"factor", 3.0}}},
    {"pow_2.5", "pow", {"X"}, {{"factor", 2.5}}, true},
    {"erf_grad", "erf_grad", {"X", "OutGrad"}},
    {"leaky_relu_grad", "leaky_relu_grad", {"X", "OutGrad"}},
    {"elu_grad", "elu_grad", {"X", "OutGrad"}},
    {"silu_grad", "silu_grad", {"X", "OutGrad"}},
    {"hard_swish_grad", "hard_swish_grad", {"X", "OutGrad"}},
    {"softplus_grad", "softplus_grad", {"X", "OutGrad"}},
    {"mish_grad", "mish_grad", {"X", "OutGrad"}},
    {"reciprocal_grad", "reciprocal_grad", {"Out", "OutGrad"}},
    {"relu6_grad", "relu6_grad", {"Out", "OutGrad"}},
    {"hard_sigmoid_grad", "hard_sigmoid_grad", {"Out", "OutGrad"}},
    {"brelu_grad",
     "brelu_grad",
     {"X", "OutGrad"},
     {{"t_min", -1.0}, {"t_max", 1.0}}},
    {"clip_grad", "clip_grad", {"X", "OutGrad"}, {{"min", -1.0}, {"max", 1.0}}},
    {"neg", "neg", {"X"}},
    {"swish", "swish", {"X"}},
    {"hard_tanh", "hard_tanh", {"X"}},
    {"relu_grad", "relu_grad", {"Out", "OutGrad"}},
    {"abs_grad", "abs_grad", {"X", "OutGrad"}},
    {"swish_grad", "swish_grad", {"X", "OutGrad"}},
    {"hard_tanh_grad", "hard_tanh_grad", {"X", "OutGrad"}},
    {"add", "elementwise_add", {"X", "Y"}},
    {"sub", "elementwise_sub", {"X", "Y"}},
    {"mul", "elementwise_mul", {"X", "Y"}},
    {"sum", "sum", {"X", "X"}},
    {"square_error_cost", "square_error_cost", {"X", "Y"}},
    {"div", "elementwise_div", {"X", "Y"}},
    {"max", "elementwise_max", {"X", "Y"}},
    {"min", "elementwise_min", {"X", "Y"}},
    {"power", "elementwise_pow", {"X", "Y"}, {}, true},
    {"prelu", "prelu", {"X"}},
    {"equal", "equal", {"X", "Y"}},
    {"less_than", "less_than", {"X", "Y"}},
    {"logical_and", "logical_and", {"X", "Y"}},
    {"logical_not", "logical_not", {"X"}},
    {"reduce_max", "reduce_max", {"X"}},
    {"reduce_max_rows", "reduce_max", {"X"}, {{"dim", kLast}}},
    {"reduce_max_images", "reduce_max", {"X"}, {{"dim", kFirst}}},
    {"reduce_min", "reduce_min", {"X"}},
    {"reduce_sum", "reduce_sum", {"X"}},
    {"reduce_sum_rows", "reduce_sum", {"X"}, {{"dim", kLast}}},
    {"reduce_sum_images", "reduce_sum", {"X"}, {{"dim", kFirst}}},
    {"reduce_mean_planes", "reduce_mean", {"X"}, {{"dim", Dims{2, 3}}}},
    {"reduce_prod_rows", "reduce_prod", {"X"}, {{"dim", kLast}}},
    {"arg_max_rows", "arg_max", {"X"}},
    {"arg_max_images", "arg_max", {"X"}, {{"axis", 0}}},
    {"arg_max_all", "arg_max", {"X"}, {{"flatten", true}}},
    {"arg_min_rows", "arg_min", {"X"}},
    {"top_k", "top_k", {"X"}, {{"k", 5}}, false, {}, kRows},
    {"p_norm_rows", "p_norm", {"X"}},
    {"p_norm_all", "p_norm", {"X"}, {{"asvector", true}}},
    {"p_norm_3", "p_norm", {"X"}, {{"porder", 3.0}}},
    {"cumsum_rows", "cumsum", {"X"}},
    {"cumsum_images", "cumsum", {"X"}, {{"axis", 0}}},
    {"log_softmax", "log_softmax", {"X"}},
    {"log_softmax_grad", "log_softmax_grad", {"Out", "OutGrad"}},
    {"where", "where", {"X", "Y"}},
    {"slice_channels",
     "slice",
     {"Input"},
     {{"axes", Dims{1}}, {"starts", Dims{4}}, {"ends", Dims{12}}}},
    {"slice_columns",
     "slice",
     {"Input"},
     {{"axes", Dims{3}}, {"starts", Dims{2}}, {"ends", Dims{26}}}},
    {"strided_slice",
     "strided_slice",
     {"Input"},
     {{"axes", Dims{2, 3}},
      {"starts", Dims{0, 0}},
      {"ends", Dims{28, 28}},
      {"strides", Dims{2, 2}}}},
    {"flip_columns", "flip", {"X"}, {{"axis", kLast}}},
    {"flip_images", "flip", {"X"}, {{"axis", kFirst}}},
    {"pad", "pad", {"X"}, {{"paddings", Dims{0, 0, 0, 0, 1, 1, 1, 1}}}},
    {"pad3d_reflect",
     "pad3d",
     {"X"},
     {{"paddings", Dims{1, 1, 1, 1, 0, 0}}, {"mode", "reflect"}},
     false,
     {},
     {64, 16, 1, 28, 28}},
    {"expand", "expand_v2", {"X"}, {{"shape", Dims{2, -1, -1, -1, -1}}}},
    {"transpose", "transpose", {"X"}, {{"axis", Dims{0, 2, 3, 1}}}},
    {"assign", "assign", {"X"}},
    {"tile", "tile", {"X"}, {{"repeat_times", Dims{2}}}},
    {"concat_channels", "concat", {"X", "X"}, {{"axis", 1}}},
    {"concat_columns", "concat", {"X", "X"}, {{"axis", 3}}},
    {"stack_last", "stack", {"X", "X"}, {{"axis", -1}}},
    {"split_columns", "split", {"X"}, {{"axis", 3}}},
    {"gather_images", "gather", {"X"}, {{"axis", 0}}},
    {"gather_columns", "gather", {"X"}, {{"axis", 3}}},
    {"softmax", "softmax", {"X"}},
    {"mean", "mean", {"X"}},
    {"huber_loss", "huber_loss", {"X", "Y"}},
    {"sigmoid_cross_entropy",
     "sigmoid_cross_entropy_with_logits",
     {"X", "Label"}},
    {"kldiv_loss", "kldiv_loss", {"X", "Target"}, {}, true},
    {"label_smooth", "label_smooth", {"X"}, {{"epsilon", 0.1}}},
    {"soft_cross_entropy",
     "softmax_with_cross_entropy",
     {"Logits", "Label"},
     {{"soft_label", true}},
     false,
     {},
     kRows},
    {"cross_entropy",
     "softmax_with_cross_entropy",
     {"Logits"},
     {},
     false,
     {},
     kRows,
     {},
     {{"Label", {1024}}}},
    {"cross_entropy_grad",
     "softmax_with_cross_entropy_grad",
     {"Logits"},
     {},
     false,
     {{"LossGrad", {1024}}},
     kRows,
     {},
     {{"Label", {1024}}}},
    {"softmax_rows", "softmax", {"X"}, {}, false, {}, kRows},
    {"softmax_grad", "softmax_grad", {"Out", "OutGrad"}},
    {"softmax_grad_rows",
     "softmax_grad",
     {"Out", "OutGrad"},
     {},
     false,
     {},
     kRows},
    {"log_softmax_rows", "log_softmax", {"X"}, {}, false, {}, kRows},
    {"log_softmax_grad_rows",
     "log_softmax_grad",
     {"Out", "OutGrad"},
     {},
     false,
     {},
     kRows},
    {"batch_norm",
     "batch_norm",
     {"X"},
     {},
     false,
     {{"Scale", {16}}, {"Bias", {16}}, {"Mean", {16}}, {"Variance", {16}}}},
    {"batch_norm_grad",
     "batch_norm_grad",
     {"X", "YGrad"},
     {},
     false,
     {{"Scale", {16}}, {"BatchMean", {16}}, {"BatchVariance", {16}}}},
    {"layer_norm",
     "layer_norm",
     {"X"},
     {},
     false,
     {{"Scale", {784}}, {"Bias", {784}}},
     kRows},
    {"layer_norm_short",
     "layer_norm",
     {"X"},
     {{"begin_norm_axis", -1}},
     false,
     {{"Scale", {28}}, {"Bias", {28}}}},
    {"layer_norm_grad",
     "layer_norm_grad",
     {"X", "YGrad"},
     {},
     false,
     {{"Scale", {784}}, {"Mean", {1024}}, {"Variance", {1024}}},
     kRows,
     {"ScaleGrad", "BiasGrad"}},
    {"rms_norm", "rms_norm", {"X"}, {}, false, {{"Scale", {784}}}, kRows},
    {"rms_norm_grad",
     "rms_norm_grad",
     {"X", "YGrad"},
     {},
     false,
     {{"Scale", {784}}, {"MeanSquare", {1024}}},
     kRows,
     {"ScaleGrad"}},
    {"group_norm",
     "group_norm",
     {"X"},
     {{"groups", 4}},
     false,
     {{"Scale", {16}}, {"Bias", {16}}}},
    {"group_norm_grad",
     "group_norm_grad",
     {"X", "YGrad"},
     {{"groups", 4}},
     false,
     {{"Scale", {16}}, {"Mean", {64, 4}}, {"Variance", {64, 4}}},
     kImages,
     {"ScaleGrad", "BiasGrad"}},
    {"instance_norm",
     "instance_norm",
     {"X"},
     {},
     false,
     {{"Scale", {16}}, {"Bias", {16}}}},
    {"channel_stats", "channel_stats", {"X"}},
    {"dropout", "dropout", {"X"}},
    {"dropout_nd", "dropout_nd", {"X"}},
};

// `dims` of so many times the samples, if their first one is of samples.
Dims Scaled(const Case& c, Dims dims, int64_t scale) {
  if (dims[0] == c.dims[0]) dims[0] *= scale;
  return dims;
}

// The i-th input of images.
kernels::Tensor Image(const Case& c, size_t i, DType dtype, int64_t scale) {
  std::vector<double> values = kernels::Draws(kElements, 0.05, 3);
  for (size_t j = i; j < values.size(); j += 2) {
    if (!c.positive) values[j] = -values[j];
  }
  values.resize(kElements * scale);
  for (size_t j = kElements; j < values.size(); ++j) {
    values[j] = values[j - kElements];
  }
  return {dtype, Scaled(c, c.dims, scale), std::move(values),
          Layout::kRowMajor};
}

void RunScaled(benchmark::State& state, const Case& c, DType dtype,
               int64_t scale, int threads) {
  KernelRun run(c.op);
  run.Threads(threads);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    run.In(c.inputs[i], Image(c, i, dtype, scale));
  }
  for (const auto& [slot, dims] : c.ones) {
    const Dims scaled = Scaled(c, dims, scale);
    run.In(slot,
           kernels::F32(scaled, std::vector<double>(Elements(scaled), 1)));
  }
  for (const auto& [slot, dims] : c.classes) {
    const Dims scaled = Scaled(c, dims, scale);
    std::vector<double> classes(scaled[0]);
    for (size_t i = 0; i < classes.size(); ++i) {
      classes[i] = static_cast<double>(i * 11 % 28);
    }
    run.In(slot, kernels::I64(scaled, classes));
  }
  for (const char* slot : c.outputs) run.Out(slot);
  if (absl::StartsWith(c.op, "dropout")) {
    for (const char* slot : {"Seed", "Step", "FirstSample"}) {
      run.In(slot, kernels::I64({}, {1}));
    }
  }
  if (c.op == absl::string_view("prelu")) {
    run.In("Alpha", {dtype, {1}, {0.25}, Layout::kRowMajor});
  }
  if (c.op == absl::string_view("where")) {
    std::vector<double> condition(kElements * scale);
    for (size_t i = 0; i < condition.size(); i += 3) condition[i] = 1;
    run.In("Condition", {DType::kBool, Scaled(c, kImages, scale), condition});
  }
  if (c.op == absl::string_view("split")) run.Out("Out", 2);
  if (c.op == absl::string_view("gather")) {
    run.In("Index", kernels::I64({8}, {7, 0, 3, 3, 20, 1, 9, 27}));
  }
  for (const auto& attr : c.attrs) run.Attr(attr.first, attr.second);
  run.Run();
  for (auto step : state) run.Enqueue();
  ReportBytes(state, run.TensorBytes(), threads);
}

void RunCase(benchmark::State& state, const Case& c, DType dtype) {
  RunScaled(state, c, dtype, 1, 1);
}
void RunLarge(benchmark::State& state, const Case& c, DType dtype) {
  RunScaled(state, c, dtype, kLarge, 1);
}
void RunOnAll(benchmark::State& state, const Case& c, DType dtype) {
  RunScaled(state, c, dtype, kLarge, AllThreads());
}

const bool kRegistered = RegisterCases(kCases, RunCase) &&
                         RegisterCases(kCases, RunLarge, "/large") &&
                         RegisterCases(kCases, RunOnAll, "/large/all", true);

}  // namespace
}  // namespace halftone
