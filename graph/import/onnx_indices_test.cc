// Elements that are picked by their numbers, and members of sequences.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Bytes;
using onnx_testing::Graph;
using onnx_testing::Import;
using onnx_testing::ImportBytes;
using onnx_testing::IntAttr;
using onnx_testing::Ints;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

TEST(OnnxIndices, ElementsAreGatheredWhereThereAreIndices) {
  const auto gathered = [](const std::string& dims, int axis) {
    return Import(
        Graph(absl::StrCat("initializer { name: \"i\" data_type: 7 ", dims,
                           " int64_data: [0, 1, 0, 1] }\n") +
              Node("GatherElements", {"x", "i"}, "y", IntAttr("axis", axis))));
  };
  // Of the batch there is no part.
  EXPECT_THAT(gathered("dims: 1 dims: 2 dims: 2", 2),
              HasSubstr("a slice of the batch"));
  EXPECT_THAT(gathered("dims: 1 dims: 2 dims: 2", 0),
              AllOf(HasSubstr("\"slice\""), HasSubstr("\"take_along_axis\"")));
  EXPECT_THAT(gathered("dims: 4", 1), HasSubstr("indices of another rank"));
}

// An input that no rule asks for would be dropped in silence.
TEST(OnnxIndices, InputsThatANodeDoesNotHaveAreRefused) {
  const std::string w =
      "initializer { name: \"w\" data_type: 1 dims: 6 dims: 2 "
      "float_data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }\n";
  EXPECT_THAT(
      Import(Graph(w + Node("MatMul", {"x", "w", "x"}, "y"))),
      HasSubstr("MatMul x1: input 2 (x) is not taken; first at node 0"));
  // What is left out is none.
  EXPECT_THAT(Import(Graph(w + Node("MatMul", {"x", "w", ""}, "y"))),
              HasSubstr("\"matmul\""));
}

// Even in a table's rows, which lookup_table_v2 has from 0 up alone.
TEST(OnnxIndices, NegativeNumbersCountFromTheEnd) {
  EXPECT_THAT(
      Import(Graph("initializer { name: \"table\" data_type: 1 dims: 3 dims: 2 "
                   "float_data: [1, 2, 3, 4, 5, 6] }\n" +
                   Node("Cast", {"x"}, "ids", IntAttr("to", 7)) +
                   Node("Gather", {"table", "ids"}, "y"))),
      AllOf(HasSubstr("type: \"gather\""), HasSubstr("ints: [-1, 4, 6, 2]"),
            Not(HasSubstr("lookup_table"))));
}

// As PyTorch 2's exporter writes masks by indices of samples and places.
TEST(OnnxIndices, IndicesOfSeveralDimsAreNumbersOfRows) {
  const auto gathered = [](absl::string_view dims, int shared) {
    return Import(Graph(
        absl::StrCat("initializer { name: \"i\" data_type: 7 ", dims,
                     " int64_data: [0, 1, 2, -1] }\n") +
        Node("GatherND", {"x", "i"}, "y", IntAttr("batch_dims", shared))));
  };
  EXPECT_THAT(gathered("dims: 2 dims: 2", 0),
              AllOf(HasSubstr("shape\" ints: [-1, 6]"), HasSubstr("\"gather\""),
                    HasSubstr("name: \"scale\" f: 4")));
  EXPECT_THAT(gathered("dims: 1 dims: 4", 0),
              HasSubstr("do not fit its input"));
  EXPECT_THAT(gathered("dims: 4 dims: 1", 1),
              HasSubstr("do not fit its input"));
}

TEST(OnnxIndices, NumbersOfSamplesAreSumsOfOnes) {
  const auto range = [](int start) {
    return Import(Graph(Ints("start", {start}) + Ints("zero", {0}) +
                        Ints("one", {1}) + Node("Shape", {"x"}, "dims") +
                        Node("Gather", {"dims", "zero"}, "samples") +
                        Node("Squeeze", {"samples"}, "size") +
                        Node("Squeeze", {"start"}, "first") +
                        Node("Squeeze", {"one"}, "step") +
                        Node("Range", {"first", "size", "step"}, "y")));
  };
  EXPECT_THAT(range(0), HasSubstr("\"cumsum\""));
  EXPECT_THAT(range(1),
              HasSubstr("Range x1: its value is not known at import"));
}

TEST(OnnxIndices, RangesOfFloatsOfTheFileAreKnown) {
  const auto number = [](const std::string& name, const std::string& value) {
    return absl::StrCat("initializer { name: \"", name,
                        "\" data_type: 1 float_data: ", value, " }\n");
  };
  const std::string text = Import(
      Graph(number("first", "1") + number("end", "4") + number("by", "0.5") +
            Node("Range", {"first", "end", "by"}, "places") +
            Node("Add", {"x", "places"}, "y")));
  EXPECT_THAT(text, HasSubstr("param { name: \"places\" dims: [6] init { "
                              "constant: 0 } trainable: false }"));
  EXPECT_THAT(text, Not(HasSubstr("\"first\"")));
}

// As of a rotary embedding that turns all of a head and passes on the rest.
TEST(OnnxIndices, SlicesWithoutElementsAreLeftOutOfAList) {
  const std::string text = Import(
      Graph(Ints("six", {6}) + Ints("end", {1 << 30}) + Ints("last", {-1}) +
            Node("Slice", {"x", "six", "end", "last"}, "rest") +
            Node("Neg", {"x"}, "turned") +
            Node("Concat", {"turned", "rest"}, "y", IntAttr("axis", -1))));
  EXPECT_THAT(text, AllOf(HasSubstr("\"neg\""), Not(HasSubstr("concat")),
                          Not(HasSubstr("slice"))));
}

// As PyTorch writes x[:, 1:3] = ... .
TEST(OnnxIndices, RowsThatAreReplacedAreChosenFromOneList) {
  const auto scattered = [](const std::string& dims, const std::string& more) {
    return Import(
        Graph(absl::StrCat("initializer { name: \"i\" data_type: 7 ", dims,
                           " int64_data: [2, -1] }\n") +
              Node("Transpose", {"x"}, "front",
                   "attribute { name: \"perm\" type: INTS ints: [1, 0, 2] }") +
              Ints("from", {0}) + Ints("to", {2}) +
              Node("Slice", {"front", "from", "to"}, "news") +
              Node("ScatterND", {"front", "i", "news"}, "y", more)));
  };
  EXPECT_THAT(scattered("dims: 2 dims: 1", ""),
              AllOf(HasSubstr("\"concat\""), HasSubstr("\"gather\"")));
  EXPECT_THAT(scattered("dims: 1 dims: 2", ""),
              HasSubstr("slice of the batch"));
  EXPECT_THAT(scattered("dims: 2 dims: 1",
                        "attribute { name: \"reduction\" type: STRING s: "
                        "\"add\" }"),
              AllOf(HasSubstr("\"scatter\""), HasSubstr("\"overwrite\"")));
  EXPECT_THAT(scattered("dims: 2 dims: 1",
                        "attribute { name: \"reduction\" type: STRING s: "
                        "\"mul\" }"),
              HasSubstr("reduction mul"));
}

TEST(OnnxIndices, ElementsThatAreReplacedAreChoices) {
  const auto scattered = [](const std::string& dims, int axis) {
    return Import(Graph(
        absl::StrCat("initializer { name: \"i\" data_type: 7 ", dims,
                     " int64_data: [1, -1, 1, 0] }\n") +
        Ints("shape", {-1, 2, 2}) + Ints("no", {0}) +
        Node("Shape", {"x"}, "dims") + Node("Gather", {"dims", "no"}, "n") +
        Node("Concat", {"n", "two", "two"}, "big", IntAttr("axis", 0)) +
        Ints("two", {2}) + Node("Expand", {"i", "big"}, "where") +
        Node("Reshape", {"x", "pairs"}, "z") + Ints("pairs", {-1, 12, 2}) +
        Node("Expand", {"i", "big"}, "some") +
        Node("Cast", {"some"}, "news", IntAttr("to", 1)) +
        Node("ScatterElements", {"z", "where", "news"}, "y",
             IntAttr("axis", axis))));
  };
  EXPECT_THAT(scattered("dims: 1 dims: 2 dims: 2", 1),
              AllOf(HasSubstr("\"equal\""), HasSubstr("\"where\"")));
  EXPECT_THAT(scattered("dims: 1 dims: 2 dims: 2", 2),
              HasSubstr("\"scatter\""));
}

// ---- Sequences.

// A member of x in parts of so many rows.
std::string Member(const std::vector<int64_t>& parts, int64_t at) {
  return Import(
      Graph(Ints("parts", parts) + Ints("at", {at}) + Ints("rank", {}) +
            Node("Reshape", {"at", "rank"}, "place") +
            Node("SplitToSequence", {"x", "parts"}, "all", IntAttr("axis", 1)) +
            Node("SequenceAt", {"all", "place"}, "part") +
            Node("Relu", {"part"}, "y")));
}

TEST(OnnxIndices, MembersOfSequencesAreValues) {
  EXPECT_THAT(Member({1, 3}, -1),
              AllOf(HasSubstr("\"split\""), HasSubstr("ints: [1, 3]"),
                    HasSubstr("type: \"relu\" in { slot: \"X\" var: "
                              "\"all.split.1\" }")));
  EXPECT_THAT(Member({1, 3}, 2), HasSubstr("a place beyond its end"));
  EXPECT_THAT(Member({1, 2}, 0), HasSubstr("make up the axis"));
  const std::string pair = Node("SequenceConstruct", {"x", "x"}, "pair");
  EXPECT_THAT(
      Import(Graph(pair + Node("ConcatFromSequence", {"pair"}, "y",
                               IntAttr("axis", -1) + IntAttr("new_axis", 1)))),
      AllOf(HasSubstr("\"stack\""), HasSubstr("name: \"axis\" i: 3")));
  EXPECT_THAT(Import(Graph(Node("SequenceConstruct", {"x", "x"}, "y"))),
              HasSubstr("output y: it is a sequence of tensors"));
  EXPECT_THAT(
      Import(Graph(Ints("at", {0}) + Node("SequenceAt", {"x", "at"}, "y"))),
      HasSubstr("input 0 is no sequence of tensors"));
}

// The elements of the one parameter that is added to x; empty: others are left.
std::vector<float> Added(const std::string& body) {
  const auto model = ImportBytes(Bytes(Graph(
      Node("Constant", {}, "list",
           "attribute { name: \"value\" type: TENSOR t { "
           "data_type: 1 dims: [2, 3] float_data: [1, 2, 3, 4, 5, "
           "6] } }") +
      body + Ints("flat", {6}) + Node("Reshape", {"made", "flat"}, "row") +
      Node("Add", {"x", "row"}, "y"))));
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok() || model->weights.size() != 1 ||
      model->imported.model.model->op_size() != 1) {
    return {};
  }
  const absl::string_view bytes = model->weights[0].tensor.bytes;
  std::vector<float> elements(bytes.size() / sizeof(float));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

// Masks and rotary tables are made once, at import.
TEST(OnnxIndices, TrianglesAndWavesOfConstantsAreConstants) {
  const auto triangle = [](int64_t upper, int64_t k) {
    return Added(Ints("k", {k}) +
                 Node("Trilu", {"list", "k"}, "made", IntAttr("upper", upper)));
  };
  EXPECT_THAT(triangle(1, 0), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(triangle(0, 0), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(triangle(1, 1), ElementsAre(0, 2, 3, 0, 0, 6));
  EXPECT_THAT(triangle(0, -1), ElementsAre(0, 0, 0, 4, 0, 0));
  EXPECT_THAT(triangle(0, INT64_MAX), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(triangle(0, INT64_MIN), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Added(Node("Trilu", {"list"}, "made")),
              ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(
      Added(Node("Cos", {"list"}, "made")),
      Pointwise(FloatEq(), {std::cos(1.0f), std::cos(2.0f), std::cos(3.0f),
                            std::cos(4.0f), std::cos(5.0f), std::cos(6.0f)}));
  EXPECT_THAT(
      Added(Node("Sin", {"list"}, "made")),
      Pointwise(FloatEq(), {std::sin(1.0f), std::sin(2.0f), std::sin(3.0f),
                            std::sin(4.0f), std::sin(5.0f), std::sin(6.0f)}));
}

}  // namespace
}  // namespace halftone
