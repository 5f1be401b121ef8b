// Small ONNX models, written as protobuf text.
#include "graph/import/onnx_import.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Bytes;
using onnx_testing::Graph;
using onnx_testing::Import;
using onnx_testing::ImportBytes;
using onnx_testing::Info;
using onnx_testing::IntAttr;
using onnx_testing::Ints;
using onnx_testing::Node;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- Sizes.

// As PyTorch exports x.view(x.size(0), -1, 3): Shape, Gather, Unsqueeze,
// Concat, Reshape.
TEST(OnnxImport, SizesAreComputedAndTheBatchStaysOpen) {
  const std::string text = Import(
      Graph(Ints("zero", {0}) + Ints("rest", {-1}) + Ints("three", {3}) +
            Node("Shape", {"x"}, "shape") +
            Node("Gather", {"shape", "zero"}, "n", IntAttr("axis", 0)) +
            Node("Concat", {"n", "rest", "three"}, "to", IntAttr("axis", 0)) +
            Node("Reshape", {"x", "to"}, "y")));
  EXPECT_THAT(text,
              HasSubstr("feed { name: \"x\" dtype: F32 dims: [-1, 4, 6]"));
  EXPECT_THAT(text, HasSubstr("ints: [0, 8, 3]"));
  EXPECT_THAT(text, Not(HasSubstr("param")));
}

TEST(OnnxImport, TheBatchIsCalculatedWith) {
  // 2 N rows: the batch is not where it was.
  const std::string text = Import(
      Graph(Ints("zero", {0}) + Ints("two", {2}) + Ints("twelve", {12}) +
            Node("Shape", {"x"}, "shape") +
            Node("Gather", {"shape", "zero"}, "n", IntAttr("axis", 0)) +
            Node("Mul", {"n", "two"}, "rows") +
            Node("Concat", {"rows", "twelve"}, "to", IntAttr("axis", 0)) +
            Node("Reshape", {"x", "to"}, "y")));
  EXPECT_THAT(text, HasSubstr("ints: [-1, 12]"));
  // A value of it has no place in the program.
  EXPECT_THAT(Import(Graph(Node("Shape", {"x"}, "shape") +
                           Node("Cast", {"shape"}, "real", IntAttr("to", 1)) +
                           Node("Mul", {"x", "real"}, "y"))),
              HasSubstr("a size of the batch is computed with at run time"));
}

TEST(OnnxImport, WhatIsExpandedToTheBatchIsRepeated) {
  const std::string text = Import(Graph(
      "initializer { name: \"token\" data_type: 1 dims: 1 dims: 1 dims: 6 "
      "float_data: [1, 2, 3, 4, 5, 6] }\n" +
      Ints("zero", {0}) + Ints("rest", {1, 6}) + Node("Shape", {"x"}, "shape") +
      Node("Gather", {"shape", "zero"}, "n", IntAttr("axis", 0)) +
      Node("Concat", {"n", "rest"}, "to", IntAttr("axis", 0)) +
      Node("Expand", {"token", "to"}, "tokens") +
      Node("Concat", {"tokens", "x"}, "y", IntAttr("axis", 1))));
  EXPECT_THAT(text, HasSubstr("type: \"gather\""));
  EXPECT_THAT(text, HasSubstr("param { name: \"token\" dims: [1, 1, 6] init"));
}

// ---- Parameters.

TEST(OnnxImport, WeightsAreTheFilesOwnBytes) {
  const std::string weights(4 * 6 * 2, '\x3f');
  const std::string bytes = Bytes(Graph(
      absl::StrCat("initializer { name: \"w\" data_type: 1 dims: 6 dims: 2 "
                   "raw_data: \"",
                   weights, "\" }\n") +
      Node("MatMul", {"x", "w"}, "y")));
  const auto file = ParseOnnx(bytes, "net.onnx");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->model.graph().initializer(0).has_raw_data());
  const auto model = ImportOnnx(*file, {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->weights.size(), 1u);
  EXPECT_EQ(model->weights[0].name, "w");
  EXPECT_EQ(model->weights[0].tensor.bytes, weights);
  // Not a copy.
  EXPECT_GE(model->weights[0].tensor.bytes.data(), bytes.data());
  EXPECT_LT(model->weights[0].tensor.bytes.data(), bytes.data() + bytes.size());
}

TEST(OnnxImport, NumbersAreScalesAndConstantsAreNotTrained) {
  const std::string text = Import(Graph(
      "initializer { name: \"onnx::Mul_3\" data_type: 1 float_data: 0.5 "
      "}\n"
      "initializer { name: \"table\" data_type: 1 dims: 6 "
      "float_data: [1, 2, 3, 4, 5, 6] }\n" +
      Node("Constant", {}, "ones",
           "attribute { name: \"value_floats\" type: FLOATS "
           "floats: [1, 2, 3, 4, 5, 7] }") +
      Node("Mul", {"x", "onnx::Mul_3"}, "a") +
      Node("Add", {"a", "table"}, "b") + Node("Add", {"b", "ones"}, "y")));
  EXPECT_THAT(text, HasSubstr("type: \"scale\""));
  EXPECT_THAT(text, HasSubstr("param { name: \"table\" dims: [6] init"));
  EXPECT_THAT(text, HasSubstr("param { name: \"ones\" dims: [6] init { "
                              "constant: 0 } trainable: false"));
}

// As "b + x" of a layer is exported.
TEST(OnnxImport, OfTwoRanksTheHigherIsFirstIfTheOrderIsFree) {
  const auto text = [](const char* type) {
    return Import(
        Graph("initializer { name: \"b\" data_type: 1 dims: 6 "
              "float_data: [1, 2, 3, 4, 5, 6] }\n" +
              Node(type, {"b", "x"}, "y")));
  };
  for (const char* type : {"Add", "Mul"}) {
    EXPECT_THAT(text(type),
                AllOf(Not(HasSubstr("reshape")), HasSubstr("\"X\" var: \"x\""),
                      HasSubstr("\"Y\" var: \"b\"")));
  }
  for (const char* type : {"Sub", "Div", "Max"}) {
    EXPECT_THAT(text(type), HasSubstr("reshape"));
  }
}

// What is computed at import is exact, and floats are meant to be.
TEST(OnnxImport, WholeNumbersThroughF32AreNoted) {
  const auto notes = [](const std::string& body) {
    const auto model = ImportBytes(
        Bytes(Graph(Ints("thousand", {1000}) +
                    Node("Cast", {"x"}, "ids", IntAttr("to", 7)) + body)));
    EXPECT_TRUE(model.ok()) << model.status();
    return model->imported.notes;
  };
  EXPECT_THAT(
      notes(Node("Mod", {"ids", "thousand"}, "a") +
            Node("Mod", {"a", "thousand"}, "b") +
            Node("ReduceSum", {"b"}, "y")),
      ElementsAre("Mod x2: computes whole numbers in f32, exact up to "
                  "16,777,216; reduce larger ones before they are fed; first "
                  "at node 1 (a)",
                  HasSubstr("ReduceSum x1: computes whole numbers in f32")));
  EXPECT_THAT(notes(Node("Mul", {"thousand", "thousand"}, "million") +
                    Node("Less", {"ids", "million"}, "below") +
                    Node("Cast", {"below"}, "real", IntAttr("to", 1)) +
                    Node("Add", {"real", "x"}, "y")),
              ElementsAre());
}

// A slope or a bias of one channel is no constant, nor is a learned number.
TEST(OnnxImport, ParametersOfOneElementAreTrained) {
  const std::string text = Import(Graph(
      "initializer { name: \"block.0.t\" data_type: 1 float_data: 0.5 }\n"
      "initializer { name: \"onnx::PRelu_7\" data_type: 1 dims: 1 dims: 1 "
      "float_data: 0.25 }\n"
      "initializer { name: \"head.bias\" data_type: 1 dims: 1 "
      "float_data: 0.125 }\n" +
      Node("Mul", {"x", "block.0.t"}, "a") +
      Node("PRelu", {"a", "onnx::PRelu_7"}, "b") +
      Node("Add", {"b", "head.bias"}, "y")));
  EXPECT_THAT(text, HasSubstr("param { name: \"block.0.t\" init { "
                              "constant: 0.5 }"));
  EXPECT_THAT(text, HasSubstr("constant: 0.25 }"));
  EXPECT_THAT(text, HasSubstr("param { name: \"head.bias\" dims: [1] init { "
                              "constant: 0.125 }"));
  EXPECT_THAT(text, Not(HasSubstr("trainable: false")));
  EXPECT_THAT(text, Not(HasSubstr("\"scale\"")));
}

TEST(OnnxImport, WholeNumbersAreReducedAndBounded) {
  const std::string text = Import(
      Graph(Node("Cast", {"x"}, "whole", IntAttr("to", 7)) +
            Node("Neg", {"whole"}, "a") + Node("Abs", {"a"}, "b") +
            Node("ReduceL1", {"b"}, "c") + Node("ReduceMax", {"c"}, "d") +
            "initializer { name: \"most\" data_type: 7 int64_data: 4 }\n" +
            Node("Clip", {"d", "", "most"}, "y")));
  EXPECT_THAT(text, AllOf(HasSubstr("\"reduce_sum\""), HasSubstr("\"clip\""),
                          HasSubstr("s: \"i64\"")));
}

// ---- Losses.

// Numbers of no matter.
std::string Floats(const std::string& name, const std::vector<int64_t>& dims) {
  std::string text =
      absl::StrCat("initializer { name: \"", name, "\" data_type: 1");
  int64_t count = 1;
  for (const int64_t dim : dims) {
    absl::StrAppend(&text, " dims: ", dim);
    count *= dim;
  }
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&text, " float_data: 1");
  return text + " }\n";
}

std::string IntsAttr(const std::string& name, const std::string& values) {
  return absl::StrCat(" attribute { name: \"", name, "\" type: INTS ints: [",
                      values, "] }");
}

TEST(OnnxImport, WindowsAreThoseOfTheirDims) {
  const std::string text = Import(
      Graph(Floats("w", {2, 4, 3}) + Node("Conv", {"x", "w"}, "conv") +
            Node("MaxPool", {"conv"}, "y", IntsAttr("kernel_shape", "2"))));
  EXPECT_THAT(text, HasSubstr("op { type: \"conv1d\""));
  EXPECT_THAT(text, HasSubstr("op { type: \"pool1d\""));
}

TEST(OnnxImport, TransposedConvolutionsHaveTheSizeThatIsWanted) {
  const auto text = [](const char* size) {
    return Import(
        Graph(Floats("w", {4, 3, 2}) +
              Node("ConvTranspose", {"x", "w"}, "y",
                   IntsAttr("strides", "2") + IntsAttr("output_shape", size))));
  };
  // (6 - 1) * 2 + 2 = 12 is what the windows fill.
  EXPECT_THAT(text("13"), HasSubstr("op { type: \"conv1d_transpose\""));
  EXPECT_THAT(text("13"),
              HasSubstr("attr { name: \"output_padding\" ints: [1] }"));
  EXPECT_THAT(text("9"), HasSubstr("attr { name: \"paddings\" ints: [2, 1] }"));
  EXPECT_THAT(text("14"), HasSubstr("ConvTranspose x1: as conv1d_transpose"));
}

TEST(OnnxImport, DilatedMaximaAreThoseOfSlices) {
  const std::string text = Import(
      Graph(Node("MaxPool", {"x"}, "y",
                 IntsAttr("kernel_shape", "2") + IntsAttr("dilations", "3"))));
  EXPECT_THAT(text, HasSubstr("op { type: \"elementwise_max\""));
  EXPECT_THAT(text, HasSubstr("attr { name: \"starts\" ints: [3] }"));
  EXPECT_THAT(text, HasSubstr("attr { name: \"ends\" ints: [6] }"));
}

TEST(OnnxImport, AffineGridsAreProductsWithThePixelsPlaces) {
  const auto grid = [](const std::string& size) {
    return Import(Graph(
        "initializer { name: \"theta\" data_type: 1 dims: 1 dims: 2 dims: 3 "
        "float_data: [1, 0, 0, 0, 1, 0] }\n" +
        size + Node("AffineGrid", {"theta", "size"}, "y")));
  };
  EXPECT_THAT(grid(Ints("size", {1, 2, 3, 5})),
              AllOf(HasSubstr("\"matmul\""), HasSubstr("ints: [3, 5]")));
  EXPECT_THAT(grid(Ints("size", {1, 2, 0, 5})),
              HasSubstr("sizes other than [N, C, height, width]"));
  EXPECT_THAT(grid(Ints("size", {1, 2, 2, 3, 5})),
              HasSubstr("sizes other than [N, C, height, width]"));
  EXPECT_THAT(Import(Graph(Ints("size", {1, 2, 3, 5}) +
                           Node("AffineGrid", {"x", "size"}, "y"))),
              HasSubstr("theta of dims other than [N, 2, 3]"));
}

std::string Resized(const std::string& mode, const std::string& coordinates) {
  OnnxOptions options;
  options.dims["x"] = {2, 4, 6};
  const auto word = [](const char* name, const std::string& value) {
    return absl::StrCat(" attribute { name: \"", name, "\" type: STRING s: \"",
                        value, "\" }");
  };
  return Import(
      Graph(Ints("sizes", {2, 4, 9}) +
            Node("Resize", {"x", "", "", "sizes"}, "y",
                 word("mode", mode) + word("nearest_mode", "floor") +
                     word("coordinate_transformation_mode", coordinates))),
      options);
}

TEST(OnnxImport, ResizingIsAnInterpolationWhereOursIsTheSame) {
  const std::string nearest = Resized("nearest", "asymmetric");
  EXPECT_THAT(nearest, HasSubstr("op { type: \"nearest_interp_v2\""));
  EXPECT_THAT(nearest, HasSubstr("attr { name: \"out_w\" i: 9 }"));
  const std::string linear = Resized("linear", "half_pixel");
  EXPECT_THAT(linear, HasSubstr("op { type: \"linear_interp_v2\""));
  EXPECT_THAT(linear, HasSubstr("attr { name: \"align_corners\" b: false }"));
  EXPECT_THAT(linear, HasSubstr("attr { name: \"align_mode\" i: 0 }"));
  // With an open batch, from scales.
  const std::string open = Import(Graph(
      "initializer { name: \"scales\" data_type: 1 dims: 3 float_data: [1, 1, "
      "1.5] }\n" +
      Node("Resize", {"x", "", "scales"}, "y",
           "attribute { name: \"mode\" type: STRING s: \"linear\" }")));
  EXPECT_THAT(open, HasSubstr("op { type: \"linear_interp_v2\""));
  EXPECT_THAT(open, HasSubstr("attr { name: \"out_w\" i: 9 }"));
  // Others are products with their weights, or choices.
  EXPECT_THAT(Resized("cubic", "half_pixel"), HasSubstr("\"matmul\""));
  EXPECT_THAT(Resized("nearest", "half_pixel"), HasSubstr("\"gather\""));
}

// As PyTorch exports x.squeeze(1): by the dim's size.
TEST(OnnxImport, BranchesThatAreKnownStandInTheirNodesPlace) {
  const auto branches = [](int size, const std::string& more) {
    const auto graph = [&](const std::string& name, const std::string& type) {
      return absl::StrCat("attribute { name: \"", name,
                          "\" type: GRAPH g { output ", Info(type, {}), " ",
                          Node(type, {"x"}, type), more, " } } ");
    };
    return Import(Graph(
        Node("Shape", {"x"}, "dims") + Ints("one", {1}) + Ints("size", {size}) +
        Node("Gather", {"dims", "one"}, "dim") +
        Node("Equal", {"dim", "size"}, "same") +
        Node("If", {"same"}, "y",
             graph("then_branch", "Relu") + graph("else_branch", "Tanh"))));
  };
  EXPECT_THAT(branches(4, ""),
              AllOf(HasSubstr("\"relu\""), Not(HasSubstr("\"tanh\""))));
  EXPECT_THAT(branches(5, ""),
              AllOf(HasSubstr("\"tanh\""), Not(HasSubstr("\"relu\""))));
  EXPECT_THAT(branches(5, Node("NoSuchOp", {"x"}, "z")),
              HasSubstr("first at node 3 (y), node 1 (z)"));
}

// A graph has nodes, they have attributes, and these have graphs.
TEST(OnnxImport, GraphsMayLieDeepInGraphs) {
  const auto nested = [](int depth) {
    std::string inner = "y0", body = Node("Relu", {"x"}, inner);
    for (int i = 1; i <= depth; ++i) {
      const std::string branch = absl::StrCat(
          "attribute { name: \"then_branch\" type: GRAPH g { output ",
          Info(inner, {}), " ", body, " } } ");
      inner = i == depth ? "y" : absl::StrCat("y", i);
      body = Node("If", {"c"}, inner, branch);
    }
    return Import(Graph(absl::StrCat("input ", Info("c", {}, 9), body)));
  };
  for (const int depth : {1, 4, 8, 30}) {
    EXPECT_THAT(nested(depth),
                HasSubstr("If x1: no such op: its body is a graph"))
        << depth;
  }
  EXPECT_EQ(nested(40),
            "net.onnx: expected at most 100 records inside of each other, "
            "found more; write it with fewer graphs inside of graphs");
}

TEST(OnnxImport, LossesBringLabels) {
  const std::string body = Graph(Node("Sigmoid", {"x"}, "y"));
  OnnxOptions options;
  options.loss = "cross_entropy:y";
  EXPECT_THAT(Import(body, options),
              HasSubstr("feed { name: \"label\" dtype: I64 dims: [-1, 6]"));
  options.class_axis = -1;
  EXPECT_THAT(Import(body, options),
              HasSubstr("feed { name: \"label\" dtype: I64 dims: [-1, 4]"));
  options.class_axis = 3;
  EXPECT_THAT(Import(body, options),
              HasSubstr("--class-axis 3 is no dim behind the first of "
                        "f32[B,4,6]"));
  options.loss = "mse:y";
  EXPECT_EQ(ExitCodeOf(ImportBytes(Bytes(body), options).status()),
            ExitCode::kUsage);
  options.class_axis.reset();
  EXPECT_THAT(Import(body, options),
              HasSubstr("feed { name: \"label\" dtype: F32 dims: [-1, 4, 6]"));
  options.loss = "bce:y";  // from what the sigmoid takes
  EXPECT_THAT(Import(body, options),
              HasSubstr("op { type: \"sigmoid_cross_entropy_with_logits\" in { "
                        "slot: \"X\" var: \"x\" }"));
}

// ---- Ops that ours make together.

TEST(OnnxImport, ArithmeticOfWholeNumbersGoesThroughFloats) {
  const std::string text = Import(Graph(
      Ints("two", {2, 3, 2, 3, 2, 3}) +
      Node("Cast", {"x"}, "whole", IntAttr("to", 7)) +
      Node("Div", {"whole", "two"}, "a") + Node("Mod", {"a", "two"}, "y")));
  EXPECT_THAT(text, AllOf(HasSubstr("\"elementwise_div\""),
                          HasSubstr("\"floor\""), HasSubstr("s: \"i64\"")));
}

TEST(OnnxImport, LocalResponsesArePoolsOverChannels) {
  EXPECT_THAT(Import(Graph(Node("LRN", {"x"}, "y", IntAttr("size", 3)))),
              AllOf(HasSubstr("name: \"ksize\" ints: [3, 1]"),
                    HasSubstr("name: \"paddings\" ints: [1, 1, 0, 0]")));
  EXPECT_THAT(Import(Graph(Node("LRN", {"x"}, "y", IntAttr("size", 5)))),
              HasSubstr("a size of 1 to C"));
}

// ---- What cannot be taken.

TEST(OnnxImport, AllThatStandsInTheWayIsToldAtOnce) {
  const std::string text =
      Import(Graph(Node("LSTM", {"x"}, "a") + Node("Einsun", {"x"}, "b") +
                   Node("Einsun", {"b"}, "c") +
                   Node("Elu", {"x"}, "d", IntAttr("alpha", 2)) +
                   Node("Elu", {"x"}, "e", IntAttr("beta", 2)) +
                   Node("Relu", {"nothing"}, "f") + Node("Loop", {"x"}, "g") +
                   Node("Relu", {"h"}, "i") + Node("Relu", {"i"}, "h") +
                   Node("Erf", {"x"}, "y")));
  EXPECT_THAT(text, HasSubstr("net.onnx: cannot be imported, 7 things stand"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "LSTM x1: attribute hidden_size is missing; first at node 0 (a)"));
  EXPECT_THAT(text, HasSubstr("Einsun x2: no such op; nearest: Einsum; first"));
  EXPECT_THAT(text, HasSubstr("Elu x1: attribute alpha is of another type"));
  EXPECT_THAT(text, HasSubstr("Elu x1: attribute beta is not taken"));
  EXPECT_THAT(text, HasSubstr("Relu x1: nothing makes its input nothing"));
  EXPECT_THAT(text, HasSubstr("Loop x1: no such op: its body is a graph"));
  EXPECT_THAT(text, HasSubstr("Relu x2: it reads what is made of its own "
                              "output; first at node 7 (i)"));
}

TEST(OnnxImport, DimsOfFeedsThatAreNotKnownAreNamed) {
  const std::string body =
      absl::StrCat("input ", Info("x", {"N", "T"}), " output ", Info("y", {}),
                   "\n", Node("Relu", {"x"}, "y"));
  EXPECT_THAT(Import(body), HasSubstr("input x x1: dim 1 (T) is not known; "
                                      "give them with --dims x=-1,..."));
  OnnxOptions options;
  options.dims["x"] = {-1, 7};
  EXPECT_THAT(Import(body, options), HasSubstr("dims: [-1, 7]"));
  options.dims["x"] = {7, -1};
  EXPECT_THAT(Import(body, options),
              HasSubstr("--dims 7,-1; the batch (-1) has to be the first dim"));
  options.dims["x"] = {-1, 7};
  const std::string second =
      absl::StrCat("input ", Info("x", {"7", "N"}), " output ", Info("y", {}),
                   "\n", Node("Relu", {"x"}, "y"));
  EXPECT_THAT(Import(second),
              HasSubstr("dim 1 (N) is not known; the batch (-1) has to be"));
  options.dims["z"] = {1};
  EXPECT_THAT(Import(body, options),
              HasSubstr("--dims z x1: the graph has no such input"));
}

std::string ParseError(const std::string& bytes) {
  const auto file = ParseOnnx(bytes, "net.onnx");
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(ExitCodeOf(file.status()), ExitCode::kModel);
  return std::string(file.status().message());
}

TEST(OnnxImport, OtherFilesAreNamed) {
  EXPECT_THAT(ParseError(""), HasSubstr("an empty file"));
  EXPECT_THAT(ParseError("PK\x03\x04"), HasSubstr("a zip archive"));
  EXPECT_THAT(ParseError("name: \"x\""), HasSubstr("text"));
  const std::string good = Bytes(Graph(Node("Relu", {"x"}, "y")));
  EXPECT_TRUE(IsOnnx(good));
  for (size_t size = 1; size < good.size(); ++size) {
    const auto file = ParseOnnx(good.substr(0, size), "net.onnx");
    EXPECT_FALSE(file.ok()) << size;
  }
  EXPECT_THAT(ParseError(Bytes("name: \"x\"")), HasSubstr("one without nodes"));
}

TEST(OnnxImport, ElementsOfAnotherNumberThanTheDimsSay) {
  const auto with = [](const std::string& tensor) {
    return Import(Graph("initializer { name: \"w\" data_type: 1 " + tensor +
                        " }\n" + Node("Add", {"x", "w"}, "y")));
  };
  EXPECT_THAT(with("dims: 6 float_data: 1"),
              HasSubstr("expected 24 bytes for f32[6], found 4"));
  EXPECT_THAT(with("dims: -6 float_data: 1"), HasSubstr("its dims are [-6]"));
  EXPECT_THAT(with("dims: 4611686018427387904 dims: 4 raw_data: \"abcd\""),
              HasSubstr("its dims are [4611686018427387904,4]"));
  for (const char* const place :
       {"../secret", "/etc/passwd", "", "a/../../b"}) {
    EXPECT_THAT(
        with(absl::StrCat("dims: 1 data_location: EXTERNAL external_data { "
                          "key: \"location\" value: \"",
                          place, "\" }")),
        HasSubstr("expected a file of the model's folder"));
  }
}

// What lies beside the model is read, a link that leads out of its folder is
// not followed, and nothing is read beyond the file.
TEST(OnnxImport, ExternalDataLiesInTheModelsFolder) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/external");
  ASSERT_TRUE(MakeDirectories(folder).ok());
  const std::string outside = absl::StrCat(::testing::TempDir(), "/outside");
  const std::string bytes(24, '\x3f');
  ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder, "/w.bin"), bytes).ok());
  ASSERT_TRUE(WriteFileAtomically(outside, bytes).ok());
  const std::string link = absl::StrCat(folder, "/link.bin");
  unlink(link.c_str());
  ASSERT_EQ(symlink(outside.c_str(), link.c_str()), 0);
  const auto read = [&](const std::string& entries) {
    onnx::TensorProto tensor;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "data_type: 1 dims: 2 data_location: EXTERNAL " + entries, &tensor));
    return ReadOnnxTensor(tensor, "", absl::StrCat(folder, "/net.onnx"));
  };
  const auto entry = [](const std::string& key, const std::string& value) {
    return absl::StrCat("external_data { key: \"", key, "\" value: \"", value,
                        "\" } ");
  };
  const std::string file = entry("location", "w.bin");
  const auto good = read(file + entry("offset", "16") + entry("length", "8"));
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->bytes, bytes.substr(16));
  const auto error = [&](const std::string& entries) {
    return std::string(read(entries).status().message());
  };
  EXPECT_THAT(error(entry("location", "link.bin")),
              HasSubstr("expected a file of the model's folder"));
  EXPECT_THAT(error(entry("location", "none.bin")), HasSubstr("No such file"));
  EXPECT_THAT(error(entry("location", ".")), HasSubstr("expected a file"));
  EXPECT_THAT(error(file + entry("offset", "17")),
              HasSubstr("expected 8 bytes from 17, found 24 in all"));
  EXPECT_THAT(error(file + entry("offset", "9223372036854775807")),
              HasSubstr("found 24 in all"));
  EXPECT_THAT(error(file + entry("offset", "-8")), HasSubstr("as its offset"));
  EXPECT_THAT(error(file + entry("length", "9")),
              HasSubstr("expected 8 bytes for [2], found 9"));
}

// Of 2 units over x [N, 7, 3]; `more`: inputs behind the weights.
std::string Recurrent(const std::string& type, int gates,
                      const std::string& rest = "",
                      const std::vector<std::string>& more = {}) {
  const auto zeros = [](const std::string& name, int rows, int columns) {
    return absl::StrCat(
        "initializer { name: \"", name, "\" data_type: 1 dims: 1 dims: ", rows,
        " dims: ", columns, " raw_data: \"",
        absl::StrReplaceAll(std::string(4 * rows * columns, '0'),
                            {{"0", "\\000"}}),
        "\" }\n");
  };
  std::vector<std::string> inputs = {"x", "w", "r"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return absl::StrCat(
      "input ", Info("x", {"N", "7", "3"}), " output ", Info("y", {}), "\n",
      zeros("w", 2 * gates, 3), zeros("r", 2 * gates, 2),
      Node(type, inputs, "y",
           IntAttr("hidden_size", 2) + IntAttr("layout", 1) + rest));
}

TEST(OnnxImportTest, GatesAreCutIntoOurOrder) {
  const std::string text = Import(Recurrent("LSTM", 4));
  EXPECT_THAT(
      text,
      HasSubstr(
          "op { type: \"rnn\" in { slot: \"Input\" var: \"y.transpose\""));
  EXPECT_THAT(text, HasSubstr("s: \"LSTM\""));
  EXPECT_THAT(text, HasSubstr("type: \"concat\""));
}

// The reset gate comes before the product: ops for each of 7 steps.
TEST(OnnxImportTest, GruThatResetsFirstIsUnrolled) {
  const std::string text = Import(Recurrent("GRU", 3));
  EXPECT_EQ(text.find("\"rnn\""), std::string::npos);
  int steps = 0;
  for (size_t at = 0; (at = text.find("\"tanh\"", at + 1)) != text.npos;) {
    ++steps;
  }
  EXPECT_EQ(steps, 7);
  EXPECT_THAT(Import(absl::StrReplaceAll(Recurrent("GRU", 3), {{"7", "513"}})),
              HasSubstr("linear_before_reset = 0: taken for 1 to 512 steps"));
}

// Gates see the cell: ops for each of 7 steps. Peepholes of zeros are none.
TEST(OnnxImportTest, LstmWithPeepholesIsUnrolled) {
  const auto holes = [](float value) {
    std::string values = absl::StrCat(value);
    for (int i = 1; i < 6; ++i) absl::StrAppend(&values, ", ", value);
    return absl::StrCat(
        "initializer { name: \"p\" data_type: 1 dims: 1 dims: 6 "
        "float_data: [",
        values, "] }\n");
  };
  const std::string lstm = Recurrent("LSTM", 4, "", {"", "", "", "", "p"});
  const std::string text = Import(holes(0.5) + lstm);
  EXPECT_THAT(text, Not(HasSubstr("\"rnn\"")));
  EXPECT_THAT(text, HasSubstr("param { name: \"p\" dims: [1, 6]"));
  EXPECT_THAT(Import(holes(0) + lstm), HasSubstr("\"rnn\""));
}

TEST(OnnxImportTest, RecurrenceOfOtherKindsIsRefused) {
  EXPECT_THAT(Import(Recurrent("LSTM", 4,
                               "attribute { name: \"clip\" type: FLOAT "
                               "f: 1 }")),
              HasSubstr("attribute clip is not taken"));
  EXPECT_THAT(Import(Recurrent("RNN", 1,
                               "attribute { name: \"activations\" "
                               "type: STRINGS strings: \"Affine\" }")),
              HasSubstr("attribute activations: expected tanh, found affine"));
}

}  // namespace
}  // namespace halftone
