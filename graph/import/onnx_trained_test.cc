#include "graph/import/onnx_trained.h"

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
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Metadata(const std::string& key, const std::string& value) {
  return absl::StrCat(" metadata_props { key: \"", key, "\" value: \"", value,
                      "\" }");
}

std::string Table(const std::string& name, const std::string& metadata = "",
                  const std::string& first = "1") {
  return absl::StrCat("initializer { name: \"", name,
                      "\" data_type: 1 dims: 6 float_data: [", first,
                      ", 2, 3, 4, 5, 6]", metadata, " }\n");
}

std::string Info(const std::string& name, const std::string& metadata) {
  return absl::StrCat("value_info { name: \"", name, "\"", metadata, " }\n");
}

// What PyTorch 2's exporter says of an input of the program that it exports.
std::string Kind(const std::string& name, const std::string& kind) {
  return Info(
      name, Metadata("pkg.torch.export.graph_signature.InputSpec.kind", kind));
}

// What its optimiser says.
std::string FoldedFrom(const std::string& sources) {
  return Metadata("pkg.onnxscript.optimizer.folded_from", sources);
}

// The import of x + each of the tables.
std::string Sum(const std::string& body, std::vector<std::string> names) {
  std::string all = body, last = "x";
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string next =
        i + 1 == names.size() ? "y" : absl::StrCat("sum.", i);
    all += Node("Add", {last, names[i]}, next);
    last = next;
  }
  return Import(Graph(all));
}

std::string Param(const std::string& name, bool trained) {
  return absl::StrCat("param { name: \"", name,
                      "\" dims: [6] init { constant: 0 } ",
                      trained ? "}\n" : "trainable: false }\n");
}

TEST(OnnxTrained, BuffersOfPyTorchAreNot) {
  EXPECT_THAT(Sum(Table("w") + Table("cos") + Table("other") +
                      Kind("w", "PARAMETER") + Kind("cos", "BUFFER"),
                  {"w", "cos", "other"}),
              AllOf(HasSubstr(Param("w", true)), HasSubstr(Param("cos", false)),
                    HasSubstr(Param("other", false))));
  // A file that says nothing.
  EXPECT_THAT(
      Sum(Table("w") + Table("cos"), {"w", "cos"}),
      AllOf(HasSubstr(Param("w", true)), HasSubstr(Param("cos", true))));
}

TEST(OnnxTrained, NumbersOfAFileThatNamesItsParametersAreScales) {
  EXPECT_THAT(
      Sum("initializer { name: \"val_3\" data_type: 1 float_data: 0.5 }\n" +
              Table("w") + Kind("w", "PARAMETER"),
          {"val_3", "w"}),
      AllOf(HasSubstr("\"scale\""), Not(HasSubstr("name: \"val_3\""))));
}

TEST(OnnxTrained, WhatIsFoldedIsAsWhatItIsMadeOf) {
  const auto folded = [](const std::string& from, bool trained) {
    const auto expected = HasSubstr(Param("val_1", trained));
    EXPECT_THAT(Sum(Table("val_1", FoldedFrom(from)), {"val_1"}), expected)
        << from;
    // Of the value, in a file that names its parameters.
    EXPECT_THAT(Sum(Table("val_1") + Info("val_1", FoldedFrom(from)) +
                        Table("w") + Kind("w", "PARAMETER"),
                    {"val_1", "w"}),
                expected)
        << from;
  };
  folded("['layers.0.weight']", true);
  folded("['layers.0.attn.table', 'val_2', 'add_3']", true);
  folded("['val_2', 'arange', 'add_3']", false);
  folded("['arange', 'cos', 'rotary.inv_freq', 'val_2']", false);
  folded("['rotary.inv_freq', 'sin_1']", false);
  folded("['layers.0.cosine', 'costs']", true);
}

// [3, 2], and what the exporter's optimiser made of it: [2, 3].
std::string Matrix(const std::string& name, const std::string& dims,
                   const std::string& elements,
                   const std::string& source = "") {
  return absl::StrCat(
      "initializer { name: \"", name, "\" data_type: 1 dims: [", dims,
      "] float_data: [", elements, "] }\n",
      source.empty()
          ? ""
          : Info(name, FoldedFrom(absl::StrCat("['", source, "']"))));
}

// Word embeddings that are the last layer's weights, too.
TEST(OnnxTrained, CopiesOfAParameterThatWereTurnedAreTied) {
  const auto tied = [](const std::string& elements, const std::string& source) {
    return Import(Graph(
        Matrix("net.words", "6, 2", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12") +
        Matrix("val_1", "2, 6", elements, source) +
        Node("MatMul", {"x", "net.words"}, "a") +
        Node("MatMul", {"a", "val_1"}, "y")));
  };
  const std::string turned = "1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 12";
  EXPECT_THAT(tied(turned, "net.words"),
              AllOf(Not(HasSubstr("\"val_1\"")), HasSubstr("trans_y")));
  EXPECT_THAT(tied(turned, "net.other"), HasSubstr("param { name: \"val_1\""));
  EXPECT_THAT(tied("1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 13", "net.words"),
              HasSubstr("param { name: \"val_1\""));
}

TEST(OnnxTrained, CopiesOfOneSourceAreTied) {
  const std::string text = Import(Graph(
      Matrix("first", "6, 6",
             "1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, "
             "3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, "
             "5, 6",
             "net.w") +
      Matrix("second", "6, 6",
             "1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, "
             "2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, "
             "4, 5, 6",
             "net.w") +
      Node("MatMul", {"x", "first"}, "a") +
      Node("MatMul", {"a", "second"}, "y")));
  EXPECT_THAT(text, AllOf(HasSubstr("param { name: \"first\""),
                          Not(HasSubstr("\"second\""))));
}

TEST(OnnxTrained, MasksAreNot) {
  EXPECT_THAT(
      Sum(Table("mask", "", "-inf") + Table("w"), {"mask", "w"}),
      AllOf(HasSubstr(Param("mask", false)), HasSubstr(Param("w", true))));
}

}  // namespace
}  // namespace halftone
