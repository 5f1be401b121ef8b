// What is repeated, or cut, as often as there are samples: tokens for each
// frame, biases for each head; and what weights are made with.
#include <string>

#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Graph;
using onnx_testing::Import;
using onnx_testing::IntAttr;
using onnx_testing::Ints;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Of x, f32[N, 4, 6]: "n" is its number of samples, "token" f32[2, 1, 6].
std::string OfSamples(const std::string& body) {
  return Import(Graph(
      "initializer { name: \"token\" data_type: 1 dims: 2 dims: 1 dims: 6 "
      "float_data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }\n" +
      Ints("zero", {0}) + Ints("one", {1}) + Ints("two", {2}) +
      Ints("three", {3}) + Ints("six", {6}) + Node("Shape", {"x"}, "shape") +
      Node("Gather", {"shape", "zero"}, "n", IntAttr("axis", 0)) + body));
}

// [2, 1, 6] becomes [1, 1, 2, 1, 6], of which there are N, then [2 N, 1, 6].
TEST(OnnxRepeats, WhatThereIsSeveralTimesIsRepeatedAsTheBatchIs) {
  EXPECT_THAT(
      OfSamples(Node("Concat", {"n", "one", "one"}, "by", IntAttr("axis", 0)) +
                Node("Tile", {"token", "by"}, "y")),
      AllOf(HasSubstr("ints: [1, 1, 2, 1, 6]"), HasSubstr("\"gather\""),
            HasSubstr("ints: [-1, 1, 6]"), Not(HasSubstr("\"tile\""))));
}

// In numbers, then as the batch is.
TEST(OnnxRepeats, OtherDimsAreRepeatedInNumbers) {
  EXPECT_THAT(OfSamples(Node("Concat", {"n", "three", "two"}, "by",
                             IntAttr("axis", 0)) +
                        Node("Tile", {"token", "by"}, "y")),
              AllOf(HasSubstr("\"tile\""), HasSubstr("ints: [1, 3, 2]"),
                    HasSubstr("ints: [-1, 3, 12]")));
}

// x becomes f32[N, `sizes`].
std::string OfSizes(const std::string& sizes) {
  return OfSamples(sizes +
                   Node("Concat", {"n", "sizes"}, "to", IntAttr("axis", 0)) +
                   Node("Reshape", {"x", "to"}, "y"));
}

TEST(OnnxRepeats, WhatIsMadeOfKnownListsIsKnown) {
  EXPECT_THAT(OfSizes(Ints("mask", {0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) +
                      Node("NonZero", {"mask"}, "rows") +
                      Node("Squeeze", {"rows", "zero"}, "sizes")),
              HasSubstr("ints: [0, 2, 12]"));
  EXPECT_THAT(OfSizes(Ints("steps", {2, 10}) +
                      Node("CumSum", {"steps", "zero"}, "sizes")),
              HasSubstr("ints: [0, 2, 12]"));
  EXPECT_THAT(
      OfSizes(Node("Tile", {"two", "three"}, "twos") + Ints("rest", {3}) +
              Node("Concat", {"twos", "rest"}, "sizes", IntAttr("axis", 0))),
      HasSubstr("ints: [0, 2, 2, 2, 3]"));
  // Columns of what is not 0, in a matrix: [1, 0].
  EXPECT_THAT(
      OfSizes("initializer { name: \"matrix\" data_type: 7 dims: 2 dims: 2 "
              "int64_data: [0, 3, 5, 0] }\n" +
              Node("NonZero", {"matrix"}, "rows") +
              Node("Gather", {"rows", "one"}, "columns", IntAttr("axis", 0)) +
              Node("Squeeze", {"columns", "zero"}, "places") +
              Node("Add", {"places", "three"}, "sums") +
              Node("Concat", {"sums", "two"}, "sizes", IntAttr("axis", 0))),
      HasSubstr("ints: [0, 4, 3, 2]"));
  // Two dims, and none left.
  EXPECT_THAT(
      OfSizes("initializer { name: \"matrix\" data_type: 7 dims: 1 dims: 2 "
              "int64_data: [1, 2] }\n" +
              Ints("by", {2, 2}) + Ints("flat", {-1}) +
              Node("Tile", {"matrix", "by"}, "tiled") +
              Node("Reshape", {"tiled", "flat"}, "list") +
              Node("Slice", {"list", "one", "six"}, "twos") +
              Node("Concat", {"twos", "three"}, "sizes", IntAttr("axis", 0))),
      HasSubstr("ints: [0, 2, 1, 2, 1, 2, 3]"));
  EXPECT_THAT(
      OfSizes(
          Ints("four", {4}) + Node("Tile", {"two", "zero"}, "none") +
          Node("Concat", {"none", "six", "four"}, "sizes", IntAttr("axis", 0))),
      HasSubstr("ints: [0, 6, 4]"));
  EXPECT_THAT(
      OfSizes(Ints("more", {1 << 20}) + Node("Tile", {"two", "more"}, "sizes")),
      HasSubstr("cannot be imported"));
  EXPECT_THAT(OfSamples(Node("NonZero", {"x"}, "y")),
              HasSubstr("NonZero x1: no such op"));
}

// One becomes three for each sample.
TEST(OnnxRepeats, OneIsExpandedToMultiplesOfTheBatch) {
  EXPECT_THAT(
      OfSamples(Node("Mul", {"n", "three"}, "times") +
                Node("Concat", {"times", "six"}, "to", IntAttr("axis", 0)) +
                "initializer { name: \"row\" data_type: 1 dims: 1 dims: 6 "
                "float_data: [1, 2, 3, 4, 5, 6] }\n" +
                Node("Expand", {"row", "to"}, "y")),
      AllOf(HasSubstr("\"gather\""), HasSubstr("\"expand_v2\""),
            HasSubstr("ints: [-1, 3, -1, -1]"), HasSubstr("ints: [-1, 6]")));
}

TEST(OnnxRepeats, APartOfTheBatchIsNot) {
  EXPECT_THAT(
      OfSamples(Node("Concat", {"n", "six"}, "to", IntAttr("axis", 0)) +
                "initializer { name: \"rows\" data_type: 1 dims: 4 dims: 6 "
                "float_data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
                "15, 16, 17, 18, 19, 20, 21, 22, 23, 24] }\n" +
                Node("Expand", {"rows", "to"}, "y")),
      HasSubstr("dims that do not go together"));
}

// Of [4 N, 6] the rows from N to 3 N.
TEST(OnnxRepeats, SlicesBetweenMultiplesOfTheBatch) {
  const std::string rows =
      Ints("rows", {-1, 6}) + Node("Reshape", {"x", "rows"}, "flat");
  EXPECT_THAT(OfSamples(rows + Node("Mul", {"n", "three"}, "end") +
                        Node("Slice", {"flat", "n", "end", "zero"}, "y")),
              AllOf(HasSubstr("ints: [4, -1, 6]"), HasSubstr("\"slice\""),
                    HasSubstr("name: \"starts\" ints: [1]"),
                    HasSubstr("name: \"ends\" ints: [3]")));
  EXPECT_THAT(OfSamples(rows + Node("Mul", {"n", "six"}, "end") +
                        Node("Slice", {"flat", "n", "end", "zero"}, "y")),
              HasSubstr("input 1: expected constant integers"));
}

// As PyTorch exports repeat_interleave: the number of times is the one of
// OneHot(1, 3, [1, 4]).
TEST(OnnxRepeats, NumbersByPlacesAreComputed) {
  EXPECT_THAT(
      OfSamples(Ints("depth", {3}) + Ints("values", {1, 4}) +
                Node("OneHot", {"one", "depth", "values"}, "hot") +
                Ints("list", {-1}) + Node("Reshape", {"hot", "list"}, "by") +
                Node("Tile", {"x", "by"}, "y")),
      HasSubstr("ints: [1, 4, 1]"));
}

// As paddings are that keep an image's size: of 4 - 6 elements 0, of 6 - 4 two.
TEST(OnnxRepeats, SizesAreBounded) {
  EXPECT_THAT(
      OfSamples(Ints("four", {4}) + Node("Sub", {"four", "six"}, "less") +
                Node("Clip", {"less", "zero"}, "none") +
                Node("Sub", {"six", "four"}, "more") +
                Node("Clip", {"more", "zero", "three"}, "two_more") +
                Node("Concat",
                     {"zero", "none", "two_more", "zero", "none", "none"},
                     "pads", IntAttr("axis", 0)) +
                Node("Pad", {"x", "pads"}, "y")),
      HasSubstr("ints: [0, 0, 0, 0, 2, 0]"));
}

// A number is cast as a value is whose type alone is known.
TEST(OnnxRepeats, NumbersAreCastLikeValues) {
  EXPECT_THAT(OfSamples(Node("CastLike", {"zero", "x"}, "low") +
                        Node("CastLike", {"three", "x"}, "high") +
                        Node("Clip", {"x", "low", "high"}, "y")),
              AllOf(HasSubstr("\"clip\""), HasSubstr("f: 3"),
                    Not(HasSubstr("\"cast\""))));
}

// A window of all there is, where it is rounded up.
TEST(OnnxRepeats, WindowsThatAreTooLargeTakeAll) {
  const auto pool = [](const char* more) {
    return Import(Graph(
        Ints("dims", {0, 1, 4, 6}) + Node("Reshape", {"x", "dims"}, "image") +
        Node("AveragePool", {"image"}, "y",
             std::string("attribute { name: \"kernel_shape\" type: INTS ints: "
                         "[32, 3] } attribute { name: \"strides\" type: INTS "
                         "ints: [32, 3] } ") +
                 more)));
  };
  EXPECT_THAT(pool(IntAttr("ceil_mode", 1).c_str()),
              HasSubstr("name: \"ksize\" ints: [4, 3]"));
  EXPECT_THAT(pool(""), HasSubstr("hold a window of ksize"));
}

// Weights are standardised as one sample, by what they have.
TEST(OnnxRepeats, OneSampleIsNormalisedByItself) {
  const std::string w =
      "initializer { name: \"w\" data_type: 1 dims: 1 dims: 2 dims: 3 "
      "float_data: [1, 2, 3, 4, 5, 6] }\n"
      "initializer { name: \"s\" data_type: 1 dims: 2 float_data: [1, 1] }\n";
  const std::string norm =
      Node("ReduceMean", {"w"}, "m",
           "attribute { name: \"axes\" type: INTS ints: [0, 2] } " +
               IntAttr("keepdims", 0)) +
      Node("BatchNormalization", {"w", "s", "s", "m", "m"}, "z",
           IntAttr("training_mode", 1));
  EXPECT_THAT(
      OfSamples(w + norm + Ints("two_three", {2, 3}) +
                Node("Reshape", {"z", "two_three"}, "matrix") +
                Ints("halves", {0, 4, 2, 3}) +
                Node("Reshape", {"x", "halves"}, "h") +
                Node("Mul", {"h", "matrix"}, "y")),
      AllOf(HasSubstr("\"instance_norm\""), Not(HasSubstr("\"batch_norm\""))));
}

// As PyTorch exports BatchNorm(affine=False) with optimize=False, and a scale
// that is computed.
TEST(OnnxRepeats, StatisticsAreNoWeightsWhateverScales) {
  const std::string of_file =
      "initializer { name: \"m\" data_type: 1 dims: 4 "
      "float_data: [1, 2, 3, 4] }\n"
      "initializer { name: \"v\" data_type: 1 dims: 4 "
      "float_data: [4, 3, 2, 1] }\n";
  const std::string plain =
      Node("Constant", {}, "number",
           "attribute { name: \"value_floats\" type: FLOATS floats: 1 }") +
      Node("CastLike", {"number", "x"}, "like") +
      Node("Expand", {"like", "four"}, "s");
  const std::string norm =
      Node("BatchNormalization", {"x", "s", "s", "m", "v"}, "y");
  const auto statistics =
      AllOf(HasSubstr("\"batch_norm\""),
            HasSubstr("stat { name: \"m\" dims: [4] init { constant: 0 } }"),
            HasSubstr("stat { name: \"v\" dims: [4] init { constant: 1 } }"));
  EXPECT_THAT(
      OfSamples(of_file + Ints("four", {4}) + plain + norm),
      AllOf(statistics, HasSubstr("param { name: \"s\" dims: [4] init { "
                                  "constant: 1 } trainable: false }")));
  const std::string scale =
      "initializer { name: \"w\" data_type: 1 dims: 4 "
      "float_data: [1, 2, 1, 2] }\n" +
      Node("Exp", {"w"}, "s");
  EXPECT_THAT(OfSamples(of_file + scale + norm), statistics);
  // Of one that is computed the other is a constant.
  EXPECT_THAT(
      OfSamples(of_file + scale +
                Node("BatchNormalization", {"x", "s", "s", "m", "s"}, "y")),
      HasSubstr("param { name: \"m\" dims: [4] init { constant: 0 } "
                "trainable: false }"));
}

}  // namespace
}  // namespace halftone
