#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "passes/options/options_testing.h"

namespace halftone {
namespace passes {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(UserLists, UnknownOpsGetTheNearest) {
  ExpectError("amp {\n custom_black_list: ['mean', 'sofmax'] }",
              "dir/s.pbtxt:2: amp.custom_black_list: no op is called "
              "\"sofmax\"; nearest: softmax (all: halftone ops)");
  ExpectError("", "--black: amp.custom_black_list: no op is called \"sofmax\"",
              ExitCode::kUsage,
              {{"amp.custom_black_list", "sofmax", "--black"}});
}

TEST(UserLists, EachMemberHasItsLine) {
  ExpectError("amp {\n custom_black_list: 'mean'\n custom_black_list: 'x' }",
              "dir/s.pbtxt:3: amp.custom_black_list: no op is called \"x\"");
}

TEST(UserLists, AliasesAndOverridesAdd) {
  const Options options =
      MustResolve("amp { level: 'O1' custom_white_list: 'matmul_v2' }",
                  {{"amp.custom_white_list", "softmax", "--white"}});
  EXPECT_THAT(OpTypesOf(options.strategy.amp().custom_white_list()),
              ElementsAre("matmul", "softmax"));
}

TEST(UserLists, AnOpInBothIsRefused) {
  ExpectError(
      "amp {\n custom_white_list: 'matmul_v2'\n"
      " custom_black_list: ['mean',\n 'matmul'] }",
      "dir/s.pbtxt:3: amp.custom_black_list: matmul is in "
      "custom_white_list, too (dir/s.pbtxt:2)");
  ExpectError("amp {\n custom_black_list: 'mean' }",
              "is in custom_white_list, too (--white)", ExitCode::kModel,
              {{"amp.custom_white_list", "mean", "--white"}});
}

TEST(OpListsTest, ComeFromAFileBesideTheStrategy) {
  const std::string dir = testing::TempDir();
  ASSERT_TRUE(WriteFileAtomically(
                  dir + "/lists.pbtxt",
                  "op_lists { white: 'conv2d' black: 'exp' gray: 'no_such_op' "
                  "clear: 'reshape' unlisted: 'gray' }")
                  .ok());
  const auto options = Resolve("amp { level: 'O1' op_lists: 'lists.pbtxt' }",
                               {}, dir + "/s.pbtxt");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->op_lists.white(), ElementsAre("conv2d"));
  EXPECT_THAT(options->op_lists.gray(), ElementsAre("no_such_op"));
  EXPECT_EQ(UnlistedOf(*options), AmpClass::kGray);
  EXPECT_TRUE(options->op_lists.has_unlisted());
  EXPECT_EQ(options->op_lists.black(0), "exp");
}

TEST(OpListsTest, PaddleIsBuiltIn) {
  const Options o1 = MustResolve("amp { level: 'O1' op_lists: 'paddle' }");
  EXPECT_THAT(o1.op_lists.white(), Contains("matmul_v2"));
  EXPECT_THAT(o1.op_lists.black(), Contains("reduce_mean"));
  EXPECT_THAT(o1.op_lists.gray(), Contains("reshape2"));
  EXPECT_EQ(UnlistedOf(o1), AmpClass::kBlack);
  EXPECT_EQ(UnlistedOf(MustResolve("amp { level: 'O2' op_lists: 'paddle' }")),
            AmpClass::kGray);
}

TEST(OpListsTest, OthersHoldAtEveryLevel) {
  for (const char* name : {"fleetx", "torch", "apex"}) {
    const Options o1 =
        MustResolve(absl::StrCat("amp { level: 'O1' op_lists: '", name, "' }"));
    EXPECT_THAT(o1.op_lists.white(), Contains("conv2d")) << name;
    EXPECT_THAT(o1.op_lists.black(), Contains("exp")) << name;
    EXPECT_TRUE(o1.op_lists.has_unlisted()) << name;
    EXPECT_EQ(UnlistedOf(o1), AmpClass::kGray) << name;
  }
}

TEST(OpListsTest, ErrorsNameTheField) {
  ExpectError("amp {\n op_lists: 'missing.pbtxt' }",
              "dir/s.pbtxt:2: amp.op_lists: expected paddle, fleetx, torch, "
              "apex or a file that can be read, found dir/missing.pbtxt");
  const std::string dir = testing::TempDir();
  ASSERT_TRUE(
      WriteFileAtomically(dir + "/bad.pbtxt", "op_lists { unlisted: 'PINK' }")
          .ok());
  const auto options =
      Resolve("amp { op_lists: 'bad.pbtxt' }", {}, dir + "/s.pbtxt");
  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("expected BLACK, GRAY or CLEAR, found \"PINK\""));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
