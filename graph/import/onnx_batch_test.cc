// Graphs of a constant batch, as PyTorch exports them unless it is told which
// dims are open, whose batch --dims opens.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Info;
using onnx_testing::IntAttr;
using onnx_testing::Ints;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Of x, f32[samples, 4, 6].
std::string Opened(int samples, const std::string& body,
                   const std::vector<std::string>& y = {}) {
  OnnxOptions options;
  options.dims = {{"x", {-1, 4, 6}}};
  return onnx_testing::Import(
      absl::StrCat("input ", Info("x", {absl::StrCat(samples), "4", "6"}),
                   " output ", Info("y", y), "\n", body),
      options);
}

// Reshaped to `first`, then to `second`, which shows what became of the batch.
std::string Shapes(int samples, const std::string& order,
                   const std::vector<int64_t>& first,
                   const std::vector<int64_t>& second) {
  return Opened(
      samples,
      Node("Transpose", {"x"}, "t",
           absl::StrCat("attribute { name: \"perm\" type: INTS ints: ", order,
                        " }")) +
          Ints("first", first) + Ints("second", second) +
          Node("Reshape", {"t", "first"}, "f") +
          Node("Reshape", {"f", "second"}, "s") + Node("Relu", {"s"}, "y"));
}

TEST(OnnxBatch, ConstantsThatWereMultiplesOfItAreOpen) {
  for (const int samples : {1, 2, 3}) {
    SCOPED_TRACE(samples);
    // Rows of all samples, and back.
    EXPECT_THAT(Shapes(samples, "[0, 1, 2]", {samples * 4, 6}, {samples, 24}),
                AllOf(HasSubstr("ints: [-1, 6]"), HasSubstr("ints: [-1, 24]")));
    // Samples behind places: [4, B, 6].
    EXPECT_THAT(
        Shapes(samples, "[1, 0, 2]", {4 * samples, 6}, {4, samples, 6}),
        AllOf(HasSubstr("ints: [-1, 6]"), HasSubstr("ints: [4, -1, 6]")));
    EXPECT_THAT(
        Shapes(samples, "[1, 0, 2]", {4, samples * 2, 3}, {4, samples, 6}),
        AllOf(HasSubstr("ints: [4, -1, 3]"), HasSubstr("ints: [4, -1, 6]")));
  }
}

TEST(OnnxBatch, WhatOneSampleHasOnceEachOfTheBatchHas) {
  const std::string token =
      "initializer { name: \"token\" data_type: 1 dims: 1 dims: 1 dims: 6 "
      "float_data: [1, 2, 3, 4, 5, 6] }\n";
  EXPECT_THAT(Opened(1, token + Node("Concat", {"token", "x"}, "y",
                                     IntAttr("axis", 1))),
              AllOf(HasSubstr("\"concat\""), HasSubstr("\"gather\"")));
}

// The axis is the batch's own: nothing is repeated.
TEST(OnnxBatch, SamplesThatAreJoinedAreNotRepeated) {
  for (const int axis : {0, -3}) {
    EXPECT_THAT(
        Opened(1, Node("Concat", {"x", "x"}, "z", IntAttr("axis", axis)) +
                      "initializer { name: \"one\" data_type: 1 dims: "
                      "1 dims: 1 dims: 1 float_data: 1 }\n" +
                      Node("Concat", {"one", "x"}, "y", IntAttr("axis", axis))),
        Not(HasSubstr("\"gather\"")));
  }
}

TEST(OnnxBatch, WhatStaysConstantIsRefused) {
  const std::string two =
      "initializer { name: \"two\" data_type: 1 dims: 2 dims: 1 dims: 1 "
      "float_data: [1, 2] }\n";
  EXPECT_THAT(Opened(2, two + Node("Add", {"x", "two"}, "y")),
              HasSubstr("--dims opened the batch; the graph is one of 2 "
                        "samples"));
  EXPECT_THAT(Opened(2, Ints("which", {0, 1}) + Node("Gather", {"x", "which"},
                                                     "y", IntAttr("axis", 0))),
              HasSubstr("elements of the batch by their numbers"));
  EXPECT_THAT(Opened(2,
                     "initializer { name: \"c\" data_type: 1 dims: 2 dims: 1 "
                     "float_data: [1, 2] }\n" +
                         Node("Identity", {"c"}, "y"),
                     {"2", "1"}),
              HasSubstr("output y is f32[2,1], without the batch that --dims "
                        "has opened"));
}

}  // namespace
}  // namespace halftone
