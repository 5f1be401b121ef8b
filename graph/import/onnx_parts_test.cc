#include "graph/import/onnx_parts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Graph;
using onnx_testing::Import;
using onnx_testing::Info;
using onnx_testing::Ints;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Transpose(const std::string& in, const std::string& order,
                      const std::string& out) {
  return Node("Transpose", {in}, out,
              absl::StrCat("attribute { name: \"perm\" type: INTS ints: [",
                           order, "] }"));
}

std::string Scalar(const std::string& name, const std::string& value) {
  return Node("Constant", {}, name,
              absl::StrCat("attribute { name: \"value_float\" type: FLOAT f: ",
                           value, " }"));
}

// ---- Products with weights.

std::string Floats(const std::string& name, const std::vector<int>& dims) {
  int count = 1;
  std::string text =
      absl::StrCat("initializer { name: \"", name, "\" data_type: 1");
  for (const int dim : dims) {
    absl::StrAppend(&text, " dims: ", dim);
    count *= dim;
  }
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, " float_data: ", i);
  return text + " }\n";
}

// Of x, f32[N, 4, 6]: "w" is f32[5, 6], "b" f32[5], "square" f32[6, 6].
std::string OfWeights(const std::string& body) {
  return Import(Graph(Floats("w", {5, 6}) + Floats("b", {5}) +
                      Floats("column", {1}) + Floats("square", {6, 6}) + body));
}

constexpr char kLinear[] =
    "op { type: \"matmul\" in { slot: \"X\" var: \"x\" } in { slot: \"Y\" var: "
    "\"w\" } in { slot: \"Bias\" var: \"b\" } out { slot: \"Out\" var: \"y\" "
    "}\n"
    "     attr { name: \"trans_y\" b: true } }\noutput: \"y\"";

// As PyTorch exports nn.Linear of three dims.
TEST(OnnxParts, ALinearLayerIsOneOp) {
  for (const bool bias_first : {true, false}) {
    const std::string first = bias_first ? "b" : "xw";
    const std::string second = bias_first ? "xw" : "b";
    const std::string text = OfWeights(Transpose("w", "1, 0", "turned") +
                                       Node("MatMul", {"x", "turned"}, "xw") +
                                       Node("Add", {first, second}, "y"));
    EXPECT_THAT(text, HasSubstr(kLinear));
    EXPECT_THAT(text, AllOf(Not(HasSubstr("transpose")),
                            Not(HasSubstr("reshape")), Not(HasSubstr("add"))));
    EXPECT_THAT(text, HasSubstr("param { name: \"w\" dims: [5, 6]"));
  }
}

// One weight of two layers, or one and no bias.
TEST(OnnxParts, TransposesThatProductsAloneReadAreTheirs) {
  EXPECT_THAT(
      OfWeights(Transpose("square", "1, 0", "turned") +
                Node("MatMul", {"x", "turned"}, "a") +
                Node("MatMul", {"a", "turned"}, "y")),
      AllOf(
          Not(HasSubstr("transpose")),
          HasSubstr("in { slot: \"Y\" var: \"square\" } out { slot: \"Out\" "
                    "var: \"y\" }\n     attr { name: \"trans_y\" b: true }")));
  // Keys of heads.
  EXPECT_THAT(OfWeights(Transpose("x", "0, 2, 1", "turned") +
                        Node("MatMul", {"x", "turned"}, "y")),
              AllOf(Not(HasSubstr("transpose")), HasSubstr("trans_y")));
  EXPECT_THAT(OfWeights(Transpose("square", "1, 0", "turned") +
                        Node("MatMul", {"x", "turned"}, "a") +
                        Node("Add", {"a", "turned"}, "never") +
                        Node("Relu", {"a"}, "y")),
              Not(HasSubstr("transpose")));
}

TEST(OnnxParts, TransposesThatOthersReadStay) {
  const auto stays = AllOf(HasSubstr("\"transpose\""),
                           Not(HasSubstr("trans_y")), HasSubstr("\"matmul\""));
  // As X, too.
  EXPECT_THAT(OfWeights(Transpose("square", "1, 0", "turned") +
                        Node("MatMul", {"turned", "turned"}, "y")),
              stays);
  EXPECT_THAT(OfWeights(Transpose("square", "1, 0", "turned") +
                        Node("MatMul", {"square", "turned"}, "a") +
                        Node("Add", {"a", "turned"}, "y")),
              stays);
  EXPECT_THAT(OfWeights(Transpose("square", "1, 0", "turned") +
                        Node("MatMul", {"x", "turned"}, "y") + "output " +
                        Info("turned", {})),
              stays);
  // Other dims change places.
  EXPECT_THAT(OfWeights(Floats("many", {4, 6, 6}) +
                        Transpose("many", "1, 0, 2", "turned") +
                        Transpose("turned", "1, 2, 0", "again") +
                        Node("MatMul", {"many", "again"}, "y")),
              stays);
}

TEST(OnnxParts, OtherSumsStay) {
  const auto stays = AllOf(HasSubstr("\"elementwise_add\""),
                           Not(HasSubstr("\"Bias\"")), HasSubstr("\"matmul\""));
  const std::string product =
      Transpose("w", "1, 0", "turned") + Node("MatMul", {"x", "turned"}, "xw");
  // The product is read elsewhere, or wanted.
  EXPECT_THAT(OfWeights(product + Node("Add", {"xw", "b"}, "a") +
                        Node("Mul", {"a", "xw"}, "y")),
              stays);
  EXPECT_THAT(OfWeights(product + Node("Add", {"xw", "xw"}, "y")), stays);
  EXPECT_THAT(OfWeights(product + Node("Add", {"xw", "b"}, "y") + "output " +
                        Info("xw", {})),
              stays);
  // Not [N].
  EXPECT_THAT(OfWeights(product + Node("Add", {"xw", "column"}, "y")), stays);
  EXPECT_THAT(OfWeights(Floats("rows", {4, 5}) + product +
                        Node("Add", {"xw", "rows"}, "y")),
              stays);
  // A product has one bias.
  EXPECT_THAT(OfWeights(product + Node("Add", {"xw", "b"}, "a") +
                        Node("Add", {"a", "b"}, "y")),
              AllOf(HasSubstr("\"elementwise_add\""), HasSubstr("\"Bias\"")));
}

// ---- Activations.

std::string OfNumbers(const std::string& body) {
  return Import(Graph(
      Scalar("root", "1.4142135") + Scalar("one", "1") + Scalar("half", "0.5") +
      Scalar("three", "3") + Scalar("two", "2") + Scalar("cubic", "0.044715") +
      Scalar("beta", "0.7978846") + Scalar("quick", "1.702") + body));
}

// 1 + erf(x / sqrt(2)).
std::string Erf(const std::string& root = "root",
                const std::string& one = "one") {
  return Node("Div", {"x", root}, "a") + Node("Erf", {"a"}, "b") +
         Node("Add", {"b", one}, "c");
}

constexpr char kGelu[] =
    "name: \"net\"  format: 1\n"
    "feed { name: \"x\" dtype: F32 dims: [-1, 4, 6] }\n"
    "op { type: \"gelu\" in { slot: \"X\" var: \"x\" } "
    "out { slot: \"Out\" var: \"y\" } }\n"
    "output: \"y\"\n";

TEST(OnnxParts, GeluIsOneOpInWhateverOrderItMultiplies) {
  // PyTorch's, transformers', TensorFlow's.
  EXPECT_EQ(OfNumbers(Erf() + Node("Mul", {"x", "c"}, "d") +
                      Node("Mul", {"d", "half"}, "y")),
            kGelu);
  EXPECT_EQ(OfNumbers(Erf() + Node("Mul", {"x", "half"}, "d") +
                      Node("Mul", {"d", "c"}, "y")),
            kGelu);
  EXPECT_EQ(OfNumbers(Erf() + Node("Mul", {"half", "c"}, "d") +
                      Node("Mul", {"d", "x"}, "y")),
            kGelu);
}

TEST(OnnxParts, OtherProductsWithErfStay) {
  const std::string end =
      Node("Mul", {"x", "c"}, "d") + Node("Mul", {"d", "half"}, "y");
  const auto stays = AllOf(HasSubstr("\"erf\""), Not(HasSubstr("\"gelu\"")));
  EXPECT_THAT(OfNumbers(Erf("two") + end), stays);
  EXPECT_THAT(OfNumbers(Erf("root", "half") + end), stays);
  EXPECT_THAT(OfNumbers(Erf() + Node("Mul", {"x", "c"}, "y")), stays);
  EXPECT_THAT(OfNumbers(Erf() + Node("Abs", {"x"}, "other") +
                        Node("Mul", {"other", "c"}, "d") +
                        Node("Mul", {"d", "half"}, "y")),
              stays);
  // What lies between is read elsewhere, or wanted.
  EXPECT_THAT(
      OfNumbers(Erf() + Node("Mul", {"x", "c"}, "d") +
                Node("Mul", {"d", "half"}, "e") + Node("Add", {"e", "b"}, "y")),
      stays);
  for (const char* inner : {"a", "b", "c", "d"}) {
    EXPECT_THAT(OfNumbers(Erf() + end + "output " + Info(inner, {})), stays);
  }
}

TEST(OnnxParts, GeluWithTanhIsOneOp) {
  const auto gelu =
      AllOf(HasSubstr("op { type: \"gelu\" in { slot: \"X\" var: \"x\" } out { "
                      "slot: \"Out\" var: \"y\" } attr { name: \"approximate\" "
                      "s: \"tanh\" } }\noutput"),
            Not(HasSubstr("\"tanh\" in")), Not(HasSubstr("scale")));
  // From b, the argument; as GPT-2 ends, and PyTorch.
  const std::string one_more =
      Node("Tanh", {"b"}, "c") + Node("Add", {"c", "one"}, "d");
  const std::string end =
      one_more + Node("Mul", {"half", "x"}, "e") + Node("Mul", {"e", "d"}, "y");
  const std::string other_end =
      one_more + Node("Mul", {"x", "d"}, "e") + Node("Mul", {"half", "e"}, "y");
  const std::string sum = Node("Mul", {"cubic", "cube"}, "part") +
                          Node("Add", {"x", "part"}, "sum") +
                          Node("Mul", {"beta", "sum"}, "b");
  const std::string power = Node("Pow", {"x", "three"}, "cube");
  const std::string product =
      Node("Mul", {"x", "x"}, "square") + Node("Mul", {"x", "square"}, "cube");
  EXPECT_THAT(OfNumbers(power + sum + end), gelu);
  EXPECT_THAT(OfNumbers(product + sum + other_end), gelu);
  // sqrt(2 / pi) x (1 + 0.044715 x x).
  EXPECT_THAT(OfNumbers(Node("Mul", {"cubic", "x"}, "by") +
                        Node("Mul", {"by", "x"}, "square") +
                        Node("Add", {"square", "one"}, "factor") +
                        Node("Mul", {"x", "beta"}, "a") +
                        Node("Mul", {"a", "factor"}, "b") + end),
              gelu);
  const auto stays = Not(HasSubstr("\"gelu\""));
  EXPECT_THAT(OfNumbers(Node("Pow", {"x", "two"}, "cube") + sum + end), stays);
  EXPECT_THAT(OfNumbers(power + Node("Mul", {"quick", "cube"}, "part") +
                        Node("Add", {"x", "part"}, "sum") +
                        Node("Mul", {"beta", "sum"}, "b") + end),
              stays);
  EXPECT_THAT(OfNumbers(power + sum + end + "output " + Info("cube", {})),
              stays);
}

TEST(OnnxParts, SwishIsOneOp) {
  EXPECT_THAT(
      OfNumbers(Node("Sigmoid", {"x"}, "a") + Node("Mul", {"x", "a"}, "y")),
      AllOf(HasSubstr("\"swish\""), Not(HasSubstr("sigmoid")),
            Not(HasSubstr("beta"))));
  // quick_gelu.
  EXPECT_THAT(
      OfNumbers(Node("Mul", {"x", "quick"}, "a") + Node("Sigmoid", {"a"}, "b") +
                Node("Mul", {"x", "b"}, "y")),
      AllOf(HasSubstr("\"swish\""), Not(HasSubstr("sigmoid")),
            HasSubstr("attr { name: \"beta\" f: 1.702 }")));
  const auto stays = AllOf(HasSubstr("\"sigmoid\""), Not(HasSubstr("swish")));
  // A gate of another value; one that others read.
  EXPECT_THAT(OfNumbers(Node("Abs", {"x"}, "a") + Node("Sigmoid", {"a"}, "b") +
                        Node("Mul", {"x", "b"}, "y")),
              stays);
  EXPECT_THAT(
      OfNumbers(Node("Sigmoid", {"x"}, "a") + Node("Mul", {"x", "a"}, "b") +
                Node("Add", {"a", "b"}, "y")),
      stays);
}

// ---- Norms of groups of channels.

std::string Reals(const std::string& name, const std::vector<int>& dims,
                  const std::string& value, const char* kind) {
  int count = 1;
  std::string text = absl::StrCat("data_type: 1 name: \"", name, "\"");
  for (const int dim : dims) {
    absl::StrAppend(&text, " dims: ", dim);
    count *= dim;
  }
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&text, " float_data: ", value);
  if (std::string(kind) == "initializer") {
    return absl::StrCat("initializer { ", text, " }\n");
  }
  return Node("Constant", {}, name,
              absl::StrCat("attribute { name: \"value\" type: TENSOR t { ",
                           text, " } }"));
}

// Of x, f32[N, 4, 6], in groups: to "back". As PyTorch writes it, scale and
// bias of the groups are constants; its newer exporter makes initialisers.
std::string InGroups(const char* kind, const std::string& groups = "2",
                     const std::string& ones = "1") {
  const int count = groups == "2" ? 2 : 3;
  return absl::StrCat(
      "initializer { name: \"shape\" data_type: 7 dims: 3 int64_data: 0 "
      "int64_data: ",
      groups, " int64_data: -1 }\n", Ints("dims", {0, 4, 6}), Floats("w", {4}),
      Floats("b", {4}), Ints("one", {1}), Reals("ones", {count}, ones, kind),
      Reals("zeros", {count}, "0", kind),
      Node("Reshape", {"x", "shape"}, "grouped"),
      Node("InstanceNormalization", {"grouped", "ones", "zeros"}, "normal",
           "attribute { name: \"epsilon\" type: FLOAT f: 0.5 }"),
      Node("Reshape", {"normal", "dims"}, "back"));
}

std::string Affine() {
  return Node("Unsqueeze", {"w", "one"}, "wide_w") +
         Node("Unsqueeze", {"b", "one"}, "wide_b") +
         Node("Mul", {"back", "wide_w"}, "scaled") +
         Node("Add", {"scaled", "wide_b"}, "y");
}

constexpr char kGroupNorm[] =
    "param { name: \"w\" dims: [4] init { constant: 0 } }\n"
    "param { name: \"b\" dims: [4] init { constant: 0 } }\n"
    "op { type: \"group_norm\" in { slot: \"X\" var: \"x\" } in { slot: "
    "\"Scale\" var: \"w\" } in { slot: \"Bias\" var: \"b\" }\n"
    "     out { slot: \"Y\" var: \"y\" } attr { name: \"epsilon\" f: 0.5 } "
    "attr { name: \"groups\" i: 2 } }\n"
    "output: \"y\"\n";

// Scale and bias are trained under their own names.
TEST(OnnxParts, AGroupNormIsOneOp) {
  for (const char* kind : {"constant", "initializer"}) {
    EXPECT_THAT(Import(Graph(InGroups(kind) + Affine())),
                HasSubstr(kGroupNorm));
  }
  // The other way round.
  EXPECT_THAT(Import(Graph(InGroups("constant") +
                           Node("Unsqueeze", {"w", "one"}, "wide_w") +
                           Node("Unsqueeze", {"b", "one"}, "wide_b") +
                           Node("Mul", {"wide_w", "back"}, "scaled") +
                           Node("Add", {"wide_b", "scaled"}, "y"))),
              HasSubstr(kGroupNorm));
}

// As an exporter that folds constants has them.
TEST(OnnxParts, AGroupNormsParametersOfMoreDimsStayTheFiles) {
  const std::string text = Import(Graph(
      InGroups("initializer") + Floats("wide_w", {4, 1}) +
      Floats("wide_b", {4, 1}) + Node("Mul", {"back", "wide_w"}, "scaled") +
      Node("Add", {"scaled", "wide_b"}, "y")));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("param { name: \"wide_w\" dims: [4, 1]"),
            HasSubstr("op { type: \"reshape\" in { slot: \"X\" var: "
                      "\"wide_w\" } out { slot: \"Out\" var: "
                      "\"wide_w.channels\" } attr { name: \"shape\" ints: "
                      "[-1] } }"),
            HasSubstr("in { slot: \"Scale\" var: \"wide_w.channels\" }"),
            HasSubstr("in { slot: \"Bias\" var: \"wide_b.channels\" }"),
            Not(HasSubstr("instance_norm")), Not(HasSubstr("elementwise"))));
}

TEST(OnnxParts, AGroupNormMayLackScaleAndBias) {
  const auto plain =
      AllOf(HasSubstr("op { type: \"group_norm\" in { slot: \"X\" var: \"x\" } "
                      "out { slot: \"Y\" var: \"back\" } attr"),
            Not(HasSubstr("Scale")), Not(HasSubstr("Bias")));
  EXPECT_THAT(Import(Graph(InGroups("constant") + Node("Relu", {"back"}, "y"))),
              plain);
  // What else it is multiplied by stays.
  EXPECT_THAT(
      Import(Graph(InGroups("constant") + Node("Mul", {"back", "x"}, "y"))),
      AllOf(plain, HasSubstr("elementwise_mul")));
  EXPECT_THAT(Import(Graph(InGroups("constant") +
                           Node("Unsqueeze", {"w", "one"}, "wide_w") +
                           Node("Mul", {"back", "wide_w"}, "y"))),
              AllOf(HasSubstr("group_norm"), HasSubstr("\"Scale\""),
                    Not(HasSubstr("\"Bias\""))));
}

TEST(OnnxParts, OtherNormsInGroupsStay) {
  const auto stays =
      AllOf(HasSubstr("instance_norm"), Not(HasSubstr("group_norm")));
  // Parameters of the groups.
  EXPECT_THAT(
      Import(Graph(InGroups("initializer") + Node("Relu", {"back"}, "y"))),
      stays);
  EXPECT_THAT(Import(Graph(InGroups("constant", "2", "2") + Affine())), stays);
  // Three groups of eight are no groups of four channels.
  EXPECT_THAT(Import(Graph(InGroups("constant", "3") + Affine())), stays);
  // What lies between is wanted.
  for (const char* inner : {"grouped", "normal"}) {
    EXPECT_THAT(Import(Graph(InGroups("constant") + Affine() + "output " +
                             Info(inner, {}))),
                stays);
  }
  EXPECT_THAT(Import(Graph(InGroups("constant") + Affine() + "output " +
                           Info("scaled", {}))),
              AllOf(HasSubstr("\"Scale\""), HasSubstr("elementwise_add")));
}

// A long chain is looked at as far as the longest form goes.
TEST(OnnxParts, ChainsOfAnyLengthAreTaken) {
  std::string body, last = "x";
  for (int i = 0; i < 3000; ++i) {
    const std::string next = absl::StrCat("v", i);
    body += Node("Mul", {last, i % 2 == 0 ? last : "half"}, next);
    last = next;
  }
  EXPECT_THAT(OfNumbers(body + Node("Mul", {last, "half"}, "y")),
              HasSubstr("output: \"y\""));
}

}  // namespace
}  // namespace halftone
