#include "graph/import/onnx_same.h"

namespace halftone {

const std::vector<OnnxSame>& OnnxSameOps() {
  static const auto& ops = *new std::vector<OnnxSame>{
      {"Abs", "abs"},
      {"Add", "elementwise_add", 2},
      {"Atan", "atan"},
      {"Ceil", "ceil"},
      {"Cos", "cos"},
      {"Div", "elementwise_div", 2},
      {"Elu", "elu", 1, {{"alpha", "alpha", 1}}},
      {"Equal", "equal", 2},
      {"Erf", "erf"},
      {"Exp", "exp"},
      {"Floor", "floor"},
      {"Greater", "greater_than", 2},
      {"GreaterOrEqual", "greater_equal", 2},
      {"HardSigmoid",
       "hard_sigmoid",
       1,
       {{"alpha", "slope", 0.2}, {"beta", "offset", 0.5}}},
      {"LeakyRelu", "leaky_relu", 1, {{"alpha", "alpha", 0.01}}},
      {"Less", "less_than", 2},
      {"LessOrEqual", "less_equal", 2},
      {"Log", "log"},
      {"Mul", "elementwise_mul", 2},
      {"Neg", "neg"},
      {"Reciprocal", "reciprocal"},
      {"Relu", "relu"},
      {"Sigmoid", "sigmoid"},
      {"Sign", "sign"},
      {"Sin", "sin"},
      {"Sqrt", "sqrt"},
      {"Sub", "elementwise_sub", 2},
      {"Tanh", "tanh"},
  };
  return ops;
}

const OnnxSame* FindOnnxSame(absl::string_view onnx) {
  for (const OnnxSame& same : OnnxSameOps()) {
    if (same.onnx == onnx) return &same;
  }
  return nullptr;
}

}  // namespace halftone
