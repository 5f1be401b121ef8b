#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/onnx_import_testing.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using onnx_testing::Bytes;
using onnx_testing::Graph;
using onnx_testing::ImportBytes;
using onnx_testing::IntAttr;
using onnx_testing::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Initializer(const std::string& name, int count) {
  std::string text = absl::StrCat("initializer { name: \"", name,
                                  "\" data_type: 1 dims: ", count);
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, " float_data: ", i);
  return text + " }\n";
}

// Of x, f32[N, 4, 6], with scale and bias of `count`.
std::string GroupNorm(int opset, int count, int groups = 2) {
  const auto model = ImportBytes(
      Bytes(Graph(Initializer("w", count) + Initializer("b", count) +
                  Node("GroupNormalization", {"x", "w", "b"}, "y",
                       IntAttr("num_groups", groups))),
            opset));
  return model.ok() ? PrintModel(*model->imported.model.model)
                    : std::string(model.status().message());
}

TEST(OnnxNorms, AGroupNormHasScalesOfChannels) {
  EXPECT_THAT(
      GroupNorm(21, 4),
      AllOf(HasSubstr("op { type: \"group_norm\" in { slot: \"X\" var: \"x\" } "
                      "in { slot: \"Scale\" var: \"w\" } in { slot: \"Bias\" "
                      "var: \"b\" }"),
            HasSubstr("out { slot: \"Y\" var: \"y\" } attr { name: "
                      "\"groups\" i: 2 }")));
  EXPECT_THAT(GroupNorm(21, 2), HasSubstr("input 1 of other dims"));
}

// Before opset 21.
TEST(OnnxNorms, AGroupNormsScalesOfGroupsAreThoseOfTheirChannels) {
  EXPECT_THAT(
      GroupNorm(18, 2),
      AllOf(HasSubstr("param { name: \"w\" dims: [2]"),
            HasSubstr("op { type: \"expand_v2\""), HasSubstr("ints: [2, 2]"),
            HasSubstr("op { type: \"group_norm\""), HasSubstr("\"Scale\""),
            HasSubstr("\"Bias\"")));
  EXPECT_THAT(GroupNorm(18, 4), HasSubstr("input 1 of other dims"));
  // Each channel a group.
  EXPECT_THAT(GroupNorm(18, 4, 4), Not(HasSubstr("expand_v2")));
}

TEST(OnnxNorms, GroupsDivideTheChannels) {
  for (const int groups : {0, 3}) {
    EXPECT_THAT(GroupNorm(21, 4, groups),
                HasSubstr("attribute num_groups does not divide the channels"));
  }
}

// GroupNorm and InstanceNorm without affine parameters.
TEST(OnnxNorms, ConstantsThatChangeNothingAreLeftOut) {
  const auto constant = [](const std::string& name, const char* value) {
    std::string text = absl::StrCat(
        "attribute { name: \"value\" type: TENSOR t { data_type: 1 dims: 4");
    for (int i = 0; i < 4; ++i) absl::StrAppend(&text, " float_data: ", value);
    return Node("Constant", {}, name, text + " } }");
  };
  const auto import = [&](const char* op, const char* scale) {
    const bool groups = std::string(op) == "GroupNormalization";
    const auto model = ImportBytes(
        Bytes(Graph(constant("w", scale) + constant("b", "0") +
                    Node(op, {"x", "w", "b"}, "y",
                         groups ? IntAttr("num_groups", 2) : std::string())),
              21));
    return model.ok() ? PrintModel(*model->imported.model.model)
                      : std::string(model.status().message());
  };
  for (const char* op : {"GroupNormalization", "InstanceNormalization"}) {
    EXPECT_THAT(import(op, "1"), AllOf(HasSubstr("_norm\" in { slot: \"X\""),
                                       Not(HasSubstr("param"))));
    EXPECT_THAT(import(op, "2"),
                AllOf(HasSubstr("\"Scale\""), Not(HasSubstr("\"Bias\""))));
  }
}

}  // namespace
}  // namespace halftone
