#include "graph/import/neutral.h"

#include "gmock/gmock.h"
#include "graph/io/model_reader.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kModel[] = R"(name: "m"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 2, 4, 4] }
param { name: "w" dims: [2, 2, 1, 1] init { constant: 1 } }
param { name: "s" dims: [2] init { constant: 1 } }
param { name: "b" dims: [2] init { constant: 0 } }
stat { name: "mean" dims: [2] init { constant: 0 } }
stat { name: "var" dims: [2] init { constant: 1 } }
op { type: "conv2d" in { slot: "Input" var: "x" } in { slot: "Filter" var: "w" }
     out { slot: "Output" var: "c" }
     attr { name: "data_format" s: "NCHW" } attr { name: "use_cudnn" b: true }
     attr { name: "padding_algorithm" s: "EXPLICIT" } }
op { type: "batch_norm" in { slot: "X" var: "c" } in { slot: "Scale" var: "s" }
     in { slot: "Bias" var: "b" } in { slot: "Mean" var: "mean" }
     in { slot: "Variance" var: "var" } out { slot: "Y" var: "n" }
     out { slot: "MeanOut" var: "mean" } out { slot: "VarianceOut" var: "var" }
     out { slot: "SavedMean" var: "sm" } attr { name: "is_test" b: false } }
op { type: "reshape2" in { slot: "X" var: "n" } out { slot: "Out" var: "y" }
     out { slot: "XShape" var: "shape" }
     attr { name: "shape" ints: [0, 32] } attr { name: "use_cudnn" b: false } }
output: "y"
)";

TEST(NeutralTest, IsLeftOutOfAModel) {
  auto file = ParseModel(kModel, "m.pbtxt");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(
      DropNeutral(&*file->model),
      ElementsAre("MeanOut (1 op)", "SavedMean (1 op)", "VarianceOut (1 op)",
                  "XShape (1 op)", "data_format (1 op)", "is_test (1 op)",
                  "padding_algorithm (1 op)", "use_cudnn (2 ops)"));
  const auto program = BuildProgram(*file);
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(DropNeutral(&*file->model), IsEmpty());
}

// What would change something, or is a mistake, is for the reader to refuse.
TEST(NeutralTest, NothingElseIs) {
  auto file = ParseModel(kModel, "m.pbtxt");
  ASSERT_TRUE(file.ok()) << file.status();
  file->model->mutable_op(0)->mutable_attr(0)->set_s("NHWC");
  file->model->mutable_op(0)->mutable_attr(1)->set_name("use_cuda");
  file->model->set_output(0, "shape");
  EXPECT_THAT(DropNeutral(&*file->model),
              ElementsAre("MeanOut (1 op)", "SavedMean (1 op)",
                          "VarianceOut (1 op)", "is_test (1 op)",
                          "padding_algorithm (1 op)", "use_cudnn (1 op)"));
  const auto program = BuildProgram(*file);
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(std::string(program.status().message()),
              HasSubstr("no output slot XShape"));
}

}  // namespace
}  // namespace halftone
