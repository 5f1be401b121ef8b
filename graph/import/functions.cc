#include "graph/import/functions.h"

#include <cmath>

#include "graph/base/dtype.h"

namespace halftone {
namespace {

using Settings = std::vector<double>;

// ---- Of angles.

std::string Tan(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Binary("elementwise_div", {ops.Of("sin", x), ops.Of("cos", x)});
}

// The arctangent of X / sqrt((1 - X) (1 + X)).
std::string Asin(OpWriter& ops, const std::string& x, const Settings&) {
  const std::string product = ops.Binary(
      "elementwise_mul", {ops.Scaled(x, -1, 1), ops.Scaled(x, 1, 1)});
  const std::string tangent =
      ops.Binary("elementwise_div", {x, ops.Of("sqrt", product)});
  return ops.Of("atan", tangent);
}

// Twice the arctangent of sqrt((1 - X) / (1 + X)), which loses nothing
// beside 1.
std::string Acos(OpWriter& ops, const std::string& x, const Settings&) {
  const std::string ratio = ops.Binary(
      "elementwise_div", {ops.Scaled(x, -1, 1), ops.Scaled(x, 1, 1)});
  return ops.Scaled(ops.Of("atan", ops.Of("sqrt", ratio)), 2);
}

// ---- Of exponentials and logarithms.

std::string Cosh(OpWriter& ops, const std::string& x, const Settings&) {
  const std::string both = ops.Binary(
      "elementwise_add", {ops.Of("exp", x), ops.Of("exp", ops.Scaled(x, -1))});
  return ops.Scaled(both, 0.5);
}

// cosh(X) tanh(X), which loses nothing beside 0.
std::string Sinh(OpWriter& ops, const std::string& x, const Settings& none) {
  return ops.Binary("elementwise_mul", {Cosh(ops, x, none), ops.Of("tanh", x)});
}

// (exp(X) + 1) tanh(X / 2), likewise.
std::string Expm1(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Binary("elementwise_mul", {ops.Scaled(ops.Of("exp", x), 1, 1),
                                        ops.Of("tanh", ops.Scaled(x, 0.5))});
}

std::string Log1p(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Of("log", ops.Scaled(x, 1, 1));
}
std::string Log2(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Scaled(ops.Of("log", x), 1 / std::log(2.0));
}
std::string Log10(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Scaled(ops.Of("log", x), 1 / std::log(10.0));
}

// ln(X + sqrt(X^2 - 1)).
std::string Acosh(OpWriter& ops, const std::string& x, const Settings&) {
  const std::string root =
      ops.Of("sqrt", ops.Scaled(ops.Of("square", x), 1, -1));
  return ops.Of("log", ops.Binary("elementwise_add", {x, root}));
}

// sign(X) * ln(|X| + sqrt(X^2 + 1)).
std::string Asinh(OpWriter& ops, const std::string& x, const Settings&) {
  const std::string root =
      ops.Of("sqrt", ops.Scaled(ops.Of("square", x), 1, 1));
  const std::string sum =
      ops.Binary("elementwise_add", {ops.Of("abs", x), root});
  return ops.Binary("elementwise_mul", {ops.Of("log", sum), ops.Of("sign", x)});
}

// ln((1 + X) / (1 - X)) / 2.
std::string Atanh(OpWriter& ops, const std::string& x, const Settings&) {
  const std::string ratio = ops.Binary(
      "elementwise_div", {ops.Scaled(x, 1, 1), ops.Scaled(x, -1, 1)});
  return ops.Scaled(ops.Of("log", ratio), 0.5);
}

// ln(X / (1 - X)), X kept eps from 0 and 1 if eps is not 0.
std::string Logit(OpWriter& ops, const std::string& x, const Settings& by) {
  const double eps = by[0];
  std::string kept = x;
  if (eps > 0) {
    kept = ops.Add("clip", {{"X", x}}, {{"min", eps}, {"max", 1 - eps}});
  }
  return ops.Of("log",
                ops.Binary("elementwise_div", {kept, ops.Scaled(kept, -1, 1)}));
}

// -ln(1 + exp(-X)).
std::string LogSigmoid(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Scaled(ops.Of("softplus", ops.Scaled(x, -1)), -1);
}

// ---- Activations.

// scale * elu(X), with alpha.
std::string Selu(OpWriter& ops, const std::string& x, const Settings& by) {
  return ops.Scaled(ops.Add("elu", {{"X", x}}, {{"alpha", by[0]}}), by[1]);
}

// alpha * elu(X / alpha); as alpha goes to 0, relu.
std::string Celu(OpWriter& ops, const std::string& x, const Settings& by) {
  if (by[0] == 0) return ops.Of("relu", x);
  return ops.Scaled(ops.Of("elu", ops.Scaled(x, 1 / by[0])), by[0]);
}

// X / (1 + |X|).
std::string Softsign(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Binary("elementwise_div", {x, ops.Scaled(ops.Of("abs", x), 1, 1)});
}

// scale_b * tanh(scale_a * X).
std::string Stanh(OpWriter& ops, const std::string& x, const Settings& by) {
  return ops.Scaled(ops.Of("tanh", ops.Scaled(x, by[0])), by[1]);
}

std::string TanhShrink(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Binary("elementwise_sub", {x, ops.Of("tanh", x)});
}

// X where X > threshold, else 0.
std::string ThresholdedRelu(OpWriter& ops, const std::string& x,
                            const Settings& by) {
  const std::string passes = ops.Binary("greater_than", {x, ops.Number(by[0])});
  return ops.Add("where",
                 {{"Condition", passes}, {"X", x}, {"Y", ops.Number(0)}});
}

// X - bias above edge, X + bias below -edge, 0 between.
std::string Shrink(OpWriter& ops, const std::string& x, const Settings& by) {
  const double edge = by[0], bias = by[1];
  const std::string outside =
      ops.Binary("greater_than", {ops.Of("abs", x), ops.Number(edge)});
  std::string moved = x;
  if (bias != 0) {
    moved =
        ops.Binary("elementwise_sub", {x, ops.Scaled(ops.Of("sign", x), bias)});
  }
  return ops.Add("where",
                 {{"Condition", outside}, {"X", moved}, {"Y", ops.Number(0)}});
}
std::string HardShrink(OpWriter& ops, const std::string& x,
                       const Settings& by) {
  return Shrink(ops, x, {by[0], 0});
}
std::string SoftShrink(OpWriter& ops, const std::string& x,
                       const Settings& by) {
  return Shrink(ops, x, {by[0], by[0]});
}

// Towards 0.
std::string Truncate(OpWriter& ops, const std::string& x, const Settings&) {
  return ops.Binary("elementwise_mul",
                    {ops.Of("floor", ops.Of("abs", x)), ops.Of("sign", x)});
}

// Pixels 0, 1, ... of a dim between -1 and 1: their centers, or, aligned, the
// first and the last one at both ends; one alone is at 0. As row or column of
// [height, width], flat.
std::string PixelsOf(OpWriter& ops, int64_t count, const Dims& dims,
                     int64_t height, int64_t width, bool align_corners) {
  const double n = static_cast<double>(count);
  const double step = !align_corners ? 2 / n : count == 1 ? 0 : 2 / (n - 1);
  const double first = align_corners && count > 1 ? -1 : 1 / n - 1;
  const std::string numbers = ops.Add(
      "arange", {}, {{"start", 0.0}, {"end", n}, {"dtype", DType::kF32}});
  const std::string along =
      ops.Reshaped(ops.Scaled(numbers, step, first), dims);
  const std::string all =
      ops.Add("expand_v2", {{"X", along}},
              {{"shape", std::vector<int64_t>{height, width}}});
  return ops.Reshaped(all, {Dim(1), Dim(height * width)});
}

constexpr double kSeluAlpha = 1.67326319217681884765625;
constexpr double kSeluScale = 1.05070102214813232421875;

}  // namespace

const std::vector<ImportedFunction>& ImportedFunctions() {
  static const auto& functions = *new std::vector<ImportedFunction>{
      {"acos", "Acos", Acos},
      {"acosh", "Acosh", Acosh},
      {"asin", "Asin", Asin},
      {"asinh", "Asinh", Asinh},
      {"atanh", "Atanh", Atanh},
      {"celu", "Celu", Celu, {{"alpha", 1}}, {{"alpha", 1}}},
      {"cosh", "Cosh", Cosh},
      {"expm1", "", Expm1},
      {"hard_shrink", "", HardShrink, {{"threshold", 0.5}}},
      {"log10", "", Log10},
      {"log1p", "", Log1p},
      {"log2", "", Log2},
      {"logit", "", Logit, {{"eps", 1e-6}}},
      {"logsigmoid", "", LogSigmoid},
      {"selu",
       "Selu",
       Selu,
       {{"alpha", kSeluAlpha}, {"scale", kSeluScale}},
       {{"alpha", kSeluAlpha}, {"gamma", kSeluScale}}},
      {"", "Shrink", Shrink, {}, {{"lambd", 0.5}, {"bias", 0}}},
      {"sinh", "Sinh", Sinh},
      {"softshrink", "", SoftShrink, {{"lambda", 0.5}}},
      {"softsign", "Softsign", Softsign},
      {"stanh", "", Stanh, {{"scale_a", 0.67}, {"scale_b", 1.7159}}},
      {"tan", "Tan", Tan},
      {"tanh_shrink", "", TanhShrink},
      {"thresholded_relu",
       "ThresholdedRelu",
       ThresholdedRelu,
       {{"threshold", 1}},
       {{"alpha", 1}}},
      {"trunc", "", Truncate},
  };
  return functions;
}

const ImportedFunction* FindPaddleFunction(absl::string_view type) {
  for (const ImportedFunction& function : ImportedFunctions()) {
    if (!function.paddle.empty() && function.paddle == type) return &function;
  }
  return nullptr;
}

const ImportedFunction* FindOnnxFunction(absl::string_view type) {
  for (const ImportedFunction& function : ImportedFunctions()) {
    if (!function.onnx.empty() && function.onnx == type) return &function;
  }
  return nullptr;
}

bool HasAffineGrid(int64_t height, int64_t width) {
  return height > 0 && width > 0 && height < kMostPlaces &&
         width < kMostPlaces && height * width < kMostPlaces;
}

std::string AffineGrid(OpWriter& ops, const std::string& theta,
                       const Dim& batch, int64_t height, int64_t width,
                       bool align_corners) {
  const std::string x =
      PixelsOf(ops, width, {Dim(1), Dim(width)}, height, width, align_corners);
  const std::string y = PixelsOf(ops, height, {Dim(height), Dim(1)}, height,
                                 width, align_corners);
  const std::string ones = ops.Scaled(x, 0, 1);
  const std::string places = ops.Add(
      "concat", {{"X", x}, {"X", y}, {"X", ones}}, {{"axis", int64_t{0}}});
  const std::string made = ops.Binary("matmul", {theta, places});
  const std::string last = ops.Add("transpose2", {{"X", made}},
                                   {{"axis", std::vector<int64_t>{0, 2, 1}}});
  return ops.Reshaped(last, {batch, Dim(height), Dim(width), Dim(2)});
}

}  // namespace halftone
