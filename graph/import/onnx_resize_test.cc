// Images of other sizes: which of their elements are taken, and how much of
// them. What is expected is what ONNX Runtime and PyTorch give.
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

using onnx_testing::Info;
using onnx_testing::IntAttr;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

std::string Word(const std::string& name, const std::string& value) {
  return absl::StrCat(" attribute { name: \"", name, "\" type: STRING s: \"",
                      value, "\" }");
}

// Of x, f32[N, 2, size], by a scale.
std::string Scaled(int size, const std::string& scale, const std::string& mode,
                   const std::string& coordinates,
                   const std::string& more = "") {
  return absl::StrCat(
      "input ", Info("x", {"N", "2", absl::StrCat(size)}), " output ",
      Info("y", {}), "\n",
      "initializer { name: \"s\" data_type: 1 dims: 3 float_data: [1, 1, ",
      scale, "] }\n",
      Node("Resize", {"x", "", "s"}, "y",
           Word("mode", mode) +
               Word("coordinate_transformation_mode", coordinates) + more));
}

// The only weights of what is imported.
template <typename T>
std::vector<T> Weights(const std::string& graph) {
  const auto model =
      onnx_testing::ImportBytes(onnx_testing::Bytes(graph, /*opset=*/18));
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok() || model->weights.size() != 1) return {};
  const auto& bytes = model->weights[0].tensor.bytes;
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// f32 has 1.4 a little below: in f64 ten by it are 13.
TEST(OnnxResize, SizesAreProductsInF32) {
  const std::string linear =
      onnx_testing::Import(Scaled(10, "1.4", "linear", "half_pixel"));
  EXPECT_THAT(linear, HasSubstr("attr { name: \"out_w\" i: 14 }"));
  EXPECT_THAT(onnx_testing::Import(Scaled(10, "0.7", "linear", "half_pixel")),
              HasSubstr("attr { name: \"out_w\" i: 7 }"));
  // 100 by 1.05, which f32 has a little below, too, are 104.
  EXPECT_THAT(
      onnx_testing::Import(Scaled(100, "1.05", "linear", "align_corners")),
      HasSubstr("attr { name: \"out_w\" i: 104 }"));
  // A size that is no whole product has its scale.
  EXPECT_THAT(onnx_testing::Import(Scaled(7, "1.7", "linear", "half_pixel")),
              HasSubstr("attr { name: \"scale\" floats: [1.7] }"));
}

TEST(OnnxResize, CornersLieOnEachOtherWhateverTheScale) {
  EXPECT_THAT(onnx_testing::Import(Scaled(5, "1.7", "linear", "align_corners")),
              AllOf(HasSubstr("attr { name: \"out_w\" i: 8 }"),
                    Not(HasSubstr("\"matmul\""))));
  EXPECT_THAT(
      onnx_testing::Import(Scaled(10, "0.15", "linear", "align_corners")),
      HasSubstr("attr { name: \"out_w\" i: 1 }"));
  // Of cubics of one dim there is none of ours: 0, 4/3, 8/3, 4.
  const auto cubic = Weights<float>(Scaled(5, "0.9", "cubic", "align_corners"));
  ASSERT_EQ(cubic.size(), 20u);
  EXPECT_FLOAT_EQ(cubic[0], 1);
  EXPECT_FLOAT_EQ(cubic[19], 1);
}

// As PyTorch exports nearest: of 20 by 2.2, element 11 is the input's fifth,
// which f32's 2.2 leaves a little below.
TEST(OnnxResize, NearestIsThatOfPyTorchWhereItWritesIt) {
  const std::string floor = Word("nearest_mode", "floor");
  EXPECT_THAT(
      onnx_testing::Import(Scaled(20, "2.2", "nearest", "asymmetric", floor)),
      AllOf(HasSubstr("\"nearest_interp_v2\""),
            HasSubstr("attr { name: \"out_w\" i: 44 }")));
  // Ours would multiply by what f32 has of 1 / 1.7, and take 9 for the last.
  EXPECT_THAT(
      Weights<int64_t>(Scaled(11, "1.7", "nearest", "asymmetric", floor)),
      ElementsAre(0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 7, 7, 8, 8, 9, 10));
}

TEST(OnnxResize, NearestBetweenTwoIsThatOfOnnxRuntime) {
  const std::string ceil = Word("nearest_mode", "round_prefer_ceil");
  EXPECT_THAT(Weights<int64_t>(Scaled(9, "1.2", "nearest", "asymmetric", ceil)),
              ElementsAre(0, 1, 2, 3, 3, 4, 5, 6, 7, 8));
  // The last but one lies at 4.5, and in f32 above it.
  EXPECT_THAT(
      Weights<int64_t>(Scaled(6, "1.3", "nearest", "half_pixel",
                              Word("nearest_mode", "round_prefer_floor"))),
      ElementsAre(0, 1, 1, 2, 3, 4, 4));
  // What a scale leaves at its size stays.
  EXPECT_THAT(
      onnx_testing::Import(Scaled(7, "1.1", "nearest", "half_pixel", ceil)),
      Not(HasSubstr("\"gather\"")));
}

// Halves of four elements, with antialias: taps beyond the image are its edge,
// unless they are excluded.
TEST(OnnxResize, WhatLiesBeyondTheImageIsItsEdge) {
  const auto halves = [](int excludes) {
    return Weights<float>(
        Scaled(4, "0.5", "linear", "half_pixel",
               IntAttr("antialias", 1) + IntAttr("exclude_outside", excludes)));
  };
  const std::vector<float> edge = {0.5f, 0.375f, 0.125f, 0,
                                   0,    0.125f, 0.375f, 0.5f};
  EXPECT_THAT(halves(0), Pointwise(::testing::FloatEq(), edge));
  const std::vector<float> inside = {3 / 7.f, 3 / 7.f, 1 / 7.f, 0,
                                     0,       1 / 7.f, 3 / 7.f, 3 / 7.f};
  EXPECT_THAT(halves(1), Pointwise(::testing::FloatEq(), inside));
}

TEST(OnnxResize, ChannelsOfBlocksComeInEitherOrder) {
  const auto blocks = [](const std::string& more) {
    return onnx_testing::Import(absl::StrCat(
        "input ", Info("x", {"N", "3", "4", "6"}), " output ", Info("y", {}),
        "\n",
        Node("SpaceToDepth", {"x"}, "y", IntAttr("blocksize", 2) + more)));
  };
  const std::string first = "ints: [0, 3, 5, 1, 2, 4]";
  EXPECT_THAT(blocks(""), HasSubstr(first));
  EXPECT_THAT(blocks(Word("mode", "DCR")), HasSubstr(first));
  EXPECT_THAT(blocks(Word("mode", "CRD")),
              HasSubstr("ints: [0, 1, 3, 5, 2, 4]"));
}

}  // namespace
}  // namespace halftone
