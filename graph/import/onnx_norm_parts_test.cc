#include "graph/import/onnx_norm_parts.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Graph;
using onnx_testing::Import;
using onnx_testing::Info;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Scalar(const std::string& name, const std::string& value) {
  return Node(
      "Constant", {}, name,
      "attribute { name: \"value_float\" type: FLOAT f: " + value + " }");
}

std::string OfSize(const std::string& name, const std::string& size) {
  return "initializer { name: \"" + name + "\" data_type: 1 dims: " + size +
         " float_data: [1, 2, 3, 4, 5, 6] }\n";
}

std::string OfNumbers(const std::string& body) {
  return Import(Graph(Scalar("two", "2") + Scalar("one", "1") +
                      Scalar("epsilon", "0.001") + OfSize("w", "6") + body));
}

// mean(x x) + epsilon, "v".
std::string Variance(const std::string& x = "x", const std::string& axis = "-1",
                     const std::string& keep = "1") {
  return Node("Pow", {x, "two"}, "square") +
         Node("ReduceMean", {"square"}, "mean",
              "attribute { name: \"axes\" type: INTS ints: " + axis +
                  " } attribute { name: \"keepdims\" type: INT i: " + keep +
                  " }") +
         Node("Add", {"mean", "epsilon"}, "v");
}

constexpr char kScaled[] =
    "op { type: \"rms_norm\" in { slot: \"X\" var: \"x\" } in { slot: "
    "\"Scale\" var: \"w\" } out { slot: \"Y\" var: \"y\" }\n"
    "     attr { name: \"epsilon\" f: 0.001 } }\noutput: \"y\"";

// As PyTorch's exporters write rsqrt, and as a quotient.
TEST(OnnxNormParts, RmsNormIsOneOp) {
  const std::string root = Variance() + Node("Sqrt", {"v"}, "root");
  const std::string inverse = root + Node("Reciprocal", {"root"}, "r");
  EXPECT_THAT(OfNumbers(inverse + Node("Mul", {"x", "r"}, "a") +
                        Node("Mul", {"a", "w"}, "y")),
              HasSubstr(kScaled));
  EXPECT_THAT(
      OfNumbers(root + Node("Div", {"one", "root"}, "r") +
                Node("Mul", {"r", "x"}, "a") + Node("Mul", {"w", "a"}, "y")),
      HasSubstr(kScaled));
  EXPECT_THAT(OfNumbers(root + Node("Div", {"x", "root"}, "a") +
                        Node("Mul", {"a", "w"}, "y")),
              HasSubstr(kScaled));
  // Without weights; with weights that are computed.
  EXPECT_THAT(OfNumbers(inverse + Node("Mul", {"x", "r"}, "y")),
              AllOf(HasSubstr("\"rms_norm\""), Not(HasSubstr("Scale")),
                    Not(HasSubstr("square"))));
  EXPECT_THAT(OfNumbers(inverse + Node("Mul", {"x", "r"}, "a") +
                        Node("Add", {"w", "one"}, "more") +
                        Node("Mul", {"a", "more"}, "y")),
              HasSubstr("in { slot: \"Scale\" var: \"more\" }"));
}

TEST(OnnxNormParts, OtherQuotientsStay) {
  const auto end = [](const std::string& x) {
    return Node("Sqrt", {"v"}, "root") + Node("Div", {x, "root"}, "y");
  };
  const auto stays = Not(HasSubstr("rms_norm"));
  EXPECT_THAT(OfNumbers(Variance() + end("x")), HasSubstr("rms_norm"));
  EXPECT_THAT(OfNumbers(Variance("x", "1") + end("x")), stays);
  EXPECT_THAT(
      OfNumbers(Node("Abs", {"x"}, "other") + Variance("other") + end("x")),
      stays);
  // What lies between is read elsewhere, or wanted.
  for (const char* inner : {"square", "mean", "v", "root"}) {
    EXPECT_THAT(OfNumbers(Variance() + end("x") + "output " + Info(inner, {})),
                stays);
  }
  // Weights that are no list of the last dim; a norm that others read.
  const std::string norm = Variance() + Node("Sqrt", {"v"}, "root") +
                           Node("Div", {"x", "root"}, "a");
  const auto scale_stays =
      AllOf(HasSubstr("rms_norm"), HasSubstr("elementwise_mul"),
            Not(HasSubstr("\"Scale\"")));
  EXPECT_THAT(OfNumbers(norm + Node("Mul", {"a", "x"}, "y")), scale_stays);
  EXPECT_THAT(OfNumbers(norm + Node("Mul", {"a", "w"}, "b") +
                        Node("Add", {"a", "b"}, "y")),
              scale_stays);
}

}  // namespace
}  // namespace halftone
