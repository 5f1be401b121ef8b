#include "tests/models/model_text.h"

#include "absl/strings/str_cat.h"

namespace halftone {
namespace runtime {

std::string Param(const std::string& name, const std::string& dims,
                  const std::string& init) {
  return absl::StrCat("param { name: \"", name, "\" dims: [", dims, "] init { ",
                      init, " } }\n");
}

std::string Op(const std::string& type,
               const std::vector<std::pair<std::string, std::string>>& in,
               const std::string& out_slot, const std::string& out,
               const std::string& attrs) {
  std::string text = absl::StrCat("op { type: \"", type, "\"");
  for (const auto& [slot, var] : in) {
    absl::StrAppend(&text, " in { slot: \"", slot, "\" var: \"", var, "\" }");
  }
  return absl::StrCat(text, " out { slot: \"", out_slot, "\" var: \"", out,
                      "\" } ", attrs, "}\n");
}

std::string Unary(const std::string& type, const std::string& x,
                  const std::string& out) {
  return Op(type, {{"X", x}}, "Out", out);
}

std::string Binary(const std::string& type, const std::string& x,
                   const std::string& y, const std::string& out) {
  return Op(type, {{"X", x}, {"Y", y}}, "Out", out);
}

std::string Matmul(const std::string& x, const std::string& w,
                   const std::string& b, const std::string& out) {
  std::vector<std::pair<std::string, std::string>> in = {{"X", x}, {"Y", w}};
  if (!b.empty()) in.push_back({"Bias", b});
  return Op("matmul", in, "Out", out);
}

std::string BatchNorm(const std::string& x, int channels,
                      const std::string& scale, const std::string& bias,
                      const std::string& out) {
  return absl::StrCat(
      "stat { name: \"m\" dims: [", channels, "] init { constant: 0 } }\n",
      "stat { name: \"v\" dims: [", channels, "] init { constant: 1 } }\n",
      Op("batch_norm",
         {{"X", x},
          {"Scale", scale},
          {"Bias", bias},
          {"Mean", "m"},
          {"Variance", "v"}},
         "Y", out));
}

std::string Conv(const std::string& x, const std::string& w,
                 const std::string& b, const std::string& out) {
  return Op("conv2d", {{"Input", x}, {"Filter", w}, {"Bias", b}}, "Output", out,
            "attr { name: \"paddings\" ints: [1, 1] }");
}

std::string Add(const std::string& x, const std::string& y,
                const std::string& out) {
  return Binary("elementwise_add", x, y, out);
}

std::string CrossEntropy() {
  return absl::StrCat(
      Op("softmax_with_cross_entropy",
         {{"Logits", "logits"}, {"Label", "label"}}, "Loss", "ce"),
      Unary("mean", "ce", "loss"),
      Op("correct_count", {{"X", "logits"}, {"Label", "label"}}, "Out",
         "correct"),
      "loss { var: \"loss\" mean_over: \"ce\" }\n"
      "metric { name: \"top1\" var: \"correct\" over: \"ce\" }\n");
}

const char kSixFeatures[] = R"(name: "features"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "label" dtype: I64 dims: [-1] }
)";

std::string Perceptron() {
  return absl::StrCat(kSixFeatures, Param("w1", "6, 12"), Param("b1", "12"),
                      Param("w2", "12, 4"), Param("b2", "4"),
                      Matmul("x", "w1", "b1", "h"), Unary("tanh", "h", "t"),
                      Matmul("t", "w2", "b2", "logits"), CrossEntropy());
}

std::string Masked() {
  return absl::StrCat(
      kSixFeatures, "feed { name: \"keep\" dtype: BOOL dims: [-1] }\n",
      Param("w", "6, 4"), Param("b", "4"),
      Op("cast", {{"X", "keep"}}, "Out", "mask",
         "attr { name: \"to\" s: \"f32\" }"),
      Matmul("x", "w", "b", "logits"),
      Op("softmax_with_cross_entropy",
         {{"Logits", "logits"}, {"Label", "label"}}, "Loss", "ce"),
      Binary("elementwise_mul", "ce", "mask", "kept"),
      Unary("reduce_sum", "kept", "sum"), Unary("reduce_sum", "mask", "n"),
      Binary("elementwise_div", "sum", "n", "loss"),
      "loss { var: \"loss\" mean_over: \"ce\" mask: \"mask\" }\n");
}

}  // namespace runtime
}  // namespace halftone
